#pragma once

// Decoding over chosen rows of a latent cache, 16 heads of a request a block: what a GPU has of 128 heads that eight of
// them share. Rows of 576 numbers are gathered one by one through choice and page table into a ring of tiles; the first
// 512 are the value. Scores, weights and O are mma.m16n8k16: the heads are its 16 rows. Two blocks share a
// multiprocessor: while one waits for its scores, the other multiplies.

#include <cmath>

#include "kernels/attention/sparse_attention/timed/kernels.hpp"
#include "kernels/base/simt/mma.hpp"
#include "kernels/base/simt/softmax_step.hpp"

namespace tilestep::sparse_attention::timed::SIMT_BACKEND {

using Half = std::uint16_t;                                               // BF16
constexpr int kEightsOfWarp = kValueNumbers / 8 / (kGatherThreads / 32);  // columns of O, in eights
constexpr int kStepsOfHalf = kRowNumbers / 16 / 2;
constexpr float kToLog2 = 1.442695040888963f;

struct Decode {
  simt::Global<const Half> q, cache;
  simt::Global<const int> table, chosen;
  simt::Global<Half> o;
};

/// Shared memory of a block.
struct Room {
  simt::Shared<Half> rows, q;
  simt::Shared<float> scores;  ///< [2 × 16 × kScorePitch]: of both halves of a row's numbers
  simt::Shared<int> lines;     ///< [top_k]: rows of the cache
};
__device__ inline Room room_of() {
  constexpr std::size_t kRows = std::size_t{kRowsOfTile} * kRowStages * kRowPitch;
  constexpr std::size_t kQ = std::size_t{kHeadsOfBlock} * kRowPitch;
  constexpr std::size_t kScores = std::size_t{2} * kHeadsOfBlock * kScorePitch;
  return {simt::dynamic_shared<Half>(kRows, 0, "rows"),
          simt::dynamic_shared<Half>(kQ, kRows * sizeof(Half), "q"),
          simt::dynamic_shared<float>(kScores, (kRows + kQ) * sizeof(Half), "scores"),
          simt::dynamic_shared<int>(
              kMostChosen, (kRows + kQ) * sizeof(Half) + kScores * sizeof(float), "lines")};
}

/// Starts the copies of a tile's rows; zeros behind the last of `known`.
__device__ inline void gather_tile(const Decode& a, const Room& room, int tile, int known) {
  constexpr int kRowsOfWarp = kRowsOfTile / (kGatherThreads / 32), kMost = 2 * 32 * 8;
  static_assert(kRowsOfWarp * (kRowNumbers - kMost) == 32 * 8,
                "what is left of a warp's rows is a chunk a lane");
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first = static_cast<int>(threadIdx.x) / 32 * kRowsOfWarp;
  const auto to = room.rows + tile % kRowStages * kRowsOfTile * kRowPitch;
  const auto copy = [&](int row, int number, int line) {
    simt::cp_async16(to + (row * kRowPitch + number),
                     a.cache + (static_cast<std::ptrdiff_t>(max(line, 0)) * kRowNumbers + number),
                     line >= 0);
  };
  const auto line_of = [&](int row) {
    const int place = tile * kRowsOfTile + row;
    return place < known ? static_cast<int>(room.lines[place]) : -1;
  };
#pragma unroll
  for (int row = first; row < first + kRowsOfWarp; ++row) {
    const int line = line_of(row);
    copy(row, lane * 8, line);
    copy(row, kMost / 2 + lane * 8, line);
  }
  constexpr int kLeft = (kRowNumbers - kMost) / 8;  // chunks of a row
  const int row = first + lane / kLeft;
  copy(row, kMost + lane % kLeft * 8, line_of(row));
}

/// Scores of eight rows from half of their numbers, by a warp, to shared memory.
__device__ inline void score_eight(const Room& room, simt::Shared<Half> rows) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int eight = warp % 4, half = warp / 4;
  float sums[2][4] = {};  // two chains of products
#pragma unroll 3
  for (int step = 0; step < kStepsOfHalf; step += 2) {
    unsigned a[2][4], b[4];
    const int column = (half * kStepsOfHalf + step) * 16;
    // B's fragments of two steps: eight rows, 32 numbers.
    simt::ldmatrix_x4(b, rows + ((eight * 8 + lane % 8) * kRowPitch + column + lane / 8 * 8));
    for (int i = 0; i < 2; ++i) {
      simt::ldmatrix_x4(a[i], room.q + (lane % 16 * kRowPitch + column + i * 16 + lane / 16 * 8));
      simt::mma_m16n8k16_bf16(sums[i], a[i], b[2 * i], b[2 * i + 1]);
    }
  }
  for (int i = 0; i < 4; i += 2) {
    const int head = lane / 4 + i / 2 * 8, row = eight * 8 + lane % 4 * 2;
    const int at = (half * kHeadsOfBlock + head) * kScorePitch + row;
    simt::as<float2>(room.scores)[at / 2] =
        make_float2(sums[0][i] + sums[1][i], sums[0][i + 1] + sums[1][i + 1]);
  }
}

/// The heads of a lane, two, and what they have summed up.
struct Heads {
  float m[2] = {-INFINITY, -INFINITY}, l[2] = {0, 0};

  /// A tile's scores to weights, A's fragments of two steps; each warp makes all of them for itself.
  __device__ inline void weigh(const Room& room, int first, int known, float scale,
                               unsigned (&weights)[2][4], float (&rescale)[2]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int half = 0; half < 2; ++half) {
      const int head = lane / 4 + half * 8;
      float s[8], best = -INFINITY;
      for (int i = 0; i < 8; i += 2) {
        const int row = i / 2 * 8 + lane % 4 * 2, at = (head * kScorePitch + row) / 2;
        const float2 one = simt::as<float2>(room.scores)[at],
                     other = simt::as<float2>(room.scores)[kHeadsOfBlock * kScorePitch / 2 + at];
        s[i] = first + row < known ? (one.x + other.x) * scale : -INFINITY;
        s[i + 1] = first + row + 1 < known ? (one.y + other.y) * scale : -INFINITY;
        best = fmaxf(best, fmaxf(s[i], s[i + 1]));
      }
      best = fmaxf(best, __shfl_xor_sync(0xFFFFFFFFu, best, 1));
      best = fmaxf(best, __shfl_xor_sync(0xFFFFFFFFu, best, 2));
      const auto step = simt::raise_maximum<simt::BinaryExp>(m[half], best);
      rescale[half] = step.rescale;
      float sum = 0;
      for (float& one : s) {
        one = step.weight(one);
        sum += one;
      }
      l[half] = l[half] * rescale[half] + sum;
      for (int i = 0; i < 4; ++i)
        weights[i / 2][half + i % 2 * 2] = simt::pack_bf16(s[2 * i], s[2 * i + 1]);
    }
  }
  __device__ inline float sum(int half) const {
    const float two = l[half] + __shfl_xor_sync(0xFFFFFFFFu, l[half], 1);
    return two + __shfl_xor_sync(0xFFFFFFFFu, two, 2);
  }
};

__global__ void __launch_bounds__(kGatherThreads, 2) decode_kernel(Decode a, DecodeShape shape) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const auto request = static_cast<std::ptrdiff_t>(blockIdx.x);
  const Room room = room_of();
  int known = 0;  // the choice's tokens: behind the last are none
  for (int first = 0; first < shape.top_k; first += kGatherThreads) {
    const int i = first + thread;
    const int token = i < shape.top_k ? a.chosen[request * shape.top_k + i] : -1;
    if (token >= 0) {
      const int page = token / shape.page_size;
      const int at = a.table[request * shape.table_pitch + page] * shape.page_size;
      room.lines[i] = at + (token - page * shape.page_size);
    }
    known += __syncthreads_count(token >= 0);  // and lines are known
  }
  constexpr int kChunks = kRowNumbers / 8;
  for (int i = thread; i < kHeadsOfBlock * kChunks; i += kGatherThreads) {
    const int head = i / kChunks, chunk = i % kChunks;
    simt::cp_async16(room.q + (head * kRowPitch + chunk * 8),
                     a.q + ((request * kHeadsOfBlock + head) * kRowNumbers + chunk * 8), true);
  }
  const int tiles = (known + kRowsOfTile - 1) / kRowsOfTile;
  for (int tile = 0; tile < kRowStages - 1; ++tile) {
    if (tile < tiles) gather_tile(a, room, tile, known);
    simt::cp_async_commit();
  }
  float o[kEightsOfWarp][4] = {};
  Heads heads;
  for (int tile = 0; tile < tiles; ++tile) {
    simt::cp_async_wait<kRowStages - 2>();
    __syncthreads();  // all threads' copies have landed, and all are done with the tile before
    if (tile + kRowStages - 1 < tiles) gather_tile(a, room, tile + kRowStages - 1, known);
    simt::cp_async_commit();
    const auto rows = room.rows + tile % kRowStages * kRowsOfTile * kRowPitch;
    score_eight(room, rows);
    __syncthreads();  // all scores are there
    unsigned weights[2][4];
    float rescale[2];
    heads.weigh(room, tile * kRowsOfTile, known, shape.scale * kToLog2, weights, rescale);
#pragma unroll
    for (int j = 0; j < kEightsOfWarp; j += 2) {
      for (int i = 0; i < 4; ++i) {
        o[j][i] *= rescale[i / 2];
        o[j + 1][i] *= rescale[i / 2];
      }
      const int column = (warp * kEightsOfWarp + j) * 8;
      for (int step = 0; step < 2; ++step) {
        unsigned b[4];
        simt::ldmatrix_x4_trans(
            b, rows + ((step * 16 + lane % 16) * kRowPitch + column + lane / 16 * 8));
        simt::mma_m16n8k16_bf16(o[j], weights[step], b[0], b[1]);
        simt::mma_m16n8k16_bf16(o[j + 1], weights[step], b[2], b[3]);
      }
    }
  }
  const float sums[2] = {heads.sum(0), heads.sum(1)};
#pragma unroll
  for (int j = 0; j < kEightsOfWarp; ++j) {
    const int column = (warp * kEightsOfWarp + j) * 8 + lane % 4 * 2;
    for (int half = 0; half < 2; ++half) {
      const float by = sums[half] > 0 ? 1 / sums[half] : 0;
      const unsigned two = simt::pack_bf16(o[j][2 * half] * by, o[j][2 * half + 1] * by);
      const std::ptrdiff_t at =
          (request * kHeadsOfBlock + lane / 4 + half * 8) * kValueNumbers + column;
      a.o[at] = static_cast<Half>(two);
      a.o[at + 1] = static_cast<Half>(two >> 16);
    }
  }
}

}  // namespace tilestep::sparse_attention::timed::SIMT_BACKEND

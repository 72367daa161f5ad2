#pragma once

// Absorbed MLA for explanation: one new token of each request over a paged cache of latent rows. The first numbers of a
// row are key and value of every head, the last ones the rotary part of the key: a row is loaded once, and all query
// heads of the block multiply by it twice. The queries are absorbed, that is, already multiplied by each head's key
// weights. DeepSeek-AI, "DeepSeek-V2", 2024.
//
//   latent_explained   a block per item: some pages of one request, in tiles of 16 tokens
//   latent_merge       the weighted sum of each request's parts
//
// It accumulates in FP32 on CUDA cores: this kernel shows what is computed, not how fast it can be.

#include <cmath>

#include "kernels/attention/decode/latent/explained_problem.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/simt/packed.hpp"

namespace tilestep::decode::latent::SIMT_BACKEND {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr int kTile = paged::kExplainedTile;
constexpr int kChunk = 8;  ///< numbers in 16 bytes

struct Memory {
  simt::Global<const std::uint16_t> q, cache;
  simt::Global<const int> table, context;
  simt::Global<const paged::WorkItem> items;
  simt::Global<const int> first_item;
  simt::Global<std::uint16_t> o;
  simt::Global<float> lse, part_o, part_m, part_l;
  simt::Global<const int> parts;
};
/// The recorder: paged::Explanation, on the device.
struct Records {
  simt::Global<paged::Visit> visits;
  simt::Global<paged::StepRecord> steps;
  simt::Global<unsigned long long> asked;
  simt::Global<float> weights;
  int request, head, component, step_pitch, traced_item;
  simt::Tape tape;

  __device__ void asks(paged::Tensor tensor, int kind, int bytes) const {
    atomicAdd(&asked[2 * tensor + kind], static_cast<unsigned long long>(bytes));
  }
};
/// A block's shared memory.
struct Rooms {
  simt::Shared<float> o;             ///< [rows × value], not divided
  simt::Shared<float> m, l;          ///< [rows]
  simt::Shared<std::uint16_t> q;     ///< [rows × width]
  simt::Shared<std::uint16_t> tile;  ///< [kTile × width]
};

__device__ inline float number(std::uint16_t bits) {
  return numeric::Bf16::value(bits);
}
__device__ inline long long now([[maybe_unused]] int items) {
#if defined(__CUDACC__)
  return simt::device_clock();
#else
  return items;
#endif
}

/// Loads the queries of the item's rows and initializes the sums.
__device__ inline void begin(const Rooms& rooms, const ExplainedProblem& p, const Memory& memory,
                             const paged::WorkItem& item, const Records& records) {
  const int rows = paged::rows_of(item);
  for (int i = static_cast<int>(threadIdx.x); i < rows * p.width; i += kThreads) {
    rooms.q[i] = memory.q[paged::query_of(item, i / p.width, p.heads) * p.width + i % p.width];
    records.asks(paged::kQ, 0, 2);
  }
  for (int i = static_cast<int>(threadIdx.x); i < rows * p.value; i += kThreads) rooms.o[i] = 0;
  for (int i = static_cast<int>(threadIdx.x); i < rows; i += kThreads) {
    rooms.m[i] = -INFINITY;
    rooms.l[i] = 0;
  }
}

/// Gathers the rows of up to kTile tokens through the block table, 16 bytes at a time.
__device__ inline void gather(const Rooms& rooms, const ExplainedProblem& p, const Memory& memory,
                              const paged::WorkItem& item, int number_of, int token, int there,
                              const Records& records) {
  const int chunks = p.width / kChunk;
  for (int i = static_cast<int>(threadIdx.x); i < there * chunks; i += kThreads) {
    const int at = token + i / chunks;
    const int page = memory.table[item.request * p.table_pitch + at / p.page_size];
    if (i % chunks == 0) records.asks(paged::kTable, 0, 4);
    const int row = page * p.page_size + at % p.page_size;
    const int from = row * p.width + i % chunks * kChunk;
    for (int c = 0; c < kChunk; ++c) {
      rooms.tile[i / chunks * p.width + i % chunks * kChunk + c] = memory.cache[from + c];
    }
    records.asks(paged::kK, 0, 2 * kChunk);
    if (number_of == records.traced_item && records.tape.entries != nullptr) {
      records.tape.access(paged::kK, static_cast<std::uint64_t>(from) * 2, 2 * kChunk,
                          simt::AccessKind::load);
    }
  }
}

/// One row's online softmax over the tile, by a warp: two lanes per token, half of the row each.
__device__ inline void attend_row(const Rooms& rooms, const ExplainedProblem& p, int row, int there,
                                  int left, const paged::WorkItem& item, int number_of, int tile,
                                  const Records& records) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int token = lane % kTile;
  float score = 0;
  if (token < there) {
    for (int c = lane / kTile; c < p.width; c += 2) {
      score += number(rooms.q[row * p.width + c]) *
               number(rooms.tile[token * p.width + c]);  // [step: scores]
    }
  }
  score += __shfl_xor_sync(kAllLanes, score, kTile);
  score = token < there ? score * p.scale : -INFINITY;
  float most = score;
  for (int by = kTile / 2; by > 0; by /= 2)
    most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, by));
  const float before = rooms.m[row];
  const float after = fmaxf(before, most);
  const float rescale = before == -INFINITY ? 0.0f : expf(before - after);  // [step: softmax]
  const float weight = token < there ? expf(score - after) : 0.0f;
  float sum = weight;
  for (int by = kTile / 2; by > 0; by /= 2) sum += __shfl_xor_sync(kAllLanes, sum, by);
  for (int c = lane; c < (p.value + 31) / 32 * 32; c += 32) {
    float o = c < p.value ? rooms.o[row * p.value + c] * rescale : 0.0f;
    for (int t = 0; t < there; ++t) {
      const float of = __shfl_sync(kAllLanes, weight, t);
      if (c < p.value) o += of * number(rooms.tile[t * p.width + c]);  // [step: values]
    }
    if (c < p.value) rooms.o[row * p.value + c] = o;
  }
  const float l = rooms.l[row] * rescale + sum;
  __syncwarp();
  if (lane != 0) return;
  rooms.m[row] = after;
  rooms.l[row] = l;
  if (row != paged::row_with(item, records.request, records.head)) return;
  records.steps[number_of * records.step_pitch + tile] = {
      most, before, after, rescale, sum, l, rooms.o[row * p.value + records.component], left};
}

/// Stores O of the item's rows to memory, or to the item's slot.
__device__ inline void finish(const Rooms& rooms, const ExplainedProblem& p, const Memory& memory,
                              const paged::WorkItem& item, const Records& records) {
  for (int i = static_cast<int>(threadIdx.x); i < paged::rows_of(item) * p.value; i += kThreads) {
    const int row = i / p.value, column = i % p.value;
    if (paged::is_split(item)) {
      const int at = paged::part_of(item, row, p.most_rows);
      memory.part_o[at * p.value + column] = rooms.o[i];
      records.asks(paged::kParts, 1, 4);
      if (column != 0) continue;
      memory.part_m[at] = rooms.m[row];
      memory.part_l[at] = rooms.l[row];
      records.asks(paged::kParts, 1, 8);
      continue;
    }
    const float l = rooms.l[row];
    const int head = paged::query_of(item, row, p.heads);
    memory.o[head * p.value + column] =
        numeric::Bf16::bits(l > 0 ? rooms.o[i] / l : 0.0f);  // [step: output]
    records.asks(paged::kO, 1, 2);
    if (column != 0) continue;
    memory.lse[head] = l > 0 ? rooms.m[row] + logf(l) : -INFINITY;
    records.asks(paged::kLse, 1, 4);
  }
}

__global__ void latent_explained(Memory memory, ExplainedProblem p, Records records) {
  const auto rows = static_cast<std::size_t>(p.most_rows * p.most_requests),
             width = static_cast<std::size_t>(p.width);
  const std::size_t numbers = rows * static_cast<std::size_t>(p.value);
  const std::size_t words_at = (numbers + 2 * rows) * 4;
  const Rooms rooms{
      simt::dynamic_shared<float>(numbers, 0, "O"),
      simt::dynamic_shared<float>(rows, numbers * 4, "maxima"),
      simt::dynamic_shared<float>(rows, (numbers + rows) * 4, "sums"),
      simt::dynamic_shared<std::uint16_t>(rows * width, words_at, "queries"),
      simt::dynamic_shared<std::uint16_t>(kTile * width, words_at + rows * width * 2, "tile")};
  const int first = memory.first_item[static_cast<int>(blockIdx.x)];
  const int end = memory.first_item[static_cast<int>(blockIdx.x) + 1];
  for (int number_of = first; number_of < end; ++number_of) {
    const paged::WorkItem item = memory.items[number_of];
    const int from = item.first_page * p.page_size;
    const int to = max(from, min(from + item.pages * p.page_size, memory.context[item.request]));
    const int tiles = (to - from + kTile - 1) / kTile;
    if (threadIdx.x == 0) {
      records.visits[number_of] = {static_cast<int>(blockIdx.x),
                                   simt::multiprocessor(),
                                   number_of - first,
                                   tiles,
                                   now(number_of - first),
                                   0};
    }
    begin(rooms, p, memory, item, records);
    for (int tile = 0; tile < tiles; ++tile) {
      const int token = from + tile * kTile, left = to - token, there = min(left, kTile);
      gather(rooms, p, memory, item, number_of, token, there, records);
      __syncthreads();  // the tile is ready, and before the first one the queries
      for (int row = static_cast<int>(threadIdx.x) / 32; row < paged::rows_of(item);
           row += kWarps) {
        attend_row(rooms, p, row, there, left, item, number_of, tile, records);
      }
      __syncthreads();  // all rows have used it
    }
    if (tiles == 0) __syncthreads();  // the sums that `begin` wrote
    finish(rooms, p, memory, item, records);
    __syncthreads();  // all are read before the next item's begin
    if (threadIdx.x == 0) records.visits[number_of].end = now(number_of - first + 1);
  }
}

/// The weighted sum of the parts of a request's heads, which begin at `first_slot`.
__device__ inline void merge_parts(const ExplainedProblem& p, const Memory& memory, int request,
                                   const paged::WorkItem& item, int first_slot, int parts,
                                   const Records& records) {
  for (int i = static_cast<int>(threadIdx.x); i < item.heads * p.value; i += kThreads) {
    const int row = i / p.value, column = i % p.value;
    const int first = first_slot * p.most_rows + row;
    float most = -INFINITY;
    for (int s = 0; s < parts; ++s) most = fmaxf(most, memory.part_m[first + s * p.most_rows]);
    float l = 0, o = 0;
    for (int s = 0; s < parts; ++s) {
      const int at = first + s * p.most_rows;
      float weight =
          memory.part_m[at] == -INFINITY ? 0.0f : expf(memory.part_m[at] - most);  // [step: weigh]
      if (p.merging == paged::Merging::first_only) weight = s == 0 ? 1.0f : 0.0f;
      l += memory.part_l[at] * weight;
      o += memory.part_o[at * p.value + column] * weight;  // [step: merge]
      records.asks(paged::kParts, 0, 4);
      if (column != 0) continue;
      records.asks(paged::kParts, 0, 8);
      records.weights[at] = weight;
    }
    const int head = request * p.heads + item.first_head + row;
    memory.o[head * p.value + column] = numeric::Bf16::bits(l > 0 ? o / l : 0.0f);
    records.asks(paged::kO, 1, 2);
    if (column != 0) continue;
    // The maximum that the sum is relative to.
    const float base = p.merging == paged::Merging::first_only ? memory.part_m[first] : most;
    memory.lse[head] = l > 0 ? base + logf(l) : -INFINITY;
    records.asks(paged::kLse, 1, 4);
  }
}

/// A block per item; only the first part of its requests has work.
__global__ void latent_merge(Memory memory, ExplainedProblem p, Records records) {
  const paged::WorkItem item = memory.items[static_cast<int>(blockIdx.x)];
  if (item.split != 0 || !paged::is_split(item)) return;
  for (int i = 0; i < item.requests; ++i) {
    const int first_slot = item.first_slot + i * item.slot_stride;
    merge_parts(p, memory, item.request + i, item, first_slot,
                i == 0 ? item.splits : memory.parts[first_slot], records);
  }
}

}  // namespace tilestep::decode::latent::SIMT_BACKEND

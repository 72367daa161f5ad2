#pragma once

// y = W · x with W ternary, by additions alone: a byte of W is four codes, and the address of what they make of their four
// columns of x. A table of those sums for each byte column lies in shared memory, and serves all rows.
//
// A slice: 512 columns, a word of each lane. All that a lane looks up lies in its own bank, so that no two collide: entry
// `byte` of a lane's table i is at byte · 256 + i % 2 · 128 + lane · 4 of half i / 2, an address that one PRMT makes. A
// word of 16 weights takes four of them, four loads and four additions. 81 of 256 entries exist; the others are never read.
// What bounds it is the path to shared memory, a warp's access a cycle: 4 look-ups, the words' own load and 9/8 of a shuffle
// for 512 weights are 84 weights a cycle; an H200's memory brings a multiprocessor about 75.
//
// The blocks of a cluster share the slices of the same rows and add up their sums through each other's shared memory.

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/hopper.hpp"
#include "kernels/base/simt/packed.hpp"
#include "kernels/numbers/low_bit/linear/launches.hpp"

namespace tilestep::low_bit::SIMT_BACKEND {

using namespace simt::hopper;

using Tables = simt::Shared<std::uint8_t>;
constexpr unsigned kWholeWarp = 0xFFFFFFFFu;
constexpr int kHalfOfTables = kTableBytes / 2;

/// What a digit of three, 0, 1 or 2, makes of x: 0, x or −x. As a code of two bits it is 0, 1 or 3.
__device__ __forceinline__ float signed_by(int digit, float x) {
  return digit == 0 ? 0.0f : digit == 1 ? x : -x;
}
__device__ __forceinline__ int code_of_digit(int digit) {
  return digit + digit / 2;
}

/// A warp fills a part of table warp % 4 of all lanes: sums of the lower two columns, each with some of the upper two's.
__device__ __forceinline__ void fill_tables(Tables tables, simt::Global<const std::uint16_t> x,
                                            int slice, int columns) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int table = warp % 4, column = slice * kTableColumns + lane * 16 + table * 4;
  uint2 four = make_uint2(0, 0);
  if (column < columns) four = simt::as<const uint2>(x)[column / 4];
  const float x2 = simt::unpack_bf16(four.y, 0), x3 = simt::unpack_bf16(four.y, 1);
  float low[9];
#pragma unroll
  for (int i = 0; i < 9; ++i) {
    low[i] = signed_by(i % 3, simt::unpack_bf16(four.x, 0)) +
             signed_by(i / 3, simt::unpack_bf16(four.x, 1));
  }
  const auto mine = tables + table / 2 * kHalfOfTables + table % 2 * 128 + lane * 4;
  for (int high = warp / 4; high < 9; high += kTableWarps / 4) {
    const float sum = signed_by(high % 3, x2) + signed_by(high / 3, x3);
    const int upper = code_of_digit(high % 3) << 4 | code_of_digit(high / 3) << 6;
#pragma unroll
    for (int i = 0; i < 9; ++i) {
      const int byte = upper | code_of_digit(i % 3) | code_of_digit(i / 3) << 2;
      simt::as<float>(mine + byte * 256)[0] = sum + low[i];
    }
  }
}

/// What the codes of a word make of the lane's sixteen columns.
__device__ __forceinline__ float look_up(Tables tables, unsigned word, unsigned place) {
  float found[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned address =
        simt::permute_bytes(place, word, 0x1140u + (static_cast<unsigned>(i) << 4));
    found[i] = simt::as<float>(tables + i / 2 * kHalfOfTables + i % 2 * 128 + address)[0];
  }
  return (found[0] + found[1]) + (found[2] + found[3]);
}

/// Sums over the lanes: of row lane / 4. A step halves the rows that a lane still has.
__device__ __forceinline__ float sum_of_rows(float (&rows)[kTableBatch]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int some = kTableBatch / 2; some > 0; some /= 2) {
    const bool upper = (lane & some * 4) != 0;
#pragma unroll
    for (int i = 0; i < some; ++i) {
      const float sent = upper ? rows[i] : rows[i + some];
      const float kept = upper ? rows[i + some] : rows[i];
      rows[i] = kept + __shfl_xor_sync(kWholeWarp, sent, some * 4);
    }
  }
  rows[0] += __shfl_xor_sync(kWholeWarp, rows[0], 2);
  return rows[0] + __shfl_xor_sync(kWholeWarp, rows[0], 1);
}

/// A cluster has `plan.rows` rows, a block of it every blocks-th slice, a warp eight rows at a time; three times eight are
/// on their way, the first ones while the launch before still runs.
__global__ void __launch_bounds__(kTableWarps * 32, 1)
    gemv_tables(GemvArrays w, LinearShape shape, TablePlan plan, simt::Global<std::uint16_t> y) {
  constexpr int kAhead = 3, kStep = kTableWarps * kTableBatch;
  const auto tables = simt::dynamic_shared<std::uint8_t>(
      static_cast<std::size_t>(kTableBytes + plan.rows * 4), 0, "tables");
  const unsigned sums_at = simt::shared_address(tables) + kTableBytes;
  const auto count = static_cast<std::size_t>(plan.rows);
  const auto sums = staged<float>(sums_at, count, "sums");
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  others_may_begin();
  const int rank = plan.blocks == 1 ? 0 : static_cast<int>(rank_in_cluster());
  const int from = static_cast<int>(blockIdx.x) / plan.blocks * plan.rows;
  const int rows = min(plan.rows, shape.rows - from), words = shape.columns / 16;
  const int slices = (shape.columns + kTableColumns - 1) / kTableColumns;
  const auto mine = simt::as<const unsigned>(w.codes);
  for (int i = thread; i < plan.rows; i += kTableWarps * 32) sums[i] = 0;

  for (int slice = rank; slice < slices; slice += plan.blocks) {
    // Past the last column all tables hold zeros, whatever the codes.
    const int word = min(slice * (kTableColumns / 16) + lane, words - 1);
    unsigned ahead[kAhead][kTableBatch];
    const auto load = [&](int i, int row) {
      if (row >= rows) return;
      const auto codes = mine + (static_cast<std::ptrdiff_t>(from + row) * words + word);
#pragma unroll
      for (int j = 0; j < kTableBatch; ++j) ahead[i][j] = codes[j * words];
    };
#pragma unroll
    for (int i = 0; i < kAhead; ++i) load(i, warp * kTableBatch + i * kStep);
    await_launch_before();
    __syncthreads();  // the last slice's tables are no longer read, and the sums are zeros
    fill_tables(tables, w.x, slice, shape.columns);
    __syncthreads();  // all tables are there
    for (int first = warp * kTableBatch; first < rows; first += kAhead * kStep) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int row = first + i * kStep;
        if (row >= rows) break;
        float found[kTableBatch];
#pragma unroll
        for (int j = 0; j < kTableBatch; ++j) {
          found[j] = look_up(tables, ahead[i][j], static_cast<unsigned>(lane) * 4);
        }
        load(i, row + kAhead * kStep);
        const float sum = sum_of_rows(found);
        if (lane % 4 == 0) sums[row + lane / 4] += sum;
      }
    }
  }
  if (plan.blocks == 1) {
    __syncthreads();  // all rows' sums are there
  } else {
    cluster_barrier();  // in all blocks
  }
  for (int row = rank * kTableWarps * 32 + thread; row < rows;
       row += plan.blocks * kTableWarps * 32) {
    float sum = plan.blocks == 1 ? sums[row] : 0.0f;
    for (int block = 0; plan.blocks > 1 && block < plan.blocks; ++block) {
      sum +=
          remote<float>(sums_at, static_cast<unsigned>(block), count, "sums of the cluster")[row];
    }
    y[from + row] = static_cast<std::uint16_t>(simt::pack_bf16(sum * w.scale[0], 0.0f));
  }
  if (plan.blocks > 1) cluster_barrier();  // no block ends while another reads its memory
}

}  // namespace tilestep::low_bit::SIMT_BACKEND

#pragma once

// The row-by-row work of the backward pass for Hopper before and after its products. Both kernels only move
// bytes: each number once.

#include "kernels/attention/attention_backward/hopper/backward_warpgroup.hpp"

namespace tilestep::attention_backward::hopper::SIMT_BACKEND {

constexpr int kRowThreads = 128;
constexpr float kLog2E = 1.4426950408889634f;

/// Of 16 bytes of each.
__device__ __forceinline__ float products_of(uint4 x, uint4 y) {
  const auto both = [](unsigned a, unsigned b) {
    return fmaf(simt::unpack_bf16(a, 0), simt::unpack_bf16(b, 0),
                simt::unpack_bf16(a, 1) * simt::unpack_bf16(b, 1));
  };
  return both(x.x, y.x) + both(x.y, y.y) + (both(x.z, y.z) + both(x.w, y.w));
}

struct RowArrays {
  simt::Global<const std::uint16_t> o, d_o;
  simt::Global<const float> lse;
  simt::Global<float> rows, sums;
};

/// D = rowsum(dO ∘ O) and log2(e) · log-sum-exp of each query; dQ's sums start at 0. A query past the end, or one
/// that sees no key, gets +∞: all its weights are then 0.
template <class T>
__global__ void prepare(RowArrays arrays, int length, int query_tiles, int heads) {
  constexpr int kLanes = T::kHeadDim / 8;  // of a row
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = thread / kLanes;  // over all heads, each padded to whole tiles
  const int rows_of_head = query_tiles * T::kQueries;
  const int head = row / rows_of_head;
  const int query = row % rows_of_head;
  const bool there = head < heads && query < length;
  float d = 0;
  if (there) {
    const std::ptrdiff_t at =
        (static_cast<std::ptrdiff_t>(head) * length + query) * T::kHeadDim + thread % kLanes * 8;
    d = products_of(simt::as<const uint4>(arrays.o + at)[0],
                    simt::as<const uint4>(arrays.d_o + at)[0]);
  }
#pragma unroll
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) d += __shfl_xor_sync(kAllLanes, d, lanes);
  if (head >= heads) return;
  const auto sums = simt::as<float4>(arrays.sums + static_cast<std::ptrdiff_t>(thread) * 8);
  sums[0] = sums[1] = make_float4(0, 0, 0, 0);
  if (thread % kLanes != 0) return;
  const float lse =
      there ? arrays.lse[static_cast<std::ptrdiff_t>(head) * length + query] : -INFINITY;
  const int tile = row / T::kQueries;
  const auto to = arrays.rows + static_cast<std::ptrdiff_t>(tile) * 2 * T::kQueries;
  to[row % T::kQueries] = lse == -INFINITY ? INFINITY : lse * kLog2E;
  to[T::kQueries + row % T::kQueries] = d;
}

/// dQ from its sums, times `scale`. A block has a contiguous block of 64 × 64 in register layout; it goes
/// through shared memory so that whole rows are written.
template <class T>
__global__ void convert(simt::Global<const float> sums, simt::Global<std::uint16_t> dq, int length,
                        int query_tiles, float scale) {
  constexpr int kPitch = kPanelColumns / 2 + 4;  // words; no two of a warp in one bank
  __shared__ simt::Array<unsigned, kRowsOfGroup, kPitch> tile;
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / 32 * 16 + thread % 32 / 4;
  const auto piece = static_cast<int>(blockIdx.x);
  const auto fours = simt::as<const float4>(sums + static_cast<std::ptrdiff_t>(piece) *
                                                       (kRowsOfGroup * kPanelColumns));
#pragma unroll
  for (int j = 0; j < kPanelColumns / 8; ++j) {
    const float4 four = fours[j * kRowThreads + thread];
    tile[row][4 * j + thread % 4] = simt::pack_bf16(four.x * scale, four.y * scale);
    tile[row + 8][4 * j + thread % 4] = simt::pack_bf16(four.z * scale, four.w * scale);
  }
  __syncthreads();
  const int which = piece % kConsumers;
  const int query_tile = piece / kConsumers % query_tiles;
  const int head = piece / kConsumers / query_tiles;
  const int query = query_tile * T::kQueries + (T::kPanels > 1 ? 0 : which * kRowsOfGroup);
  const int column = T::kPanels > 1 ? which * kPanelColumns : 0;
#pragma unroll
  for (int i = 0; i < kRowsOfGroup * 8 / kRowThreads; ++i) {
    const int chunk = i * kRowThreads + thread;
    const int mine = query + chunk / 8;
    if (mine >= length) continue;
    const auto from = tile[chunk / 8];
    const int word = chunk % 8 * 4;
    const std::ptrdiff_t at =
        (static_cast<std::ptrdiff_t>(head) * length + mine) * T::kHeadDim + column + word * 2;
    simt::as<uint4>(dq + at)[0] =
        make_uint4(from[word], from[word + 1], from[word + 2], from[word + 3]);
  }
}

}  // namespace tilestep::attention_backward::hopper::SIMT_BACKEND

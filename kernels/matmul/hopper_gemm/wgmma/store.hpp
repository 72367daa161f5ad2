#pragma once

/// \file
/// How a warpgroup stores its accumulators: straight to C, or through shared memory by TMA.

#include "kernels/matmul/hopper_gemm/wgmma/tiles.hpp"

namespace tilestep::hopper_gemm::SIMT_BACKEND {

/// Two neighbouring elements of a row of C, as stored.
template <class Out>
struct Pair;
template <>
struct Pair<float> {
  using Bits = float2;
  static __device__ __forceinline__ Bits of(float x, float y) { return make_float2(x, y); }
};
template <>
struct Pair<std::uint16_t> {  // BF16
  using Bits = unsigned;
  static __device__ __forceinline__ Bits of(float x, float y) { return pack_bf16(x, y); }
};

template <class Out>
__device__ __forceinline__ void store_pair(simt::Global<Out> c, const GemmShape& shape, int row,
                                           int column, float x, float y) {
  if (row >= shape.m || column >= shape.n) return;
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * pitch_of<Out>(shape.n) + column;
  simt::as<typename Pair<Out>::Bits>(c)[at / 2] = Pair<Out>::of(x, y);
}

/// Straight to C, whose rows are `pitch_of<Out>(n)` elements apart: four lanes store 32 or 16 contiguous
/// bytes.
template <class T, class Out, class Sums>
__device__ __forceinline__ void store_sums(simt::Global<Out> c, const Sums& sums,
                                           const GemmShape& shape, const TilePlace& place) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
  const auto pairs = simt::as<typename Pair<Out>::Bits>(c);
  const int pitch = pitch_of<Out>(shape.n) / 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = place.row + warp * 16 + half * 8 + lane / 4;
    if (row >= shape.m) continue;
    const int column = place.column + lane % 4 * 2;
    const auto to = pairs + (static_cast<std::ptrdiff_t>(row) * pitch + column / 2);
#pragma unroll
    for (int j = 0; j < T::kColumns / 8; ++j) {
      if (column + 8 * j >= shape.n) continue;
      to[4 * j] = Pair<Out>::of(sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]);
    }
  }
}

/// Writes 128 bytes of each of a warp's 16 rows to a tile, with the 128-byte swizzle or without one; `first`
/// is the first column's block of 8. With it the rows of each 8 × 8 matrix fall into all 32 banks, without it
/// into the same 4.
template <bool kSwizzled, class Sums>
__device__ __forceinline__ void stage_sums(const Sums& sums, unsigned tile, int first,
                                           std::uint16_t) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
  const int row = warp * 16 + lane % 16;
#pragma unroll
  for (int j = 0; j < 8; j += 2) {
    const float* from = &sums[4 * (first + j)];
    const unsigned matrices[4] = {pack_bf16(from[0], from[1]), pack_bf16(from[2], from[3]),
                                  pack_bf16(from[4], from[5]), pack_bf16(from[6], from[7])};
    const int plain = row * 8 + j + lane / 16;
    const int chunk = kSwizzled ? simt::swizzled_chunk(row, j + lane / 16) : plain;
    stmatrix_x4(tile + static_cast<unsigned>(chunk * 16), matrices);
  }
}
/// FP32: two lanes of neighbouring rows hit the same bank.
template <bool kSwizzled, class Sums>
__device__ __forceinline__ void stage_sums(const Sums& sums, unsigned tile, int first, float) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
  static_assert(kSwizzled);
  const auto to = staged<float>(tile, kStoredTile / 4, "tile of C");
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = warp * 16 + i / 2 * 8 + lane / 4;
      const int column = lane % 4 * 2 + i % 2;
      to[simt::swizzled_chunk(row, 2 * j + column / 4) * 4 + column % 4] =
          sums[4 * (first + j) + i];
    }
  }
}

/// Through shared memory, 128 bytes of the rows at a time, alternating between two tiles. TMA skips elements
/// outside C, and reads the tiles while the warpgroup runs its next products. `parts` counts them, from 0 in
/// the block's first tile of C. `sums` may be more than those of T.
template <class T, class Out, class Sums, class S, class Tape>
__device__ __forceinline__ void store_by_tma(const TensorMap& c, const Sums& sums, const S& stages,
                                             const TilePlace& place, int consumer, int& parts,
                                             const Tape& tape) {
  constexpr int kColumns = kStoredBytes / static_cast<int>(sizeof(Out));
  const bool speaks = threadIdx.x % kWarpgroup == 0;
#pragma unroll
  for (int part = 0; part < T::kColumns / kColumns; ++part, ++parts) {
    const unsigned tile = stages.stored(consumer, parts % kStoredTiles);
    if (speaks && !omits(tape, Fault::no_store_wait)) store_wait<kStoredTiles - 1>();
    // The tile's old contents must have been read before it is overwritten …
    if (!omits(tape, Fault::no_write_meeting)) named_barrier_sync(1 + consumer, kWarpgroup);
    stage_sums<S::kSwizzledStores>(sums, tile, part * kColumns / 8, Out{});
    if (!tape.does(Fault::missing_fence)) publish_to_async_proxy();
    // … and all threads must have written before TMA reads it.
    if (!omits(tape, Fault::no_store_meeting)) named_barrier_sync(1 + consumer, kWarpgroup);
    if (speaks) {
      store(c, tile, place.column + part * kColumns, place.row);
      store_commit();
    }
  }
}

}  // namespace tilestep::hopper_gemm::SIMT_BACKEND

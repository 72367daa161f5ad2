// C = A·B: the tiles of the next step are in flight while the current ones are multiplied. cp.async
// copies from global to shared memory without passing through registers and without waiting; two sets
// of tiles alternate, and each step needs one barrier instead of two.
//
// A [m × k], B [k × n], C [m × n], FP32, row-major; 128 × 128 of C per block, 256 threads, 8 × 8 per
// thread as in `vectorized`. B is copied 16 bytes at a time; A 4 bytes at a time, because the copy
// transposes it (k down, rows across). With kWhole the shape is a multiple of the tile; otherwise
// elements outside are copied as 0 and not stored.

#include "kernels/matmul/tiling/rungs.hpp"

namespace tilestep::tiling::SIMT_BACKEND {

constexpr int kBuffers = 2;

/// Starts the copies of the tiles from k0 on.
template <bool kWhole, class In>
__device__ __forceinline__ void copy_tiles(In a, In b, const GemmShape& shape, int first_row,
                                           int first_column, int k0, simt::Shared<float> a_tile,
                                           simt::Shared<float> b_tile) {
  const int thread = static_cast<int>(threadIdx.x);
  // A warp takes 8 adjacent elements in each of 4 rows of A; with the padding their transposed
  // places are in 32 different banks.
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = thread / kDepth + i * (kThreads / kDepth);
    const int kk = thread % kDepth;
    const bool inside = kWhole || (first_row + row < shape.m && k0 + kk < shape.k);
    copy4(a_tile + (kk * kPitch + row), a + ((first_row + row) * shape.k + k0 + kk), inside);
  }
  const int kk = thread / 32;
  const int column = thread % 32 * 4;
  const auto from = b + ((k0 + kk) * shape.n + first_column + column);
  const auto to = b_tile + (kk * kEdge + column);
  if constexpr (kWhole) {
    copy16(to, from);
  } else {
    for (int j = 0; j < 4; ++j) {
      copy4(to + j, from + j, k0 + kk < shape.k && first_column + column + j < shape.n);
    }
  }
}

template <bool kWhole, class In, class Tape>
__global__ void __launch_bounds__(kThreads, 2)
    double_buffered(In a, In b, Out c, GemmShape shape, Tape tape) {
  constexpr int kATile = kDepth * kPitch;
  constexpr int kBTile = kDepth * kEdge;
  const auto a_tiles = simt::dynamic_shared<float>(kBuffers * kATile, 0, "A tiles");
  const auto b_tiles =
      simt::dynamic_shared<float>(kBuffers * kBTile, kBuffers * kATile * sizeof(float), "B tiles");
  const int thread = static_cast<int>(threadIdx.x);
  const int first_row = static_cast<int>(blockIdx.y) * kEdge;
  const int first_column = static_cast<int>(blockIdx.x) * kEdge;
  const int row = thread / 16 * 4;
  const int column = thread % 16 * 4;

  float sums[8][8] = {};
  copy_tiles<kWhole>(a, b, shape, first_row, first_column, 0, a_tiles, b_tiles);
  simt::cp_async_commit();
  int stage = 0;
  for (int k0 = 0; k0 < shape.k; k0 += kDepth) {
    simt::cp_async_wait<0>();
    // All threads' copies must have arrived before any thread reads them, and all threads must have
    // read the other stage before it is overwritten below.
    __syncthreads();
    const int other = 1 - stage;
    if (k0 + kDepth < shape.k) {
      copy_tiles<kWhole>(a, b, shape, first_row, first_column, k0 + kDepth,
                         a_tiles + other * kATile, b_tiles + other * kBTile);
      simt::cp_async_commit();
    }
    const auto a_tile = seen(tape, a_tiles + stage * kATile, kSiteTileA);
    const auto b_tile = seen(tape, b_tiles + stage * kBTile, kSiteTileB);
#pragma unroll
    for (int kk = 0; kk < kDepth; ++kk) {
      float from_a[8];
      float from_b[8];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        read4(&from_a[half * 4], a_tile + (kk * kPitch + row + half * 64));
        read4(&from_b[half * 4], b_tile + (kk * kEdge + column + half * 64));
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[i][j] += from_a[i] * from_b[j];
      }
    }
    stage = other;
  }
  const auto to = seen(tape, c, kSiteC);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int to_row = first_row + row + i % 4 + i / 4 * 64;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      store_row4<kWhole>(to, to_row, first_column + column + half * 64, shape, &sums[i][half * 4]);
    }
  }
}

}  // namespace tilestep::tiling::SIMT_BACKEND

// C = A·B: rungs that compute more than one element of C per thread. In `shared_tile` every product
// needs two reads of shared memory; an operand kept in a register is read once for many
// products.
//
//   register_tile_1d   8 rows × 1 column per thread: 9 reads for 8 products
//   register_tile_2d   8 rows × 8 columns per thread: 16 reads for 64 products
//   vectorized         the same with float4: loads of 16 bytes from global memory, and reads of 16
//                      bytes from a transposed A tile, in which a thread's rows are adjacent
//
// A tape, which compiles to nothing when a kernel is timed, records a thread's reads of the tiles and
// the elements of C that it stores.
//
// A [m × k], B [k × n], C [m × n], FP32, row-major. With kWhole the shape is a multiple of the
// tile, and nothing is checked; otherwise elements outside are loaded as 0 and not stored.

#include "kernels/matmul/tiling/rungs.hpp"

namespace tilestep::tiling::SIMT_BACKEND {

// ---- one column of results ----------------------------------------------------------------------

/// 64 × 64 of C per block, 512 threads: thread t has column t % 64 and the 8 rows from 8·(t / 64).
/// A warp reads one element of A for all its lanes, and 32 neighbours of B.
template <bool kWhole, class In, class Tape>
__global__ void __launch_bounds__(512)
    register_tile_1d(In a, In b, Out c, GemmShape shape, Tape tape) {
  constexpr int kTile = 64;
  constexpr int kRows = 8;
  __shared__ simt::Array<float, kTile * kDepth> a_shared;
  __shared__ simt::Array<float, kDepth * kTile> b_shared;
  const auto a_tile = seen(tape, simt::Shared<float>(a_shared), kSiteTileA);
  const auto b_tile = seen(tape, simt::Shared<float>(b_shared), kSiteTileB);
  const auto to = seen(tape, c, kSiteC);
  const int thread = static_cast<int>(threadIdx.x);
  const int first_row = static_cast<int>(blockIdx.y) * kTile;
  const int first_column = static_cast<int>(blockIdx.x) * kTile;
  // This thread loads one element of each tile …
  const int a_row = thread / kDepth;
  const int a_kk = thread % kDepth;
  const int b_kk = thread / kTile;
  const int b_column = thread % kTile;
  // … and computes a column of results.
  const int column = thread % kTile;
  const int row = thread / kTile * kRows;

  float sums[kRows] = {};
  for (int k0 = 0; k0 < shape.k; k0 += kDepth) {
    const bool a_inside = kWhole || (first_row + a_row < shape.m && k0 + a_kk < shape.k);
    const bool b_inside = kWhole || (first_column + b_column < shape.n && k0 + b_kk < shape.k);
    a_tile[a_row * kDepth + a_kk] =
        a_inside ? static_cast<float>(a[(first_row + a_row) * shape.k + k0 + a_kk]) : 0.0f;
    b_tile[b_kk * kTile + b_column] =
        b_inside ? static_cast<float>(b[(k0 + b_kk) * shape.n + first_column + b_column]) : 0.0f;
    __syncthreads();  // both tiles must be there before any thread reads them
#pragma unroll
    for (int kk = 0; kk < kDepth; ++kk) {
      const float from_b = b_tile[kk * kTile + column];
#pragma unroll
      for (int i = 0; i < kRows; ++i) sums[i] += a_tile[(row + i) * kDepth + kk] * from_b;
    }
    __syncthreads();  // all must have read before the next tiles overwrite these
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const bool inside =
        kWhole || (first_row + row + i < shape.m && first_column + column < shape.n);
    if (inside) to[(first_row + row + i) * shape.n + first_column + column] = sums[i];
  }
}

// ---- a square of results ------------------------------------------------------------------------

/// 128 × 128 of C per block, 256 threads: thread t has 8 × 8 adjacent elements.
template <bool kWhole, class In, class Tape>
__global__ void __launch_bounds__(kThreads, 2)
    register_tile_2d(In a, In b, Out c, GemmShape shape, Tape tape) {
  __shared__ simt::Array<float, kEdge * kDepth> a_shared;
  __shared__ simt::Array<float, kDepth * kEdge> b_shared;
  const auto a_tile = seen(tape, simt::Shared<float>(a_shared), kSiteTileA);
  const auto b_tile = seen(tape, simt::Shared<float>(b_shared), kSiteTileB);
  const auto to = seen(tape, c, kSiteC);
  const int thread = static_cast<int>(threadIdx.x);
  const int first_row = static_cast<int>(blockIdx.y) * kEdge;
  const int first_column = static_cast<int>(blockIdx.x) * kEdge;
  const int row = thread / 16 * kSquare;
  const int column = thread % 16 * kSquare;

  float sums[kSquare][kSquare] = {};
  for (int k0 = 0; k0 < shape.k; k0 += kDepth) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int a_row = thread / kDepth + i * (kThreads / kDepth);
      const int a_kk = thread % kDepth;
      const int b_kk = thread / kEdge + i * (kThreads / kEdge);
      const int b_column = thread % kEdge;
      const bool a_inside = kWhole || (first_row + a_row < shape.m && k0 + a_kk < shape.k);
      const bool b_inside = kWhole || (first_column + b_column < shape.n && k0 + b_kk < shape.k);
      a_tile[a_row * kDepth + a_kk] =
          a_inside ? static_cast<float>(a[(first_row + a_row) * shape.k + k0 + a_kk]) : 0.0f;
      b_tile[b_kk * kEdge + b_column] =
          b_inside ? static_cast<float>(b[(k0 + b_kk) * shape.n + first_column + b_column]) : 0.0f;
    }
    __syncthreads();  // both tiles must be there before any thread reads them
#pragma unroll
    for (int kk = 0; kk < kDepth; ++kk) {
      float from_a[kSquare];
      float from_b[kSquare];
#pragma unroll
      for (int i = 0; i < kSquare; ++i) {
        from_a[i] = a_tile[(row + i) * kDepth + kk];
        from_b[i] = b_tile[kk * kEdge + column + i];
      }
#pragma unroll
      for (int i = 0; i < kSquare; ++i) {
#pragma unroll
        for (int j = 0; j < kSquare; ++j) sums[i][j] += from_a[i] * from_b[j];
      }
    }
    __syncthreads();  // all must have read before the next tiles overwrite these
  }
#pragma unroll
  for (int i = 0; i < kSquare; ++i) {
#pragma unroll
    for (int j = 0; j < kSquare; ++j) {
      const int to_row = first_row + row + i;
      const int to_column = first_column + column + j;
      if (kWhole || (to_row < shape.m && to_column < shape.n)) {
        to[to_row * shape.n + to_column] = sums[i][j];
      }
    }
  }
}

// ---- sixteen bytes at a time --------------------------------------------------------------------

/// Four adjacent elements of a row, 0 for those outside.
template <bool kWhole, class In>
__device__ __forceinline__ float4 load_row4(In from, int row, int column, int rows, int columns) {
  if constexpr (kWhole) {
    return load4(from + (row * columns + column));
  } else {
    const auto at = [&](int j) {
      const bool inside = row < rows && column + j < columns;
      return inside ? static_cast<float>(from[row * columns + column + j]) : 0.0f;
    };
    return make_float4(at(0), at(1), at(2), at(3));
  }
}

/// The same tile; thread t has rows 4·(t / 16) … +3 and those 64 below, columns 4·(t % 16) … +3 and
/// those 64 to the right. If its 8 columns were adjacent, the float4 reads of a warp would be 32
/// bytes apart and use only half of the banks. Rows of the A tile are padded by 4 floats: otherwise
/// a warp's transposed stores would hit few banks; 4 keep rows aligned to 16 bytes.
template <bool kWhole, class In, class Tape>
__global__ void __launch_bounds__(kThreads, 2)
    vectorized(In a, In b, Out c, GemmShape shape, Tape tape) {
  const auto a_tile =
      seen(tape, simt::dynamic_shared<float>(kDepth * kPitch, 0, "A tile"), kSiteTileA);
  const auto b_tile = seen(
      tape, simt::dynamic_shared<float>(kDepth * kEdge, kDepth * kPitch * sizeof(float), "B tile"),
      kSiteTileB);
  const auto to = seen(tape, c, kSiteC);
  const int thread = static_cast<int>(threadIdx.x);
  const int first_row = static_cast<int>(blockIdx.y) * kEdge;
  const int first_column = static_cast<int>(blockIdx.x) * kEdge;
  const int a_row = thread / 2;
  const int a_kk = thread % 2 * 4;
  const int b_kk = thread / 32;
  const int b_column = thread % 32 * 4;
  const int row = thread / 16 * 4;
  const int column = thread % 16 * 4;

  float sums[kSquare][kSquare] = {};
  for (int k0 = 0; k0 < shape.k; k0 += kDepth) {
    const float4 of_a = load_row4<kWhole>(a, first_row + a_row, k0 + a_kk, shape.m, shape.k);
    const float4 of_b = load_row4<kWhole>(b, k0 + b_kk, first_column + b_column, shape.k, shape.n);
    a_tile[(a_kk + 0) * kPitch + a_row] = of_a.x;
    a_tile[(a_kk + 1) * kPitch + a_row] = of_a.y;
    a_tile[(a_kk + 2) * kPitch + a_row] = of_a.z;
    a_tile[(a_kk + 3) * kPitch + a_row] = of_a.w;
    *elements<float4>(b_tile + (b_kk * kEdge + b_column)) = of_b;
    __syncthreads();  // both tiles must be there before any thread reads them
#pragma unroll
    for (int kk = 0; kk < kDepth; ++kk) {
      float from_a[kSquare];
      float from_b[kSquare];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        read4(&from_a[half * 4], a_tile + (kk * kPitch + row + half * 64));
        read4(&from_b[half * 4], b_tile + (kk * kEdge + column + half * 64));
      }
#pragma unroll
      for (int i = 0; i < kSquare; ++i) {
#pragma unroll
        for (int j = 0; j < kSquare; ++j) sums[i][j] += from_a[i] * from_b[j];
      }
    }
    __syncthreads();  // all must have read before the next tiles overwrite these
  }
#pragma unroll
  for (int i = 0; i < kSquare; ++i) {
    const int to_row = first_row + row + i % 4 + i / 4 * 64;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      store_row4<kWhole>(to, to_row, first_column + column + half * 64, shape, &sums[i][half * 4]);
    }
  }
}

}  // namespace tilestep::tiling::SIMT_BACKEND

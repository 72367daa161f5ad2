// C = A·B: the tiles of the next step travel while the current ones are multiplied. cp.async copies
// from global to shared memory without passing through registers and without waiting; two sets of
// tiles take turns, and one barrier a step is left of two.
//
// A [m × k], B [k × n], C [m × n], FP32, row-major; 128 × 128 of C a block, 256 threads, 8 × 8 a
// thread as in `vectorized`. B comes 16 bytes at a time; A 4 bytes at a time, because it is turned
// on its way (k down, rows across). With kWhole the shape is a multiple of the tile; else what lies
// outside is copied as 0 and not stored.

#include "kernels/matmul/tiling/rungs.hpp"

namespace tilestep::tiling::SIMT_BACKEND {
namespace {

constexpr int kBufferedEdge = 128;
constexpr int kBufferedDepth = 8;
constexpr int kBufferedThreads = 256;
constexpr int kStages = 2;
constexpr int kPitch = kBufferedEdge + 4;

/// Starts the copies of the tiles from k0 on.
template <bool kWhole, class In>
__device__ __forceinline__ void copy_tiles(In a, In b, const GemmShape& shape, int first_row,
                                           int first_column, int k0, simt::Shared<float> a_tile,
                                           simt::Shared<float> b_tile) {
  const int thread = static_cast<int>(threadIdx.x);
  // A warp takes 8 neighbours in each of 4 rows of A; with the padding their turned places lie in
  // 32 different banks.
  TILESTEP_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int row = thread / kBufferedDepth + i * (kBufferedThreads / kBufferedDepth);
    const int kk = thread % kBufferedDepth;
    const bool inside = kWhole || (first_row + row < shape.m && k0 + kk < shape.k);
    copy4(a_tile + (kk * kPitch + row), a + ((first_row + row) * shape.k + k0 + kk), inside);
  }
  const int kk = thread / 32;
  const int column = thread % 32 * 4;
  const auto from = b + ((k0 + kk) * shape.n + first_column + column);
  const auto to = b_tile + (kk * kBufferedEdge + column);
  if constexpr (kWhole) {
    copy16(to, from);
  } else {
    for (int j = 0; j < 4; ++j) {
      copy4(to + j, from + j, k0 + kk < shape.k && first_column + column + j < shape.n);
    }
  }
}

template <bool kWhole, class In>
__global__ void __launch_bounds__(kBufferedThreads, 2)
    double_buffered(In a, In b, Out c, GemmShape shape) {
  constexpr int kATile = kBufferedDepth * kPitch;
  constexpr int kBTile = kBufferedDepth * kBufferedEdge;
  const auto a_tiles = simt::dynamic_shared<float>(kStages * kATile, 0, "A tiles");
  const auto b_tiles =
      simt::dynamic_shared<float>(kStages * kBTile, kStages * kATile * sizeof(float), "B tiles");
  const int thread = static_cast<int>(threadIdx.x);
  const int first_row = static_cast<int>(blockIdx.y) * kBufferedEdge;
  const int first_column = static_cast<int>(blockIdx.x) * kBufferedEdge;
  const int row = thread / 16 * 4;
  const int column = thread % 16 * 4;

  float sums[8][8] = {};
  copy_tiles<kWhole>(a, b, shape, first_row, first_column, 0, a_tiles, b_tiles);
  simt::cp_async_commit();
  int stage = 0;
  for (int k0 = 0; k0 < shape.k; k0 += kBufferedDepth) {
    simt::cp_async_wait<0>();
    // Everybody's copies must have arrived before any thread reads them, and everybody must have
    // read the other stage before it is overwritten below.
    __syncthreads();
    const int other = 1 - stage;
    if (k0 + kBufferedDepth < shape.k) {
      copy_tiles<kWhole>(a, b, shape, first_row, first_column, k0 + kBufferedDepth,
                         a_tiles + other * kATile, b_tiles + other * kBTile);
      simt::cp_async_commit();
    }
    const auto a_tile = a_tiles + stage * kATile;
    const auto b_tile = b_tiles + stage * kBTile;
    TILESTEP_UNROLL
    for (int kk = 0; kk < kBufferedDepth; ++kk) {
      float from_a[8];
      float from_b[8];
      TILESTEP_UNROLL
      for (int half = 0; half < 2; ++half) {
        read4(&from_a[half * 4], a_tile + (kk * kPitch + row + half * 64));
        read4(&from_b[half * 4], b_tile + (kk * kBufferedEdge + column + half * 64));
      }
      TILESTEP_UNROLL
      for (int i = 0; i < 8; ++i) {
        TILESTEP_UNROLL
        for (int j = 0; j < 8; ++j) sums[i][j] += from_a[i] * from_b[j];
      }
    }
    stage = other;
  }
  TILESTEP_UNROLL
  for (int i = 0; i < 8; ++i) {
    const int to_row = first_row + row + i % 4 + i / 4 * 64;
    TILESTEP_UNROLL
    for (int half = 0; half < 2; ++half) {
      store_row4<kWhole>(c, to_row, first_column + column + half * 64, shape, &sums[i][half * 4]);
    }
  }
}

}  // namespace

void launch_double_buffered(const Call& call, const Operands& operands) {
  const GemmShape& shape = call.shape;
  const simt::Launch launch = {
      .name = "double_buffered",
      .grid = dim3(static_cast<unsigned>(tiles_of(shape.n, kBufferedEdge)),
                   static_cast<unsigned>(tiles_of(shape.m, kBufferedEdge))),
      .block = dim3(kBufferedThreads),
      .shared_bytes = kStages * kBufferedDepth * (kPitch + kBufferedEdge) * sizeof(float)};
  const bool divides =
      shape.m % kBufferedEdge == 0 && shape.n % kBufferedEdge == 0 && shape.k % kBufferedDepth == 0;
  with_accessors(operands, divides, [&](auto whole, auto a, auto b, auto c) {
    start(call, launch, double_buffered<decltype(whole)::value, decltype(a)>, a, b, c, shape);
  });
}

}  // namespace tilestep::tiling::SIMT_BACKEND

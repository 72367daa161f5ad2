// C = A·B^T with the previous generation's tensor-core instruction, for comparison: mma.sync.m16n8k16 is issued
// by a warp, takes its operands from registers, and is done when it returns. So every warp copies its part of
// the tiles with cp.async, reads it into registers with ldmatrix, and multiplies.
//
// A warpgroup has 64 rows of C, as in the other kernels; each of its four warps has a quarter of the columns.
// The tiles are laid out in shared memory as by TMA. BF16 only.

#include "kernels/matmul/hopper_gemm/task.hpp"
#include "kernels/matmul/hopper_gemm/wgmma/store.hpp"

namespace tilestep::hopper_gemm::SIMT_BACKEND {

/// Starts the copies of a k-tile's rows of one operand, with zeros outside the matrix.
template <class S>
__device__ __forceinline__ void start_copies(simt::Global<const std::uint16_t> from,
                                             simt::Shared<std::uint16_t> memory, const S& stages,
                                             unsigned tile, int rows, int first_row, int rows_there,
                                             int first_chunk, int chunks_there) {
  constexpr int kChunks = kDepthBytes / 16;
  const unsigned base = stages.tiles;
  for (int i = static_cast<int>(threadIdx.x); i < rows * kChunks;
       i += static_cast<int>(blockDim.x)) {
    const int row = first_row + i / kChunks;
    const int chunk = first_chunk + i % kChunks;
    const bool inside = row < rows_there && chunk < chunks_there;
    const unsigned to = chunk_address(stages, tile, rows, i / kChunks, i % kChunks);
    const std::ptrdiff_t element =
        inside ? (static_cast<std::ptrdiff_t>(row) * chunks_there + chunk) * 8 : 0;
    simt::cp_async16(memory + (to - base) / 2, from + element, inside);
  }
}

/// A warp's products of one stage: 64 rows by a quarter of the columns.
template <class T, class S>
__device__ __forceinline__ void multiply_by_warp(float (&sums)[4][T::kColumns / 32][4],
                                                 const S& stages, int stage, int consumer) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
  const int first_column = warp * (T::kColumns / 4);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    // ldmatrix reads rows of 16 bytes: lanes 0–15 address those of the first 8 of k, 16–31 the others.
    unsigned a[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      ldmatrix_x4(a[i],
                  chunk_address(stages, stages.a(stage), stages.rows(),
                                consumer * T::kRows + i * 16 + lane % 16, step * 2 + lane / 16));
    }
#pragma unroll
    for (int j = 0; j < T::kColumns / 64; ++j) {
      unsigned b[4];
      ldmatrix_x4(b, chunk_address(stages, stages.b(stage), T::kColumns,
                                   first_column + j * 16 + lane % 16, step * 2 + lane / 16));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        simt::mma_m16n8k16_bf16(sums[i][2 * j], a[i], b[0], b[2]);
        simt::mma_m16n8k16_bf16(sums[i][2 * j + 1], a[i], b[1], b[3]);
      }
    }
  }
}

template <class T, class R, class Out, class Tape>
__global__ void __launch_bounds__(2 * kWarpgroup, 1)
    mma_sync(simt::Global<const std::uint16_t> a, simt::Global<const std::uint16_t> b,
             simt::Global<Out> c, Task task, R ring, Tape tape) {
  static_assert(T::kFormat == Format::bf16 && T::kColumns >= 64);
  const auto stages = lay_out<T>(ring, task.shared_bytes);
  const unsigned start = simt::shared_address(simt::dynamic_shared<std::uint16_t>(1));
  const auto memory = simt::dynamic_shared<std::uint16_t>(
      static_cast<std::size_t>(ring.stages * stages.bytes() / 2), stages.tiles - start, "stages");
  const int consumer = static_cast<int>(threadIdx.x) / kWarpgroup;
  const int who = 1 + consumer;
  const TilePlace place = TileWalk<T, 1>(task.shape, task.raster, stages.rows()).place(0);
  const int chunks = pitch_bytes(task.shape.k, T::kElementBytes) / 16;
  const int k_tiles = (task.shape.k + T::kDepth - 1) / T::kDepth;
  const auto copy = [&](int number) {
    if (number < k_tiles) {
      const int stage = number % ring.stages;
      const int first = number * (kDepthBytes / 16);  // [step: expects]
      clock<2 * kWarpgroup>(tape, site_of(What::expects), number);
      start_copies(a, memory, stages, stages.a(stage), stages.rows(), place.row, task.shape.m,
                   first, chunks);
      start_copies(b, memory, stages, stages.b(stage), T::kColumns, place.column, task.shape.n,
                   first, chunks);
      clock<2 * kWarpgroup>(tape, site_of(What::copies), number);
    }
    // An empty group too, so that groups can be counted.
    simt::cp_async_commit();  // [step: copies]
  };
  float sums[4][T::kColumns / 32][4] = {};
  for (int i = 0; i < kMmaAhead && i < ring.stages - 1; ++i) copy(i);
  for (int number = 0; number < k_tiles; ++number) {
    clock(tape, site_of(What::waits_full, who), number);
    if (ring.stages > kMmaAhead) {  // [step: waits-full]
      simt::cp_async_wait<kMmaAhead - 1>();
    } else {
      if (ring.stages == 1) copy(number);
      simt::cp_async_wait<0>();
    }
    // All threads' parts of the stage must have arrived, and all must be done with the previous one.
    __syncthreads();
    clock(tape, site_of(What::issues, who), number);
    if (ring.stages > 1) copy(number + (ring.stages > kMmaAhead ? kMmaAhead : ring.stages - 1));
    multiply_by_warp<T>(sums, stages, number % ring.stages, consumer);  // [step: issues]
    clock(tape, site_of(What::waited, who), number);
    if (ring.stages == 1)
      __syncthreads();  // all must have read the stage before it is filled again
    clock(tape, site_of(What::releases, who), number);
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
  clock(tape, site_of(What::stores, who), 0);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < T::kColumns / 32; ++j) {
      const int column = place.column + warp * (T::kColumns / 4) + j * 8 + lane % 4 * 2;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = place.row + consumer * T::kRows + i * 16 + half * 8 + lane / 4;
        store_pair<Out>(c, task.shape, row, column, sums[i][j][2 * half], sums[i][j][2 * half + 1]);
      }
    }
  }
  clock(tape, site_of(What::stored, who), 0);
}

}  // namespace tilestep::hopper_gemm::SIMT_BACKEND

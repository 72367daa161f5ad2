// C = A·B^T on Hopper's tensor cores, without specialization: one or two warpgroups both copy tiles to shared
// memory and multiply them.
//
//   wgmma       ordinary loads and stores copy the tiles, 16 bytes per thread at a time, to their swizzled
//               places; after a barrier, each warpgroup of 128 threads issues products of 64 × n × 16 straight
//               from shared memory
//   tma         one thread requests whole tiles from the copy engine, and all wait at an mbarrier until they
//               have landed. The other threads compute no addresses
//   pipelined   the same with more stages: while one is multiplied, the copies of the next ones are in flight
//
// specialized.cu continues from here.

#include "kernels/matmul/hopper_gemm/task.hpp"
#include "kernels/matmul/hopper_gemm/wgmma/store.hpp"

namespace tilestep::hopper_gemm::SIMT_BACKEND {

/// Copies the rows of a stage by ordinary loads and stores, with zeros outside the matrix. Chunks are
/// 16 bytes; the matrix's pitch is `chunks_there` of them.
template <class S>
__device__ __forceinline__ void copy_rows(simt::Global<const std::uint16_t> from, const S& stages,
                                          unsigned tile, int rows, int first_row, int rows_there,
                                          int first_chunk, int chunks_there) {
  const auto source = simt::as<const uint4>(from);
  constexpr int kChunks = kDepthBytes / 16;
  for (int i = static_cast<int>(threadIdx.x); i < rows * kChunks;
       i += static_cast<int>(blockDim.x)) {
    const int row = first_row + i / kChunks;
    const int chunk = first_chunk + i % kChunks;
    uint4 four = make_uint4(0, 0, 0, 0);
    if (row < rows_there && chunk < chunks_there) {
      four = source[static_cast<std::ptrdiff_t>(row) * chunks_there + chunk];
    }
    staged<uint4>(chunk_address(stages, tile, rows, i / kChunks, i % kChunks), 1, "a stage")[0] =
        four;
  }
}

/// One stage, filled by all threads.
template <class T, class R, class Out, class Tape>
__global__ void __launch_bounds__(2 * kWarpgroup, 1)
    plain_loads(simt::Global<const std::uint16_t> a, simt::Global<const std::uint16_t> b,
                simt::Global<Out> c, Task task, R ring, Tape tape) {
  const auto stages = lay_out<T>(ring, task.shared_bytes);
  const int consumer = static_cast<int>(threadIdx.x) / kWarpgroup;
  const int who = 1 + consumer;
  const TilePlace place = TileWalk<T, 1>(task.shape, task.raster, stages.rows()).place(0);
  const int chunks = pitch_bytes(task.shape.k, T::kElementBytes) / 16;
  typename T::Sums sums = {};
  int number = 0;
  for (int k = 0; k < task.shape.k; k += T::kDepth, ++number) {
    clock<2 * kWarpgroup>(tape, site_of(What::expects), number);
    const int first = k * T::kElementBytes / 16;  // [step: wgmma expects]
    copy_rows(a, stages, stages.a(0), stages.rows(), place.row, task.shape.m, first, chunks);
    copy_rows(b, stages, stages.b(0), T::kColumns, place.column, task.shape.n, first, chunks);
    clock<2 * kWarpgroup>(tape, site_of(What::copies), number);
    // wgmma reads through the async proxy, which sees a thread's ordinary stores only after this fence …
    if (!tape.does(Fault::missing_fence)) publish_to_async_proxy();  // [step: wgmma copies]
    clock(tape, site_of(What::waits_full, who), number);
    // … and the other threads' stores only after their fences, hence the barrier.
    __syncthreads();  // [step: wgmma waits-full]
    clock(tape, site_of(What::issues, who), number);
    multiply_stage<T>(sums, stages, 0, consumer, k == 0);  // [step: wgmma issues]
    wgmma_commit();                                        // [step: wgmma commits]
    clock(tape, site_of(What::commits, who), number);
    wgmma_wait<0>();  // [step: wgmma waited]
    clock(tape, site_of(What::waited, who), number);
    // All warpgroups must have read the stage before it is refilled.
    __syncthreads();  // [step: wgmma releases]
    clock(tape, site_of(What::releases, who), number);
  }
  settle(sums);
  clock(tape, site_of(What::stores, who), 0);
  const TilePlace mine{place.row + consumer * T::kRows, place.column};
  store_sums<T, Out>(c, sums, task.shape, mine);  // [step: wgmma stores]
  clock(tape, site_of(What::stored, who), 0);
}

/// Thread 0 requests k-tile `number` from TMA.
template <class T, class S, class Tape>
__device__ __forceinline__ void request(const TensorMaps& maps, const S& stages,
                                        const TilePlace& place, int stage, int number,
                                        const Tape& tape) {
  const unsigned full = stages.ring().full(stage);
  clock(tape, site_of(What::expects), number);
  const bool forgets_b = tape.does(Fault::wrong_bytes);
  arrive_expecting(full, forgets_b ? stages.a_bytes() : stages.bytes());  // [step: expects]
  fetch_stage<T, 1>(maps, stages, stage, number * T::kDepth, place, 0);   // [step: copies]
  clock(tape, site_of(What::copies), number);
}

/// With one stage: fetch, wait, multiply, wait. With two or more, the copies run ahead.
template <class T, class R, class Out, bool kOneStage, class Tape>
__global__ void __launch_bounds__(2 * kWarpgroup, 1)
    fetched(const __grid_constant__ TensorMaps maps, simt::Global<Out> c, Task task, R ring,
            Tape tape) {
  const auto stages = lay_out<T>(ring, task.shared_bytes);
  const int consumer = static_cast<int>(threadIdx.x) / kWarpgroup;
  const int who = 1 + consumer;
  const TilePlace place = TileWalk<T, 1>(task.shape, task.raster, stages.rows()).place(0);
  const int k_tiles = (task.shape.k + T::kDepth - 1) / T::kDepth;
  const int ahead = kOneStage ? 1 : ring.stages - 1;
  const auto barriers = stages.ring();  // no thread waits for an empty stage: all meet
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < ring.stages; ++stage) barrier_init(barriers.full(stage), 1);
    publish_barriers();
  }
  __syncthreads();  // no thread may wait for a barrier before it is initialized
  if (threadIdx.x == 0) {
    for (int i = 0; i < ahead && i < k_tiles; ++i) {
      request<T>(maps, stages, place, i, i, tape);
    }
  }
  typename T::Sums sums = {};
  for (int number = 0; number < k_tiles; ++number) {
    const Turn turn{number}, next{number + ahead};
    const int stage = barriers.stage(turn);
    clock(tape, site_of(What::waits_full, who), number);
    if (!tape.does(Fault::skip_full_wait)) {  // [step: waits-full]
      wait(tape, barriers.full(stage), barriers.parity(turn), turn, What::waits_full, who);
    }
    clock(tape, site_of(What::issues, who), number);
    multiply_stage<T>(sums, stages, stage, consumer, number == 0);  // [step: issues]
    wgmma_commit();                                                 // [step: commits]
    clock(tape, site_of(What::commits, who), number);
    if constexpr (kOneStage) {
      wgmma_wait<0>();
    } else {
      wgmma_wait<1>();  // [step: waited]
    }
    const int done = kOneStage ? number : number - 1;
    if (done >= 0) clock(tape, site_of(What::waited, who), done);
    // All threads' products must have read the stage that is filled next.
    if (!tape.does(Fault::skip_empty_wait)) __syncthreads();  // [step: releases]
    if (done >= 0) clock(tape, site_of(What::releases, who), done);
    if (threadIdx.x == 0 && next.number < k_tiles) {
      request<T>(maps, stages, place, barriers.stage(next), next.number, tape);
    }
  }
  wgmma_wait<0>();
  settle(sums);
  if constexpr (!kOneStage) {
    clock(tape, site_of(What::waited, who), k_tiles - 1);
    clock(tape, site_of(What::releases, who), k_tiles - 1);
  }
  clock(tape, site_of(What::stores, who), 0);
  const TilePlace mine{place.row + consumer * T::kRows, place.column};
  store_sums<T, Out>(c, sums, task.shape, mine);  // [step: stores]
  clock(tape, site_of(What::stored, who), 0);
  linger(tape);
}

}  // namespace tilestep::hopper_gemm::SIMT_BACKEND

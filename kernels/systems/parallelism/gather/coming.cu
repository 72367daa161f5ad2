#pragma once

// A product that begins before its tokens are there: one kernel, with the tree's own tensor core product
// (matmul/hopper_gemm), whose producer waits for a flag before it fetches rows of a chunk for the first time. Copy engines
// bring the chunks, and then the flags; they take no multiprocessor from the product.

#include "kernels/matmul/hopper_gemm/specialized.cu"
#include "kernels/systems/parallelism/gather/gather.hpp"

namespace tilestep::parallelism::SIMT_BACKEND {

namespace product = hopper_gemm::SIMT_BACKEND;

/// What a block knows of the chunks: of how many it has seen the flags.
struct Chunks {
  simt::Global<unsigned> flags;
  simt::World world;
  int rows = 0, count = 0;

  /// Waits for all chunks up to the row. Where one never comes the page of waits says so, and the product goes on.
  __device__ void await(int row, int& seen) const {
    const int needed = row / rows < count ? row / rows : count - 1;
    for (; seen <= needed; ++seen) {
      if (!simt::await_flag(world, flags, seen, 1, (world.rank + seen) % count)) return;
      simt::see_copied();
    }
  }
};

template <class T, class R>
__device__ __forceinline__ void produce_coming(const product::TensorMaps& maps,
                                               const product::Task& task,
                                               const product::Stages<T, R>& stages,
                                               const Chunks& chunks) {
  const auto ring = stages.ring();
  product::Turn turn;
  int seen = 1;
  product::TileWalk<T, 1> walk(task.shape, task.raster, stages.rows());
  for (; walk.there(); walk.advance()) {
    const hopper_gemm::TilePlace place = walk.place(0);
    chunks.await(place.row + stages.rows() - 1, seen);
    for (int k = 0; k < task.shape.k; k += T::kDepth, ++turn.number) {
      const int stage = ring.stage(turn);
      ring.producer_acquire(turn);
      product::arrive_expecting(ring.full(stage), stages.bytes());
      product::fetch_stage<T, 1>(maps, stages, stage, k, place, 0);
    }
  }
}

template <class T, class R>
__global__ void __launch_bounds__(3 * product::kWarpgroup, 1)
    multiply_coming(const __grid_constant__ product::TensorMaps maps, simt::Global<std::uint16_t> c,
                    product::Task task, R ring, Chunks chunks) {
  const simt::NoTape none;
  const auto stages = product::lay_out<T>(ring, task.shared_bytes);
  product::begin<1>(stages, none);
  const int group = static_cast<int>(threadIdx.x) / product::kWarpgroup;
  if (group == 0) {
    product::keep_registers<product::kProducerRegisters>();
    if (threadIdx.x == 0) produce_coming<T, R>(maps, task, stages, chunks);
  } else {
    product::take_registers<product::kConsumerRegisters>();
    product::consume<T, R, std::uint16_t, 1>(maps, task, c, stages, 0, group - 1, none,
                                             product::SumsAlone{});
  }
}

}  // namespace tilestep::parallelism::SIMT_BACKEND

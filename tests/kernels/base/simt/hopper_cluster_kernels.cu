// Small kernels whose blocks work together in clusters, for hopper_cluster_test.cu.

#include "tests/kernels/base/simt/hopper_faults.hpp"

namespace tilestep::simt::SIMT_BACKEND {

/// What a kernel of clusters leaves out besides.
enum class ClusterFault : int {
  none,
  no_publish,    ///< the cluster is not told of the barriers
  no_meeting,    ///< the blocks do not meet after barrier_init
  full_wait,     ///< consumers do not wait for a stage to be full
  own_release,   ///< consumers release their own block's stage alone
  no_last,       ///< the blocks do not meet before they end
  no_between,    ///< nor between writing and reading
  wide_copy,     ///< a copy goes to more blocks than there are
  far_arrival,   ///< an arrival, too
  parts_missed,  ///< one of the last copies comes to nobody who waits
};

/// Where threads are: block, rank, and what votes and shuffles say in a block of a cluster.
__global__ void cluster_places(Global<unsigned> out) {
  const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
  const unsigned rank = hopper::rank_in_cluster();
  const int votes = __syncthreads_count(threadIdx.x <= block);
  const unsigned next = __shfl_down_sync(0xFFFFFFFFu, block * 100 + threadIdx.x, 1);
  const auto cells = hopper::staged<unsigned>(aligned_shared(256), 64, "the cells");
  cells[threadIdx.x] = block * 64 + threadIdx.x;
  __syncthreads();  // the others' cells must be written
  const unsigned i = block * 64 + threadIdx.x;
  out[i * 4] = rank;
  out[i * 4 + 1] = static_cast<unsigned>(votes);
  out[i * 4 + 2] = next;
  out[i * 4 + 3] = cells[63 - threadIdx.x];
}

/// Each block of a cluster gets the numbers of all and adds them up: a thread writes to the cell of its block
/// in each, four bytes side by side with the others'.
__global__ void all_to_all(Global<float> out, ClusterFault fault) {
  const unsigned cells = aligned_shared(32 * 8 * 4);
  const unsigned rank = hopper::rank_in_cluster();
  const unsigned blocks = gridDim.x;
  for (unsigned other = 0; other < blocks; ++other) {
    const auto there = hopper::remote<float>(cells, other, 256, "the cells");
    there[threadIdx.x * 8 + rank] = static_cast<float>(rank * 100 + threadIdx.x);
  }
  if (fault != ClusterFault::no_between) hopper::cluster_barrier();  // all must have written
  float sum = 0;
  const auto mine = hopper::staged<float>(cells, 256, "the cells");
  for (unsigned other = 0; other < blocks; ++other) sum += mine[threadIdx.x * 8 + other];
  out[rank * 32 + threadIdx.x] = sum;
}

/// Each block writes a row of its own, and reads that of the next one.
__global__ void pass_on(Global<float> out, ClusterFault fault) {
  const unsigned row = aligned_shared(128);
  const unsigned rank = hopper::rank_in_cluster();
  hopper::staged<float>(row, 32, "the row")[threadIdx.x] =
      static_cast<float>(rank * 100 + threadIdx.x);
  if (fault != ClusterFault::no_between) hopper::cluster_barrier();  // the row must be written
  const auto next = hopper::remote<float>(row, (rank + 1) % gridDim.x, 32, "the row");
  out[rank * 32 + threadIdx.x] = next[31 - threadIdx.x];
  if (fault != ClusterFault::no_last)
    hopper::cluster_barrier();  // the row must stay until it is read
}

/// A ring of two stages in each block of a cluster, by a producer warp and a consumer warp. A stage has a box
/// of 8 × 8 floats of every block, which that block's producer brings to all. Each consumer adds them up.
template <int kBlocks>
__global__ void shared_ring(const __grid_constant__ hopper::TensorMap map, Global<float> sums,
                            int tiles, ClusterFault fault) {
  constexpr int kRing = 2;
  constexpr int kBox = 256;
  constexpr int kStage = kBlocks * kBox;
  const unsigned shared = aligned_shared(kRing * (kStage + 16));
  const auto stage = [&](int i) { return shared + static_cast<unsigned>(i * kStage); };
  const auto full = [&](int i) { return stage(kRing) + static_cast<unsigned>(i) * 8; };
  const auto empty = [&](int i) { return full(kRing + i); };
  const int rank = static_cast<int>(hopper::rank_in_cluster());
  for (int i = 0; i < kRing; ++i) {
    hopper::name_shared(stage(i), kStage, "stage", i);
    hopper::name_shared(full(i), 8, "full", i);
    hopper::name_shared(empty(i), 8, "empty", i);
  }
  const bool own = fault == ClusterFault::own_release;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kRing; ++i) {
      hopper::barrier_init(full(i), 1);
      hopper::barrier_init(empty(i), own ? 1 : kBlocks);
    }
    if (fault != ClusterFault::no_publish) hopper::publish_barriers();
  }
  if (fault != ClusterFault::no_meeting) hopper::cluster_barrier();  // all barriers must be there
  if (fault == ClusterFault::no_meeting) __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    const int at = tile % kRing;
    const auto parity = static_cast<unsigned>(tile / kRing % 2);
    if (threadIdx.x == 0) {
      hopper::wait_for(empty(at), parity ^ 1);
      hopper::arrive_expecting(full(at), kStage);
      const unsigned to = stage(at) + static_cast<unsigned>(rank * kBox);
      const int column = (tile * kBlocks + rank) * 8;
      if (fault == ClusterFault::wide_copy) {
        hopper::fetch<8>(map, to, full(at), column, 0);
      } else {
        hopper::fetch<kBlocks>(map, to, full(at), column, 0);
      }
    } else if (threadIdx.x >= 32) {
      if (fault == ClusterFault::parts_missed && tile == tiles - 1 && rank == 1) break;
      if (fault != ClusterFault::full_wait) hopper::wait_for(full(at), parity);
      const auto numbers = hopper::staged<float>(stage(at), kStage / 4, "the stage");
      for (int i = lane; i < kStage / 4; i += 32) sum += numbers[i];
      __syncwarp();  // all lanes must have read
      if (lane == 0 && own) hopper::arrive(empty(at));
      if (lane == 0 && !own) {
        const unsigned further = fault == ClusterFault::far_arrival ? 1 : 0;
        for (unsigned i = 0; i < kBlocks; ++i) hopper::arrive_at(empty(at), i + further);
      }
    }
  }
  if (threadIdx.x >= 32) sums[rank * 32 + lane] = sum;
  // No block may end while others' copies and arrivals come to it.
  if (fault != ClusterFault::no_last) hopper::cluster_barrier();
}

/// Each block sends its number from 1 on to all, and adds up what came.
__global__ void send_around(Global<double> sums, int blocks, ClusterFault fault) {
  const unsigned base = shared_address(dynamic_shared<double>(2 + 8));
  const auto numbers = hopper::staged<double>(base + 16, 8, "the numbers");
  const unsigned rank = hopper::rank_in_cluster(), block = threadIdx.x;
  if (threadIdx.x == 0) {
    hopper::barrier_init(base, 1);
    hopper::arrive_expecting(base, 8 * blocks);
  }
  hopper::publish_barriers();
  hopper::cluster_barrier();
  const unsigned further = fault == ClusterFault::far_arrival ? 1 : 0;
  if (block < static_cast<unsigned>(blocks)) {
    hopper::store_at(base + 16 + 8 * rank, base, block + further, static_cast<double>(rank + 1));
  }
  if (fault != ClusterFault::full_wait) hopper::wait_for(base, 0);
  double sum = 0;
  for (int i = 0; i < blocks; ++i) sum += numbers[i];
  if (threadIdx.x == 0) sums[static_cast<int>(rank)] = sum;
  hopper::cluster_barrier();
}

/// Uses memory that a cluster's blocks do not have under emulation.
__global__ void with_static_shared(Global<float> out) {
  __shared__ Array<float, 32> cells;
  cells[threadIdx.x] = 1;
  out[threadIdx.x] = cells[threadIdx.x];
}

}  // namespace tilestep::simt::SIMT_BACKEND

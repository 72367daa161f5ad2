#pragma once

// C = A·B^T with warp specialization: one warpgroup only copies, one or two only multiply. They synchronize at
// two mbarriers per stage: `full`, when the copies have landed, and `empty`, when all consumers have read it.
//
//   warp-specialized   one block per tile: copies run ahead of the products by as many stages as the ring has,
//                      and the consumers spend no instructions or registers on them
//   multicast          two blocks, one below the other, form a cluster: they need the same columns of B, each
//                      fetches half of them, and TMA writes that half to both
//   persistent         as many blocks as fit on the GPU, each computing tile after tile: the producer fetches
//                      the next tile while TMA stores this one
//   ping-pong          the consumers of a block do not share a tile: each gets every second one, of 64 rows. They
//                      take turns on the tensor cores, so one multiplies while the other stores
//
// Registers go where they are needed: the producer releases most of its own, the consumers take more.

#include "kernels/matmul/hopper_gemm/task.hpp"
#include "kernels/matmul/hopper_gemm/wgmma/store.hpp"

namespace tilestep::hopper_gemm::SIMT_BACKEND {

constexpr int kProducerRegisters = 40;
constexpr int kConsumerRegisters = 232;
constexpr int kWatcher = 32;  // the first thread of the second warp

/// Initializes the barriers and synchronizes all blocks of the cluster.
template <int kCluster, class S, class Tape>
__device__ __forceinline__ void begin(const S& stages, const Tape& tape) {
  if (threadIdx.x == 0) {
    stages.ring().init(kCluster * stages.layout.sharing * kWarpgroup / 32);
    if (!omits(tape, Fault::no_publish)) publish_barriers();
  }
  // No thread may wait for or arrive at a barrier before it is initialized.
  if (omits(tape, Fault::no_meeting)) return;
  if constexpr (kCluster == 1) {
    __syncthreads();
  } else {
    cluster_barrier();
  }
}

/// The work of the one copying thread.
template <class T, class R, int kCluster, class Tape>
__device__ __forceinline__ void produce(const TensorMaps& maps, const Task& task,
                                        const Stages<T, R>& stages, int rank, const Tape& tape) {
  const auto ring = stages.ring();
  Turn turn;
  TileWalk<T, kCluster> walk(task.shape, task.raster, stages.rows());
  for (; walk.there(); walk.advance()) {
    const TilePlace place = walk.place(rank);
    for (int k = 0; k < task.shape.k; k += T::kDepth, ++turn.number) {
      const int stage = ring.stage(turn);
      const unsigned full = ring.full(stage);
      clock(tape, site_of(What::waits_empty), turn.number);
      // All consumers, in both blocks, must be done with the stage's old contents: the other block's half
      // is written here too.
      // Broken: waits only until its own copies have landed, even if consumers still read them.
      const bool forgets = tape.does(Fault::skip_empty_wait);
      const unsigned free = forgets ? full : ring.empty(stage);
      wait(tape, free, ring.parity(turn) ^ 1, turn, What::waits_empty);  // [step: waits-empty]
      clock(tape, site_of(What::expects), turn.number);
      const bool forgets_b = tape.does(Fault::wrong_bytes);
      arrive_expecting(full, forgets_b ? stages.a_bytes() : stages.bytes());  // [step: expects]
      fetch_stage<T, kCluster>(maps, stages, stage, k, place, rank);          // [step: copies]
      clock(tape, site_of(What::copies), turn.number);
    }
  }
}

/// An otherwise idle thread of the producer's warpgroup watches the stages become full.
template <class T, class R, int kCluster, class Tape>
__device__ __forceinline__ void look_on(const Task& task, const Stages<T, R>& stages,
                                        const Tape& tape) {
  const auto ring = stages.ring();
  Turn turn;
  TileWalk<T, kCluster> walk(task.shape, task.raster, stages.rows());
  for (; walk.there(); walk.advance()) {
    for (int k = 0; k < task.shape.k; k += T::kDepth, ++turn.number) {
      const unsigned full = ring.full(ring.stage(turn));
      if (!watch(full, ring.parity(turn), kPatience)) return;  // [step: flips]
      clock<kWatcher>(tape, site_of(What::flips), turn.number);
    }
  }
}

/// Ping-pong: this consumer has the tensor cores until it hands them to the other.
constexpr int kTensorCores = 3;  // the first of two named barriers; the ones before are for stores
__device__ __forceinline__ void take_tensor_cores(int consumer) {
  named_barrier_sync(kTensorCores + consumer, 2 * kWarpgroup);
}
__device__ __forceinline__ void pass_tensor_cores(int consumer) {
  named_barrier_arrive(kTensorCores + 1 - consumer, 2 * kWarpgroup);
}

/// A consumer's products for one tile, along all of k. With `passes` the other consumer may multiply once all of this
/// one's products are issued.
template <class T, class R, int kCluster, class Tape>
__device__ __forceinline__ void multiply_tile(typename T::Sums& sums, const Stages<T, R>& stages,
                                              Turn& turn, int k_end, int consumer, bool passes,
                                              const Tape& tape, int who) {
  const auto ring = stages.ring();
  // A single stage must be released before the next k-tile can be copied.
  const bool lone = stages.layout.stages == 1;
  const int rows = stages.layout.sharing == 1 ? 0 : consumer;  // which 64 of the stage's
  int before = 0;
  for (int k = 0; k < k_end; k += T::kDepth, ++turn.number) {
    if (lone && k > 0) {
      wgmma_wait<0>();
      clock(tape, site_of(What::waited, who), turn.number - 1);
      release<kCluster>(ring, before);
      clock(tape, site_of(What::releases, who), turn.number - 1);
    }
    const int stage = ring.stage(turn);
    clock(tape, site_of(What::waits_full, who), turn.number);
    if (!tape.does(Fault::skip_full_wait)) {  // [step: waits-full]
      wait(tape, ring.full(stage), ring.parity(turn), turn, What::waits_full, who);
    }
    clock(tape, site_of(What::issues, who), turn.number);
    multiply_stage<T>(sums, stages, stage, rows, k == 0);  // [step: issues]
    wgmma_commit();                                        // [step: commits]
    clock(tape, site_of(What::commits, who), turn.number);
    // The previous stage has been fully read once only this stage's products are in flight.
    if (!omits(tape, Fault::early_release)) wgmma_wait<1>();  // [step: waited]
    if (k > 0 && !lone) {
      clock(tape, site_of(What::waited, who), turn.number - 1);
      if (!omits(tape, Fault::no_release)) release<kCluster>(ring, before);  // [step: releases]
      clock(tape, site_of(What::releases, who), turn.number - 1);
    }
    before = stage;
  }
  if (passes) pass_tensor_cores(consumer);
  if (!omits(tape, Fault::no_product_wait)) wgmma_wait<0>();
  settle(sums);
  clock(tape, site_of(What::waited, who), turn.number - 1);
  if (!omits(tape, Fault::no_release)) release<kCluster>(ring, before);
  clock(tape, site_of(What::releases, who), turn.number - 1);
}

/// What a consumer does to the sums of a tile before it stores them: nothing. A lesson that fuses more into the epilogue
/// has a type like this one (systems/fusion/gemm/epilogues.cu).
struct SumsAlone {
  template <class T>
  using Stored = T;  ///< the tile of C that the sums become
  template <class T>
  struct Ahead {};  ///< loaded before the products, so that nothing waits for it after them
  template <class T, class Place>
  __device__ __forceinline__ Ahead<T> ahead(const Place&) const {
    return {};
  }
  template <class T>
  __device__ __forceinline__ void apply(typename T::Sums&, const Ahead<T>&,
                                        const TilePlace&) const {}
};

/// The work of a consumer warpgroup.
template <class T, class R, class Out, int kCluster, class Tape, class Epilogue>
__device__ __forceinline__ void consume(const TensorMaps& maps, const Task& task,
                                        simt::Global<Out> c, const Stages<T, R>& stages, int rank,
                                        int consumer, const Tape& tape, const Epilogue& epilogue) {
  using Stored = typename Epilogue::template Stored<T>;
  const int who = 1 + consumer;
  const bool in_turn = stages.layout.sharing < stages.layout.consumers;  // ping-pong
  Turn turn;
  int tile = 0;
  int parts = 0;
  typename T::Sums sums = {};
  TileWalk<T, kCluster> walk(task.shape, task.raster, stages.rows());
  if (in_turn && consumer == 1 && walk.there()) pass_tensor_cores(consumer);
  for (; walk.there(); walk.advance(), ++tile) {
    if (in_turn) {
      if (tile % 2 != consumer) {  // the other's
        turn.number += (task.shape.k + T::kDepth - 1) / T::kDepth;
        continue;
      }
      take_tensor_cores(consumer);
    }
    const auto here = [&] {
      TilePlace place = walk.place(rank);
      if (!in_turn) place.row += consumer * T::kRows;
      return place;
    };
    const auto ahead = epilogue.template ahead<T>(here);
    multiply_tile<T, R, kCluster>(sums, stages, turn, task.shape.k, consumer,
                                  in_turn && !walk.is_last(), tape, who);
    TilePlace place = here();
    clock(tape, site_of(What::stores, who), tile);
    epilogue.template apply<T>(sums, ahead, place);
    if constexpr (Stored::kColumns != T::kColumns) place.column /= T::kColumns / Stored::kColumns;
    if (task.stored_by_tma) {  // [step: stores]
      store_by_tma<Stored, Out>(maps.c, sums, stages, place, consumer, parts, tape);
    } else {
      store_sums<Stored, Out>(c, sums, task.shape, place);
    }
    clock(tape, site_of(What::stored, who), tile);
  }
  if (task.stored_by_tma && threadIdx.x % kWarpgroup == 0) store_wait<0>();
}

/// The work of a block.
template <class T, class R, class Out, int kCluster, class Tape, class Epilogue>
__device__ __forceinline__ void specialize(const TensorMaps& maps, simt::Global<Out> c,
                                           const Task& task, const R& ring, const Tape& tape,
                                           const Epilogue& epilogue) {
  const auto stages = lay_out<T>(ring, task.shared_bytes);
  const int rank = kCluster == 1 ? 0 : static_cast<int>(rank_in_cluster());
  begin<kCluster>(stages, tape);
  const int group = static_cast<int>(threadIdx.x) / kWarpgroup;
  if (group == 0) {
    keep_registers<kProducerRegisters>();
    if (threadIdx.x == 0) produce<T, R, kCluster>(maps, task, stages, rank, tape);
    if constexpr (Tape::kRecords) {
      if (threadIdx.x == kWatcher && tape.in_its_block())
        look_on<T, R, kCluster>(task, stages, tape);
    }
  } else {
    take_registers<kConsumerRegisters>();
    consume<T, R, Out, kCluster>(maps, task, c, stages, rank, group - 1, tape, epilogue);
  }
  linger(tape);
  // A block must not exit while the other may still arrive at its barriers or copy into its stages.
  if constexpr (kCluster > 1) {
    if (!omits(tape, Fault::no_last_meeting)) cluster_barrier();
  }
}

template <class T, class R, class Out, int kCluster, class Tape>
__global__ void __launch_bounds__(3 * kWarpgroup, 1)
    specialized(const __grid_constant__ TensorMaps maps, simt::Global<Out> c, Task task, R ring,
                Tape tape) {
  specialize<T, R, Out, kCluster>(maps, c, task, ring, tape, SumsAlone{});
}

}  // namespace tilestep::hopper_gemm::SIMT_BACKEND

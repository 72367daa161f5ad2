#pragma once

// The backward pass for Hopper: dQ, dK and dV from Q, K, V, dO and the forward's log-sum-exp. The weights are
// recomputed, not kept.
//
//   prepare       D = rowsum(dO ∘ O), and log-sum-exps in units of log2, one row per tile of queries
//   backward      a block has 128 keys, 64 for each of two consumer warpgroups, and walks over the tiles of
//                 queries. Keys are the rows of its scores: S^T = K Q^T, dP^T = V dO^T. Then P^T = 2^(S^T − lse) and
//                 dS^T = P^T ∘ (dP^T − D) are in registers as wgmma wants them for dV += P^T dO and dK += dS^T Q,
//                 which stay in registers to the end. dS also goes through shared memory, transposed, for dQ = dS K
//                 over all 128 keys; blocks add up their parts of dQ in memory, in FP32
//   convert       dQ in the format of Q
//
// One warp copies: K and V once, Q and dO through two rings of stages. Two warps, one per consumer, have TMA add dQ,
// so that no consumer waits for memory. A consumer always has a product in flight
// while it computes: dP under the exponentials, dV under dS, dK and dQ under the trip through shared memory, S of
// the next tile while dQ is stored.

#include "kernels/attention/attention_backward/hopper/backward_warpgroup.hpp"

namespace tilestep::attention_backward::hopper::SIMT_BACKEND {

// Named barriers. dQ is handed from a warpgroup to a warp.
constexpr int kMeetAll = 1, kDqFull = 2, kDqFree = kDqFull + kConsumers,
              kMeetGroup = kDqFree + kConsumers;
constexpr int kHandOver = kWarpgroup + 32;

/// Initializes the barriers and synchronizes the block.
template <class T, class Tape>
__device__ __forceinline__ void begin(const Layout<T>& layout, const Tape& tape) {
  constexpr int kReaders = kConsumers * kWarpgroup / 32;  // warps
  if (threadIdx.x == 0) {
    barrier_init(layout.full_k(), 1);
    barrier_init(layout.full_v(), 1);
    layout.ring_q().init(kReaders);
    layout.ring_do().init(kReaders);
    if (!omits(tape, Fault::no_publish)) publish_barriers();
  }
  // No thread may wait or arrive at a barrier before it is initialized.
  if (!omits(tape, Fault::no_meeting)) __syncthreads();
}

// ---- producer -------------------------------------------------------------------------------------

/// The one thread that copies.
template <class T, class Tape>
__device__ __forceinline__ void produce(const TensorMaps& maps, const Task& task,
                                        const Layout<T>& layout, const Tape& tape) {
  constexpr TileSizes kSizes = T::kSizes;
  Walk walk = walk_of<T>(task);
  arrive_expecting(layout.full_k(), kSizes.key_bytes());
  fetch_panels<T>(maps.k, layout.k(), kKeys, layout.full_k(), walk.key, walk.head);
  arrive_expecting(layout.full_v(), kSizes.key_bytes());
  fetch_panels<T>(maps.v, layout.v(), kKeys, layout.full_v(), walk.key, walk.head);
  const auto q = layout.ring_q();
  const auto d_o = layout.ring_do();
  for (Turn turn; turn.number < walk.total; ++turn.number) {
    const int row = walk.tile * T::kQueries;
    // dO's stage is free first: dV is done before dK.
    clock(tape, kWaitsEmptyDo, turn.number);
    if (!omits(tape, Fault::skip_empty_gradient)) d_o.producer_acquire(turn);
    const int stage_do = d_o.stage(turn);
    arrive_expecting(d_o.full(stage_do), kSizes.query_bytes());
    fetch_panels<T>(maps.d_o, layout.d_o(stage_do), T::kQueries, d_o.full(stage_do), row,
                    walk.query_head);
    clock(tape, kCopiesDo, turn.number);

    clock(tape, kWaitsEmptyQ, turn.number);
    if (!omits(tape, Fault::skip_empty_query)) q.producer_acquire(turn);
    const int stage_q = q.stage(turn);
    arrive_expecting(q.full(stage_q), kSizes.query_bytes() + kSizes.row_bytes());
    fetch_panels<T>(maps.q, layout.q(stage_q), T::kQueries, q.full(stage_q), row, walk.query_head);
    fetch(maps.rows, layout.rows(stage_q), q.full(stage_q), 0,
          walk.query_head * task.query_tiles + walk.tile);
    clock(tape, kCopiesQ, turn.number);
    walk.next();
  }
}

// ---- adding dQ ------------------------------------------------------------------------------------

/// The warp that adds a consumer's parts of dQ to those of other blocks.
template <class T, class Tape>
__device__ __forceinline__ void add_query_sums(const TensorMaps& maps, const Task& task,
                                               const Layout<T>& layout, int consumer,
                                               const Tape& tape) {
  Walk walk = walk_of<T>(task);
  for (int i = 0; i < walk.total; ++i) {
    if (!omits(tape, Fault::no_dq_free)) named_barrier_arrive(kDqFree + consumer, kHandOver);
    if (!omits(tape, Fault::no_dq_full_wait)) named_barrier_sync(kDqFull + consumer, kHandOver);
    if (threadIdx.x % 32 == 0) {
      const int tile = walk.query_head * task.query_tiles + walk.tile;
      clock<32>(tape, kAddsDq + consumer * kConsumerSites, i);
      reduce_add(maps.dq, layout.dq(consumer), 0, (tile * kConsumers + consumer) * kPieceRows);
      store_commit();
      if (!omits(tape, Fault::no_add_wait)) store_wait<0>();
      clock<32>(tape, kAddedDq + consumer * kConsumerSites, i);
    }
    __syncwarp();
    walk.next();
  }
}

// ---- consumers ------------------------------------------------------------------------------------

/// A warpgroup's state. Registers that products use belong to the callers.
template <class T, class Tape>
struct Consumer {
  const Layout<T>& layout;
  const Task& task;
  const Tape& tape;
  int consumer;
  int key;  ///< the warpgroup's first
  Walk walk;
  Turn turn = {};  ///< tile of queries: of Q's ring, and of dO's

  __device__ __forceinline__ void note(Site site, int before = 0) const {
    clock(tape, site + consumer * kConsumerSites, turn.number - before);
  }

  __device__ __forceinline__ int stage_q() const { return layout.ring_q().stage(turn); }
  __device__ __forceinline__ int stage_do() const { return layout.ring_do().stage(turn); }

  // ---- products: one group each ----
  /// K Q^T, or V dO^T, for the warpgroup's keys.
  __device__ __forceinline__ void multiply_tiles(typename T::Scores& s, unsigned keys,
                                                 unsigned queries) const {
    const unsigned mine = keys + static_cast<unsigned>(consumer * kBoxBytes);
    issue_product<T::kHeadDim, kKeys, T::kQueries>(s, mine, queries);
  }
  __device__ __forceinline__ void multiply_keys(typename T::Scores& s) const {
    if (!omits(tape, Fault::skip_query_wait)) layout.ring_q().consumer_wait(turn);
    note(kIssuesS);
    wgmma_begin();
    multiply_tiles(s, layout.k(), layout.q(stage_q()));  // [step: issues-s]
    wgmma_commit();
  }
  __device__ __forceinline__ void multiply_values(typename T::Scores& dp) const {
    if (!omits(tape, Fault::skip_gradient_wait)) layout.ring_do().consumer_wait(turn);
    note(kIssuesDp);
    wgmma_begin();
    multiply_tiles(dp, layout.v(), layout.d_o(stage_do()));  // [step: issues-dp]
    wgmma_commit();
  }
  __device__ __forceinline__ void add_to_dv(typename T::Outputs& dv,
                                            const typename T::Weights& p) const {
    note(kIssuesDv);
    wgmma_begin();
    issue_sums<T::kHeadDim>(dv, p, layout.d_o(stage_do()));  // [step: issues-dv]
    wgmma_commit();
    if (omits(tape, Fault::early_gradient_release)) layout.ring_do().consumer_release(stage_do());
  }
  __device__ __forceinline__ void add_to_dk(typename T::Outputs& dk,
                                            const typename T::Weights& ds) const {
    note(kIssuesDk);
    wgmma_begin();
    issue_sums<T::kHeadDim>(dk, ds, layout.q(stage_q()));  // [step: issues-dk]
    wgmma_commit();
    if (omits(tape, Fault::early_query_release)) layout.ring_q().consumer_release(stage_q());
  }
  /// Once all have written their part of dS.
  __device__ __forceinline__ void multiply_scores(typename T::QuerySums& dq) const {
    note(kWaitsDs);
    // With two tiles of dS, all have waited for this warpgroup since it last multiplied the other one.
    if (!omits(tape, Fault::no_ds_meeting)) named_barrier_sync(kMeetAll, kConsumers * kWarpgroup);
    note(kIssuesDq);
    wgmma_begin();
    issue_query_sums<T>(dq, layout.ds(turn.number % 2), layout.k(), consumer);  // [step: issues-dq]
    wgmma_commit();
  }

  // ---- scores ----
  /// Once all but the newest kPending groups are done, turns S into P.
  template <int kPending>
  __device__ __forceinline__ void soften(typename T::Scores& s) const {
    if (!omits(tape, Fault::no_score_wait)) wgmma_wait<kPending>();
    settle(s);
    note(kDoneS);
    const int query = walk.tile * T::kQueries;
    note(kBeginsP);
    if (!all_seen(task.rule, query, query + T::kQueries - 1, key, key + kRowsOfGroup - 1)) {
      hide<T>(s, task.rule, key, query);  // [step: masks]
    }
    weigh<T>(s, layout.rows(stage_q()), task.scale_log2);  // [step: weights]
    settle(s);  // here, not where they are used: products are in flight in between
  }
  /// The same for dP, turned into dS, in registers and in shared memory.
  template <int kPending>
  __device__ __forceinline__ void derive(typename T::Weights& ds, typename T::Scores& dp,
                                         const typename T::Scores& s,
                                         const typename T::Weights& p) const {
    if (!omits(tape, Fault::no_weight_wait)) wgmma_wait<kPending>();
    settle(dp);
    note(kDoneDp);
    differentiate<T>(dp, s, p, layout.rows(stage_q()));  // [step: derives]
    pack_weights(ds, dp);
    settle_all(ds);
    stage_scores<T>(layout.ds(turn.number % 2), ds, consumer);
    if (!omits(tape, Fault::no_ds_fence)) publish_to_async_proxy();
    note(kStoresDs);
  }
  __device__ __forceinline__ static void settle_all(typename T::Weights& weights) {
#pragma unroll
    for (int i = 0; i < T::kQueries / 16; ++i) settle(weights[i]);
  }

  // ---- what leaves ----
  __device__ __forceinline__ void hand_over(const typename T::QuerySums& dq) const {
    if (!omits(tape, Fault::no_dq_free_wait)) named_barrier_sync(kDqFree + consumer, kHandOver);
    stage_query_sums<T>(layout.dq(consumer), dq);
    if (!omits(tape, Fault::no_dq_fence)) publish_to_async_proxy();
    note(kStoresDq);
    if (!omits(tape, Fault::no_dq_full)) named_barrier_arrive(kDqFull + consumer, kHandOver);
  }
  /// Q's stage of the tile before this one.
  __device__ __forceinline__ void release_queries() const {
    const auto ring = layout.ring_q();
    if (!omits(tape, Fault::no_query_release) && !omits(tape, Fault::early_query_release)) {
      ring.consumer_release(ring.stage({turn.number - 1}));
    }
    note(kReleases, 1);
  }
  __device__ __forceinline__ void release_gradients() const {
    if (!omits(tape, Fault::no_gradient_release) && !omits(tape, Fault::early_gradient_release)) {
      layout.ring_do().consumer_release(stage_do());
    }
  }
  /// For dK or dV.
  template <int kPending>
  __device__ __forceinline__ void wait_for_keys(typename T::Outputs& sums) const {
    wgmma_wait<kPending>();
    settle(sums);
  }
  template <int kPending>
  __device__ __forceinline__ void wait_for_sums(typename T::QuerySums& dq) const {
    if (!omits(tape, Fault::no_query_sum_wait)) wgmma_wait<kPending>();
    settle(dq);
    note(kDoneDq);
  }
  __device__ __forceinline__ void next() {
    ++turn.number;
    walk.next();
  }
};

/// State that a warpgroup keeps to the end.
template <class T>
struct Sums {
  typename T::Outputs dk, dv;
};

/// A tile of queries up to dS. dK of the previous tile is in flight, unless this is the first.
template <bool kFirst, class T, class Tape>
__device__ __forceinline__ void begin_tile(Consumer<T, Tape>& c, typename T::Weights& ds,
                                           Sums<T>& sums) {
  typename T::Scores s, dp;
  typename T::Weights p;
  c.multiply_keys(s);
  if constexpr (!kFirst) {
    c.template wait_for_keys<1>(sums.dk);
    c.release_queries();
  }
  c.multiply_values(dp);
  c.template soften<1>(s);
  pack_weights(p, s);
  c.add_to_dv(sums.dv, p);
  c.template derive<1>(ds, dp, s, p);
  // With products in flight a loop back edge takes more registers than there are.
  c.template wait_for_keys<0>(sums.dv);
  c.release_gradients();
}

/// The rest: dQ, and dK, which goes on.
template <class T, class Tape>
__device__ __forceinline__ void end_tile(Consumer<T, Tape>& c, const typename T::Weights& ds,
                                         Sums<T>& sums) {
  typename T::QuerySums dq;
  c.multiply_scores(dq);
  c.add_to_dk(sums.dk, ds);
  c.template wait_for_sums<1>(dq);
  c.hand_over(dq);
  c.next();
}

/// dK and dV are stored from K's and V's place by TMA, which skips rows past the last key.
template <class T, class Tape>
__device__ __forceinline__ void store_sums(const TensorMaps& maps, Consumer<T, Tape>& c,
                                           Sums<T>& sums) {
  stage_outputs<T>(sums.dv, c.layout.v(), c.consumer, 1.0f);
  // All consumers multiply all of K.
  if (!omits(c.tape, Fault::no_key_meeting)) {
    named_barrier_sync(kMeetAll, kConsumers * kWarpgroup);
  }
  stage_outputs<T>(sums.dk, c.layout.k(), c.consumer, c.task.scale);
  if (!omits(c.tape, Fault::no_store_fence)) publish_to_async_proxy();
  if (!omits(c.tape, Fault::no_store_meeting)) {
    named_barrier_sync(kMeetGroup + c.consumer, kWarpgroup);
  }
  if (threadIdx.x % kWarpgroup != 0) return;
  for (int panel = 0; panel < T::kPanels; ++panel) {
    const auto box = static_cast<unsigned>(panel * kKeys * kPanelBytes + c.consumer * kBoxBytes);
    store(maps.dv, c.layout.v() + box, panel * kPanelColumns, c.key, c.walk.head);
    store(maps.dk, c.layout.k() + box, panel * kPanelColumns, c.key, c.walk.head);
  }
  store_commit();
  if (!omits(c.tape, Fault::no_store_wait)) store_wait<0>();
}

/// A consumer warpgroup.
template <class T, class Tape>
__device__ __forceinline__ void consume(const TensorMaps& maps, const Task& task,
                                        const Layout<T>& layout, int consumer, const Tape& tape) {
  const Walk walk = walk_of<T>(task);
  Consumer<T, Tape> c{layout, task, tape, consumer, walk.key + consumer * kRowsOfGroup, walk};
  Sums<T> sums = {};
  if (!omits(tape, Fault::skip_key_wait)) wait_for(layout.full_k(), 0);
  if (!omits(tape, Fault::skip_value_wait)) wait_for(layout.full_v(), 0);
  if (walk.total > 0) {
    typename T::Weights ds;
    begin_tile<true>(c, ds, sums);
    for (int left = walk.total; left > 1; --left) {
      end_tile(c, ds, sums);
      begin_tile<false>(c, ds, sums);
    }
    end_tile(c, ds, sums);
    wgmma_wait<0>();
  }
  settle(sums.dk);
  settle(sums.dv);
  store_sums(maps, c, sums);
}

template <class T, class Tape>
__global__ void __launch_bounds__(kThreads, 1)
    backward(const __grid_constant__ TensorMaps maps, Task task, Tape tape) {
  const Layout<T> layout = lay_out<T>();
  begin(layout, tape);
  // From lane 0, so that the compiler knows it is warp-uniform: values derived from it then take no per-thread
  // registers, and there are none to spare.
  const int warp = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / 32, 0);
  const int group = warp / (kWarpgroup / 32);
  if (group == 0) {
    keep_registers<T::kProducerRegisters>();
    if (threadIdx.x == 0) produce<T>(maps, task, layout, tape);
    if (warp > 0 && warp <= kConsumers) add_query_sums<T>(maps, task, layout, warp - 1, tape);
  } else {
    take_registers<T::kConsumerRegisters>();
    consume<T>(maps, task, layout, group - 1, tape);
  }
}

}  // namespace tilestep::attention_backward::hopper::SIMT_BACKEND

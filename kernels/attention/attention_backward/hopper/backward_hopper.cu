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
    if (!does(tape, Fault::no_publish)) publish_barriers();
  }
  // No thread may wait or arrive at a barrier before it is initialized.
  if (!does(tape, Fault::no_meeting)) __syncthreads();
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
    if (!does(tape, Fault::skip_empty_gradient)) d_o.producer_acquire(turn);
    const int stage_do = d_o.stage(turn);
    arrive_expecting(d_o.full(stage_do), kSizes.query_bytes());
    fetch_panels<T>(maps.d_o, layout.d_o(stage_do), T::kQueries, d_o.full(stage_do), row,
                    walk.query_head);
    clock(tape, kCopiesDo, turn.number);

    clock(tape, kWaitsEmptyQ, turn.number);
    if (!does(tape, Fault::skip_empty_query)) q.producer_acquire(turn);
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
    if (!does(tape, Fault::no_dq_free)) named_barrier_arrive(kDqFree + consumer, kHandOver);
    if (!does(tape, Fault::no_dq_full_wait)) named_barrier_sync(kDqFull + consumer, kHandOver);
    if (threadIdx.x % 32 == 0) {
      const int tile = walk.query_head * task.query_tiles + walk.tile;
      clock<32>(tape, kAddsDq + consumer * kConsumerSites, i);
      reduce_add(maps.dq, layout.dq(consumer), 0, (tile * kConsumers + consumer) * kPieceRows);
      store_commit();
      if (!does(tape, Fault::no_add_wait)) store_wait<0>();
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
  int number = 0;  ///< tile of queries
  Turn turn_q = {}, turn_do = {};

  __device__ __forceinline__ void note(Site site, int which) const {
    clock(tape, site + consumer * kConsumerSites, which);
  }

  __device__ __forceinline__ int stage_q() const { return layout.ring_q().stage(turn_q); }
  __device__ __forceinline__ int stage_do() const { return layout.ring_do().stage(turn_do); }

  // ---- products: one group each ----
  /// S^T of the tile `which`, this one or the next.
  __device__ __forceinline__ void multiply_keys(typename T::Scores& s, int which) const {
    if (!does(tape, Fault::skip_query_wait)) layout.ring_q().consumer_wait(turn_q);
    note(kIssuesS, which);
    wgmma_begin();
    issue_scores<T>(s, layout.k(), layout.q(stage_q()), consumer);  // [step: issues-s]
    wgmma_commit();
  }
  __device__ __forceinline__ void multiply_values(typename T::Scores& dp) const {
    if (!does(tape, Fault::skip_gradient_wait)) layout.ring_do().consumer_wait(turn_do);
    note(kIssuesDp, number);
    wgmma_begin();
    issue_scores<T>(dp, layout.v(), layout.d_o(stage_do()), consumer);  // [step: issues-dp]
    wgmma_commit();
  }
  __device__ __forceinline__ void add_to_dv(typename T::Outputs& dv,
                                            const typename T::Weights& p) const {
    note(kIssuesDv, number);
    wgmma_begin();
    issue_outputs<T>(dv, p, layout.d_o(stage_do()));  // [step: issues-dv]
    wgmma_commit();
    if (does(tape, Fault::early_gradient_release)) layout.ring_do().consumer_release(stage_do());
  }
  __device__ __forceinline__ void add_to_dk(typename T::Outputs& dk,
                                            const typename T::Weights& ds) const {
    note(kIssuesDk, number);
    wgmma_begin();
    issue_outputs<T>(dk, ds, layout.q(stage_q()));  // [step: issues-dk]
    wgmma_commit();
    if (does(tape, Fault::early_query_release)) layout.ring_q().consumer_release(stage_q());
  }
  /// Once all have written their part of dS.
  __device__ __forceinline__ void multiply_scores(typename T::QuerySums& dq) const {
    note(kWaitsDs, number);
    // With two tiles of dS, all have waited for this warpgroup since it last multiplied the other one.
    if (!does(tape, Fault::no_ds_meeting)) named_barrier_sync(kMeetAll, kConsumers * kWarpgroup);
    note(kIssuesDq, number);
    wgmma_begin();
    issue_query_sums<T>(dq, layout.ds(number % 2), layout.k(), consumer);  // [step: issues-dq]
    wgmma_commit();
  }

  // ---- scores ----
  /// Once all but the newest kPending groups are done, turns S into P.
  template <int kPending>
  __device__ __forceinline__ void soften(typename T::Scores& s) const {
    if (!does(tape, Fault::no_score_wait)) wgmma_wait<kPending>();
    settle(s);
    note(kDoneS, number);
    const int query = walk.tile * T::kQueries;
    note(kBeginsP, number);
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
    if (!does(tape, Fault::no_weight_wait)) wgmma_wait<kPending>();
    settle(dp);
    note(kDoneDp, number);
    differentiate<T>(dp, s, p, layout.rows(stage_q()));  // [step: derives]
    pack_weights<T>(ds, dp);
    settle_all(ds);
    stage_scores<T>(layout.ds(number % 2), ds, consumer);
    if (!does(tape, Fault::no_ds_fence)) publish_to_async_proxy();
    note(kStoresDs, number);
  }
  __device__ __forceinline__ static void settle_all(typename T::Weights& weights) {
#pragma unroll
    for (int i = 0; i < T::kQueries / 16; ++i) settle(weights[i]);
  }

  // ---- what leaves ----
  __device__ __forceinline__ void hand_over(const typename T::QuerySums& dq) const {
    if (!does(tape, Fault::no_dq_free_wait)) named_barrier_sync(kDqFree + consumer, kHandOver);
    stage_query_sums<T>(layout.dq(consumer), dq);
    if (!does(tape, Fault::no_dq_fence)) publish_to_async_proxy();
    note(kStoresDq, number);
    if (!does(tape, Fault::no_dq_full)) named_barrier_arrive(kDqFull + consumer, kHandOver);
  }
  /// Q's stage of the tile before the next one.
  __device__ __forceinline__ void release_queries(int which) const {
    if (!does(tape, Fault::no_query_release) && !does(tape, Fault::early_query_release)) {
      const auto ring = layout.ring_q();
      ring.consumer_release(ring.stage({turn_q.number - 1}));
    }
    note(kReleases, which);
  }
  /// From now on Q means the next tile's.
  __device__ __forceinline__ void next_queries() {
    ++turn_q.number;
  }
  __device__ __forceinline__ void release_gradients() {
    if (!does(tape, Fault::no_gradient_release) && !does(tape, Fault::early_gradient_release)) {
      layout.ring_do().consumer_release(stage_do());
    }
    ++turn_do.number;
  }
  /// For dK or dV.
  template <int kPending>
  __device__ __forceinline__ void wait_for_keys(typename T::Outputs& sums) const {
    wgmma_wait<kPending>();
    settle(sums);
  }
  template <int kPending>
  __device__ __forceinline__ void wait_for_sums(typename T::QuerySums& dq) const {
    if (!does(tape, Fault::no_query_sum_wait)) wgmma_wait<kPending>();
    settle(dq);
    note(kDoneDq, number);
  }
  __device__ __forceinline__ void next() {
    ++number;
    walk.next();
  }
};

/// State that a warpgroup keeps to the end.
template <class T>
struct Sums {
  typename T::Outputs dk, dv;
};

/// A tile of queries up to dS. With scores_ahead its S is in flight, in `ahead`; with dq_first, so is dK of the
/// previous tile, unless this is the first.
template <bool kFirst, class T, class Tape>
__device__ __forceinline__ void begin_tile(Consumer<T, Tape>& c, typename T::Scores& ahead,
                                           typename T::Weights& ds, Sums<T>& sums) {
  // Registers that outlive an iteration only where they must.
  typename T::Scores own;
  typename T::Scores& s = T::kOrder == ProductOrder::scores_ahead ? ahead : own;
  typename T::Scores dp;
  typename T::Weights p;
  if constexpr (kFirst || T::kOrder != ProductOrder::scores_ahead) c.multiply_keys(s, c.number);
  if constexpr (!kFirst && T::kOrder == ProductOrder::dq_first) {
    c.template wait_for_keys<1>(sums.dk);
    c.release_queries(c.number - 1);
  }
  c.multiply_values(dp);
  c.template soften<1>(s);
  pack_weights<T>(p, s);
  c.add_to_dv(sums.dv, p);
  c.template derive<1>(ds, dp, s, p);
  // With products in flight a loop back edge takes more registers than there are.
  c.template wait_for_keys<0>(sums.dv);
  c.release_gradients();
}

/// The rest: dK and dQ, and with scores_ahead S of the next tile.
template <bool kLast, class T, class Tape>
__device__ __forceinline__ void end_tile(Consumer<T, Tape>& c, typename T::Scores& s,
                                         const typename T::Weights& ds, Sums<T>& sums) {
  constexpr bool kAhead = T::kOrder == ProductOrder::scores_ahead && !kLast;
  constexpr bool kDqFirst = T::kOrder == ProductOrder::dq_first;
  typename T::QuerySums dq;
  if constexpr (!kDqFirst) c.add_to_dk(sums.dk, ds);
  c.multiply_scores(dq);
  if constexpr (kDqFirst) c.add_to_dk(sums.dk, ds);
  c.next_queries();
  if constexpr (kAhead) c.multiply_keys(s, c.number + 1);
  c.template wait_for_sums<kAhead || kDqFirst ? 1 : 0>(dq);
  if constexpr (!kDqFirst) c.release_queries(c.number);
  c.hand_over(dq);
  c.next();
}

/// dK and dV are stored from K's and V's place by TMA, which skips rows past the last key.
template <class T, class Tape>
__device__ __forceinline__ void store_sums(const TensorMaps& maps, Consumer<T, Tape>& c,
                                           Sums<T>& sums) {
  stage_outputs<T>(sums.dv, c.layout.v(), c.consumer, 1.0f);
  // All consumers multiply all of K.
  if (!does(c.tape, Fault::no_key_meeting)) {
    named_barrier_sync(kMeetAll, kConsumers * kWarpgroup);
  }
  stage_outputs<T>(sums.dk, c.layout.k(), c.consumer, c.task.scale);
  if (!does(c.tape, Fault::no_store_fence)) publish_to_async_proxy();
  if (!does(c.tape, Fault::no_store_meeting)) {
    named_barrier_sync(kMeetGroup + c.consumer, kWarpgroup);
  }
  if (threadIdx.x % kWarpgroup != 0) return;
  for (int panel = 0; panel < T::kPanels; ++panel) {
    const auto box = static_cast<unsigned>(panel * kKeys * kPanelBytes + c.consumer * kBoxBytes);
    store(maps.dv, c.layout.v() + box, panel * kPanelColumns, c.key, c.walk.head);
    store(maps.dk, c.layout.k() + box, panel * kPanelColumns, c.key, c.walk.head);
  }
  store_commit();
  if (!does(c.tape, Fault::no_store_wait)) store_wait<0>();
}

/// A consumer warpgroup.
template <class T, class Tape>
__device__ __forceinline__ void consume(const TensorMaps& maps, const Task& task,
                                        const Layout<T>& layout, int consumer, const Tape& tape) {
  const Walk walk = walk_of<T>(task);
  Consumer<T, Tape> c{layout, task, tape, consumer, walk.key + consumer * kRowsOfGroup, walk};
  Sums<T> sums = {};
  if (!does(tape, Fault::skip_key_wait)) wait_for(layout.full_k(), 0);
  if (!does(tape, Fault::skip_value_wait)) wait_for(layout.full_v(), 0);
  if (walk.total > 0) {
    typename T::Scores s;
    typename T::Weights ds;
    begin_tile<true>(c, s, ds, sums);
    for (int left = walk.total; left > 1; --left) {
      end_tile<false>(c, s, ds, sums);
      begin_tile<false>(c, s, ds, sums);
    }
    end_tile<true>(c, s, ds, sums);
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

#pragma once

// FlashAttention 3's forward pass in three rungs. A block has 64 queries per consumer warpgroup. The producer
// warpgroup only copies: Q once, then tiles of K and V through two rings of stages. The consumers multiply and compute
// the softmax. They synchronize with mbarriers: `full`, when copies have landed, and `empty`, when all have read.
//
//   flash-3-tma        each on its own: S = Q K^T by wgmma, softmax in registers, O += P V by wgmma with P from
//                      those registers
//   flash-3-ping-pong  named barriers make them take turns: the consumer with the turn issues O += P V of the previous
//                      tile and S of this one, and passes the turn; its softmax runs under the others' products
//   flash-3            S of this tile is issued first, and O += P V of the previous tile runs under this one's
//                      softmax. Persistent blocks, as many as are resident, take tile after tile of queries: the
//                      next one's Q and K arrive while this one's O is stored
//
// Tiles of keys run from last to first. Masked tiles are at the ends: the tiles between run without masking code.

#include "kernels/attention/flash_attention_3/warpgroup.hpp"

namespace tilestep::flash_attention_3::SIMT_BACKEND {

constexpr float kLn2 = 0.6931471805599453f;
constexpr int kWatchers = 32;  // first threads of the second and third warps

/// Initializes the barriers and synchronizes the block.
template <class T, class Tape = simt::NoTape>
__device__ __forceinline__ void begin(const Layout<T>& layout, const Tape& tape = {}) {
  constexpr int kReaders = T::kConsumers * kWarpgroup / 32;  // warps
  if (threadIdx.x == 0) {
    layout.ring_q().init(kReaders);
    layout.ring_k().init(kReaders);
    layout.ring_v().init(kReaders);
    if (!omits(tape, Fault::no_publish)) publish_barriers();
  }
  // No thread may wait or arrive at a barrier before it is initialized.
  if (!omits(tape, Fault::no_meeting)) __syncthreads();
}

/// Calls `run(turn, tile)` for each tile of queries that the block takes.
template <class Run>
__device__ __forceinline__ void for_each_tile(const TileOrder& order, Run run) {
  const auto blocks = static_cast<int>(gridDim.x);
  for (int turn = 0; turn * blocks < order.count(); ++turn) {
    const int number = order.number_of(static_cast<int>(blockIdx.x), turn, blocks);
    if (number < order.count()) run(turn, order.place(number));
  }
}

// ---- the producer ---------------------------------------------------------------------------------

/// Requests the tiles of Q of a turn, from `row` on, once their place is free.
template <class T, class Tape = simt::NoTape>
__device__ __forceinline__ void fetch_queries(const TensorMap& map, const Layout<T>& layout,
                                              Turn turn, int row, int head, const Tape& tape = {}) {
  const auto ring = layout.ring_q();
  clock(tape, site_of(What::waits_empty_q), turn.number);
  if (!omits(tape, Fault::skip_empty_query)) ring.producer_acquire(turn);
  arrive_expecting(ring.full(0), T::kConsumers * T::kQueryBytes);
  for (int consumer = 0; consumer < T::kConsumers; ++consumer) {
    fetch_panels<T>(map, layout.q(consumer), kRowsOfGroup, ring.full(0),
                    row + consumer * kRowsOfGroup, head);
  }
  clock(tape, site_of(What::copies_q), turn.number);
}

/// Requests the next tile of K, or of V, once its stage is free.
template <bool kOfV, class T, class Tape = simt::NoTape>
__device__ __forceinline__ void fetch_keys(const TensorMaps& maps, const Layout<T>& layout,
                                           Turn& turn, int key, int head, const Tape& tape = {}) {
  const auto ring = kOfV ? layout.ring_v() : layout.ring_k();
  const int stage = ring.stage(turn);
  const unsigned tile = kOfV ? layout.v(stage) : layout.k(stage);
  clock(tape, site_of(kOfV ? What::waits_empty_v : What::waits_empty_k), turn.number);
  if (!omits(tape, kOfV ? Fault::skip_empty_value : Fault::skip_empty_key)) {
    ring.producer_acquire(turn);  // [step: waits-empty]
  }
  arrive_expecting(ring.full(stage), T::kKeyBytes);
  const TensorMap& map = kOfV ? maps.v : maps.k;
  fetch_panels<T>(map, tile, T::kKeys, ring.full(stage), key, head);  // [step: copies]
  clock(tape, site_of(kOfV ? What::copies_v : What::copies_k), turn.number);
  ++turn.number;
}

/// The one thread that copies. K is fetched ahead where consumers multiply a tile of K before the previous
/// tile's V.
template <class T, Rung kRung, class Tape>
__device__ __forceinline__ void produce(const TensorMaps& maps, const Task& task,
                                        const Layout<T>& layout, const Tape& tape) {
  constexpr int kAhead = kRung == Rung::tma ? 0 : 1;
  prefetch(maps.q);
  prefetch(maps.k);
  prefetch(maps.v);
  Turn turn_k, turn_v;
  for_each_tile(task.order, [&](int turn, const QueryTile& tile) {
    const Place place = place_of<T>(task, tile);
    fetch_queries<T>(maps.q, layout, {turn}, place.row, place.head, tape);
    const int head = place.head / task.heads_of_group;
    const int count = place.keys.count();
    for (int i = 0; i < count + kAhead; ++i) {
      const int key = (place.keys.last - i) * T::kKeys;
      if (i < count) fetch_keys<false>(maps, layout, turn_k, key, head, tape);
      if (i >= kAhead) fetch_keys<true>(maps, layout, turn_v, key + kAhead * T::kKeys, head, tape);
    }
  });
}

/// An otherwise idle thread of the producer observes when a ring's stages become full.
template <class T, class Tape>
__device__ __forceinline__ void look_on(const Task& task, const typename T::Ring& ring,
                                        const Tape& tape, What what) {
  constexpr long long kPatience = 2'000'000;
  int count = 0;  // tiles of keys
  for_each_tile(task.order,
                [&](int, const QueryTile& tile) { count += place_of<T>(task, tile).keys.count(); });
  for (Turn turn; turn.number < count; ++turn.number) {
    if (!watch(ring.full(ring.stage(turn)), ring.parity(turn), kPatience)) return;  // [step: full]
    tape.tick(site_of(what), turn.number, cycles());
  }
}

// ---- the consumers --------------------------------------------------------------------------------

/// A warpgroup's state through a tile of queries, and through all of them.
template <class T, class Tape = simt::NoTape>
struct Consumer {
  const Layout<T>& layout;
  const Task& task;
  const Tape& tape;
  int consumer;
  Turn turn_k = {}, turn_v = {};
  int turns = 0;  ///< turns taken
  int row = 0;    ///< the warpgroup's first query
  Rows rows = {};

  __device__ __forceinline__ void note(What what, int number) const {
    clock(tape, site_of(what, consumer), number);
  }

  // ---- waits and releases ----
  __device__ __forceinline__ void wait_for_queries(Turn turn) const {
    if (!omits(tape, Fault::skip_query_wait)) layout.ring_q().consumer_wait(turn);
  }
  __device__ __forceinline__ void wait_for_keys() const {
    note(What::waits_k, turn_k.number);
    if (!omits(tape, Fault::skip_key_wait))
      layout.ring_k().consumer_wait(turn_k);  // [step: waits-k]
  }
  __device__ __forceinline__ void wait_for_values() const {
    note(What::waits_v, turn_v.number);
    if (!omits(tape, Fault::skip_value_wait)) {
      layout.ring_v().consumer_wait(turn_v);  // [step: waits-v]
    }
  }
  __device__ __forceinline__ void release_queries() const {
    if (!omits(tape, Fault::early_query_release)) layout.ring_q().consumer_release(0);
  }
  __device__ __forceinline__ void release_keys() {
    const auto ring = layout.ring_k();
    if (!omits(tape, Fault::no_key_release) && !omits(tape, Fault::early_key_release)) {
      ring.consumer_release(ring.stage(turn_k));  // [step: releases-k]
    }
    note(What::releases_k, turn_k.number);
    ++turn_k.number;
  }
  __device__ __forceinline__ void release_values() {
    const auto ring = layout.ring_v();
    if (!omits(tape, Fault::early_value_release)) {
      ring.consumer_release(ring.stage(turn_v));  // [step: releases-v]
    }
    note(What::releases_v, turn_v.number);
    ++turn_v.number;
  }

  // ---- turns: one named barrier per consumer, shared with the one before it ----
  __device__ __forceinline__ void take_turn() const {
    note(What::waits_turn, turns);
    named_barrier_sync(1 + consumer, 2 * kWarpgroup);  // [step: takes-turn]
    note(What::takes_turn, turns);
  }
  __device__ __forceinline__ void pass_turn() {
    const int next = consumer + 1 < T::kConsumers ? consumer + 1 : 0;
    note(What::passes_turn, turns);
    named_barrier_arrive(1 + next, 2 * kWarpgroup);  // [step: passes-turn]
    ++turns;
  }

  // ---- products ----
  __device__ __forceinline__ void multiply_keys(typename T::Scores& s) const {
    note(What::issues_s, turn_k.number);
    const int stage = layout.ring_k().stage(turn_k);
    issue_product<T::kHeadDim, kRowsOfGroup, T::kKeys>(s, layout.q(consumer),
                                                       layout.k(stage));  // [step: issues-s]
    wgmma_commit();
    note(What::commits_s, turn_k.number);
    if (omits(tape, Fault::early_query_release) && turn_k.number == 0) {
      layout.ring_q().consumer_release(0);
    }
    if (omits(tape, Fault::early_key_release)) layout.ring_k().consumer_release(stage);
  }
  __device__ __forceinline__ void multiply_values(typename T::Outputs& o,
                                                  const typename T::Weights& weights) const {
    note(What::issues_o, turn_v.number);
    const int stage = layout.ring_v().stage(turn_v);
    issue_sums<T::kHeadDim>(o, weights, layout.v(stage));  // [step: issues-o]
    wgmma_commit();
    note(What::commits_o, turn_v.number);
    if (omits(tape, Fault::early_value_release)) layout.ring_v().consumer_release(stage);
  }
  /// Waits until all but the newest kPending product groups, S among them, are done.
  template <int kPending>
  __device__ __forceinline__ void wait_for_scores(typename T::Scores& s) const {
    if (!omits(tape, Fault::no_score_wait)) wgmma_wait<kPending>();  // [step: done-s]
    settle(s);
    note(What::done_s, turn_k.number);
  }
  __device__ __forceinline__ void wait_for_outputs(typename T::Outputs& o) const {
    if (!omits(tape, Fault::no_output_wait)) wgmma_wait<0>();  // [step: done-o]
    settle(o);
    note(What::done_o, turn_v.number);
  }

  // ---- softmax ----
  /// Turns the scores of tile `tile`, the block's number-th, into weights.
  template <bool kMasked>
  __device__ __forceinline__ void soften(typename T::Scores& s, float (&rescale)[2], int tile,
                                         int number) {
    note(What::begins_softmax, number);
    if constexpr (kMasked) {
      const bool one_more = omits(tape, Fault::mask_off_by_one);
      hide<T>(s, task.rule, row, tile * T::kKeys, one_more);  // [step: masks]
    }
    float best[2];
    [[maybe_unused]] const Rows before = rows;
    highest<T>(best, s);                                         // [step: maximum]
    weigh<T, kMasked>(s, rows, rescale, best, task.scale_log2);  // [step: weights]
    settle(s);  // here, not where they are used: products are in flight in between
    for (int half = 0; half < 2 && omits(tape, Fault::skip_rescale); ++half) {
      rows.sum[half] += before.sum[half] * (1 - rescale[half]);  // as if it had not been rescaled
      rescale[half] = 1.0f;
    }
    note(What::ends_softmax, number);
    if constexpr (Tape::kRecords) record(before, best, rescale, tile, number);
  }
  /// Records the step of the chosen row, which four lanes share. Scores are natural, not in units of log2.
  __device__ __forceinline__ void record(const Rows& before, const float (&best)[2],
                                         const float (&rescale)[2], int tile, int number) const {
    const float natural = task.scale_log2 * kLn2;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
    for (int half = 0; half < 2; ++half) {
      const float sum = sum_of_row(rows.sum[half]), sum_before = sum_of_row(before.sum[half]);
      const int mine = consumer * kRowsOfGroup + warp * 16 + half * 8 + lane / 4;
      if (!tape.in_its_block() || !tape.chosen(mine) || lane % 4 != 0) continue;
      Step step;
      step.k_tile = tile;
      step.order = number;
      step.tile_max = best[half] * natural;
      step.m_before = before.maximum[half] * natural;
      step.m_after = rows.maximum[half] * natural;
      step.rescale = rescale[half];
      step.tile_sum = sum - sum_before * rescale[half];
      step.l = sum;
      tape.put(kSteps, number, step);
    }
  }
  /// Rescales the accumulators to the new maximum.
  __device__ __forceinline__ void rescale_outputs(typename T::Outputs& o,
                                                  const float (&rescale)[2]) const {
    scale_outputs<T>(o, rescale);  // [step: rescales]
  }
};

/// flash-3-tma: one step after the other.
template <bool kMasked, class T, class Tape>
__device__ __forceinline__ void step_alone(Consumer<T, Tape>& c, typename T::Scores& s,
                                           typename T::Weights& weights, typename T::Outputs& o,
                                           int tile) {
  float rescale[2];
  c.wait_for_keys();
  wgmma_begin();
  c.multiply_keys(s);
  c.template wait_for_scores<0>(s);
  const int number = c.turn_k.number;
  c.release_keys();
  c.template soften<kMasked>(s, rescale, tile, number);
  c.rescale_outputs(o, rescale);
  pack_weights(weights, s);
  c.wait_for_values();
  wgmma_begin();
  c.multiply_values(o, weights);
  c.wait_for_outputs(o);
  c.release_values();
}

template <class T, class Tape>
__device__ __forceinline__ void attend_alone(Consumer<T, Tape>& c, typename T::Outputs& o,
                                             const KeyTiles& keys, const KeyTiles& full) {
  typename T::Scores s;
  typename T::Weights weights;
  int tile = keys.last;
  for (; tile >= keys.first && tile > full.last; --tile) step_alone<true>(c, s, weights, o, tile);
  for (; tile >= keys.first && tile >= full.first; --tile) {
    step_alone<false>(c, s, weights, o, tile);
  }
  for (; tile >= keys.first; --tile) step_alone<true>(c, s, weights, o, tile);
  c.release_queries();
}

/// flash-3-ping-pong and flash-3: S of a tile and O += P V of the previous tile are issued in one turn. With
/// kOverlaps S is issued first, and its softmax starts as soon as it is done.
template <bool kMasked, bool kOverlaps, class T, class Tape>
__device__ __forceinline__ void step_in_turn(Consumer<T, Tape>& c, typename T::Scores& s,
                                             typename T::Weights& weights, typename T::Outputs& o,
                                             int tile) {
  float rescale[2];
  c.wait_for_keys();
  if constexpr (kOverlaps) {
    c.take_turn();
    wgmma_begin();
    c.multiply_keys(s);
    c.wait_for_values();
    wgmma_begin();
    c.multiply_values(o, weights);
    c.pass_turn();
    c.template wait_for_scores<1>(s);
  } else {
    c.wait_for_values();
    c.take_turn();
    wgmma_begin();
    c.multiply_values(o, weights);
    wgmma_begin();
    c.multiply_keys(s);
    c.pass_turn();
    c.template wait_for_scores<0>(s);
    c.wait_for_outputs(o);
    c.release_values();
  }
  const int number = c.turn_k.number;
  c.release_keys();
  c.template soften<kMasked>(s, rescale, tile, number);
  if constexpr (kOverlaps) {
    c.wait_for_outputs(o);
    c.release_values();
  }
  pack_weights(weights, s);
  c.rescale_outputs(o, rescale);
}

/// The first tile has no predecessor; it always runs the masking code, needed or not.
template <class T, class Tape>
__device__ __forceinline__ void first_step(Consumer<T, Tape>& c, typename T::Scores& s,
                                           typename T::Weights& weights, int tile) {
  float rescale[2];
  c.wait_for_keys();
  c.take_turn();
  wgmma_begin();
  c.multiply_keys(s);
  c.pass_turn();
  c.template wait_for_scores<0>(s);
  const int number = c.turn_k.number;
  c.release_keys();
  c.template soften<true>(s, rescale, tile, number);
  pack_weights(weights, s);
}
/// After the last tile its product with V is left.
template <class T, class Tape>
__device__ __forceinline__ void last_step(Consumer<T, Tape>& c, const typename T::Weights& weights,
                                          typename T::Outputs& o) {
  c.release_queries();
  c.wait_for_values();
  c.take_turn();
  wgmma_begin();
  c.multiply_values(o, weights);
  c.pass_turn();
  c.wait_for_outputs(o);
  c.release_values();
}

template <bool kOverlaps, class T, class Tape>
__device__ __forceinline__ void attend_in_turns(Consumer<T, Tape>& c, typename T::Outputs& o,
                                                const KeyTiles& keys, const KeyTiles& full) {
  typename T::Scores s;
  typename T::Weights weights;
  first_step(c, s, weights, keys.last);
  int tile = keys.last - 1;
  for (; tile >= keys.first && tile > full.last; --tile) {
    step_in_turn<true, kOverlaps>(c, s, weights, o, tile);
  }
  for (; tile >= keys.first && tile >= full.first; --tile) {
    step_in_turn<false, kOverlaps>(c, s, weights, o, tile);
  }
  for (; tile >= keys.first; --tile) step_in_turn<true, kOverlaps>(c, s, weights, o, tile);
  last_step(c, weights, o);
}

/// Divides by the sums and stores log-sum-exps. A row that sees no key gets O = 0 and −∞.
template <class T>
__device__ __forceinline__ void finish(typename T::Outputs& o, const Rows& rows,
                                       simt::Global<float> lse, const Task& task, int row,
                                       int head) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int mine = row + static_cast<int>(threadIdx.x) % kWarpgroup / 32 * 16 + lane / 4;
  float inverse[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = sum_of_row(rows.sum[half]);
    inverse[half] = sum > 0.0f ? 1.0f / sum : 0.0f;
    const int query = mine + half * 8;
    if (lane % 4 != 0 || query >= task.rule.length) continue;
    lse[static_cast<std::ptrdiff_t>(head) * task.rule.length + query] =
        sum > 0.0f ? fmaf(rows.maximum[half], task.scale_log2 * kLn2, logf(sum)) : -INFINITY;
  }
  scale_outputs<T>(o, inverse);
}

/// A consumer warpgroup.
template <class T, Rung kRung, class Out, class Tape>
__device__ __forceinline__ void consume(const TensorMaps& maps, const Task& task,
                                        simt::Global<float> lse, const Layout<T>& layout,
                                        int consumer, const Tape& tape) {
  Consumer<T, Tape> c{layout, task, tape, consumer};
  if constexpr (kRung != Rung::tma) {
    // The first turn is the first consumer's.
    if (consumer == T::kConsumers - 1) named_barrier_arrive(1, 2 * kWarpgroup);
  }
  for_each_tile(task.order, [&](int turn, const QueryTile& tile) {
    const Place place = place_of<T>(task, tile);
    c.row = place.row + consumer * kRowsOfGroup;
    const KeyTiles full = tiles_full(task.rule, c.row, c.row + kRowsOfGroup - 1, T::kKeys);
    c.rows = {};
    typename T::Outputs o = {};
    c.wait_for_queries({turn});
    if constexpr (kRung == Rung::tma) {
      attend_alone(c, o, place.keys, full);
    } else {
      attend_in_turns<kRung == Rung::pipelined>(c, o, place.keys, full);
    }
    finish<T>(o, c.rows, lse, task, c.row, place.head);
    c.note(What::stores, turn);
    store_outputs<T, Out>(maps.o, o, layout, consumer, c.row, place.head, tape);  // [step: stores]
    c.note(What::stored, turn);
  });
  if (threadIdx.x % kWarpgroup == 0) store_wait<0>();
}

template <class T, Rung kRung, class Out, class Tape>
__global__ void __launch_bounds__(T::kSizes.threads(), 1)
    attend(const __grid_constant__ TensorMaps maps, simt::Global<float> lse, Task task, Tape tape) {
  const Layout<T> layout = lay_out<T>();
  begin(layout, tape);
  // From lane 0, so that the compiler knows it is warp-uniform: values derived from it then take no per-thread
  // registers, and there are none to spare.
  const int group = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / kWarpgroup, 0);
  if (group == 0) {
    keep_registers<T::kProducerRegisters>();
    if (threadIdx.x == 0) produce<T, kRung>(maps, task, layout, tape);
    if constexpr (Tape::kRecords) {
      const unsigned watcher = tape.in_its_block() ? threadIdx.x : 0;
      if (watcher == kWatchers) look_on<T>(task, layout.ring_k(), tape, What::full_k);
      if (watcher == 2 * kWatchers) look_on<T>(task, layout.ring_v(), tape, What::full_v);
    }
  } else {
    take_registers<T::kConsumerRegisters>();
    consume<T, kRung, Out>(maps, task, lse, layout, group - 1, tape);
  }
}

}  // namespace tilestep::flash_attention_3::SIMT_BACKEND

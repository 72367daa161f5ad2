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
template <class T, class Tape>
__device__ __forceinline__ void begin(const Layout<T>& layout, const Tape& tape) {
  constexpr int kReaders = T::kConsumers * kWarpgroup / 32;  // warps
  if (threadIdx.x == 0) {
    barrier_init(layout.full_q(), 1);
    barrier_init(layout.empty_q(), kReaders);
    for (int stage = 0; stage < T::kStages; ++stage) {
      barrier_init(layout.full_k(stage), 1);
      barrier_init(layout.full_v(stage), 1);
      barrier_init(layout.empty_k(stage), kReaders);
      barrier_init(layout.empty_v(stage), kReaders);
    }
    if (!tape.does(Fault::no_publish)) publish_barriers();
  }
  // No thread may wait or arrive at a barrier before it is initialized.
  if (!tape.does(Fault::no_meeting)) __syncthreads();
}

// ---- the producer ---------------------------------------------------------------------------------

/// Requests a tile of K or V from TMA, once its stage is free.
template <class T, class Tape>
__device__ __forceinline__ void fetch_keys(const TensorMap& map, unsigned tile, unsigned full,
                                           unsigned empty, const Turn<T>& turn, int key, int head,
                                           const Tape& tape, int site, Fault forgets) {
  tape.note(site, turn.number);
  if (!tape.does(forgets)) wait_for(empty, turn.parity() ^ 1);  // [step: waits-empty]
  arrive_expecting(full, T::kKeyBytes);
  for (int panel = 0; panel < T::kPanels; ++panel) {
    fetch(map, tile + static_cast<unsigned>(panel * T::kKeys * kPanelBytes), full,
          panel * kPanelColumns, key, head);  // [step: copies]
  }
  tape.note(site + 1, turn.number);
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
  Turn<T> turn_k;
  Turn<T> turn_v;
  const auto blocks = static_cast<int>(gridDim.x);
  for (int turn = 0;; ++turn) {
    const int number = task.order.number_of(static_cast<int>(blockIdx.x), turn, blocks);
    if (turn * blocks >= task.order.count()) break;
    if (number >= task.order.count()) continue;
    const Place place = place_of<T>(task, number);
    tape.note(kWaitsEmptyQ, turn);
    const auto parity = static_cast<unsigned>(turn % 2);
    if (!tape.does(Fault::skip_empty_query)) wait_for(layout.empty_q(), parity ^ 1);
    arrive_expecting(layout.full_q(), T::kConsumers * T::kQueryBytes);
    for (int consumer = 0; consumer < T::kConsumers; ++consumer) {
      for (int panel = 0; panel < T::kPanels; ++panel) {
        fetch(maps.q, layout.q(consumer) + static_cast<unsigned>(panel * kBoxBytes),
              layout.full_q(), panel * kPanelColumns, place.row + consumer * kRowsOfGroup,
              place.head);
      }
    }
    tape.note(kCopiesQ, turn);
    const int head = place.head / task.heads_of_group;
    const int count = place.keys.last - place.keys.first + 1;
    for (int i = 0; i < count + kAhead; ++i) {
      if (i < count) {
        fetch_keys(maps.k, layout.k(turn_k.stage()), layout.full_k(turn_k.stage()),
                   layout.empty_k(turn_k.stage()), turn_k, (place.keys.last - i) * T::kKeys, head,
                   tape, kWaitsEmptyK, Fault::skip_empty_key);
        ++turn_k.number;
      }
      if (i >= kAhead) {
        fetch_keys(maps.v, layout.v(turn_v.stage()), layout.full_v(turn_v.stage()),
                   layout.empty_v(turn_v.stage()), turn_v,
                   (place.keys.last - i + kAhead) * T::kKeys, head, tape, kWaitsEmptyV,
                   Fault::skip_empty_value);
        ++turn_v.number;
      }
    }
  }
}

/// An otherwise idle thread of the producer observes when stages become full.
template <class T, class Tape>
__device__ __forceinline__ void look_on(const Task& task, const Layout<T>& layout, bool values,
                                        const Tape& tape) {
  constexpr long long kPatience = 2'000'000;
  Turn<T> turn_of_stage;
  const auto blocks = static_cast<int>(gridDim.x);
  for (int turn = 0; turn * blocks < task.order.count(); ++turn) {
    const int number = task.order.number_of(static_cast<int>(blockIdx.x), turn, blocks);
    if (number >= task.order.count()) continue;
    const KeyTiles keys = place_of<T>(task, number).keys;
    for (int tile = keys.last; tile >= keys.first; --tile) {
      const int stage = turn_of_stage.stage();
      const unsigned full = values ? layout.full_v(stage) : layout.full_k(stage);
      if (!watch(full, turn_of_stage.parity(), kPatience)) return;  // [step: full]
      tape.seen(values ? kFullV : kFullK, turn_of_stage.number);
      ++turn_of_stage.number;
    }
  }
}

// ---- the consumers --------------------------------------------------------------------------------

/// A warpgroup's state through a tile of queries, and through all of them.
template <class T, class Tape>
struct Consumer {
  const Layout<T>& layout;
  const Task& task;
  const Tape& tape;
  int consumer;
  Turn<T> turn_k = {}, turn_v = {};
  int turns = 0;  ///< turns taken
  int row = 0;    ///< the warpgroup's first query
  Rows rows = {};

  /// This consumer's site.
  __device__ __forceinline__ int at(Site site) const { return site + consumer * kConsumerSites; }

  // ---- waits and releases ----
  __device__ __forceinline__ void wait_for_keys() const {
    tape.note(at(kWaitsK), turn_k.number);
    if (!tape.does(Fault::skip_key_wait)) {
      wait_for(layout.full_k(turn_k.stage()), turn_k.parity());  // [step: waits-k]
    }
  }
  __device__ __forceinline__ void wait_for_values() const {
    tape.note(at(kWaitsV), turn_v.number);
    if (!tape.does(Fault::skip_value_wait)) {
      wait_for(layout.full_v(turn_v.stage()), turn_v.parity());  // [step: waits-v]
    }
  }
  __device__ __forceinline__ void release_queries() const {
    if (!tape.does(Fault::early_query_release)) release(layout.empty_q());
  }
  __device__ __forceinline__ void release_keys() {
    if (!tape.does(Fault::no_key_release) && !tape.does(Fault::early_key_release)) {
      release(layout.empty_k(turn_k.stage()));  // [step: releases-k]
    }
    tape.note(at(kReleasesK), turn_k.number);
    ++turn_k.number;
  }
  __device__ __forceinline__ void release_values() {
    if (!tape.does(Fault::early_value_release)) {
      release(layout.empty_v(turn_v.stage()));  // [step: releases-v]
    }
    tape.note(at(kReleasesV), turn_v.number);
    ++turn_v.number;
  }

  // ---- turns: one named barrier per consumer, shared with the one before it ----
  __device__ __forceinline__ void take_turn() const {
    tape.note(at(kWaitsTurn), turns);
    named_barrier_sync(1 + consumer, 2 * kWarpgroup);  // [step: takes-turn]
    tape.note(at(kTakesTurn), turns);
  }
  __device__ __forceinline__ void pass_turn() {
    const int next = consumer + 1 < T::kConsumers ? consumer + 1 : 0;
    tape.note(at(kPassesTurn), turns);
    named_barrier_arrive(1 + next, 2 * kWarpgroup);  // [step: passes-turn]
    ++turns;
  }

  // ---- products ----
  __device__ __forceinline__ void multiply_keys(typename T::Scores& s) const {
    tape.note(at(kIssuesS), turn_k.number);
    issue_scores<T>(s, layout.q(consumer), layout.k(turn_k.stage()));  // [step: issues-s]
    wgmma_commit();
    tape.note(at(kCommitsS), turn_k.number);
    if (tape.does(Fault::early_query_release) && turn_k.number == 0) release(layout.empty_q());
    if (tape.does(Fault::early_key_release)) release(layout.empty_k(turn_k.stage()));
  }
  __device__ __forceinline__ void multiply_values(typename T::Outputs& o,
                                                  const typename T::Weights& weights) const {
    tape.note(at(kIssuesO), turn_v.number);
    issue_outputs<T>(o, weights, layout.v(turn_v.stage()));  // [step: issues-o]
    wgmma_commit();
    tape.note(at(kCommitsO), turn_v.number);
    if (tape.does(Fault::early_value_release)) release(layout.empty_v(turn_v.stage()));
  }
  /// Waits until all but the newest kPending product groups, S among them, are done.
  template <int kPending>
  __device__ __forceinline__ void wait_for_scores(typename T::Scores& s) const {
    if (!tape.does(Fault::no_score_wait)) wgmma_wait<kPending>();  // [step: done-s]
    settle(s);
    tape.note(at(kDoneS), turn_k.number);
  }
  __device__ __forceinline__ void wait_for_outputs(typename T::Outputs& o) const {
    if (!tape.does(Fault::no_output_wait)) wgmma_wait<0>();  // [step: done-o]
    settle(o);
    tape.note(at(kDoneO), turn_v.number);
  }

  // ---- softmax ----
  /// Turns the scores of tile `tile`, the block's number-th, into weights.
  template <bool kMasked>
  __device__ __forceinline__ void soften(typename T::Scores& s, float (&rescale)[2], int tile,
                                         int number) {
    tape.note(at(kBeginsSoftmax), number);
    if constexpr (kMasked) {
      const bool one_more = tape.does(Fault::mask_off_by_one);
      hide<T>(s, task.rule, row, tile * T::kKeys, one_more);  // [step: masks]
    }
    float best[2];
    [[maybe_unused]] const float sums[] = {rows.sum[0], rows.sum[1]};
    highest<T>(best, s);                                         // [step: maximum]
    weigh<T, kMasked>(s, rows, rescale, best, task.scale_log2);  // [step: weights]
    settle(s);  // here, not where they are used: products are in flight in between
    for (int half = 0; half < 2 && tape.does(Fault::skip_rescale); ++half) {
      rows.sum[half] += sums[half] * (1 - rescale[half]);  // as if it had not been rescaled
      rescale[half] = 1.0f;
    }
    tape.note(at(kEndsSoftmax), number);
    if constexpr (Tape::kRecords) record(best, rescale, tile, number);
  }
  /// Records the chosen row. Its scores are natural, not in units of log2.
  __device__ __forceinline__ void record(const float (&best)[2], const float (&rescale)[2],
                                         int tile, int number) const {
    const float natural = task.scale_log2 * kLn2;
    for (int half = 0; half < 2; ++half) {
      const float sum = sum_of_row(rows.sum[half]);
      if (!tape.has_row(consumer, half)) continue;
      tape.note_row(number, kRowTile, static_cast<float>(tile));
      tape.note_row(number, kRowHighest, best[half] * natural);
      tape.note_row(number, kRowMaximum, rows.maximum[half] * natural);
      tape.note_row(number, kRowRescale, rescale[half]);
      tape.note_row(number, kRowSum, sum);
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
  pack_weights<T>(weights, s);
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
  pack_weights<T>(weights, s);
  c.rescale_outputs(o, rescale);
}

template <bool kOverlaps, class T, class Tape>
__device__ __forceinline__ void attend_in_turns(Consumer<T, Tape>& c, typename T::Outputs& o,
                                                const KeyTiles& keys, const KeyTiles& full) {
  typename T::Scores s;
  typename T::Weights weights;
  float rescale[2];
  // The first tile has no predecessor; it always runs the masking code, needed or not.
  c.wait_for_keys();
  c.take_turn();
  wgmma_begin();
  c.multiply_keys(s);
  c.pass_turn();
  c.template wait_for_scores<0>(s);
  const int number = c.turn_k.number;
  c.release_keys();
  c.template soften<true>(s, rescale, keys.last, number);
  pack_weights<T>(weights, s);

  int tile = keys.last - 1;
  for (; tile >= keys.first && tile > full.last; --tile) {
    step_in_turn<true, kOverlaps>(c, s, weights, o, tile);
  }
  for (; tile >= keys.first && tile >= full.first; --tile) {
    step_in_turn<false, kOverlaps>(c, s, weights, o, tile);
  }
  for (; tile >= keys.first; --tile) step_in_turn<true, kOverlaps>(c, s, weights, o, tile);

  c.release_queries();
  c.wait_for_values();
  c.take_turn();
  wgmma_begin();
  c.multiply_values(o, weights);
  c.pass_turn();
  c.wait_for_outputs(o);
  c.release_values();
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
  const auto blocks = static_cast<int>(gridDim.x);
  for (int turn = 0; turn * blocks < task.order.count(); ++turn) {
    const int number = task.order.number_of(static_cast<int>(blockIdx.x), turn, blocks);
    if (number >= task.order.count()) continue;
    const Place place = place_of<T>(task, number);
    c.row = place.row + consumer * kRowsOfGroup;
    const KeyTiles full = tiles_full(task.rule, c.row, c.row + kRowsOfGroup - 1, T::kKeys);
    c.rows = {};
    typename T::Outputs o = {};
    if (!tape.does(Fault::skip_query_wait)) {
      wait_for(layout.full_q(), static_cast<unsigned>(turn % 2));
    }
    if constexpr (kRung == Rung::tma) {
      attend_alone(c, o, place.keys, full);
    } else {
      attend_in_turns<kRung == Rung::pipelined>(c, o, place.keys, full);
    }
    finish<T>(o, c.rows, lse, task, c.row, place.head);
    tape.note(c.at(kStores), turn);
    store_outputs<T, Out>(maps.o, o, layout, consumer, c.row, place.head, tape);  // [step: stores]
    tape.note(c.at(kStored), turn);
  }
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
      if (threadIdx.x == kWatchers && tape.chosen()) look_on(task, layout, false, tape);
      if (threadIdx.x == 2 * kWatchers && tape.chosen()) look_on(task, layout, true, tape);
    }
  } else {
    take_registers<T::kConsumerRegisters>();
    consume<T, kRung, Out>(maps, task, lse, layout, group - 1, tape);
  }
}

}  // namespace tilestep::flash_attention_3::SIMT_BACKEND

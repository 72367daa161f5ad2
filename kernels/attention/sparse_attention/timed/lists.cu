#pragma once

// FlashAttention-3's pipelined kernel with a list of tiles of keys for each tile of queries: what the list does not name
// is neither fetched nor multiplied. Partial tiles come first, then the full ones, which run without masking code. With
// all tiles in its lists it is the dense kernel that it is compared with.

#include "kernels/attention/flash_attention_3/flash_3.cu"
#include "kernels/attention/sparse_attention/timed/kernels.hpp"

namespace tilestep::sparse_attention::timed::SIMT_BACKEND {

namespace flash = flash_attention_3::SIMT_BACKEND;
using namespace simt::hopper;

using ListTile =
    flash::Tile<kListSizes.head_dim, kListSizes.keys, kListSizes.consumers, kListSizes.stages>;

struct Lists {
  simt::Global<const int> first, whole, tiles;
};

/// The one thread that copies: Q, then tiles of K and V as the list has them, K one ahead.
__device__ __forceinline__ void produce_listed(const flash::TensorMaps& maps,
                                               const flash::Task& task, const Lists& lists,
                                               const flash::Layout<ListTile>& layout) {
  using T = ListTile;
  const flash::Timed tape;
  flash::Turn<T> turn_k, turn_v;
  const auto blocks = static_cast<int>(gridDim.x);
  for (int turn = 0; turn * blocks < task.order.count(); ++turn) {
    const int number = task.order.number_of(static_cast<int>(blockIdx.x), turn, blocks);
    if (number >= task.order.count()) continue;
    const auto place = task.order.place(number);
    wait_for(layout.empty_q(), static_cast<unsigned>(turn % 2) ^ 1);
    arrive_expecting(layout.full_q(), T::kConsumers * T::kQueryBytes);
    for (int consumer = 0; consumer < T::kConsumers; ++consumer) {
      for (int panel = 0; panel < T::kPanels; ++panel) {
        fetch(maps.q,
              layout.q(consumer) + static_cast<unsigned>(panel * flash_attention_3::kBoxBytes),
              layout.full_q(), panel * flash_attention_3::kPanelColumns,
              place.tile * kListRows + consumer * flash_attention_3::kRowsOfGroup, place.head);
      }
    }
    const int head = place.head / task.heads_of_group;
    const int begin = lists.first[place.tile], count = lists.first[place.tile + 1] - begin;
    int key_before = 0;
    for (int i = 0; i <= count; ++i) {
      const int key = i < count ? lists.tiles[begin + i] * T::kKeys : 0;
      if (i < count) {
        flash::fetch_keys(maps.k, layout.k(turn_k.stage()), layout.full_k(turn_k.stage()),
                          layout.empty_k(turn_k.stage()), turn_k, key, head, tape,
                          flash_attention_3::kWaitsEmptyK,
                          flash_attention_3::Fault::skip_empty_key);
        ++turn_k.number;
      }
      if (i > 0) {
        flash::fetch_keys(maps.v, layout.v(turn_v.stage()), layout.full_v(turn_v.stage()),
                          layout.empty_v(turn_v.stage()), turn_v, key_before, head, tape,
                          flash_attention_3::kWaitsEmptyV,
                          flash_attention_3::Fault::skip_empty_value);
        ++turn_v.number;
      }
      key_before = key;
    }
  }
}

/// A consumer's tiles of keys, after flash-3's own `attend_in_turns`.
__device__ __forceinline__ void attend_listed(flash::Consumer<ListTile, flash::Timed>& c,
                                              ListTile::Outputs& o, const Lists& lists,
                                              int query_tile) {
  using T = ListTile;
  T::Scores s;
  T::Weights weights;
  float rescale[2];
  const int begin = lists.first[query_tile], end = lists.first[query_tile + 1];
  const int whole = lists.whole[query_tile];
  c.wait_for_keys();
  c.take_turn();
  wgmma_begin();
  c.multiply_keys(s);
  c.pass_turn();
  c.wait_for_scores<0>(s);
  const int number = c.turn_k.number;
  c.release_keys();
  c.soften<true>(s, rescale, lists.tiles[begin], number);
  flash::pack_weights<T>(weights, s);
  int i = begin + 1;
  for (; i < whole; ++i) flash::step_in_turn<true, true>(c, s, weights, o, lists.tiles[i]);
  for (; i < end; ++i) flash::step_in_turn<false, true>(c, s, weights, o, lists.tiles[i]);
  c.release_queries();
  c.wait_for_values();
  c.take_turn();
  wgmma_begin();
  c.multiply_values(o, weights);
  c.pass_turn();
  c.wait_for_outputs(o);
  c.release_values();
}

__device__ __forceinline__ void consume_listed(const flash::TensorMaps& maps,
                                               const flash::Task& task, const Lists& lists,
                                               simt::Global<float> lse,
                                               const flash::Layout<ListTile>& layout,
                                               int consumer) {
  using T = ListTile;
  const flash::Timed tape;
  flash::Consumer<T, flash::Timed> c{layout, task, tape, consumer};
  if (consumer == T::kConsumers - 1)
    named_barrier_arrive(1, 2 * flash_attention_3::kWarpgroup);  // the first turn is the first's
  const auto blocks = static_cast<int>(gridDim.x);
  for (int turn = 0; turn * blocks < task.order.count(); ++turn) {
    const int number = task.order.number_of(static_cast<int>(blockIdx.x), turn, blocks);
    if (number >= task.order.count()) continue;
    const auto place = task.order.place(number);
    c.row = place.tile * kListRows + consumer * flash_attention_3::kRowsOfGroup;
    c.rows = {};
    T::Outputs o = {};
    wait_for(layout.full_q(), static_cast<unsigned>(turn % 2));
    attend_listed(c, o, lists, place.tile);
    flash::finish<T>(o, c.rows, lse, task, c.row, place.head);
    flash::store_outputs<T, std::uint16_t>(maps.o, o, layout, consumer, c.row, place.head, tape);
  }
  if (threadIdx.x % flash_attention_3::kWarpgroup == 0) store_wait<0>();
}

__global__ void __launch_bounds__(kListSizes.threads(), 1)
    listed_kernel(const __grid_constant__ flash::TensorMaps maps, simt::Global<float> lse,
                  flash::Task task, Lists lists) {
  const auto layout = flash::lay_out<ListTile>();
  flash::begin(layout, flash::Timed{});
  const int group = __shfl_sync(flash::kAllLanes,
                                static_cast<int>(threadIdx.x) / flash_attention_3::kWarpgroup, 0);
  if (group == 0) {
    keep_registers<ListTile::kProducerRegisters>();
    if (threadIdx.x == 0) produce_listed(maps, task, lists, layout);
  } else {
    take_registers<ListTile::kConsumerRegisters>();
    consume_listed(maps, task, lists, lse, layout, group - 1);
  }
}

}  // namespace tilestep::sparse_attention::timed::SIMT_BACKEND

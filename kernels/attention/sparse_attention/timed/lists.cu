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
  Turn turn_k, turn_v;
  flash::for_each_tile(task.order, [&](int turn, const auto& place) {
    flash::fetch_queries<T>(maps.q, layout, {turn}, place.tile * kListRows, place.head);
    const int head = place.head / task.heads_of_group;
    const int begin = lists.first[place.tile], count = lists.first[place.tile + 1] - begin;
    int key_before = 0;
    for (int i = 0; i <= count; ++i) {
      const int key = i < count ? lists.tiles[begin + i] * T::kKeys : 0;
      if (i < count) flash::fetch_keys<false>(maps, layout, turn_k, key, head);
      if (i > 0) flash::fetch_keys<true>(maps, layout, turn_v, key_before, head);
      key_before = key;
    }
  });
}

/// A consumer's tiles of keys, after flash-3's own `attend_in_turns`.
__device__ __forceinline__ void attend_listed(flash::Consumer<ListTile>& c, ListTile::Outputs& o,
                                              const Lists& lists, int query_tile) {
  ListTile::Scores s;
  ListTile::Weights weights;
  const int begin = lists.first[query_tile], end = lists.first[query_tile + 1];
  const int whole = lists.whole[query_tile];
  flash::first_step(c, s, weights, lists.tiles[begin]);
  int i = begin + 1;
  for (; i < whole; ++i) flash::step_in_turn<true, true>(c, s, weights, o, lists.tiles[i]);
  for (; i < end; ++i) flash::step_in_turn<false, true>(c, s, weights, o, lists.tiles[i]);
  flash::last_step(c, weights, o);
}

__device__ __forceinline__ void consume_listed(const flash::TensorMaps& maps,
                                               const flash::Task& task, const Lists& lists,
                                               simt::Global<float> lse,
                                               const flash::Layout<ListTile>& layout,
                                               int consumer) {
  using T = ListTile;
  const simt::NoTape tape;
  flash::Consumer<T> c{layout, task, tape, consumer};
  if (consumer == T::kConsumers - 1)
    named_barrier_arrive(1, 2 * flash_attention_3::kWarpgroup);  // the first turn is the first's
  flash::for_each_tile(task.order, [&](int turn, const auto& place) {
    c.row = place.tile * kListRows + consumer * flash_attention_3::kRowsOfGroup;
    c.rows = {};
    T::Outputs o = {};
    c.wait_for_queries({turn});
    attend_listed(c, o, lists, place.tile);
    flash::finish<T>(o, c.rows, lse, task, c.row, place.head);
    flash::store_outputs<T, std::uint16_t>(maps.o, o, layout, consumer, c.row, place.head);
  });
  if (threadIdx.x % flash_attention_3::kWarpgroup == 0) store_wait<0>();
}

__global__ void __launch_bounds__(kListSizes.threads(), 1)
    listed_kernel(const __grid_constant__ flash::TensorMaps maps, simt::Global<float> lse,
                  flash::Task task, Lists lists) {
  const auto layout = flash::lay_out<ListTile>();
  flash::begin(layout);
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

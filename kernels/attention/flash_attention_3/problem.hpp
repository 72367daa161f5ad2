#pragma once

/// \file
/// The task of FlashAttention 3's kernels: a problem, its arrays, its tiles and blocks.

#include <cstddef>
#include <cstdint>

#include "kernels/attention/flash_attention_3/schedule.hpp"

namespace tilestep::flash_attention_3 {

/// The task, whose mask is none, causal or a sliding window without sinks, and head_dim 64 or 128; and its kernel.
struct Problem : Task {
  Rung rung = Rung::pipelined;
  int blocks = 0;  ///< of flash-3, at most; 0: as many as the device has multiprocessors
};
/// On the device: q, o [heads][length][head_dim], k, v [kv_heads][length][head_dim], lse [heads][length].
template <class Out>
struct Arrays {
  simt::Span<const std::uint16_t> q, k, v;
  simt::Span<Out> o;
  simt::Span<float> lse;
};
/// Tiles of a timed kernel.
constexpr TileSizes timed_sizes(int head_dim) {
  return head_dim == 64 ? TileSizes{64, 128, 3, 4} : TileSizes{128, 160, 2, 2};
}
constexpr TileSizes explained_sizes(int head_dim, int keys) {
  const TileSizes timed = timed_sizes(head_dim);
  return {timed.head_dim, keys, timed.consumers, 2};
}

/// The order of the tiles of queries, and the number of blocks: one per tile, or with flash-3 one per
/// multiprocessor.
struct Schedule {
  TileOrder order;
  int blocks;
};
constexpr Schedule schedule_of(const Problem& problem, const TileSizes& sizes,
                               int multiprocessors) {
  const int tiles = (problem.rule.length + sizes.rows() - 1) / sizes.rows();
  const bool persistent = problem.rung == Rung::pipelined;
  const TileOrder order{tiles, problem.heads, persistent && problem.rule.mask == Mask::causal};
  const int most = !persistent           ? order.count()
                   : problem.blocks != 0 ? problem.blocks
                                         : multiprocessors;
  return {order, most < order.count() ? most : order.count()};
}
/// The most events of a site, and steps, that an explained block records: tiles of keys, and turns.
constexpr int most_numbers(const Problem& problem, const TileSizes& sizes, int multiprocessors) {
  const Schedule schedule = schedule_of(problem, sizes, multiprocessors);
  const int turns = (schedule.order.count() + schedule.blocks - 1) / schedule.blocks;
  return turns * ((problem.rule.length + sizes.keys - 1) / sizes.keys + 1);
}

}  // namespace tilestep::flash_attention_3

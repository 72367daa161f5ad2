#pragma once

/// \file
/// The task of FlashAttention 3's kernels: a problem, its arrays, its tiles and blocks.

#include <cstddef>
#include <cstdint>

#include "kernels/attention/flash_attention_3/schedule.hpp"
#include "kernels/base/simt/device.hpp"

namespace tilestep::flash_attention_3 {

/// The problem. The mask is none, causal or a sliding window without sinks; rule.length is the length.
struct Problem {
  Rung rung = Rung::pipelined;
  int head_dim = 128;  ///< 64 or 128
  int heads = 1, kv_heads = 1;
  MaskRule rule;
  int blocks = 0;  ///< of flash-3, at most; 0: as many as the device has multiprocessors
};
/// On the device: q, o [heads][length][head_dim], k, v [kv_heads][length][head_dim], lse [heads][length].
template <class Out>
struct Arrays {
  simt::Span<const std::uint16_t> q, k, v;
  simt::Span<Out> o;
  simt::Span<float> lse;
};
/// Extra arguments of an explained kernel. `clocks`: kSites rows of `numbers`; `rows`: `numbers` rows of
/// kRowFields; entries of events that do not happen stay unchanged.
struct Explanation {
  int keys = 64;  ///< of a tile: 64, or 128 as timed
  int block = 0;  ///< whose steps are recorded
  int row = 0;    ///< of its tiles of queries, recorded as well
  Fault fault = Fault::none;
  int numbers = 0;
  simt::Span<long long> clocks;
  simt::Span<float> rows;
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
/// The most that an explained block records: tiles of keys, and turns.
constexpr int most_numbers(const Problem& problem, const TileSizes& sizes, int multiprocessors) {
  const Schedule schedule = schedule_of(problem, sizes, multiprocessors);
  const int turns = (schedule.order.count() + schedule.blocks - 1) / schedule.blocks;
  return turns * ((problem.rule.length + sizes.keys - 1) / sizes.keys + 1);
}

}  // namespace tilestep::flash_attention_3

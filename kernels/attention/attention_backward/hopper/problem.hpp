#pragma once

/// \file
/// What the backward pass for Hopper is asked for: a problem, its arrays, the sizes of its tiles, scratch memory.

#include "kernels/attention/attention_backward/arrays.hpp"
#include "kernels/attention/attention_backward/hopper/schedule.hpp"

namespace tilestep::attention_backward::hopper {

/// The mask is none, causal or a sliding window without sinks, head_dim 64 or 128.
using Problem = Task;
using attention_backward::Arrays;

/// Tiles of the timed kernels.
constexpr TileSizes timed_sizes(int head_dim) {
  return head_dim == 64 ? TileSizes{64, 128, 2, 2} : TileSizes{128, 64, 2, 2};
}
constexpr int query_tiles_of(const Problem& problem, int queries) {
  return (problem.rule.length + queries - 1) / queries;
}

/// The order of the tiles of keys. Under a causal mask the first ones take longest: those of several heads begin
/// together, so that short ones are left for the end, but not of all, so that what they read stays in L2.
constexpr TileOrder order_of(const Problem& problem) {
  constexpr int kTogether = 4;
  const int tiles = (problem.rule.length + kKeys - 1) / kKeys;
  return {tiles, problem.kv_heads, kTogether < problem.kv_heads ? kTogether : problem.kv_heads};
}

}  // namespace tilestep::attention_backward::hopper

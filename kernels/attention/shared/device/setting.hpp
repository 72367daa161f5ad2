#pragma once

/// \file
/// The task as kernels take it, and which tile of queries a block has.

#include "kernels/attention/shared/device/tiles.hpp"

namespace tilestep::attention::SIMT_BACKEND {

constexpr float kLn2 = 0.693147180559945f;
constexpr float kLog2e = 1.442695040888963f;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

/// The task, as kernels take it.
struct Setting {
  MaskRule rule;
  int heads, kv_heads;
  ScoreMod mod;
  float scale;  ///< 1 / sqrt(head_dim)
  float
      to_natural;  ///< softmax multiplies scores by it: the scale, unless the modifier has applied it

  __device__ float to_log2() const { return to_natural * kLog2e; }
  __device__ int length() const { return rule.length; }
  __device__ int kv_head(int head) const { return head / (heads / kv_heads); }
  /// ALiBi's, as published (arXiv:2108.12409): 2 to −8 (head + 1) / heads where heads are a power of two; beyond the last
  /// power of two every second slope of twice as many heads.
  __device__ float slope(int head) const {
    int power = 1;
    while (2 * power <= heads) power *= 2;
    const int halves = head < power ? 2 * (head + 1) : 2 * (head - power) + 1;
    return exp2f(-4.0f * static_cast<float>(halves) / static_cast<float>(power));
  }
};

/// A tile of queries: `first` … `last` of `head`.
struct QueryTile {
  int head, tile, first, last;
};
/// Tile `number` over all heads. Heads come one after another, so that concurrent blocks share keys and values
/// in L2; where later queries see more keys, they come first, and the light tiles fill the gaps at
/// the end.
__device__ __forceinline__ QueryTile query_tile(const Setting& set, int block_q, int number) {
  const int tiles = (set.length() + block_q - 1) / block_q;
  const int in_head = number % tiles;
  const int tile = set.rule.mask == Mask::none ? in_head : tiles - 1 - in_head;
  const int first = tile * block_q;
  return {number / tiles, tile, first, min(first + block_q, set.length()) - 1};
}

}  // namespace tilestep::attention::SIMT_BACKEND

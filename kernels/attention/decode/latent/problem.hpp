#pragma once

/// \file
/// The problem of the kernel for a latent cache (mla). DeepSeek-AI, "DeepSeek-V2", 2024 (arXiv:2405.04434): a token's
/// row has 512 latent numbers, which are key and value of all heads once the heads' own matrices are absorbed into
/// queries and output, and 64 rotary ones that carry the position and are only key.

#include <cstddef>
#include <cstdint>

#include "kernels/attention/kv_cache/paged/problem.hpp"

namespace tilestep::decode::latent {

namespace paged = kv_cache::paged;

inline constexpr int kLatent = 512, kRope = 64, kRow = kLatent + kRope;
inline constexpr int kHeadsOfBlock = 64;
inline constexpr int kTile = 64;  ///< tokens

struct Problem {
  int heads = 128;  ///< up to 64, or a multiple of 64: fastest of 128
  int batch = 1, pages = 1;
  int page_size =
      64;  ///< tokens; TMA fetches as many rows at a time as the largest power of two that divides it, up to 64
  int table_pitch = 0;  ///< pages of a row of the block table
  float scale = 1;      ///< of scores
  paged::Merging merging = paged::Merging::weighted;
};

/// On the device, BF16. Work items are as for lines_of(heads) K/V heads, whose number is not used: all query heads
/// share the rows.
struct Arrays {
  simt::Span<const std::uint16_t> q;      ///< [batch × heads × 576], absorbed
  simt::Span<const std::uint16_t> cache;  ///< [pages × page_size × 576]
  simt::Span<const int> table;            ///< [batch × table_pitch]
  simt::Span<const int> context;          ///< [batch]
  simt::Span<const paged::WorkItem> items;
  simt::Span<const int> first_item;  ///< [clusters + 1]: blocks, or pairs that share tiles
  simt::Span<std::uint16_t> o;       ///< [batch × heads × 512]
  simt::Span<float> lse;             ///< [batch × heads], natural
  simt::Span<float> part_o;          ///< [slots × heads_of_item × 512]
  simt::Span<float> part_m, part_l;  ///< [slots × heads_of_item]
};

/// Blocks that share tiles: two of a cluster have 64 heads each.
constexpr int blocks_of_item(int heads) {
  return heads % (2 * kHeadsOfBlock) == 0 ? 2 : 1;
}
/// Query heads of a work item, and rows of a slot.
constexpr int heads_of_item(int heads) {
  return heads < kHeadsOfBlock ? heads : blocks_of_item(heads) * kHeadsOfBlock;
}
/// Work items of a request that differ only in their heads.
constexpr int lines_of(int heads) {
  return heads / heads_of_item(heads);
}
constexpr int tiles_of(int tokens) {
  return (tokens + kTile - 1) / kTile;
}

}  // namespace tilestep::decode::latent

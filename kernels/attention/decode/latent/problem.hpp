#pragma once

/// \file
/// The problem of the kernel for a latent cache (mla). DeepSeek-AI, "DeepSeek-V2", 2024 (arXiv:2405.04434): a token's
/// row has 512 latent numbers, which are key and value of all heads once the heads' own matrices are absorbed into
/// queries and output, and 64 rotary ones that carry the position and are only key.
///
/// Problem and arrays are those of the kernels for paged heads, all in BF16: q [batch × heads × 576], absorbed; k, the
/// cache, [pages × page_size × 576]; o [batch × heads × 512]. Of requests that share pages each reads them by itself.

#include <algorithm>

#include "kernels/attention/kv_cache/paged/problem.hpp"

namespace tilestep::decode::latent {

namespace paged = kv_cache::paged;

inline constexpr int kLatent = 512, kRope = 64, kRow = kLatent + kRope;
/// Of scores: 1 / √192, as DeepSeek's heads before absorption have 128 numbers without position and 64 with.
inline constexpr double kScale = 0.072168783648703216;
inline constexpr int kHeadsOfBlock = 64;
inline constexpr int kTile = 64;         ///< tokens
inline constexpr int kPair = 2 * kTile;  ///< tokens that a block takes at a time

/// Blocks that share tiles: two of a cluster have up to 64 heads each. Heads are up to 128, or a multiple of 64:
/// fastest of 128.
constexpr int blocks_of_item(int heads) {
  return heads <= kHeadsOfBlock                                          ? 1
         : heads < 2 * kHeadsOfBlock || heads % (2 * kHeadsOfBlock) == 0 ? 2
                                                                         : 1;
}
/// Query heads of a work item, and rows of a slot.
constexpr int heads_of_item(int heads) {
  return std::min(heads, blocks_of_item(heads) * kHeadsOfBlock);
}
/// Work items of a request that differ only in their heads: as for so many K/V heads, whose number is not used.
constexpr int lines_of(int heads) {
  return heads / heads_of_item(heads);
}
/// Rows that are contiguous wherever a tile begins, which TMA fetches at once: any page size is possible.
constexpr int rows_at_once(int page_size) {
  int rows = 1;
  while (rows < kTile && page_size % (2 * rows) == 0) rows *= 2;
  return rows;
}

}  // namespace tilestep::decode::latent

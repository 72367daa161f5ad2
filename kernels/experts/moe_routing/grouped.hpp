#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/numeric/running_sum.hpp"
#include "kernels/experts/moe_routing/kernels.hpp"

/// The large grouped product as the host sees it: the tokens per expert, each scheme's layout of
/// them, and the exact value of an element.
namespace tilestep::moe_routing {

/// Tokens per expert with top-1: `balanced` as evenly as possible, `skewed` in
/// proportion to (e + 1)^-skew (largest remainders rounded up), `one_hot` all to the first.
/// Throws Error for a routing that needs a router.
std::vector<int> top1_counts(Routing routing, double skew, int tokens, int experts);

/// The first slot and tile of each expert.
struct GroupedLayout {
  Scheme scheme = Scheme::packed;
  int tile = 0;                 ///< token slots of a tile
  std::vector<int> kept;        ///< [experts]
  std::vector<int> first_slot;  ///< [experts + 1]
  std::vector<int> first_tile;  ///< [experts + 1]

  int experts() const { return static_cast<int>(kept.size()); }
  int slots() const { return first_slot.back(); }
  int tiles() const { return first_tile.back(); }
  std::int64_t kept_tokens() const;
};
/// `padded_to_capacity` gives every expert whole tiles for the busiest one's tokens, `tile_padded`
/// whole tiles for its own, `packed` only its own tokens. Throws Error if there would be
/// more than 2^31 − 1 slots.
GroupedLayout layout_of(std::span<const int> kept, Scheme scheme, int tile);

/// The tiles of a `packed` layout for `order`: whole ones first, then the experts' last ones, the
/// fuller first. Partly empty tail tiles take less time, and the tiles handed out last decide how
/// long the others wait. `tiles_across`: width / tile_width.
std::vector<int> tails_last(const GroupedLayout& layout, int tiles_across);

/// An element of the product: Σ w[k] · x[k] of BF16 bit patterns, in double.
numeric::Bounded grouped_element(std::span<const std::uint16_t> w, std::span<const std::uint16_t> x,
                                 numeric::Adding adding);

}  // namespace tilestep::moe_routing

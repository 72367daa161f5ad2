#pragma once

#include "kernels/attention/shared/mask.hpp"

namespace tilestep::attention {

/// The effect of one tile of keys on the chosen query, in the order of the visits: the steps of the pictures of
/// forward passes. Scores as they enter exp: with scale, modifier and mask, in natural units.
struct SoftmaxStep {
  int k_tile = 0;
  int order = 0;  ///< of the visit among those of its block
  TileKind kind = TileKind::full;
  float tile_max = 0;  ///< −∞: the query sees no key of the tile
  /// The maximum of all scores so far; −∞: no score yet.
  float m_before = 0, m_after = 0;
  float rescale = 0;   ///< exp(m_before − m_after): factor for O and ℓ so far; broken: 1
  float tile_sum = 0;  ///< of the tile's weights exp(s − m_after)
  float l = 0;         ///< sum of all weights so far
  bool operator==(const SoftmaxStep&) const = default;
};

}  // namespace tilestep::attention

#pragma once

/// \file
/// CUDA's header of this name, for edited sources under emulation ("Cooperative Groups", "reduce").

#include "kernels/base/simt/toolkit/cooperative_groups/operators.hpp"

namespace cooperative_groups {
inline namespace tilestep_toolkit {

/// The values of the tile's threads put together in pairs, then pairs of those: every thread gets it.
template <class Tile, class T, class Reducer>
T reduce(const Tile& tile, T value, Reducer reducer, Location at = Location::current()) {
  for (unsigned step = tile.size() / 2; step > 0; step /= 2) {
    value = reducer(value, tile.shfl_xor(value, static_cast<int>(step), at));
  }
  return value;
}

/// The same for a group of any size, rank by rank.
template <class T, class Reducer>
T reduce(const coalesced_group& group, T value, Reducer reducer,
         Location at = Location::current()) {
  T all = group.shfl(value, 0, at);
  for (unsigned rank = 1; rank < group.size(); ++rank)
    all = reducer(all, group.shfl(value, rank, at));
  return all;
}

}  // namespace tilestep_toolkit
}  // namespace cooperative_groups

#pragma once

/// \file
/// CUDA's header of this name, for edited sources under emulation ("Cooperative Groups", "reduce").

#include "kernels/base/simt/toolkit/cooperative_groups.h"

namespace cooperative_groups {
inline namespace tilestep_toolkit {

#define TILESTEP_REDUCER(name, expression)                            \
  template <class T>                                                  \
  struct name {                                                       \
    T operator()(const T& a, const T& b) const { return expression; } \
  };
TILESTEP_REDUCER(plus, a + b)
TILESTEP_REDUCER(less, b < a ? b : a)
TILESTEP_REDUCER(greater, a < b ? b : a)
TILESTEP_REDUCER(bit_and, (a & b))
TILESTEP_REDUCER(bit_or, a | b)
TILESTEP_REDUCER(bit_xor, a ^ b)
#undef TILESTEP_REDUCER

/// The values of the tile's threads put together in pairs, then pairs of those: every thread gets it.
template <class Tile, class T, class Reducer>
T reduce(const Tile& tile, T value, Reducer reducer, Location at = Location::current()) {
  for (unsigned step = tile.size() / 2; step > 0; step /= 2) {
    value = reducer(value, tile.shfl_xor(value, static_cast<int>(step), at));
  }
  return value;
}

}  // namespace tilestep_toolkit
}  // namespace cooperative_groups

#pragma once

#include <cstdint>

#include "kernels/base/numeric/float_format.hpp"

namespace tilestep::numeric {

/// 64 bits that look random and follow from `x` alone: one step of SplitMix64 (Steele, Lea & Flood,
/// "Fast splittable pseudorandom number generators", 2014). Mixing a seed and the place of a number,
/// part by part, `x = mixed(x ^ part)`, gives data that needs no order.
TILESTEP_HOST_DEVICE constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace tilestep::numeric

#pragma once

#include "kernels/base/lab/knob.hpp"

/// Distances between settings.
namespace tilestep::lab {

/// 0 for equal values; 1 for a different choice, text or toggle. For numbers, their difference as a
/// fraction of the knob's range (logarithmic if the knob's scale is): 1 from end to end, and 1 from a
/// number to the word for 0 ("off").
double distance(const Knob& knob, const KnobValue& a, const KnobValue& b);

struct Distance {
  double sum = 0;  ///< over the knobs
  int knobs = 0;   ///< how many differ: with equal sums, fewer is nearer
  friend auto operator<=>(const Distance&, const Distance&) = default;
};
/// The distance between settings of all `knobs`.
Distance distance(const Knobs& knobs, const Settings& a, const Settings& b);

/// The settings of `there` that differ in `here` or are missing from it.
Settings differing(const Settings& there, const Settings& here);

/// Settings as they are typed: "--set keys=64 --set tile_width=8".
std::string as_arguments(const Settings& settings);

}  // namespace tilestep::lab

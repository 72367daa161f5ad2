#pragma once

#include "kernels/base/lab/knob.hpp"

/// How near settings lie to each other.
namespace tilestep::lab {

/// 0 for the same value. For another choice, text or toggle 1. For another number the part of the
/// knob's range between them (of its logarithm where the knob's scale is one): 1 from end to end; from
/// a number to the word for 0 ("off") 1.
double distance(const Knob& knob, const KnobValue& a, const KnobValue& b);

struct Distance {
  double sum = 0;  ///< of the knobs'
  int knobs = 0;   ///< how many differ: of two equal sums the one with fewer is nearer
  friend auto operator<=>(const Distance&, const Distance&) = default;
};
/// Of settings of all `knobs`.
Distance distance(const Knobs& knobs, const Settings& a, const Settings& b);

/// Those of `there` that stand otherwise in `here`, or not at all.
Settings differing(const Settings& there, const Settings& here);

/// Settings as they are typed: "--set keys=64 --set tile_width=8".
std::string as_arguments(const Settings& settings);

}  // namespace tilestep::lab

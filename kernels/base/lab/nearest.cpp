#include "kernels/base/lab/nearest.hpp"

#include <algorithm>
#include <cmath>

namespace tilestep::lab {
namespace {

double number_in(const KnobValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  return std::get<double>(value);
}

double distance_of_numbers(const Knob& knob, double a, double b) {
  // "off" is not a small amount.
  if (!knob.zero_word.empty() && (a == 0) != (b == 0)) return 1;
  const bool logarithmic = knob.logarithmic && knob.min > 0 && a > 0 && b > 0;
  const double apart = logarithmic ? std::abs(std::log(a / b)) : std::abs(a - b);
  const double range = logarithmic ? std::log(knob.max / knob.min) : knob.max - knob.min;
  return range > 0 ? std::min(apart / range, 1.0) : 1;
}

}  // namespace

double distance(const Knob& knob, const KnobValue& a, const KnobValue& b) {
  if (a == b) return 0;
  if (knob.kind != KnobKind::integer && knob.kind != KnobKind::real) return 1;
  return distance_of_numbers(knob, number_in(a), number_in(b));
}

Distance distance(const Knobs& knobs, const Settings& a, const Settings& b) {
  Distance all;
  for (const Knob& knob : knobs) {
    const KnobValue &here = a.at(knob.id), &there = b.at(knob.id);
    all.sum += distance(knob, here, there);
    all.knobs += here == there ? 0 : 1;
  }
  return all;
}

Settings differing(const Settings& there, const Settings& here) {
  Settings differ;
  for (const auto& [id, value] : there) {
    const auto found = here.find(id);
    if (found == here.end() || found->second != value) differ.emplace(id, value);
  }
  return differ;
}

std::string as_arguments(const Settings& settings) {
  std::string text;
  for (const auto& [id, value] : settings) {
    text += (text.empty() ? "--set " : " --set ") + id + "=" + to_text(value);
  }
  return text;
}

}  // namespace tilestep::lab

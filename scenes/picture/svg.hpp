#pragma once

#include <functional>

#include "scenes/picture/paint.hpp"

namespace tilestep::picture {

/// A placed picture as SVG 1.1 that stands alone, in the place and type that `metrics` gave it, one A4
/// page wide. Keys are ids, and what `explain` says of one is its title; `data-value` carries the number.
std::string svg(const Placed& placed, const std::vector<const Mark*>& marks, const Palette& palette,
                const Metrics& metrics, const std::function<std::string(const Key&)>& explain);

}  // namespace tilestep::picture

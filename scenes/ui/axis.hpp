#pragma once

#include <string>
#include <vector>

#include "scenes/ui/ui.hpp"

namespace tilestep::ui {

/// A plot axis: its range and tick positions.
struct Axis {
  double low = 0, high = 1;
  bool log = false;

  /// 0–1 along the axis.
  float place(double value) const;
  /// Round numbers, at most about `most` of them.
  std::vector<double> ticks(int most) const;
};

/// An axis that covers the values (the finite ones; on a log axis the positive ones) and, if linear
/// and `from_zero`, the zero.
Axis axis_for(const std::vector<double>& values, bool log, bool from_zero);
/// "4.3k", "0.05", "1e-7": short enough for a tick.
std::string tick_text(double value);
/// A value with about four significant digits and no exponent where it can be avoided: "4271",
/// "0.873".
std::string value_text(double value);

/// The positions of a plot's values, in real pixels.
struct PlotRoom {
  ImVec2 min, max;
  float width() const { return max.x - min.x; }
  float height() const { return max.y - min.y; }
};
float line_height(Font font);

}  // namespace tilestep::ui

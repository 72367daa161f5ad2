#include "scenes/ui/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tilestep::ui {
namespace {

double round_step(double rough) {
  const double decade = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (decade * factor >= rough * 0.999) return decade * factor;
  }
  return decade * 10;
}

std::vector<double> log_ticks(double low, double high, int most) {
  const double decades = std::log10(high / low);
  std::vector<double> factors = {1};
  if (decades * 3 <= most) factors = {1, 2, 5};
  std::vector<double> ticks;
  const int last = static_cast<int>(std::floor(std::log10(high) + 1e-9));
  // Powers of ten between the ends, which decades cut off at both ends do not tell.
  const int powers = last - static_cast<int>(std::ceil(std::log10(low) - 1e-9)) + 1;
  const int stride = std::max(1, (powers + most - 1) / most);
  for (int power = static_cast<int>(std::floor(std::log10(low))); power <= last; ++power) {
    if (power % stride != 0) continue;
    for (const double factor : factors) {
      const double tick = factor * std::pow(10.0, power);
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push_back(tick);
    }
  }
  return ticks;
}

}  // namespace

float Axis::place(double value) const {
  if (log) {
    return static_cast<float>(std::log(std::max(value, low) / low) / std::log(high / low));
  }
  return static_cast<float>((value - low) / (high - low));
}

std::vector<double> Axis::ticks(int most) const {
  if (!(high > low)) return {low};
  if (log) return log_ticks(low, high, std::max(most, 1));
  const double step = round_step((high - low) / std::max(most, 1));
  std::vector<double> ticks;
  for (double tick = std::ceil(low / step - 1e-9) * step; tick <= high + step * 1e-6;
       tick += step) {
    ticks.push_back(std::abs(tick) < step * 1e-9 ? 0 : tick);
  }
  return ticks;
}

Axis axis_for(const std::vector<double>& values, bool log, bool from_zero) {
  Axis axis{0, 0, log};
  bool any = false;
  for (const double value : values) {
    if (!std::isfinite(value) || (log && value <= 0)) continue;
    axis.low = any ? std::min(axis.low, value) : value;
    axis.high = any ? std::max(axis.high, value) : value;
    any = true;
  }
  if (!any) return log ? Axis{1, 10, true} : Axis{0, 1, false};
  if (log) {
    if (axis.high / axis.low < 2) {
      axis.low /= 1.5;
      axis.high *= 1.5;
    }
    return axis;
  }
  if (from_zero) {
    axis.low = std::min(axis.low, 0.0);
    axis.high = std::max(axis.high, 0.0);
  }
  if (axis.high - axis.low <= 0) axis.high = axis.low + std::max(1.0, std::abs(axis.low));
  axis.high += (axis.high - axis.low) * 0.05;
  return axis;
}

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e12 || (size > 0 && size < 1e-3)) return fmt::format("{:.0e}", value);
  if (size >= 1e9) return fmt::format("{:g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", value);
}

std::string value_text(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value) || size == 0) return fmt::format("{:g}", value);
  if (size >= 1e7 || size < 1e-4) return fmt::format("{:.2e}", value);
  if (value == std::floor(value)) return fmt::format("{:.0f}", value);
  const int digits = std::clamp(2 - static_cast<int>(std::floor(std::log10(size))), 0, 6);
  return fmt::format("{:.{}f}", value, digits);
}

float line_height(Font font) {
  return text_size("x", font).y;
}

}  // namespace tilestep::ui

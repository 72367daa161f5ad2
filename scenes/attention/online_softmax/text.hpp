#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace tilestep::scenes::softmax_text {

/// A number as the lesson shows it: `decimals` digits after the point, a real minus sign, "−∞", and
/// powers of ten for a number too small or too large for that.
inline std::string number(double value, int decimals) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
  const double size = std::abs(value);
  std::string text;
  if (size != 0 && (size < 0.5 * std::pow(10.0, -decimals) || size >= 1e6)) {
    text = fmt::format("{:.1e}", size);  // 4.5e-05
    const std::size_t e = text.find('e');
    const int exponent = std::stoi(text.substr(e + 1));
    text = fmt::format("{}e{}{}", text.substr(0, e), exponent < 0 ? "−" : "", std::abs(exponent));
  } else {
    text = fmt::format("{:.{}f}", size, decimals);
  }
  return value < 0 && text.find_first_of("123456789") != std::string::npos ? "−" + text : text;
}

}  // namespace tilestep::scenes::softmax_text

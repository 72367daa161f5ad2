#include "scenes/shared/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/base/lab/plural.hpp"

namespace tilestep::scenes::words {
namespace {

std::string unsigned_infinity(double value) {
  return std::isnan(value) ? "NaN" : value > 0 ? "∞" : "−∞";
}

/// With a real minus sign, but not before a zero.
std::string with_sign(const std::string& size, double value) {
  const bool zero = size.find_first_of("123456789") == std::string::npos;
  return value < 0 && !zero ? "−" + size : size;
}

struct Scientific {
  std::string mantissa;
  int exponent = 0;
};
Scientific scientific(double size, int decimals) {
  const std::string text = fmt::format("{:.{}e}", size, decimals);  // 4.5e-05
  const std::size_t e = text.find('e');
  return {text.substr(0, e), std::stoi(text.substr(e + 1))};
}

}  // namespace

std::string counted(std::int64_t count, std::string_view noun, std::string_view plural) {
  return lab::plural(count, noun, plural);
}

std::string times(std::int64_t count) {
  return count == 1 ? "once" : count == 2 ? "twice" : fmt::format("{} times", count);
}

std::string verb(std::int64_t count, std::string_view stem) {
  return fmt::format("{}{}", stem, count == 1 ? "s" : "");
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

std::string percent(double share) {
  const double value = 100 * share;
  int decimals = value > 0 && value < 9.95 ? 1 : 0;
  // Not quite all is not shown as all, and a little not as nothing.
  if ((value > 99 && value < 100) || (value > 0 && value < 0.95)) decimals = 2;
  return fmt::format("{:.{}f} %", value, decimals);
}

std::string number(double value, int decimals) {
  if (!std::isfinite(value)) return unsigned_infinity(value);
  const double size = std::abs(value);
  if (size == 0 || (size >= 0.5 * std::pow(10.0, -decimals) && size < 1e6)) {
    return with_sign(fmt::format("{:.{}f}", size, decimals), value);
  }
  const Scientific parts = scientific(size, 1);
  return with_sign(fmt::format("{}e{}{}", parts.mantissa, parts.exponent < 0 ? "−" : "",
                               std::abs(parts.exponent)),
                   value);
}

bool close(double got, double right, double magnitude) {
  if (got == right) return true;
  const double size = std::max({magnitude, std::abs(got), std::abs(right)});
  return std::isfinite(size) && std::abs(got - right) <= 1e-2 * size;
}

std::string equation(std::string_view name, std::string_view terms, double right, double got,
                     const std::function<std::string(double)>& text, double magnitude) {
  const std::string stored = text(got), result = text(right);
  if (!close(got, right, magnitude)) return fmt::format("{} = {} ≠ {}", name, stored, terms);
  return fmt::format("{} = {} {} {}", name, terms, stored == result ? "=" : "≈", stored);
}

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return unsigned_infinity(value);
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-4 || size >= 1e9)) {
    const Scientific parts = scientific(size, std::min(digits, 4) - 1);
    return with_sign(parts.mantissa + "·10" + raised(parts.exponent), value);
  }
  const int whole = size > 0 ? static_cast<int>(std::floor(std::log10(size))) + 1 : 1;
  std::string text = fmt::format("{:.{}f}", size, std::clamp(digits - whole, 0, 12));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return with_sign(text, value);
}

std::string raised(int exponent) {
  static constexpr std::array kRaised = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "⁻" : "";
  for (const char digit : std::to_string(std::abs(exponent))) {
    text += kRaised[static_cast<std::size_t>(digit - '0')];
  }
  return text;
}

}  // namespace tilestep::scenes::words

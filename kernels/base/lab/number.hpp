#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace tilestep::lab {

/// Any number, as a double: the argument type of checks and measurements.
struct AnyNumber {
  template <class Number>
  requires std::is_arithmetic_v<Number> AnyNumber(Number number)
      : value(static_cast<double>(number)) {}
  double value;
};

/// All of `text` as a Number, always in the C locale: the decimal point is a point. Nothing for
/// anything else, or for a number that does not fit.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace tilestep::lab

#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>

namespace tilestep::tests {

/// A double as a fraction, exactly.
inline boost::multiprecision::cpp_rational fraction(double value) {
  int exponent = 0;
  const double half = std::frexp(value, &exponent);
  using boost::multiprecision::cpp_int, boost::multiprecision::cpp_rational;
  const cpp_rational whole(static_cast<long long>(std::ldexp(half, 53)));
  const int power = exponent - 53;
  const cpp_rational scale(cpp_int(1) << std::abs(power));
  return power >= 0 ? cpp_rational(whole * scale) : cpp_rational(whole / scale);
}

}  // namespace tilestep::tests

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// How all lessons write numbers in words.
namespace tilestep::scenes::words {

/// "1 tile", "4 tiles"; `plural` if it is not noun + s.
std::string counted(std::int64_t count, std::string_view noun, std::string_view plural = {});
/// "once", "twice", "3 times".
std::string times(std::int64_t count);
/// "waits" for one, "wait" for more: a verb's s.
std::string verb(std::int64_t count, std::string_view stem);
/// "a", "a and b", "a, b and c".
std::string joined(const std::vector<std::string>& parts);
/// A share of 1 as "64 %"; one digit more below 10 %, and never 0 or 100 unless it is exactly that.
std::string percent(double share);

/// `decimals` digits after the point, a real minus sign, "∞", and powers of ten for what is too
/// small or too large for that: "4.5e−5".
std::string number(double value, int decimals);
/// `digits` significant digits without trailing zeros, "4.5·10⁻⁵" where that is shorter.
std::string significant(double value, int digits);
/// Whether a kernel's stored number equals a formula's result up to rounding: within 1 % of `magnitude`, the formula's
/// largest term, or otherwise of the numbers themselves.
bool close(double got, double right, double magnitude = 0);
/// A kernel's number beside its formula, with the kernel's own operands: "ℓ = 2 × 0.5 + 3 = 4.00"; "… ≈ 4.00" where
/// rounding shows; "ℓ = 5.00 ≠ 2 × 0.5 + 3" where the number differs.
std::string equation(std::string_view name, std::string_view terms, double right, double got,
                     const std::function<std::string(double)>& text, double magnitude = 0);
/// An exponent: "⁻⁵".
std::string raised(int exponent);

}  // namespace tilestep::scenes::words

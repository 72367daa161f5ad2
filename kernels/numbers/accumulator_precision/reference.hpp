#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/numbers/accumulator_precision/kernels.hpp"

/// The same sums in exact integer arithmetic: every number is a whole multiple of 2^-60, addition
/// is exact, and rounding is a division with remainder.
namespace tilestep::accumulator_precision {

/// The exact sums up to and including each term, as the nearest doubles.
std::vector<double> exact_prefixes(std::span<const float> terms);

/// The result of `method` after each term of sum `sum`, or with `last_only` only after the last.
std::vector<float> reference_sums(const SumMethod& method, int sum, std::span<const float> terms,
                                  bool last_only = false);

/// `value`, a multiple of 2^-60 below 2^66, rounded to the format.
double reference_round(numeric::FloatSpec format, double value, Rounding rounding,
                       std::uint32_t random);

}  // namespace tilestep::accumulator_precision

#include "kernels/attention/positions/method.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tilestep::positions {
namespace {

/// Long: a rate is multiplied by positions up to 2^20, and what is left of a turn must still be exact.
std::vector<long double> exact_turns(const Turning& turning) {
  const auto pairs = static_cast<std::size_t>(turning.pairs());
  const auto scale = static_cast<long double>(turning.scale);
  long double base = turning.base;
  if (turning.method == Method::ntk && turning.dim > 2)
    base *= std::pow(
        scale, static_cast<long double>(turning.dim) / static_cast<long double>(turning.dim - 2));
  std::vector<long double> all(pairs);
  for (std::size_t i = 0; i < pairs && turns(turning.method); ++i) {
    const long double exponent = -2.0L * static_cast<long double>(i) / turning.dim;
    const long double rate = std::pow(base, exponent) / (2 * std::numbers::pi_v<long double>);
    all[i] = rate;
    if (turning.method == Method::linear) all[i] = rate / scale;
    if (turning.method == Method::yarn) {
      const long double kept = kept_by_yarn(turning, static_cast<double>(rate));
      all[i] = kept * rate + (1 - kept) * rate / scale;
    }
  }
  return all;
}

}  // namespace

double kept_by_yarn(const Turning& turning, double turns_per_token) {
  const double within = turning.trained_length * turns_per_token;
  return std::clamp((within - kFewTurns) / (kManyTurns - kFewTurns), 0.0, 1.0);
}

std::vector<double> turns_of(const Turning& turning) {
  const std::vector<long double> exact = exact_turns(turning);
  return {exact.begin(), exact.end()};
}

float size_of(const Turning& turning) {
  return turning.method == Method::yarn ? static_cast<float>(0.1 * std::log(turning.scale) + 1)
                                        : 1.0f;
}

std::vector<std::uint64_t> rates_of(const Turning& turning) {
  std::vector<std::uint64_t> rates;
  for (const long double one : exact_turns(turning)) {
    rates.push_back(static_cast<std::uint64_t>(std::llroundl(one * 0x1p63L)) << 1);
  }
  return rates;
}

}  // namespace tilestep::positions

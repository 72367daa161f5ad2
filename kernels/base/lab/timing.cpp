#include "kernels/base/lab/timing.hpp"

#include <algorithm>
#include <cmath>

namespace tilestep::lab {
namespace {

Measurement number(std::string id, std::string_view variant, Provenance provenance, double value,
                   std::string_view unit, std::string detail) {
  Measurement m;
  m.id = std::move(id);
  m.variant = variant;
  m.provenance = provenance;
  m.value = value;
  m.unit = unit;
  m.detail = std::move(detail);
  return m;
}

}  // namespace

Spread spread_of(std::vector<double> samples) {
  if (samples.empty()) throw Error("a timing took no samples", ExitCode::unavailable);
  std::sort(samples.begin(), samples.end());
  const auto quantile = [&](double q) {
    const double at = q * static_cast<double>(samples.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, samples.size() - 1);
    return samples[below] + (at - std::floor(at)) * (samples[above] - samples[below]);
  };
  return {quantile(0.5), quantile(0.1), quantile(0.9), static_cast<int>(samples.size())};
}

Spread rate_of(const Spread& time_ms, double amount) {
  const auto rate = [&](double ms) { return amount / ms * 1e-6; };
  return {rate(time_ms.median), rate(time_ms.p90), rate(time_ms.p10), time_ms.samples};
}

Measurement measured(std::string id, std::string_view variant, const Spread& spread,
                     std::string_view unit, std::string detail) {
  Measurement m =
      number(std::move(id), variant, Provenance::measured, spread.median, unit, std::move(detail));
  m.p10 = spread.p10;
  m.p90 = spread.p90;
  m.samples = spread.samples;
  return m;
}

Measurement counted(std::string id, std::string_view variant, double value, std::string_view unit,
                    std::string detail) {
  return number(std::move(id), variant, Provenance::counted, value, unit, std::move(detail));
}

Measurement traced(std::string id, std::string_view variant, double value, std::string_view unit,
                   std::string detail) {
  return number(std::move(id), variant, Provenance::traced, value, unit, std::move(detail));
}

Measurement derived(std::string id, std::string_view variant, double value, std::string_view unit,
                    std::string detail) {
  return number(std::move(id), variant, Provenance::derived, value, unit, std::move(detail));
}

}  // namespace tilestep::lab

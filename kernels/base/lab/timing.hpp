#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/report.hpp"

namespace tilestep::lab {

/// Median and spread of samples, in the samples' unit.
struct Spread {
  double median = 0, p10 = 0, p90 = 0;
  int samples = 0;
};

/// Quantiles are interpolated between the two nearest samples. Throws Error for no samples.
Spread spread_of(std::vector<double> samples);

/// `amount` over a time in ms, in 10^9 a second: bytes give GB/s, FLOPs give GFLOP/s. The slow end
/// of the times is the low end of the rates.
Spread rate_of(const Spread& time_ms, double amount);

/// A timed number (provenance `measured`).
Measurement measured(std::string id, std::string_view variant, const Spread& spread,
                     std::string_view unit, std::string detail);

/// A number from a hardware counter (provenance `counted`); `detail` names counter and launch.
Measurement counted(std::string id, std::string_view variant, double value, std::string_view unit,
                    std::string detail);

/// A number that the kernel itself recorded (provenance `traced`).
Measurement traced(std::string id, std::string_view variant, double value, std::string_view unit,
                   std::string detail);

/// A number from a formula (provenance `derived`); `detail` is the formula.
Measurement derived(std::string id, std::string_view variant, double value, std::string_view unit,
                    std::string detail);

}  // namespace tilestep::lab

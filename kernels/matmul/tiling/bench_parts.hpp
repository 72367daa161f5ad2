#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/matmul/tiling/reference.hpp"
#include "kernels/matmul/tiling/report.hpp"

/// What the bench multiplies, how it compares results with double, and how it writes down times.
namespace tilestep::tiling {

/// Median and spread of samples.
struct Spread {
  double median = 0, p10 = 0, p90 = 0;
  int samples = 0;
};
Spread spread_of(std::vector<double> samples);
/// `work` over a time, times `scale`: the slow end of the times is the low end of the rates.
Spread rate_of(const Spread& time_ms, double work, double scale);
/// TFLOP/s of a product of this shape.
Spread tflops_of(const Spread& time_ms, const GemmShape& shape);

lab::Measurement measured(std::string id, std::string_view variant, const Spread& spread,
                          const char* unit, std::string detail);

/// Random matrices of one shape on host and device, in both formats.
class Problem {
 public:
  Problem(simt::Device& device, const GemmShape& wanted);

  const GemmShape shape;
  const Matrices fp32, bf16;
  const simt::Buffer<float> a, b;
  const simt::Buffer<std::uint16_t> a_bits, b_bits;
  simt::Buffer<float> c;
};

/// Everything that multiplies: a configuration of a rung, or the library.
struct Runner {
  std::string label;  ///< "warp-tile", or the library's name
  std::string id;     ///< for checks: "warp-tile", "library_bf16"
  bool tensor_core = false;
  Adding adding = Adding::in_order;
  std::string configuration;
  std::function<void(Problem&)> launch;
};
Runner rung_runner(simt::Device& device, const Kernels& kernels, Variant variant,
                   int configuration);
Runner library_runner(simt::Device& device, const Kernels& kernels, Precision precision);

/// The error of a result, worst against its bound.
struct Worst {
  double error = 0, bound = 0;
  bool ok = true;

  void add(double got, double want, double allowed);
  void add(const Worst& other);
};

/// How many elements of C are compared with double where all would take too long.
inline constexpr int kProbes = 256;

/// Runs once on C full of NaN and compares: all of C where that is cheap, else kProbes random
/// elements, the corners among them, and none may be NaN.
Worst error_of(simt::Device& device, const Runner& runner, Problem& problem);

}  // namespace tilestep::tiling

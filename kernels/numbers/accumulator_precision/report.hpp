#pragma once

#include <vector>

#include "kernels/numbers/accumulator_precision/kernels.hpp"
#include "kernels/numbers/accumulator_precision/lesson.hpp"

/// The building blocks of the lesson's report.
namespace tilestep::accumulator_precision {

/// One method, as the kernels ran it and as expected.
struct MethodRun {
  SumMethod method;
  std::vector<float> sums;           ///< kSums, by the timed kernel
  float recorded_sum = 0;            ///< sum 0 by the recording kernel
  std::vector<Step> steps;           ///< one per term of sum 0
  std::vector<float> expected;       ///< sum 0 after each term; pairwise with many terms: the last
  std::vector<float> expected_sums;  ///< the first few of `sums`, from the reference
};

/// Error of a scheme of scales.
struct ScalingResult {
  std::string_view scheme;
  double scales = 0;         ///< number of scales of both matrices
  double error_percent = 0;  ///< mean over rows of |row − exact row| / |exact row|
  double lost_percent = 0;   ///< nonzero elements that became 0
  double kernel_error = 0;   ///< of the kernel against the same rounded numbers in double,
  double kernel_bound = 0;   ///< relative to Σ|a·b|, and its bound
};

/// A run's data.
struct Outcome {
  Params params;
  Trace trace;                  ///< filled in except for the accumulators
  std::vector<float> terms;     ///< of sum 0
  std::vector<double> exact;    ///< of sum 0, after each term
  std::vector<MethodRun> runs;  ///< in the order shown
  std::vector<ScalingResult> scaling;
};

/// Fills `outcome.trace` from the runs: points, accumulators, freezing, verdicts.
void fill_trace(Outcome& outcome);

/// The report of a run: summary, tables `accumulators`, `verdicts`, `scaling`, measurements,
/// checks.
lab::Report report_of(const Outcome& outcome);

/// Quantizes data with outliers by each scaling scheme, and multiplies on the device.
std::vector<ScalingResult> run_scaling(simt::Device& device, std::int64_t seed,
                                       lab::Progress& progress);
lab::Table scaling_table(const std::vector<ScalingResult>& results);
lab::Check scaling_check(const std::vector<ScalingResult>& results);

}  // namespace tilestep::accumulator_precision

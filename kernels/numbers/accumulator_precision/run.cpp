#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "kernels/base/lab/plural.hpp"
#include "kernels/numbers/accumulator_precision/report.hpp"

// From the kernels' output to the picture's data.

namespace tilestep::accumulator_precision {
namespace {

/// Points kept on each side of a place where a sum freezes, and at both ends.
constexpr int kWindow = 64;

/// The spacing at the sum, in the format of the addition.
double spacing_at(const MethodRun& run, std::size_t term) {
  return numeric::ulp(run.method.format, static_cast<double>(run.steps[term].after));
}

/// The spacing that a term must overcome to count. With Kahan's method terms accumulate in the
/// compensation until they move the sum, so the sum freezes for good when the compensation does.
double spacing_for_terms(const MethodRun& run, std::size_t term) {
  const auto gathered = static_cast<double>(run.steps.back().extra);
  const bool gathers = run.method.method == Method::kahan && gathered != 0;
  return gathers ? numeric::ulp(run.method.format, gathered) : spacing_at(run, term);
}

/// The accumulator is at the largest number of a format that saturates.
bool saturated(numeric::FloatSpec format, float value) {
  return overflow_of(format) == numeric::Overflow::saturate &&
         std::abs(static_cast<double>(value)) == numeric::max_finite(format);
}

/// Number of the first term that no longer changes the sum, or −1 if the remaining terms add up to
/// no more than a spacing, so that an exact sum might not move either. With stochastic rounding a
/// sum may rest for long and move again; only at the format's largest number it cannot.
int frozen_at(const MethodRun& run, const std::vector<double>& exact) {
  const std::vector<Step>& steps = run.steps;
  const float last = steps.back().sum;
  if (!std::isfinite(last)) return -1;
  std::size_t first = steps.size();
  while (first > 0 && steps[first - 1].sum == last) --first;
  // steps[first] is the term that brought the sum to its final value.
  if (first + 1 >= steps.size()) return -1;
  if (run.method.rounding == Rounding::stochastic &&
      !saturated(run.method.format, steps[first].after)) {
    return -1;
  }
  const double left = std::abs(exact.back() - exact[first]);
  return left > spacing_at(run, first) ? static_cast<int>(first) + 1 : -1;
}

double error_percent(float sum, double exact) {
  const double error = std::abs(static_cast<double>(sum) - exact);
  if (error == 0) return 0;
  return std::isnan(error) ? error : 100 * error / std::abs(exact);
}

std::string verdict(const AccumulatorTrace& a, const Params& params) {
  if (std::isnan(a.final_sum)) return "not a number: the sum left the format's range";
  if (std::isinf(a.final_sum)) return "infinite: the sum left the format's range";
  if (a.frozen_at >= 0 && saturated(a.format, a.final_sum)) {
    return fmt::format("stays at {:.6g} after {}: the format's largest number", a.final_sum,
                       lab::plural(a.frozen_at, "term"));
  }
  if (a.frozen_at >= 0) {
    const bool nearest = params.rounding == Rounding::nearest;
    // The addend: a term, the compensation of several, or a block of them.
    const char* where = a.method == Method::kahan ? "at the compensation" : "there";
    const char* what = a.method == Method::pairwise ? "block" : "term";
    return fmt::format(
        "stays at {:.6g} after {}: numbers stand {:.4g} apart {}, and a {} below {:.4g} "
        "is lost",
        a.final_sum, lab::plural(a.frozen_at, "term"), a.frozen_spacing, where, what,
        nearest ? a.frozen_spacing / 2 : a.frozen_spacing);
  }
  if (a.error_percent < 0.05) return "holds";
  if (a.error_percent < 1) return "holds, slightly off";
  return "goes on moving, but rounding adds up";
}

std::vector<int> kept_points(int terms, const std::vector<AccumulatorTrace>& accumulators) {
  std::set<int> kept;
  const int stride = (terms + kMaxPoints - 1) / kMaxPoints;
  for (int i = 0; i < terms; i += stride) kept.insert(i);
  const auto keep = [&](int from, int to) {
    for (int i = std::max(from, 0); i < std::min(to, terms); ++i) kept.insert(i);
  };
  keep(0, kWindow);
  keep(terms - kWindow, terms);
  for (const AccumulatorTrace& a : accumulators) {
    if (a.frozen_at >= 0) keep(a.frozen_at - kWindow, a.frozen_at + kWindow);
  }
  return {kept.begin(), kept.end()};
}

}  // namespace

void fill_trace(Outcome& outcome) {
  const Params& params = outcome.params;
  Trace& trace = outcome.trace;
  trace.terms = params.terms;
  trace.distribution = params.distribution;
  trace.rounding = params.rounding;
  trace.promote_every = params.promote_every;
  trace.small_format = params.small_format;
  trace.exact_sum = outcome.exact.back();
  const auto shows = [&](Method method) {
    return std::any_of(outcome.runs.begin(), outcome.runs.end(),
                       [&](const MethodRun& run) { return run.method.method == method; });
  };
  const bool both = shows(Method::fp8_e5m2) || params.small_format == SmallFormat::fp8_e5m2;
  for (const MethodRun& run : outcome.runs) {
    AccumulatorTrace& a = trace.accumulators.emplace_back();
    a.method = run.method.method;
    a.label = label_of(a.method, params.small_format, both);
    a.format = run.method.format;
    a.final_sum = run.steps.back().sum;
    a.error_percent = error_percent(a.final_sum, trace.exact_sum);
    a.frozen_at = frozen_at(run, outcome.exact);
    if (a.frozen_at >= 0) {
      a.frozen_spacing = spacing_for_terms(run, static_cast<std::size_t>(a.frozen_at));
    }
    a.verdict = verdict(a, params);
    a.line = source_line(a.method);
  }
  trace.points = kept_points(params.terms, trace.accumulators);
  for (const int point : trace.points) {
    const auto i = static_cast<std::size_t>(point);
    trace.term.push_back(outcome.terms[i]);
    trace.exact.push_back(outcome.exact[i]);
    for (std::size_t r = 0; r < outcome.runs.size(); ++r) {
      trace.accumulators[r].steps.push_back(outcome.runs[r].steps[i]);
    }
  }
}

}  // namespace tilestep::accumulator_precision

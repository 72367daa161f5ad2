#include "kernels/numbers/accumulator_precision/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/timing.hpp"

namespace tilestep::accumulator_precision {
namespace {

using lab::real, lab::whole;

// ---- checks -------------------------------------------------------------------------------------

/// Numbers that must be the same.
struct Same {
  std::int64_t wrong = 0, compared = 0;
  void add(float a, float b) {
    wrong += lab::same_number(a, b) ? 0 : 1;
    ++compared;
  }
  lab::Check check(std::string id, const char* detail) const {
    return lab::none_wrong(
        std::move(id), wrong,
        fmt::format("{} {} numbers compared; max_error counts those that differ.", detail,
                    compared));
  }
};

std::vector<lab::Check> checks_of(const Outcome& outcome) {
  Same sums, steps, chain, recorded;
  for (const MethodRun& run : outcome.runs) {
    for (std::size_t i = 0; i < run.expected_sums.size(); ++i) {
      sums.add(run.sums[i], run.expected_sums[i]);
    }
    const std::size_t skipped = run.steps.size() - run.expected.size();
    for (std::size_t i = 0; i < run.expected.size(); ++i) {
      steps.add(run.steps[skipped + i].sum, run.expected[i]);
    }
    float left = 0;
    for (std::size_t i = 0; i < run.steps.size(); ++i) {
      chain.add(run.steps[i].before, left);
      const bool promotes = run.method.method == Method::promoted &&
                            (i + 1) % static_cast<std::size_t>(run.method.promote_every) == 0;
      left = promotes ? 0 : run.steps[i].after;
    }
    recorded.add(run.sums.front(), run.recorded_sum);
    recorded.add(run.sums.front(), run.steps.back().sum);
  }
  return {sums.check("sums",
                     "Bit-identical to exact integer arithmetic, where rounding is a division with "
                     "remainder."),
          steps.check("steps",
                      "The recorded sum after each term, bit-identical to exact integer arithmetic "
                      "(pairwise with many terms: only after the last)."),
          chain.check("recorded_chain", "Each term starts from exactly the previous term's bits."),
          recorded.check("traced_equals_timed",
                         "The recording kernel's sum and last step are bit-identical to the timed "
                         "kernel's."),
          scaling_check(outcome.scaling)};
}

// ---- tables -------------------------------------------------------------------------------------

lab::Table accumulators_table(const Trace& trace) {
  lab::Table table{"accumulators",
                   "The sum of " + lab::plural(trace.terms, "term"),
                   {"accumulator", whole("mantissa_bits", "mantissa bits"),
                    real("final_sum", "final sum", "", 1), real("error", "", "%", 1)}};
  for (const AccumulatorTrace& a : trace.accumulators) {
    table.add({a.label, a.format.mantissa_bits, a.final_sum, a.error_percent});
  }
  return table;
}

lab::Table verdicts_table(const Trace& trace) {
  lab::Table table{"verdicts",
                   fmt::format("The sums' fates; exact: {:.6g}", trace.exact_sum),
                   {"accumulator", "sum", whole("frozen_at", "frozen after", "terms"),
                    lab::column("spacing", "spacing"), "verdict"}};
  for (const AccumulatorTrace& a : trace.accumulators) {
    const auto if_frozen = [&](auto value) {
      return a.frozen_at >= 0 ? lab::Cell(value) : lab::Cell();
    };
    table.add(
        {a.label, a.final_sum, if_frozen(a.frozen_at), if_frozen(a.frozen_spacing), a.verdict});
  }
  return table;
}

lab::Table terms_table(const Trace& trace) {
  lab::Table table{"terms",
                   "The sums, term by term",
                   {whole("added", "terms added"), real("term", "last term", "", 6),
                    real("exact", "exact sum", "", 6)}};
  for (const AccumulatorTrace& a : trace.accumulators) {
    table.columns.emplace_back(name_of(a.method), a.label);
  }
  const auto points = static_cast<int>(trace.points.size());
  const int stride =
      trace.terms <= kAllRows ? 1 : std::max(1, (points + kSampledRows - 1) / kSampledRows);
  for (int point = (points - 1) % stride; point < points; point += stride) {
    const auto p = static_cast<std::size_t>(point);
    std::vector<lab::Cell> row = {trace.points[p] + 1, trace.term[p], trace.exact[p]};
    for (const AccumulatorTrace& a : trace.accumulators) row.emplace_back(a.steps[p].sum);
    table.add(std::move(row));
  }
  return table;
}

// ---- measurements and summary -------------------------------------------------------------------

std::vector<lab::Measurement> measurements(const Outcome& outcome) {
  const Trace& trace = outcome.trace;
  std::vector<lab::Measurement> all;
  all.push_back(lab::derived("exact_sum", "", trace.exact_sum, "",
                             "all terms added without rounding, in 128-bit integers of 2^-60"));
  for (const AccumulatorTrace& a : trace.accumulators) {
    const std::string_view name = name_of(a.method);
    all.push_back(
        lab::traced("final_sum", name, a.final_sum, "", "the accumulator after the last term"));
    all.push_back(
        lab::derived("error", name, a.error_percent, "%", "|final sum - exact sum| / |exact sum|"));
    if (a.frozen_at >= 0) {
      all.push_back(lab::traced("frozen_at", name, a.frozen_at, "terms",
                                "number of terms added when the recorded sum changed for the "
                                "last time"));
    }
  }
  return all;
}

/// A small error must not read 0.0 %.
std::string percent_text(double percent) {
  return percent > 0 && percent < 0.05 ? fmt::format("{:.2g}", percent)
                                       : fmt::format("{:.1f}", percent);
}

std::string summary(const Trace& trace) {
  std::string sentences = fmt::format("The exact sum of {} is {:.1f}.",
                                      lab::plural(trace.terms, "term"), trace.exact_sum);
  for (const AccumulatorTrace& a : trace.accumulators) {
    sentences += fmt::format(" {} reaches {:.1f}, an error of {} %: {}.", a.label, a.final_sum,
                             percent_text(a.error_percent), a.verdict);
  }
  return sentences;
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  return {accumulators_table(trace), verdicts_table(trace), terms_table(trace)};
}

lab::Report report_of(const Outcome& outcome) {
  lab::Report report;
  report.summary = summary(outcome.trace);
  report.tables = tables_of(outcome.trace);
  report.add(scaling_table(outcome.scaling));
  report.measurements = measurements(outcome);
  report.checks = checks_of(outcome);
  report.trace = to_json(outcome.trace);
  return report;
}

}  // namespace tilestep::accumulator_precision

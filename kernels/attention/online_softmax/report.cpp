#include "kernels/attention/online_softmax/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/attention/online_softmax/kernels.hpp"
#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/number.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/timing.hpp"

namespace tilestep::online_softmax {
namespace {

using lab::real, lab::whole;

// ---- comparing ----------------------------------------------------------------------------------

lab::Check with_place(const lab::Closest& closest, std::string id, const std::string& source) {
  return closest.check(std::move(id),
                       fmt::format("{} The numbers are for {}, closest to its tolerance.", source,
                                   closest.any() ? closest.where() : "nothing"));
}

std::string where_tolerances_come_from(const Params& params) {
  return fmt::format(
      "Tolerance: the rounding errors of all operations along the row, summed in double: at most "
      "u = {:.3g} ({}) of the sum, and never more than the term, for each of {} additions to l and "
      "O and for each product; (|s - m| + 4) times 2^-24 for each exp, from its rounded argument "
      "and expf's 2 ulp.",
      limits_of(params.accumulator).unit, name_of(params.accumulator), params.keys);
}

lab::Check check_output(const Outcome& outcome) {
  lab::Closest closest;
  const auto head_dim = static_cast<std::size_t>(outcome.params.head_dim);
  for (std::size_t i = 0; i < outcome.output.size(); ++i) {
    closest.add(outcome.output[i], outcome.reference.value[i], outcome.reference.bound[i],
                [&] { return fmt::format("query {}, component {}", i / head_dim, i % head_dim); });
  }
  return with_place(closest, "final_output", where_tolerances_come_from(outcome.params));
}

lab::Check check_states(const Outcome& outcome) {
  lab::Closest closest;
  for (std::size_t t = 0; t < outcome.trace.steps.size(); ++t) {
    const TraceStep& step = outcome.trace.steps[t];
    const PrefixState& expected = outcome.expected[t];
    const auto compare = [&](const char* name, float actual, double right, double bound) {
      closest.add(actual, right, bound, [&] { return fmt::format("{} after tile {}", name, t); });
    };
    compare("m", step.m, expected.m, 0);
    compare("l", step.l, expected.l, expected.l_bound);
    compare("O", step.o, expected.o, expected.o_bound);
    compare("output", step.output, expected.output, expected.output_bound);
  }
  return with_place(closest, "tile_states", where_tolerances_come_from(outcome.params));
}

lab::Check check_weights(const Outcome& outcome) {
  lab::Closest closest;
  const Trace& trace = outcome.trace;
  for (std::size_t j = 0; j < trace.weights.size(); ++j) {
    const double m = outcome.expected[j / static_cast<std::size_t>(trace.tile_width)].m;
    const double shift = m - static_cast<double>(trace.scores[j]);
    const bool masked = trace.scores[j] == -std::numeric_limits<float>::infinity();
    const double expected = masked ? 0.0 : std::exp(-shift);
    const double bound = masked ? 0.0 : expected * (shift + 4) * 0x1.0p-24 + 0x1.0p-148;
    closest.add(trace.weights[j], expected, bound,
                [&] { return fmt::format("the weight of key {}", j); });
  }
  return with_place(closest, "weights",
                    "Tolerance: the weight times (s - m + 4) times 2^-24, from the rounded "
                    "argument and expf's 2 ulp.");
}

/// The recording kernel and the timed one share their source, so their results must be equal.
lab::Check check_traced_equals_timed(const Outcome& outcome) {
  const Params& params = outcome.params;
  double worst = 0;
  bool ok = true;
  for (int c = 0; c < params.head_dim; ++c) {
    const float timed =
        outcome.output[static_cast<std::size_t>(params.query * params.head_dim + c)];
    const float recorded = outcome.recorded_row[static_cast<std::size_t>(c)];
    if (lab::same_bits(timed, recorded)) continue;
    ok = false;
    const double error = std::abs(static_cast<double>(timed) - static_cast<double>(recorded));
    worst = error > worst || std::isnan(error) ? error : worst;
  }
  const float shown = outcome.recorded_row[static_cast<std::size_t>(params.component)];
  ok = ok && lab::same_bits(outcome.trace.steps.back().output, shown);
  return {"traced_equals_timed", ok, worst, 0,
          "The recording kernel's output is bit-identical to the timed kernel's, and the last step "
          "to the output."};
}

/// Every tile starts from the previous tile's final state.
lab::Check check_chain(const Outcome& outcome) {
  TraceStep before;
  before.m = -std::numeric_limits<float>::infinity();
  bool ok = true;
  for (const TraceStep& step : outcome.trace.steps) {
    ok = ok && lab::same_bits(step.m_old, before.m) && lab::same_bits(step.l_old, before.l) &&
         lab::same_bits(step.o_old, before.o);
    before = step;
  }
  return {"recorded_chain", ok, 0, 0, "Each tile starts from exactly the previous tile's bits."};
}

// ---- tables -------------------------------------------------------------------------------------

lab::Table tiles_table(const Trace& trace) {
  lab::Table table{
      "tiles",
      fmt::format("Tile by tile: query {}, component {}", trace.query, trace.component),
      {whole("tile"), real("tile_max", "tile max", "", 1), real("m", "", "", 1),
       real("rescale", "", "", 3), real("l", "ℓ", "", 2), real("output", "", "", 3)}};
  if (trace.skip_rescale) table.columns.push_back(real("exact", "", "", 3));
  for (std::size_t t = 0; t < trace.steps.size(); ++t) {
    const TraceStep& step = trace.steps[t];
    std::vector<lab::Cell> row = {t, step.tile_max, step.m, step.rescale, step.l, step.output};
    if (trace.skip_rescale) row.emplace_back(trace.exact_outputs[t]);
    table.add(std::move(row));
  }
  return table;
}

/// Six significant digits: these sums range from 1e-44 to inf, too wide for fixed decimals.
double six_digits(double value) {
  return std::isfinite(value) ? lab::number_of<double>(fmt::format("{:.6g}", value)).value()
                              : value;
}

lab::Table naive_table(const Trace& trace) {
  const TraceStep& last = trace.steps.back();
  lab::Table table{"naive",
                   "Softmax with and without the maximum",
                   {"method", "subtracted", "numerator", "denominator", "result"}};
  const auto add = [&](const char* method, std::initializer_list<lab::AnyNumber> numbers) {
    std::vector<lab::Cell> row = {method};
    for (const lab::AnyNumber number : numbers) row.emplace_back(six_digits(number.value));
    table.add(std::move(row));
  };
  const auto numerator = static_cast<double>(trace.naive_numerator);
  const auto denominator = static_cast<double>(trace.naive_denominator);
  add("naive", {0, numerator, denominator, numerator / denominator});
  if (denominator == 0) table.rows.back().back() = "undefined: 0 / 0";
  add("online", {last.m, last.o, last.l, last.output});
  add("exact",
      {trace.exact_max, trace.exact_output * trace.exact_l, trace.exact_l, trace.exact_output});
  return table;
}

// ---- measurements and summary -------------------------------------------------------------------

/// Tiles that raised the maximum after a sum had begun: each needs a rescale.
int rescales(const Trace& trace) {
  int count = 0;
  for (const TraceStep& step : trace.steps) {
    if (step.l_old > 0 && step.m > step.m_old) ++count;
  }
  return count;
}

std::vector<lab::Measurement> measurements(const Outcome& outcome) {
  using lab::derived;
  using lab::traced;
  const Params& p = outcome.params;
  const Trace& trace = outcome.trace;
  const TraceStep& last = trace.steps.back();
  const auto output = static_cast<double>(last.output);
  const double scores = 4.0 * p.queries * p.keys;
  const double values = 4.0 * p.keys * p.head_dim;
  const int asked_for = rescales(trace);
  std::vector<lab::Measurement> all = {
      traced("rescales", "", trace.skip_rescale ? 0 : asked_for, "",
             trace.skip_rescale ? "none: the knob skips them"
                                : "tiles that raised the maximum after the first sum"),
      traced("final_m", "", last.m, "", "running maximum after the last tile"),
      traced("final_l", "", last.l, "", "denominator after the last tile"),
      traced("output", "", output, "", "O / ℓ after the last tile"),
      derived("exact_output", "", trace.exact_output, "",
              "softmax in double: maximum of the whole row first, then the sums"),
      derived("difference", "", std::abs(output - trace.exact_output), "",
              "|output - exact output|"),
      derived("bytes_read", "", scores + values, "bytes",
              "4 bytes x (queries x keys scores + keys x head_dim values), each once"),
      derived("bytes_written", "", 4.0 * p.queries * p.head_dim, "bytes",
              "4 bytes x queries x head_dim"),
      derived("weight_bytes_avoided", "", 2 * scores, "bytes",
              "4 bytes x queries x keys, written and read back, if the weights were stored"),
  };
  if (trace.skip_rescale) {
    all.insert(all.begin() + 1, traced("rescales_skipped", "", asked_for, "",
                                       "tiles that raised the maximum after the first sum"));
  }
  return all;
}

std::string skipped_summary(const Trace& trace) {
  const TraceStep& last = trace.steps.back();
  if (trace.first_wrong_tile < 0) {
    return fmt::format(
        "The rescale is skipped, but no tile needed it: the output {:.3f} is right all the same.",
        last.output);
  }
  const auto wrong = static_cast<std::size_t>(trace.first_wrong_tile);
  return fmt::format(
      "With the rescale skipped the output first goes wrong at tile {}: {:.3f} instead of {:.3f}; "
      "after the last tile it is {:.3f} instead of {:.3f}.",
      wrong, trace.steps[wrong].output, trace.exact_outputs[wrong], last.output,
      trace.exact_output);
}

std::string summary(const Outcome& outcome) {
  const Trace& trace = outcome.trace;
  const TraceStep& last = trace.steps.back();
  if (last.m == -std::numeric_limits<float>::infinity()) {
    return fmt::format("All {} keys are masked: l stays 0, and the output is 0 by definition.",
                       trace.keys);
  }
  if (!std::isfinite(last.l) || !std::isfinite(last.o)) {
    return fmt::format(
        "An accumulator left the range of {}: ℓ = {}, O = {}; the exact output is {:.3f}.",
        name_of(outcome.params.accumulator), last.l, last.o, trace.exact_output);
  }
  if (trace.skip_rescale) return skipped_summary(trace);
  return fmt::format(
      "One pass over {} in {} with {} of ℓ and O gave {:.3f}, which differs from softmax in "
      "double ({:.3f}) by {:.1e}.",
      lab::plural(trace.keys, "key"), lab::plural(trace.tiles(), "tile"),
      lab::plural(rescales(trace), "rescale"), last.output, trace.exact_output,
      std::abs(static_cast<double>(last.output) - trace.exact_output));
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  return {tiles_table(trace), naive_table(trace)};
}

lab::Report report_of(const Outcome& outcome) {
  lab::Report report;
  report.summary = summary(outcome);
  report.tables = tables_of(outcome.trace);
  report.add(ladder_table());
  report.measurements = measurements(outcome);
  report.checks = {check_output(outcome), check_states(outcome), check_weights(outcome),
                   check_chain(outcome), check_traced_equals_timed(outcome)};
  report.trace = to_json(outcome.trace);
  return report;
}

}  // namespace tilestep::online_softmax

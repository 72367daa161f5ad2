#include "kernels/attention/online_softmax/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "kernels/attention/online_softmax/kernels.hpp"
#include "kernels/base/numeric/float_format.hpp"

namespace tilestep::online_softmax {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ---- comparing ----------------------------------------------------------------------------------

/// Collects comparisons and remembers the one that is closest to its bound, or farthest past it.
class Comparison {
 public:
  template <class Where>
  void add(double actual, double expected, double bound, const Where& where) {
    double error = std::abs(actual - expected);
    if (actual == expected) error = 0;  // also −inf and −inf
    if (std::isnan(error)) error = kInfinity;
    const bool good = error <= bound;
    const double closeness = error == 0 ? 0 : (bound > 0 ? error / bound : kInfinity);
    if ((!good && ok_) || (good == ok_ && closeness > closeness_) || closeness_ < 0) {
      closeness_ = closeness;
      max_error_ = error;
      tolerance_ = bound;
      where_ = where();
    }
    ok_ = ok_ && good;
  }

  lab::Check check(std::string id, const std::string& source) const {
    return {
        std::move(id), ok_, max_error_, tolerance_,
        fmt::format("{} The numbers are those of {}, closest to its tolerance.", source, where_)};
  }

 private:
  bool ok_ = true;
  double closeness_ = -1, max_error_ = 0, tolerance_ = 0;
  std::string where_ = "nothing";
};

double unit_roundoff(Accumulator accumulator) {
  switch (accumulator) {
    case Accumulator::fp16:
      return numeric::Fp16::kUnitRoundoff;
    case Accumulator::bf16:
      return numeric::Bf16::kUnitRoundoff;
    case Accumulator::fp32:
      break;
  }
  return numeric::Fp32::kUnitRoundoff;
}

std::string where_tolerances_come_from(const Params& params) {
  return fmt::format(
      "Tolerance: the rounding errors of every operation added up in double along the row: at most "
      "u = {:.3g} ({}) of the sum, and never more than the term, for each of {} additions to l and "
      "O "
      "and for each product; (|s - m| + 4) times 2^-24 for each exp, from its rounded argument and "
      "expf's 2 ulp.",
      unit_roundoff(params.accumulator), to_text(params.accumulator), params.keys);
}

lab::Check check_output(const Outcome& outcome) {
  Comparison comparison;
  const auto head_dim = static_cast<std::size_t>(outcome.params.head_dim);
  for (std::size_t i = 0; i < outcome.output.size(); ++i) {
    comparison.add(static_cast<double>(outcome.output[i]), outcome.reference.output[i],
                   outcome.reference.bound[i], [&] {
                     return fmt::format("query {}, component {}", i / head_dim, i % head_dim);
                   });
  }
  return comparison.check("final_output", where_tolerances_come_from(outcome.params));
}

lab::Check check_states(const Outcome& outcome) {
  Comparison comparison;
  for (std::size_t t = 0; t < outcome.trace.steps.size(); ++t) {
    const TraceStep& step = outcome.trace.steps[t];
    const PrefixState& expected = outcome.expected[t];
    const auto compare = [&](const char* name, float actual, double right, double bound) {
      comparison.add(static_cast<double>(actual), right, bound,
                     [&] { return fmt::format("{} after tile {}", name, t); });
    };
    compare("m", step.m, expected.m, 0);
    compare("l", step.l, expected.l, expected.l_bound);
    compare("O", step.o, expected.o, expected.o_bound);
    compare("output", step.output, expected.output, expected.output_bound);
  }
  return comparison.check("tile_states", where_tolerances_come_from(outcome.params));
}

lab::Check check_weights(const Outcome& outcome) {
  Comparison comparison;
  const Trace& trace = outcome.trace;
  for (std::size_t j = 0; j < trace.weights.size(); ++j) {
    const double m = outcome.expected[j / static_cast<std::size_t>(trace.tile_width)].m;
    const double shift = m - static_cast<double>(trace.scores[j]);
    const bool masked = trace.scores[j] == -std::numeric_limits<float>::infinity();
    const double expected = masked ? 0.0 : std::exp(-shift);
    const double bound = masked ? 0.0 : expected * (shift + 4) * 0x1.0p-24 + 0x1.0p-148;
    comparison.add(static_cast<double>(trace.weights[j]), expected, bound,
                   [&] { return fmt::format("the weight of key {}", j); });
  }
  return comparison.check("weights",
                          "Tolerance: the weight times (s - m + 4) times 2^-24, from the rounded "
                          "argument and expf's 2 ulp.");
}

bool same_bits(float a, float b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

/// The recording kernel and the timed one are the same source; so must be their results.
lab::Check check_traced_equals_timed(const Outcome& outcome) {
  const Params& params = outcome.params;
  double worst = 0;
  bool ok = true;
  for (int c = 0; c < params.head_dim; ++c) {
    const float timed =
        outcome.output[static_cast<std::size_t>(params.query * params.head_dim + c)];
    const float recorded = outcome.recorded_row[static_cast<std::size_t>(c)];
    if (same_bits(timed, recorded)) continue;
    ok = false;
    const double error = std::abs(static_cast<double>(timed) - static_cast<double>(recorded));
    worst = error > worst || std::isnan(error) ? error : worst;
  }
  const float shown = outcome.recorded_row[static_cast<std::size_t>(params.component)];
  ok = ok && same_bits(outcome.trace.steps.back().output, shown);
  return {"traced_equals_timed", ok, worst, 0,
          "The recording kernel's output has the bits of the timed kernel's, and the last recorded "
          "step those of the output."};
}

/// Every tile starts from the state that the tile before left.
lab::Check check_chain(const Outcome& outcome) {
  TraceStep before;
  before.m = -std::numeric_limits<float>::infinity();
  bool ok = true;
  for (const TraceStep& step : outcome.trace.steps) {
    ok = ok && same_bits(step.m_old, before.m) && same_bits(step.l_old, before.l) &&
         same_bits(step.o_old, before.o);
    before = step;
  }
  return {"recorded_chain", ok, 0, 0, "Each tile starts from the bits that the tile before left."};
}

// ---- tables -------------------------------------------------------------------------------------

double number(float value) {
  return static_cast<double>(value);
}

lab::Table tiles_table(const Outcome& outcome) {
  const Trace& trace = outcome.trace;
  lab::Table table{
      "tiles",
      fmt::format("Tile by tile: query {}, component {}", trace.query, trace.component),
      {{"tile", "tile", "", 0},
       {"tile_max", "tile max", "", 1},
       {"m", "m", "", 1},
       {"rescale", "rescale", "", 3},
       {"l", "l", "", 2},
       {"output", "output", "", 3}},
      {}};
  if (trace.skip_rescale) table.columns.push_back({"exact", "exact", "", 3});
  for (std::size_t t = 0; t < trace.steps.size(); ++t) {
    const TraceStep& step = trace.steps[t];
    std::vector<lab::Cell> row = {static_cast<double>(t), number(step.tile_max),
                                  number(step.m),         number(step.rescale),
                                  number(step.l),         number(step.output)};
    if (trace.skip_rescale) row.emplace_back(trace.exact_outputs[t]);
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// Six significant digits: sums here go from 1e-44 to inf, so a number of decimals does not do.
double six_digits(double value) {
  return std::isfinite(value) ? std::stod(fmt::format("{:.6g}", value)) : value;
}

std::vector<lab::Cell> sums_row(const char* method, double point, double numerator,
                                double denominator, lab::Cell result) {
  return {std::string(method), six_digits(point), six_digits(numerator), six_digits(denominator),
          std::move(result)};
}

lab::Table naive_table(const Outcome& outcome) {
  const Trace& trace = outcome.trace;
  const TraceStep& last = trace.steps.back();
  const double numerator = number(trace.naive_numerator);
  const double denominator = number(trace.naive_denominator);
  lab::Cell naive = six_digits(numerator / denominator);
  if (denominator == 0) naive = std::string("undefined: 0 / 0");
  return {"naive",
          "Softmax with and without the maximum",
          {{"method", "method", "", -1},
           {"subtracted", "subtracted", "", -1},
           {"numerator", "numerator", "", -1},
           {"denominator", "denominator", "", -1},
           {"result", "result", "", -1}},
          {sums_row("naive", 0, numerator, denominator, naive),
           sums_row("online", number(last.m), number(last.o), number(last.l),
                    six_digits(number(last.output))),
           sums_row("exact", trace.exact_max, trace.exact_output * trace.exact_l, trace.exact_l,
                    six_digits(trace.exact_output))}};
}

// ---- measurements and summary
// ---------------------------------------------------------------------

int rescales(const Trace& trace) {
  int count = 0;
  for (const TraceStep& step : trace.steps) {
    if (step.l_old > 0 && step.m > step.m_old) ++count;
  }
  return count;
}

lab::Measurement number_of(const char* id, lab::Provenance provenance, double value,
                           const char* unit, std::string detail) {
  lab::Measurement measurement;
  measurement.id = id;
  measurement.provenance = provenance;
  measurement.value = value;
  measurement.unit = unit;
  measurement.detail = std::move(detail);
  return measurement;
}

std::vector<lab::Measurement> measurements(const Outcome& outcome) {
  using enum lab::Provenance;
  const Params& p = outcome.params;
  const Trace& trace = outcome.trace;
  const TraceStep& last = trace.steps.back();
  const double scores = 4.0 * p.queries * p.keys;
  const double values = 4.0 * p.keys * p.head_dim;
  return {
      number_of("rescales", traced, rescales(trace), "",
                "tiles that raised the maximum after something had been summed"),
      number_of("final_m", traced, number(last.m), "", "running maximum after the last tile"),
      number_of("final_l", traced, number(last.l), "", "denominator after the last tile"),
      number_of("output", traced, number(last.output), "", "O / l after the last tile"),
      number_of("exact_output", derived, trace.exact_output, "",
                "softmax in double: maximum of the whole row first, then the sums"),
      number_of("difference", derived, std::abs(number(last.output) - trace.exact_output), "",
                "|output - exact output|"),
      number_of("bytes_read", derived, scores + values, "bytes",
                "4 bytes x (queries x keys scores + keys x head_dim values), each once"),
      number_of("bytes_written", derived, 4.0 * p.queries * p.head_dim, "bytes",
                "4 bytes x queries x head_dim"),
      number_of("weight_bytes_avoided", derived, 2 * scores, "bytes",
                "4 bytes x queries x keys, written and read back, if the weights were stored"),
  };
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
        "An accumulator left the range of {}: l = {}, O = {}; the exact output is {:.3f}.",
        to_text(outcome.params.accumulator), last.l, last.o, trace.exact_output);
  }
  if (trace.skip_rescale) return skipped_summary(trace);
  const int count = rescales(trace);
  return fmt::format(
      "One pass over {} {} in {} {} and {} {} of l and O gave the output {:.3f}; it differs from "
      "softmax in double ({:.3f}) by {:.1e}.",
      trace.keys, trace.keys == 1 ? "key" : "keys", trace.tiles(),
      trace.tiles() == 1 ? "tile" : "tiles", count, count == 1 ? "rescale" : "rescales",
      last.output, trace.exact_output, std::abs(number(last.output) - trace.exact_output));
}

}  // namespace

lab::Report make_report(const Outcome& outcome, const simt::DeviceInfo& device) {
  lab::Report report;
  report.lesson = kLessonId;
  report.params = knob_table().settings(outcome.params);
  report.summary = summary(outcome);
  report.device = device;
  report.tables = {tiles_table(outcome), naive_table(outcome), ladder_table()};
  report.measurements = measurements(outcome);
  report.checks = {check_output(outcome), check_states(outcome), check_weights(outcome),
                   check_chain(outcome), check_traced_equals_timed(outcome)};
  report.trace = to_json(outcome.trace);
  return report;
}

}  // namespace tilestep::online_softmax

#include "kernels/attention/online_softmax/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/ladder.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/source.hpp"

namespace tilestep::online_softmax {
namespace {

using lab::real, lab::whole;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// ---- the trace as JSON --------------------------------------------------------------------------

/// A tile starts from the previous tile's final state. JSON has no starts: `recorded_chain` is their check.
void set_starts(Trace& trace) {
  StepRecord before{.m = -kInfinity};
  for (StepRecord& step : trace.steps) {
    step.m_old = before.m;
    step.l_old = before.l;
    step.o_old = before.o;
    before = step;
  }
}

std::int64_t tiles_of(const Trace& trace) {
  return (trace.keys - 1) / trace.tile_width + 1;
}

lab::Fields<StepRecord> step_fields() {
  return lab::Fields<StepRecord>()
      .real(TILESTEP_MEMBERS(StepRecord, tile_max, m))
      .from_here({0, 1})
      .real("rescale", &StepRecord::rescale)
      .from_here({0, 2})
      .real("tile_sum", &StepRecord::tile_sum)
      .from_here({0, 3})
      .real(TILESTEP_MEMBERS(StepRecord, l, o, output));
}

lab::When at_end(const Trace& trace) {
  return {static_cast<int>(tiles_of(trace)), 3};
}
lab::When when_wrong(const Trace& trace) {
  if (trace.first_wrong_tile < 0) return at_end(trace);
  return {trace.first_wrong_tile + 1, 3};
}
/// A later tile, or none.
nlohmann::json other_wrong_tile(const Trace& trace, const lab::Change& by) {
  const int tile = by.now.step + static_cast<int>(by.random() % 7);
  return tile < tiles_of(trace) ? tile : -1;
}

lab::Fields<Trace> trace_fields() {
  return lab::Fields<Trace>()
      .whole(TILESTEP_MEMBERS(Trace, keys, tile_width), 1, lab::kMostCount)
      .whole("query", &Trace::query, 0, lab::kMostCount)
      .custom(
          "component", [](const Trace&) { return 0; },
          [](const lab::Place& at, Trace&) { at.whole<int>(0, 0); })
      .flag("skip_rescale", &Trace::skip_rescale)
      .constant("source", kSourcePath)
      .lines("lines", &Trace::lines, [](const Trace&) { return phase_lines(); })
      .reals(TILESTEP_MEMBERS(Trace, scores, values), &Trace::keys)
      .reals("weights", &Trace::weights, &Trace::keys)
      .known_each([](const Trace& trace, std::size_t key) -> lab::When {
        return {trace.tile_of(static_cast<int>(key)) + 1, 2};
      })
      .columns("steps", &Trace::steps, step_fields(), tiles_of)
      .known_each(lab::kOneAStep)
      .derive(set_starts)
      .group("exact", lab::Fields<Trace>()
                          .reals("outputs", &Trace::exact_outputs, tiles_of)
                          .known_each(lab::kOneAStep)
                          .real("max", &Trace::exact_max)
                          .known(at_end)
                          .real("l", &Trace::exact_l)
                          .known(at_end)
                          .real("output", &Trace::exact_output)
                          .known(at_end))
      .group("naive", lab::Fields<Trace>()
                          .real("numerator", &Trace::naive_numerator)
                          .known(at_end)
                          .real("denominator", &Trace::naive_denominator)
                          .known(at_end))
      .whole("first_wrong_tile", &Trace::first_wrong_tile, -1,
             [](const Trace& trace) { return trace.tiles() - 1; })
      .known(when_wrong, other_wrong_tile);
}

// ---- comparing ----------------------------------------------------------------------------------

std::vector<lab::Check> checks_of(const Outcome& outcome) {
  const Params& params = outcome.params;
  const Trace& trace = outcome.trace;
  const auto head_dim = static_cast<std::size_t>(params.head_dim);
  lab::Closest outputs, states, weights;
  for (std::size_t i = 0; i < outcome.output.size(); ++i) {
    outputs.add(outcome.output[i], outcome.reference.value[i], outcome.reference.bound[i],
                [&] { return fmt::format("query {}, component {}", i / head_dim, i % head_dim); });
  }
  for (std::size_t t = 0; t < trace.steps.size(); ++t) {
    const StepRecord& step = trace.steps[t];
    const PrefixState& expected = outcome.expected[t];
    const auto compare = [&](const char* name, float actual, double right, double bound) {
      states.add(actual, right, bound, [&] { return fmt::format("{} after tile {}", name, t); });
    };
    compare("m", step.m, expected.m, 0);
    compare("l", step.l, expected.l, expected.l_bound);
    compare("O", step.o, expected.o, expected.o_bound);
    compare("output", step.output, expected.output, expected.output_bound);
  }
  for (int key = 0; key < trace.keys; ++key) {
    const auto j = static_cast<std::size_t>(key);
    const double m = outcome.expected[trace.tile_of(key)].m;
    const numeric::Bounded weight = reference_weight(trace.scores[j], m);
    weights.add(trace.weights[j], weight.value, weight.bound,
                [&] { return fmt::format("the weight of key {}", key); });
  }
  const auto judged = [](const char* id, const lab::Closest& closest, const std::string& source) {
    return closest.check(id, fmt::format("{} The numbers are for {}, closest to its tolerance.",
                                         source, closest.any() ? closest.where() : "nothing"));
  };
  const std::string of_sums = fmt::format(
      "Tolerance: the rounding errors of all operations along the row, summed in double: at most "
      "u = {:.3g} ({}) of the sum, and never more than the term, for each of {} additions to l and "
      "O and for each product; (|s - m| + 4) times 2^-24 for each exp, from its rounded argument "
      "and expf's 2 ulp.",
      unit_of(params.accumulator), name_of(params.accumulator), params.keys);

  Trace chain = trace;
  set_starts(chain);
  std::int64_t broken = 0;
  for (std::size_t t = 0; t < trace.steps.size(); ++t) {
    broken += std::memcmp(&trace.steps[t], &chain.steps[t], sizeof(StepRecord)) != 0;
  }
  // The recording kernel and the timed one share their source.
  const std::size_t row = static_cast<std::size_t>(params.query) * head_dim;
  std::int64_t differ = !lab::same_bits(trace.steps.back().output, outcome.recorded[row]);
  for (std::size_t i = row; i < row + head_dim; ++i) {
    differ += !lab::same_bits(outcome.output[i], outcome.recorded[i]);
  }
  return {judged("final_output", outputs, of_sums), judged("tile_states", states, of_sums),
          judged("weights", weights,
                 "Tolerance: the weight times (s - m + 4) times 2^-24, from the rounded argument "
                 "and expf's 2 ulp."),
          lab::none_wrong("recorded_chain", broken,
                          "Each tile starts from exactly the previous tile's bits."),
          lab::none_wrong("traced_equals_timed", differ,
                          "The recording kernel's output is bit-identical to the timed kernel's, "
                          "and the last step to the output.")};
}

// ---- tables -------------------------------------------------------------------------------------

lab::Table tiles_table(const Trace& trace) {
  lab::Table table{"tiles",
                   fmt::format("Tile by tile: query {}, component 0", trace.query),
                   {whole("tile"), real("tile_max", "tile max", "", 1), real("m", "", "", 1),
                    real("rescale", "", "", 3), real("l", "ℓ", "", 2), real("output", "", "", 3)}};
  if (trace.skip_rescale) table.columns.push_back(real("exact", "", "", 3));
  for (std::size_t t = 0; t < trace.steps.size(); ++t) {
    const StepRecord& step = trace.steps[t];
    table.rows.push_back({t, step.tile_max, step.m, step.rescale, step.l, step.output});
    if (trace.skip_rescale) table.rows.back().emplace_back(trace.exact_outputs[t]);
  }
  return table;
}

/// Six significant digits: these sums range from 1e-44 to inf, too wide for fixed decimals.
double six_digits(double value) {
  return std::isfinite(value) ? lab::number_of<double>(fmt::format("{:.6g}", value)).value()
                              : value;
}

lab::Table naive_table(const Trace& trace) {
  const StepRecord& last = trace.steps.back();
  lab::Table table{"naive",
                   "Softmax with and without the maximum",
                   {"method", "subtracted", "numerator", "denominator", "result"}};
  const auto add = [&](const char* method, double subtracted, double numerator, double denominator,
                       double result) {
    table.add({method, six_digits(subtracted), six_digits(numerator), six_digits(denominator),
               six_digits(result)});
  };
  const double numerator = trace.naive_numerator, denominator = trace.naive_denominator;
  add("naive", 0, numerator, denominator, numerator / denominator);
  if (denominator == 0) table.rows.back().back() = "undefined: 0 / 0";
  add("online", last.m, last.o, last.l, last.output);
  add("exact", trace.exact_max, trace.exact_output * trace.exact_l, trace.exact_l,
      trace.exact_output);
  return table;
}

// ---- measurements and summary -------------------------------------------------------------------

/// Tiles that raised the maximum after a sum had begun: each needs a rescale.
std::int64_t rescales(const Trace& trace) {
  return std::count_if(trace.steps.begin(), trace.steps.end(), [](const StepRecord& step) {
    return step.l_old > 0 && step.m > step.m_old;
  });
}

std::vector<lab::Measurement> measurements(const Params& p, const Trace& trace) {
  using lab::derived, lab::traced;
  const StepRecord& last = trace.steps.back();
  const double output = last.output, scores = 4.0 * p.queries * p.keys;
  const char* needed = "tiles that raised the maximum after the first sum";
  std::vector<lab::Measurement> all;
  if (trace.skip_rescale) {
    all = {traced("rescales", "", 0, "", "none: the knob skips them"),
           traced("rescales_skipped", "", rescales(trace), "", needed)};
  } else {
    all = {traced("rescales", "", rescales(trace), "", needed)};
  }
  lab::append(
      all,
      {traced("final_m", "", last.m, "", "running maximum after the last tile"),
       traced("final_l", "", last.l, "", "denominator after the last tile"),
       traced("output", "", output, "", "O / ℓ after the last tile"),
       derived("exact_output", "", trace.exact_output, "",
               "softmax in double: maximum of the whole row first, then the sums"),
       derived("difference", "", std::abs(output - trace.exact_output), "",
               "|output - exact output|"),
       derived("bytes_read", "", scores + 4.0 * p.keys * p.head_dim, "bytes",
               "4 bytes x (queries x keys scores + keys x head_dim values), each once"),
       derived("bytes_written", "", 4.0 * p.queries * p.head_dim, "bytes",
               "4 bytes x queries x head_dim"),
       derived("weight_bytes_avoided", "", 2 * scores, "bytes",
               "4 bytes x queries x keys, written and read back, if the weights were stored")});
  return all;
}

std::string summary(const Params& params, const Trace& trace) {
  const StepRecord& last = trace.steps.back();
  if (last.m == -kInfinity) {
    return fmt::format("All {} keys are masked: l stays 0, and the output is 0 by definition.",
                       trace.keys);
  }
  if (!std::isfinite(last.l) || !std::isfinite(last.o)) {
    return fmt::format(
        "An accumulator left the range of {}: ℓ = {}, O = {}; the exact output is {:.3f}.",
        name_of(params.accumulator), last.l, last.o, trace.exact_output);
  }
  if (trace.skip_rescale && trace.first_wrong_tile < 0) {
    return fmt::format(
        "The rescale is skipped, but no tile needed it: the output {:.3f} is right all the same.",
        last.output);
  }
  if (trace.skip_rescale) {
    const auto wrong = static_cast<std::size_t>(trace.first_wrong_tile);
    return fmt::format(
        "With the rescale skipped the output first goes wrong at tile {}: {:.3f} instead of "
        "{:.3f}; after the last tile it is {:.3f} instead of {:.3f}.",
        wrong, trace.steps[wrong].output, trace.exact_outputs[wrong], last.output,
        trace.exact_output);
  }
  return fmt::format(
      "One pass over {} in {} with {} of ℓ and O gave {:.3f}, which differs from softmax in "
      "double ({:.3f}) by {:.1e}.",
      lab::plural(trace.keys, "key"), lab::plural(trace.tiles(), "tile"),
      lab::plural(rescales(trace), "rescale"), last.output, trace.exact_output,
      std::abs(static_cast<double>(last.output) - trace.exact_output));
}

}  // namespace

std::array<int, kPhases> phase_lines() {
  return lab::source_marks(kSourcePath).lines({"maximum", "rescale", "weights", "sums"});
}

TILESTEP_TRACE_JSON("online-softmax trace", trace_fields())

std::vector<lab::Table> tables_of(const Trace& trace) {
  return {tiles_table(trace), naive_table(trace)};
}

lab::Report report_of(const Outcome& outcome) {
  lab::Report report;
  report.summary = summary(outcome.params, outcome.trace);
  report.tables = tables_of(outcome.trace);
  report.add(ladder_table());
  report.measurements = measurements(outcome.params, outcome.trace);
  report.checks = checks_of(outcome);
  report.trace = to_json(outcome.trace);
  return report;
}

}  // namespace tilestep::online_softmax

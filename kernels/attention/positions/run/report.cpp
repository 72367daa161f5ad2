// The report of a run: summary, checks, measurements, and the trace as tables.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/attention/positions/run/run.hpp"
#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/timing.hpp"

namespace tilestep::positions {
namespace {

using lab::real, lab::whole;

/// Tokens of a whole turn; infinite: it does not turn.
double wavelength(double turns) {
  return turns > 0 ? 1 / turns : INFINITY;
}

/// The key at a distance from the last token's query.
int key_at(const Trace& trace, int distance) {
  return trace.last() - distance;
}

lab::Table frequency_table(const Trace& trace) {
  lab::Table table{"frequencies",
                   "Pairs of a head, the fastest first",
                   {whole("frequency"), "numbers", real("trained", "wavelength", "tokens", 1),
                    real("used", "as used", "tokens", 1), real("turns", "turns in training", "", 2),
                    real("next", "term at 1", "", 3), real("far", "term at 31", "", 3)}};
  Turning rope = trace.turning();
  rope.method = Method::rope;
  const std::vector<double> trained = turns_of(rope), used = turns_of(trace.turning());
  for (int pair = 0; pair < trace.pairs_of_head(); ++pair) {
    const auto at = static_cast<std::size_t>(pair);
    table.add({pair,
               fmt::format("{}, {}", number_of(trace.pairs, trace.dim, pair, 0),
                           number_of(trace.pairs, trace.dim, pair, 1)),
               wavelength(trained[at]), wavelength(used[at]), trace.trained_length * trained[at],
               trace.term(key_at(trace, 1), pair), trace.term(key_at(trace, kTokens - 1), pair)});
  }
  return table;
}

lab::Table token_table(const Trace& trace) {
  lab::Table table{"tokens",
                   "The last token's scores, nearest key first",
                   {whole("distance"), whole("position"), real("score", "", "", 3)}};
  for (int distance = 0; distance < kTokens; ++distance) {
    const auto key = static_cast<std::size_t>(key_at(trace, distance));
    table.add({distance, trace.positions[key], trace.scores[key]});
  }
  return table;
}

lab::Table far_table(const Trace& trace) {
  lab::Table table{
      "far",
      fmt::format("Scores of keys farther away, and the part of frequencies from {} on",
                  trace.first_slow()),
      {whole("distance"), real("score", "", "", 3), real("slow", "slow part", "", 3),
       real("untouched", "slow part as trained", "", 3)}};
  for (int sample = 0; sample < kSamples; ++sample) {
    const auto at = static_cast<std::size_t>(sample);
    table.add({trace.distance(sample), trace.far.score[at], trace.far.slow[at],
               trace.untouched.slow[at]});
  }
  return table;
}

lab::Table launch_table(const Trace& trace) {
  lab::Table table{"launches",
                   "Bytes per token of a query, a key and a value, by the kernels' own accesses",
                   {"way", "launch", real("read", "", "B", 0), real("written", "", "B", 0)}};
  for (const Moved& one : trace.apart) table.add({"apart", one.stage, one.read, one.written});
  for (const Moved& one : trace.together) table.add({"together", one.stage, one.read, one.written});
  return table;
}

double bytes_of(const std::vector<Moved>& launches) {
  double bytes = 0;
  for (const Moved& one : launches) bytes += one.read + one.written;
  return bytes;
}

/// Without numbers that hang on the last bit: a GPU's summary is the emulation's.
std::string summary_of(const Run& run) {
  const Trace& trace = run.trace;
  if (trace.broken != Break::none)
    return fmt::format("{}: {}.", name_of(trace.broken),
                       trace.result.wrong > 0 ? "numbers are wrong" : trace.result.outcome);
  return fmt::format(
      "{}: {} equal tokens at positions {} to {}; one launch moves {:.0f} bytes per token, four "
      "move {:.0f}.",
      name_of(trace.method), kTokens, trace.positions.front(), trace.positions.back(),
      bytes_of(trace.together), bytes_of(trace.apart));
}

/// Scores do not depend on where the first token stands, but for the rounding of what was turned.
lab::Closest shifted(const Run& run) {
  lab::Closest closest;
  const Turning turning = run.params.turning();
  const auto head = [&](const Words& words, const Words& gain, int position) {
    return reference_head(words, gain, turning, run.params.pairs, position, false);
  };
  for (int key = 0; key < kTokens; ++key) {
    double bound = 0;
    for (const int first : {0, run.params.shift}) {
      bound += reference_score(head(run.inputs.q, run.inputs.q_gain, first + kTokens - 1),
                               head(run.inputs.k, run.inputs.k_gain, first + key), 0)
                   .bound;
    }
    const auto at = static_cast<std::size_t>(key);
    closest.add(run.together.scores[at], run.at_start.scores[at], bound,
                [&] { return fmt::format("token {}", key); });
  }
  return closest;
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  return {frequency_table(trace), token_table(trace), far_table(trace), launch_table(trace)};
}

lab::Report report_of(const Run& run) {
  lab::Report report;
  report.summary = summary_of(run);
  report.tables = tables_of(run.trace);
  for (const bool apart : {false, true}) {
    const Compared found = compared(run, apart ? run.apart : run.together, run.positions, apart);
    const std::string way = apart ? "_apart" : "";
    const char* rounding = apart ? "against double: BF16 after the norm and after the rotation"
                                 : "against double: half a spacing of BF16, and FP32 before it";
    report.add(found.queries.check("queries" + way, rounding));
    report.add(found.keys.check("keys" + way, rounding));
    report.add(lab::none_wrong("values" + way, found.values_wrong,
                               "values are stored as they came, bit for bit"));
    report.add(found.scores.check("scores" + way, "of the rounding of queries and keys"));
  }
  report.add(shifted(run).check(
      "shift", "the same scores with the first token at position 0, but for rounding"));
  for (const bool apart : {true, false}) {
    report.add(lab::traced("token_bytes", apart ? "apart" : "together",
                           bytes_of(apart ? run.trace.apart : run.trace.together), "B",
                           "read and written per token, without gains, rates and positions"));
  }
  report.trace = to_json(run.trace);
  return report;
}

}  // namespace tilestep::positions

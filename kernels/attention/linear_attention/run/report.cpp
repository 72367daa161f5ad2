// The report of a run: summary, checks, measurements, and the trace as tables.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/attention/linear_attention/run/run.hpp"
#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/timing.hpp"

namespace tilestep::linear_attention {
namespace {

using lab::real, lab::whole;

/// A list's entry.
float at(const std::vector<float>& list, int i) {
  return list[static_cast<std::size_t>(i)];
}
double length_of(const std::vector<float>& rows, int row) {
  double squares = 0;
  for (int i = 0; i < kShown; ++i) {
    const auto one = static_cast<double>(at(rows, row * kShown + i));
    squares += one * one;
  }
  return std::sqrt(squares);
}

lab::Table weight_table(const Trace& trace) {
  lab::Table table{"weights",
                   "Weights of the last query, as shares of all",
                   {whole("token"), whole("key"), real("exact", "softmax", "", 4),
                    real("approximate", "φ(q)·φ(k)", "", 4)}};
  for (int t = 0; t < trace.tokens; ++t)
    table.add({t, trace.key_of(t), at(trace.exact, t), at(trace.approximate, t)});
  return table;
}

lab::Table answer_table(const Trace& trace) {
  lab::Table table{"answers",
                   "The last query's answer, by softmax and in both orders of multiplication",
                   {whole("number"), real("softmax", "", "", 3), real("weights", "(QK^T)V", "", 3),
                    real("state", "Q(K^TV)", "", 3)}};
  for (int i = 0; i < kShown; ++i)
    table.add({i, at(trace.by_softmax, i), at(trace.by_weights, i), at(trace.by_state, i)});
  return table;
}

lab::Table token_table(const Trace& trace) {
  lab::Table table{"tokens",
                   "What the state holds for each token's key",
                   {whole("token"), whole("key"), real("before", "of its value before", "", 3),
                    real("after", "after", "", 3), real("off", "off by", "", 3)}};
  for (int t = 0; t < trace.tokens; ++t) {
    const int key = trace.key_of(t);
    table.add({t, key, trace.strength_before(t), trace.strength(t, key), trace.off(t, key)});
  }
  return table;
}

lab::Table chunk_table(const Trace& trace) {
  lab::Table table{"chunks",
                   "Outputs: what the handed state says of them, and what the chunk adds",
                   {whole("token"), whole("chunk"), real("inter", "length from the state", "", 3),
                    real("out", "length of all", "", 3), whole("wrong", "wrong numbers")}};
  for (int t = 0; t < trace.tokens; ++t)
    table.add({t, t / trace.chunk, length_of(trace.inter, t), length_of(trace.chunk_out, t),
               trace.wrong[static_cast<std::size_t>(t)]});
  return table;
}

lab::Table length_table(const Trace& trace) {
  lab::Table table{"lengths",
                   "One head, by formula: what it keeps, and its FLOPs per token",
                   {whole("length", "length", "tokens"), real("cache", "K/V cache", "B", 0),
                    real("state", "state", "B", 0), real("softmax", "softmax", "FLOP", 0),
                    real("linear", "state", "FLOP", 0)}};
  for (int length = 1; length <= 1 << 20; length *= 4)
    table.add({length, cache_bytes(trace.dim, length), state_bytes(trace.dim),
               softmax_flops(trace.dim, length), state_flops(trace.dim)});
  return table;
}

/// Without numbers that hang on the last bit: a GPU's summary is the emulation's.
std::string summary_of(const Trace& trace) {
  if (trace.broken != Break::none)
    return fmt::format("{}: {}.", name_of(trace.broken),
                       trace.result.wrong > 0 ? "numbers are wrong" : trace.result.outcome);
  return fmt::format(
      "Rule {}, features {}: {} tokens in a state of {} bytes; by chunks of {} the outputs are the "
      "same but for rounding.",
      name_of(trace.rule), name_of(trace.feature), trace.tokens, state_bytes(trace.dim),
      trace.chunk);
}

void add_feature_checks(const Run& run, lab::Report& report) {
  for (const bool query : {true, false}) {
    const Words& from = query ? run.inputs.q : run.inputs.k;
    const numeric::AllBounded exact =
        reference_features(from, run.params.features(run.params.context), run.inputs.omega);
    report.add(compared(query ? run.mapped_q : run.mapped_k, exact, run.params.dim())
                   .check(query ? "mapped_q" : "mapped_k",
                          "φ against double: half a spacing of BF16, and FP32 before it"));
  }
}

void add_weight_checks(const Run& run, lab::Report& report) {
  const ReferenceWeights exact = reference_weights(run.inputs, run.mapped_q, run.mapped_k);
  lab::Closest weights;
  for (std::size_t t = 0; t < exact.exact.size(); ++t) {
    weights.add(run.trace.exact[t], exact.exact[t], 0x1p-16);
    weights.add(run.trace.approximate[t], exact.approximate[t], 0x1p-16);
  }
  report.add(weights.check("weights", "shares against double, in FP32"));
  const auto dim = static_cast<std::ptrdiff_t>(run.params.dim());
  const auto answer = [&](std::ptrdiff_t i) {
    const auto from = run.all_answers.begin() + i * dim;
    return std::vector<float>(from, from + dim);
  };
  report.add(compared(answer(0), exact.by_softmax).check("answer_softmax", "against double"));
  report.add(compared(answer(1), exact.by_features)
                 .check("answer_weights", "(QK^T)V against double: FP32 sums"));
  report.add(compared(answer(2), exact.by_features)
                 .check("answer_state", "Q(K^TV), the same number in another order: FP32 sums"));
}

void add_head_checks(const Run& run, lab::Report& report) {
  const Trace& trace = run.trace;
  const Head head = head_of(run);
  const ReferenceHead one = reference_head(head, trace.dim, trace.rule, Way::recurrent, true);
  report.add(compared(run.recurrent.o, one.o, trace.dim)
                 .check("recurrent", "against double: FP32 sums, then BF16"));
  report.add(compared(run.recurrent.state, one.state)
                 .check("recurrent_state", "against double: FP32 sums"));
  report.add(compared(trace.states, one.states)
                 .check("states", "after each token against double: FP32 sums"));
  const ReferenceHead many = reference_head(head, trace.dim, trace.rule, Way::chunked);
  for (std::size_t i = 0; i < run.by_chunks.size(); ++i) {
    const std::string name = fmt::format("chunks_of_{}", kChunks[i]);
    report.add(compared(run.by_chunks[i].o, many.o, trace.dim)
                   .check(name, "against double: BF16 between the products"));
    report.add(compared(run.by_chunks[i].state, many.state)
                   .check(name + "_state", "against double: BF16 between the products"));
  }
  const Results& timed = run.by_chunks[static_cast<std::size_t>(run.params.chunk_choice)];
  report.add(lab::none_wrong(
      "explained",
      lab::differing(run.shown.o, timed.o) + lab::differing(run.shown.state, timed.state),
      "the explained kernels leave the bits of the timed ones"));
}

}  // namespace

double cache_bytes(int dim, double length) {
  return 4.0 * dim * length;  // a key and a value, BF16
}
double state_bytes(int dim) {
  return 4.0 * dim * dim;  // FP32
}
double softmax_flops(int dim, double length) {
  return 4.0 * dim * length;  // a product with each key, and each value times its weight
}
double state_flops(int dim) {
  return 4.0 * dim * dim;  // k v^T added, and S^Tq
}

std::vector<lab::Table> tables_of(const Trace& trace) {
  return {weight_table(trace), answer_table(trace), token_table(trace), chunk_table(trace),
          length_table(trace)};
}

lab::Report report_of(const Run& run) {
  lab::Report report;
  report.summary = summary_of(run.trace);
  report.tables = tables_of(run.trace);
  add_feature_checks(run, report);
  add_weight_checks(run, report);
  add_head_checks(run, report);
  const Trace& trace = run.trace;
  report.add(lab::derived("state_bytes", "", state_bytes(trace.dim), "B",
                          "4 bytes · head² of a head, at any length"));
  report.add(lab::derived("cache_bytes", "", cache_bytes(trace.dim, trace.tokens), "B",
                          "4 bytes · head · tokens: keys and values in BF16"));
  report.trace = to_json(trace);
  return report;
}

}  // namespace tilestep::linear_attention

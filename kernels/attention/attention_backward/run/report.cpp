// What a run of a backward pass says: its summary, measurements, checks and tables.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/attention/attention_backward/run/explained.hpp"
#include "kernels/attention/attention_backward/run/run.hpp"
#include "kernels/attention/flash_attention/run/explained.hpp"
#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/timing.hpp"
#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::attention_backward {
namespace {

using lab::column, lab::real, lab::whole;

std::int64_t kept_by(const Trace& trace) {
  std::int64_t sum = 0;
  for (const LedgerRow& row : trace.ledger) sum += row.kept;
  return sum;
}

double scale_of(const Trace& trace) {
  return 1 / std::sqrt(static_cast<double>(trace.shape.head_dim));
}

/// The keys of a step.
struct Keys {
  std::size_t begin = 0, end = 0;
};
Keys keys_of(const Trace& trace, const Step& step) {
  const int first = step.k_tile * trace.plan.block_k;
  return {static_cast<std::size_t>(first),
          static_cast<std::size_t>(std::min(first + trace.plan.block_k, trace.shape.length))};
}

// ---- checks -----------------------------------------------------------------------------------------

constexpr const char* kGradientTolerance =
    "With nothing left out, against double on the same rounded inputs; tolerance: the running "
    "bound of the sums, of weights and what they were made from, of dS in its format.";

/// The blocks' additions to the chosen component of dQ must sum to its final value.
lab::Check check_parts(const Run& run) {
  const Trace& trace = run.trace;
  double sum = 0, magnitude = 0;
  for (const Step& step : trace.steps) {
    sum += static_cast<double>(step.dq);
    magnitude += std::abs(static_cast<double>(step.dq));
  }
  constexpr double unit = numeric::Bf16::kUnitRoundoff;
  const double scale = scale_of(trace);
  const double bound = (static_cast<double>(trace.steps.size()) + 4) * 0x1p-23 * magnitude * scale +
                       2 * unit * std::abs(sum) * scale + 0x1p-24;
  lab::Closest closest;
  closest.add(trace.row.dq[static_cast<std::size_t>(trace.chosen.component)], sum * scale, bound);
  return closest.check("recorded_parts",
                       "What blocks added to the chosen component of dQ, as recorded, scaled, "
                       "against dQ as it was written; tolerance: FP32 sums in any order.");
}

void add_checks(lab::Report& report, const Run& run) {
  const Outcome& sound = run.sound;
  const BackwardReference& exact = run.exact_gradients;
  const auto add = [&](const char* id, const std::vector<float>& got,
                       const numeric::AllBounded& want) {
    report.add(lab::compared(got, want.value, want.bound).check(id, kGradientTolerance));
  };
  add("output", sound.forward.o, run.exact.o);
  add("log_sum_exp", sound.forward.lse, run.exact.lse);
  add("d", sound.d, exact.d);
  add("dq", sound.dq, exact.dq);
  add("dk", sound.dk, exact.dk);
  add("dv", sound.dv, exact.dv);
  report.add(check_parts(run));
}

// ---- measurements and words -------------------------------------------------------------------------

void add_measurements(lab::Report& report, const Run& run) {
  const Trace& trace = run.trace;
  constexpr const char* name = "backward";
  const Task task = task_of(run.excerpt.params);
  add_tile_measurements(report, trace, name, "by the backward pass of all that ran",
                        "memory of all tensors of the backward pass");
  report.add(lab::derived("kept_bytes", name, kept_by(trace), "B",
                          "of it what the forward pass keeps for the backward pass"));
  report.add(lab::derived("needed_flops", name,
                          2 * flash_attention::needed_flops(task, run.excerpt.begins), "FLOP",
                          "8 · head_dim for each pair of a query and a key that it sees"));
  report.add(lab::derived("computed_flops", name,
                          flops_of(run.sound.plan, task, run.excerpt.begins), "FLOP",
                          "whole tiles, filled columns, five products of each"));
}

// ---- tables -----------------------------------------------------------------------------------------

lab::Table step_table(const Trace& trace) {
  lab::Table table{"steps",
                   fmt::format("Tile by tile: head {}, query {}, component {}", trace.chosen.head,
                               trace.chosen.query, trace.chosen.component),
                   {whole("step"), whole("k_tile", "tile of keys"), column("kind", "mask"),
                    whole("block"), real("p", "sum of P", "", 4), real("ds", "largest |dS|", "", 4),
                    real("part", "adds to dQ", "", 4), real("dq", "dQ so far", "", 4),
                    real("exact", "in double", "", 4)}};
  double sum = 0;
  int number = 0;
  for (const Step& step : trace.steps) {
    const Keys keys = keys_of(trace, step);
    double p = 0, ds = 0;
    for (std::size_t key = keys.begin; key < keys.end; ++key) {
      p += static_cast<double>(trace.row.p[key]);
      ds = std::max(ds, std::abs(static_cast<double>(trace.row.ds[key])));
    }
    const double part = static_cast<double>(step.dq) * scale_of(trace);
    sum += part;
    const double exact = trace.row.dq_after[static_cast<std::size_t>(number++)];
    table.add({number, step.k_tile, step.kind, trace.visit(trace.chosen.q_tile, step.k_tile).block,
               p, ds, part, sum, exact});
  }
  return table;
}

lab::Table visit_table(const Trace& trace) {
  lab::Table table{
      "visits",
      fmt::format("Tiles of scores of head {}, by tile of keys", trace.chosen.head),
      {whole("k_tile", "tile of keys"), whole("block"), whole("visited"), whole("full"),
       whole("partial"), whole("skipped", "all masked"), whole("added", "rows of dQ added to")}};
  for (int k = 0; k < trace.plan.k_tiles; ++k) {
    int kinds[3] = {};
    int seen = 0, added = 0, block = -1;
    for (int q = 0; q < trace.plan.q_tiles; ++q) {
      const TileVisit& visit = trace.visit(q, k);
      ++kinds[static_cast<int>(visit.kind)];
      seen += visit.order >= 0 ? 1 : 0;
      block = block < 0 ? visit.block : block;
      added += visit.o_writes;
    }
    table.add(
        {k, block < 0 ? lab::Cell() : lab::Cell(block), seen, kinds[2], kinds[1], kinds[0], added});
  }
  return table;
}

lab::Table answer_table(const Trace& trace) {
  lab::Table table{
      "answer",
      fmt::format("dQ of head {}, query {}, and dK and dV of key {}", trace.chosen.head,
                  trace.chosen.query, trace.chosen.query),
      {whole("component"), real("dq", "dQ", "", 5), real("exact_dq", "in double", "", 5),
       real("dk", "dK", "", 5), real("exact_dk", "in double", "", 5), real("dv", "dV", "", 5),
       real("exact_dv", "in double", "", 5)}};
  const BackwardRow& row = trace.row;
  for (std::size_t c = 0; c < row.dq.size(); ++c) {
    table.add({c, static_cast<double>(row.dq[c]), row.exact_dq[c], static_cast<double>(row.dk[c]),
               row.exact_dk[c], static_cast<double>(row.dv[c]), row.exact_dv[c]});
  }
  return table;
}

/// Recomputed against stored weights, by formula, for lengths up to the longest.
lab::Table passes_table(const Params& params) {
  lab::Table table{
      "passes",
      fmt::format("Recompute or store, backward alone: {} of {}, {}",
                  lab::plural(params.heads, "head"), name_of(params.head_dim),
                  name_of(params.mask)),
      {whole("length"), real("recompute_flops", "recompute: computes", "GFLOP", 2),
       real("store_flops", "store: computes", "GFLOP", 2),
       real("recompute_asked", "recompute: asks", "MB", 1),
       real("store_asked", "store: asks", "MB", 1),
       real("recompute_kept", "recompute: keeps", "MB", 1),
       real("store_kept", "store: keeps", "MB", 1), column("fits", "store in 141 GB")}};
  for (int length = 1024; length <= kMostLength; length *= 2) {
    Params p = params;
    p.seq = length;
    p.omits = Omission::none;
    const std::vector<int> begins = begins_of(document_lengths(length, p.seed));
    const TilePlan plan = plan_of(p);
    const Task task = task_of(p);
    double asked = 0, kept = 0;
    for (const Asked& one : ledger_of(plan, task, begins)) {
      asked += static_cast<double>(one.loaded + one.stored);
    }
    for (const auto bytes : memory_of(plan, task).kept) kept += static_cast<double>(bytes);
    const StoringPass store = storing_pass_of(plan, task);
    constexpr double kMemory = 141e9;  // an H200's
    table.add({length, flops_of(plan, task, begins) / 1e9, store.flops / 1e9, asked / 1e6,
               store.asked / 1e6, kept / 1e6, store.kept / 1e6,
               store.held <= kMemory ? "fits" : "does not fit"});
  }
  return table;
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  std::vector<lab::Table> tables{
      step_table(trace), ledger_table(trace, "the kernels of the backward pass", true),
      visit_table(trace), block_table(trace, Owns::key_tile), answer_table(trace)};
  if (trace.broken != Break::none) {
    tables.push_back(broken_table(trace, "dQ, dK, dV", "row"));
  }
  return tables;
}

lab::Report report_of(const Run& run) {
  lab::Report report;
  report.summary =
      summary_of(run.trace, "backward", "dQ, dK and dV",
                 fmt::format(", {} kept since the forward pass", bytes_text(kept_by(run.trace))));
  for (lab::Table& table : tables_of(run.trace)) report.add(std::move(table));
  report.add(passes_table(run.params));
  add_measurements(report, run);
  report.add(check_asked(run.trace));
  report.add(check_visits(run.trace, run.excerpt.begins, Hidden::skipped));
  add_checks(report, run);
  report.trace = to_json(run.trace);
  return report;
}

}  // namespace tilestep::attention_backward

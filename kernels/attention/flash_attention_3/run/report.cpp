// What a run says: summary, tables, measurements, checks.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "kernels/attention/flash_attention_3/run/ledger.hpp"
#include "kernels/attention/flash_attention_3/run/run.hpp"
#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/timing.hpp"

namespace tilestep::flash_attention_3 {
namespace {

using lab::column, lab::real, lab::whole;

constexpr const char* kTolerance =
    "With nothing left out, against double on the same rounded inputs; tolerance: the running "
    "bound of both products' sums, of exp and its argument, of each rescale, of weights and O in "
    "their format.";

/// A tile starts from the maximum that the tile before left.
lab::Check check_chain(const Trace& trace) {
  int wrong = 0;
  float before = -INFINITY;
  for (const Step& step : trace.steps) {
    wrong += lab::same_bits(step.m_before, before) ? 0 : 1;
    before = step.m_after;
  }
  return lab::none_wrong("recorded_chain", wrong,
                         "Steps of the chosen query that do not start from the maximum that the "
                         "step before left.");
}

std::string summary_of(const Trace& trace) {
  if (trace.broken != Break::none) {
    std::string text = fmt::format("{} with {}: {}", name_of(trace.runs), name_of(trace.broken),
                                   trace.result.outcome);
    if (trace.result.wrong > 0) {
      text += fmt::format(", {} of {} numbers of O", trace.result.wrong, trace.result.elements);
    }
    return text + ".";
  }
  std::string text = fmt::format(
      "{}: {} of {} of scores a head, {} asked of memory by the chosen block", name_of(trace.runs),
      visited(trace), lab::plural(static_cast<std::int64_t>(trace.visits.size()), "tile"),
      bytes_text(asked_by(trace)));
  if (!trace.plan.cut.empty()) text += "; " + trace.plan.cut;
  return text + ".";
}

// ---- tables -----------------------------------------------------------------------------------------

lab::Table step_table(const Trace& trace) {
  lab::Table table{
      "steps",
      fmt::format("Tile by tile: head {}, query {}", trace.chosen.head, trace.chosen.query),
      {whole("step"), whole("k_tile", "tile of keys"), column("kind", "mask"),
       real("tile_max", "tile max", "", 3), real("m", "", "", 3), real("rescale", "", "", 4),
       real("tile_sum", "tile sum", "", 3), real("l", "ℓ", "", 3)}};
  int number = 0;
  for (const Step& step : trace.steps) {
    // A block visits one tile even where it sees none.
    const lab::Cell kind =
        step.kind == TileKind::skipped ? lab::Cell("all masked") : lab::Cell(step.kind);
    table.add({++number, step.k_tile, kind, step.tile_max, step.m_after, step.rescale,
               step.tile_sum, step.l});
  }
  return table;
}

std::string lane_name(int lane) {
  return lane == 0 ? "producer" : lane < 0 ? "looks on" : fmt::format("warpgroup {}", lane);
}

/// What the lanes of flash-3's block were busy with; activities of a lane may run side by side.
lab::Table lane_table(const Trace& trace) {
  lab::Table table{
      "lanes",
      fmt::format("What the lanes of block {} were busy with", trace.chosen.block),
      {column("lane", "lane"), column("what", "what"), whole("spans"),
       whole("clock", "in all", trace.clock_unit), real("share", "of the block's time", "%", 1)}};
  std::map<std::pair<int, Activity>, std::pair<int, std::int64_t>> sums;
  for (const Span& span : spans_of(trace)) {
    auto& [count, clock] = sums[{span.lane, span.what}];
    ++count;
    clock += span.end - span.begin;
  }
  const std::int64_t all = std::max<std::int64_t>(trace.events.back().clock, 1);
  for (const auto& [key, sum] : sums) {
    table.add({lane_name(key.first), key.second, sum.first, sum.second,
               100 * static_cast<double>(sum.second) / static_cast<double>(all)});
  }
  return table;
}

lab::Table answer_table(const Trace& trace) {
  lab::Table table{"answer",
                   fmt::format("O of head {}, query {}", trace.chosen.head, trace.chosen.query),
                   {whole("component"), real("o", "O", "", 5), real("exact", "in double", "", 5),
                    real("error", "error", "", 6)}};
  for (std::size_t c = 0; c < trace.answer.o.size(); ++c) {
    const auto o = static_cast<double>(trace.answer.o[c]);
    table.add({c, o, trace.answer.exact[c], o - trace.answer.exact[c]});
  }
  return table;
}

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  std::vector<lab::Table> tables{
      step_table(trace), ledger_table(trace, fmt::format("block {}", trace.chosen.block)),
      block_table(trace, Owns::query_tile), lane_table(trace), answer_table(trace)};
  if (trace.broken != Break::none) tables.push_back(broken_table(trace, "O", "query"));
  return tables;
}

lab::Report report_of(const Run& run) {
  const Trace& trace = run.trace;
  const auto name = name_of(trace.runs);
  lab::Report report;
  report.summary = summary_of(trace);
  for (lab::Table& table : tables_of(trace)) report.add(std::move(table));
  report.add(lab::traced("asked_bytes", name, asked_by(trace), "B", "by the chosen block"));
  report.add(lab::derived("held_bytes", name, held_by(trace), "B",
                          "memory of all tensors, of the whole problem"));
  report.add(lab::traced("visited_tiles", name, visited(trace), "tiles",
                         fmt::format("of {} of the chosen head", trace.visits.size())));
  report.add(lab::derived("computed_flops", name,
                          flops_of(run.sound.plan, task_of(run.excerpt.params)), "FLOP",
                          "whole tiles"));
  report.add(
      lab::compared(run.sound.o, run.exact.o.value, run.exact.o.bound).check("output", kTolerance));
  report.add(lab::compared(run.sound.lse, run.exact.lse.value, run.exact.lse.bound)
                 .check("log_sum_exp", kTolerance));
  report.add(check_asked(trace));
  report.add(check_visits(trace, run.excerpt.begins, Hidden::perhaps));
  report.add(check_chain(trace));
  report.trace = to_json(trace);
  return report;
}

}  // namespace tilestep::flash_attention_3

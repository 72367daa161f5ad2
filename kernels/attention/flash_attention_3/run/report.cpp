// What a run says: summary, tables, measurements, checks.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "kernels/attention/flash_attention_3/run/run.hpp"
#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/timing.hpp"

namespace tilestep::flash_attention_3 {
namespace {

using lab::column, lab::real, lab::whole;

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

}  // namespace

std::vector<lab::Table> tables_of(const Trace& trace) {
  std::vector<lab::Table> tables{
      step_table(trace), ledger_table(trace, fmt::format("block {}", trace.chosen.block)),
      block_table(trace, Owns::query_tile), lane_table(trace), answer_table(trace, trace.answer)};
  if (trace.broken != Break::none) tables.push_back(broken_table(trace, "O", "query"));
  return tables;
}

lab::Report report_of(const Run& run) {
  const Trace& trace = run.trace;
  const auto name = name_of(trace.runs);
  lab::Report report;
  report.summary = summary_of(trace, name, "O", " by the chosen block");
  for (lab::Table& table : tables_of(trace)) report.add(std::move(table));
  add_tile_measurements(report, trace, name, "by the chosen block");
  report.add(lab::derived("computed_flops", name,
                          flops_of(run.sound.plan, task_of(run.excerpt.params)), "FLOP",
                          "whole tiles"));
  report.add(lab::compared(run.sound.o, run.exact.o.value, run.exact.o.bound)
                 .check("output", kForwardTolerance));
  report.add(lab::compared(run.sound.lse, run.exact.lse.value, run.exact.lse.bound)
                 .check("log_sum_exp", kForwardTolerance));
  report.add(check_asked(trace));
  report.add(check_visits(trace, run.excerpt.begins, Hidden::perhaps));
  report.add(check_chain(trace.steps));
  report.trace = to_json(trace);
  return report;
}

}  // namespace tilestep::flash_attention_3

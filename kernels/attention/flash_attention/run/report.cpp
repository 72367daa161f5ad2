// What a run says: summary, measurements, checks. Its tables are in tables.cpp.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/attention/flash_attention/run/explained.hpp"
#include "kernels/attention/flash_attention/run/run.hpp"
#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/timing.hpp"

namespace tilestep::flash_attention {
namespace {

// ---- checks -----------------------------------------------------------------------------------------

lab::Check check_output(const Run& run) {
  lab::Closest closest;
  const auto columns = static_cast<std::size_t>(run.sound.plan.head_dim);
  const auto length = static_cast<std::size_t>(run.excerpt.params.seq);
  for (std::size_t i = 0; i < run.sound.o.size(); ++i) {
    closest.add(run.sound.o[i], run.exact.o.value[i], run.exact.o.bound[i], [&] {
      return fmt::format("head {}, query {}, component {}", i / columns / length,
                         i / columns % length, i % columns);
    });
  }
  return closest.check("output", kForwardTolerance);
}

// ---- measurements -----------------------------------------------------------------------------------

void add_measurements(lab::Report& report, const Run& run) {
  const Trace& trace = run.trace;
  const auto name = name_of(trace.runs);
  const Task task = task_of(run.excerpt.params);
  const double needed = needed_flops(task, run.excerpt.begins);
  const double computed = tile_flops(run.sound.plan, task, run.excerpt.begins);
  add_tile_measurements(report, trace, name, "by all that ran");
  report.add(lab::derived("needed_flops", name, needed, "FLOP",
                          "4 · head_dim for each pair of a query and a key that it sees"));
  report.add(lab::derived("computed_flops", name, computed, "FLOP", "whole tiles, filled columns"));
  if (!trace.counts_rescaled()) return;
  std::int64_t rescaled = 0;
  for (const TileVisit& visit : trace.visits) rescaled += std::max(visit.rescaled, 0);
  report.add(lab::traced("rescaled_rows", name, rescaled, "rows",
                         "whose maximum rose at a visit, of the chosen head"));
}

// ---- words ------------------------------------------------------------------------------------------

std::string summary_of(const Run& run) {
  const Trace& trace = run.trace;
  const std::string runs(name_of(trace.runs));
  const bool plain = trace.instead.empty() || trace.broken != Break::none;
  return attention::summary_of(
      trace, plain ? runs : fmt::format("{} {}", name_of(trace.asked), trace.instead), "O");
}

}  // namespace

lab::Report report_of(const Run& run) {
  lab::Report report;
  report.summary = summary_of(run);
  for (lab::Table& table : tables_of(run.trace)) report.add(std::move(table));
  report.add(lengths_table(run.params));
  add_quantized(report, run);
  add_measurements(report, run);
  report.add(check_output(run));
  report.add(lab::compared(run.sound.lse, run.exact.lse.value, run.exact.lse.bound)
                 .check("log_sum_exp", kForwardTolerance));
  report.add(check_asked(run.trace));
  const bool naive = run.trace.runs == Variant::naive;
  report.add(
      check_visits(run.trace, run.excerpt.begins, naive ? Hidden::visited : Hidden::skipped));
  if (!naive) report.add(check_chain(run.trace.steps));
  report.trace = to_json(run.trace);
  return report;
}

}  // namespace tilestep::flash_attention

// What a run says: summary, measurements, checks. Its tables are in tables.cpp.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/attention/flash_attention/run/ledger.hpp"
#include "kernels/attention/flash_attention/run/run.hpp"
#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/plural.hpp"
#include "kernels/base/lab/timing.hpp"

namespace tilestep::flash_attention {
namespace {

// ---- checks -----------------------------------------------------------------------------------------

constexpr const char* kTolerance =
    "With nothing left out, against double on the same rounded inputs; tolerance: the running "
    "bound of both products' sums, of exp and its argument, of each rescale, of weights and O in "
    "their format.";

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
  return closest.check("output", kTolerance);
}

/// Tensors of which other bytes were asked for than the formula says.
lab::Check check_asked(const Run& run) {
  int wrong = 0;
  for (const LedgerRow& row : run.trace.ledger) {
    wrong += row.loaded != row.formula_loaded || row.stored != row.formula_stored ? 1 : 0;
  }
  return lab::none_wrong("asked", wrong,
                         "Tensors whose bytes, as the kernels asked for them, are not those of the "
                         "formula.");
}

/// Tiles that were visited although the mask hides them, or not although it does not.
lab::Check check_visits(const Run& run) {
  const Trace& trace = run.trace;
  const MaskRule rule = trace.rule();
  const bool all = trace.plan.runs == Variant::naive;
  int wrong = 0;
  for (int q = 0; q < trace.plan.q_tiles; ++q) {
    for (int k = 0; k < trace.plan.k_tiles; ++k) {
      const auto last = [&](int tile, int size) {
        return std::min((tile + 1) * size, trace.shape.length) - 1;
      };
      const int q0 = q * trace.plan.block_q;
      const int k0 = k * trace.plan.block_k;
      const TileKind kind = rule.kind(q0, last(q, trace.plan.block_q), k0,
                                      last(k, trace.plan.block_k), run.excerpt.begins);
      const TileVisit& visit = trace.visit(q, k);
      const bool due = all || kind != TileKind::skipped;
      // A block of flash-3 visits one tile even where it sees none.
      const bool spare = is_flash_3(trace.plan.runs) && kind == TileKind::skipped;
      wrong += visit.kind != kind || (!spare && due != (visit.order >= 0)) ? 1 : 0;
    }
  }
  return lab::none_wrong("visits", wrong,
                         "Tiles of scores that were not visited as the mask says, each once.");
}

/// A tile starts from the maximum that the tile before left.
lab::Check check_chain(const Run& run) {
  int wrong = 0;
  float before = -INFINITY;
  for (const Step& step : run.trace.steps) {
    wrong += lab::same_bits(step.m_before, before) ? 0 : 1;
    before = step.m_after;
  }
  return lab::none_wrong("recorded_chain", wrong,
                         "Steps of the chosen query that do not start from the maximum that the "
                         "step before left.");
}

// ---- measurements -----------------------------------------------------------------------------------

}  // namespace

std::int64_t asked_by(const Trace& trace) {
  std::int64_t sum = 0;
  for (const LedgerRow& row : trace.ledger) sum += row.loaded + row.stored;
  return sum;
}
std::int64_t held_by(const Trace& trace) {
  std::int64_t sum = 0;
  for (const LedgerRow& row : trace.ledger) sum += row.held;
  return sum;
}
int visited(const Trace& trace) {
  return static_cast<int>(std::count_if(trace.visits.begin(), trace.visits.end(),
                                        [](const TileVisit& visit) { return visit.order >= 0; }));
}

namespace {

void add_measurements(lab::Report& report, const Run& run) {
  const Trace& trace = run.trace;
  const auto name = name_of(trace.plan.runs);
  const Task task = task_of(run.excerpt.params);
  const double needed = needed_flops(task, run.excerpt.begins);
  const double computed = tile_flops(run.sound.plan, task, run.excerpt.begins);
  const char* whose = is_flash_3(trace.plan.runs) ? "by the chosen block" : "by all that ran";
  report.add(lab::traced("asked_bytes", name, asked_by(trace), "B", whose));
  report.add(lab::derived("held_bytes", name, held_by(trace), "B",
                          "memory of all tensors, of the whole problem"));
  report.add(lab::traced("visited_tiles", name, visited(trace), "tiles",
                         fmt::format("of {} of the chosen head", trace.visits.size())));
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

}  // namespace

std::string bytes_text(std::int64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (number < 1e7) return fmt::format("{:.1f} KB", number / 1e3);
  return number < 1e10 ? fmt::format("{:.1f} MB", number / 1e6)
                       : fmt::format("{:.1f} GB", number / 1e9);
}

namespace {

std::string broken_sentence(const Trace& trace) {
  const BrokenResult& result = trace.result;
  std::string text = fmt::format(
      "{} with {}: {}", trace.is_backward() ? name_of(trace.pass) : name_of(trace.plan.runs),
      name_of(trace.broken), result.outcome);
  if (result.wrong > 0) {
    text += fmt::format(", {} of {} numbers of {}", result.wrong, result.elements,
                        trace.is_backward() ? "dQ, dK and dV" : "O");
  }
  if (result.more_bytes > 0) text += fmt::format(", {} more", bytes_text(result.more_bytes));
  return text + ".";
}

std::string summary_of(const Run& run) {
  const Trace& trace = run.trace;
  if (trace.is_backward() && trace.broken == Break::none) return backward_summary(trace);
  if (trace.broken != Break::none) return broken_sentence(trace);
  std::string text = trace.plan.instead.empty()
                         ? std::string(name_of(trace.plan.runs))
                         : fmt::format("{} {}", name_of(trace.plan.asked), trace.plan.instead);
  text += fmt::format(": {} of {} of scores a head, {} asked of memory{}", visited(trace),
                      lab::plural(static_cast<std::int64_t>(trace.visits.size()), "tile"),
                      bytes_text(asked_by(trace)),
                      is_flash_3(trace.plan.runs) ? " by the chosen block" : "");
  if (!trace.plan.cut.empty()) text += "; " + trace.plan.cut;
  return text + ".";
}

}  // namespace

lab::Report report_of(const Run& run) {
  const bool backward = run.trace.is_backward();
  lab::Report report;
  report.summary = summary_of(run);
  for (lab::Table& table : tables_of(run.trace)) report.add(std::move(table));
  if (backward) report.add(passes_table(run.params));
  report.add(lengths_table(run.params));
  add_quantized(report, run);
  backward ? add_backward_measurements(report, run) : add_measurements(report, run);
  report.add(check_output(run));
  report.add(lab::compared(run.sound.lse, run.exact.lse.value, run.exact.lse.bound)
                 .check("log_sum_exp", kTolerance));
  report.add(check_asked(run));
  report.add(check_visits(run));
  if (backward) {
    add_backward_checks(report, run);
  } else if (run.trace.plan.runs != Variant::naive) {
    report.add(check_chain(run));
  }
  report.trace = to_json(run.trace);
  return report;
}

}  // namespace tilestep::flash_attention

// What stands beside the lanes: what decides how many warps there are, who votes for which arm, what Little's law asks
// for and what the bench measured, and what the hardware counted.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/base/lab/recording.hpp"
#include "scenes/machine/latency_hiding/scene.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using latency_hiding::Counted, latency_hiding::kLanes, latency_hiding::kLimits,
    latency_hiding::kMostWarps, latency_hiding::Kernel, latency_hiding::Limit,
    latency_hiding::Occupancy;
using words::counted, words::significant;

namespace {

constexpr int kMostReasons = 2;
constexpr float kScaleLeft = 3;  ///< margin for numbers along a scale, in heights of a line

const lab::Report* bench() {
  const lab::Recording* recording = lab::recording("latency-hiding");
  return recording == nullptr ? nullptr : &recording->bench;
}

std::optional<double> measured_in(const char* id, const char* variant) {
  const lab::Report* of = bench();
  const lab::Measurement* found = of == nullptr ? nullptr : of->measurement(id, variant);
  return found == nullptr ? std::nullopt : std::optional(found->value);
}

/// "long scoreboard" of smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio.
std::string reason_of(const std::string& metric) {
  constexpr std::string_view kBefore = "_stalled_", kAfter = "_per_issue_active";
  const std::size_t from = metric.find(kBefore), to = metric.find(kAfter);
  if (from == std::string::npos || to == std::string::npos) return {};
  std::string reason = metric.substr(from + kBefore.size(), to - from - kBefore.size());
  std::replace(reason.begin(), reason.end(), '_', ' ');
  return reason;
}

/// How the bench's rows of a kernel are read.
struct BenchTable {
  const char *table, *x, *y, *x_title, *y_title;
  bool x_log, y_log;
};
BenchTable table_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::copy:
    case Kernel::bulk_copy:
      return {"bytes_in_flight", "in_flight", "bandwidth", "KiB in flight", "GB/s", true, false};
    case Kernel::chase:
      return {"memory_ladder", "footprint", "cycles", "KiB", "cycles a hop", true, true};
    case Kernel::fma:
      return {"flops", "chains", "tflops", "warps × ilp", "TFLOP/s", true, false};
    case Kernel::spill:
      return {"registers", "max_registers", "tflops", "registers", "TFLOP/s", false, false};
    case Kernel::diverge:
      return {"divergence", "ways", "slowdown", "ways", "times as long", true, true};
    case Kernel::tail:
      break;
  }
  return {"tail", "blocks", "efficiency", "blocks", "%", false, false};
}

}  // namespace

/// Between two points along a straight line, over the logarithm of x where the axis is one.
std::optional<double> BenchCurve::at(double place) const {
  const auto after = std::lower_bound(x.begin(), x.end(), place);
  if (after == x.end()) return std::nullopt;
  const auto i = static_cast<std::size_t>(after - x.begin());
  if (*after == place) return y[i];
  if (i == 0) return std::nullopt;
  const auto along = [&](double value) { return x_log ? std::log(value) : value; };
  const double t = (along(place) - along(x[i - 1])) / (along(x[i]) - along(x[i - 1]));
  return y[i - 1] + t * (y[i] - y[i - 1]);
}

std::optional<double> LatencyHidingScene::idle_latency() const {
  const lab::Report* of = bench();
  return of == nullptr ? std::nullopt : number_with(*of, "latencies", {{"level", "HBM"}}, "ns");
}

std::optional<double> LatencyHidingScene::copy_bandwidth() const {
  return measured_in("copy_bandwidth", "device");
}

/// The recorded rows that are this kernel's, by x.
std::optional<BenchCurve> LatencyHidingScene::bench_curve() const {
  const BenchTable how = table_of(trace_.kernel);
  const lab::Table* table = bench() == nullptr ? nullptr : bench()->table(how.table);
  if (table == nullptr) return std::nullopt;
  BenchCurve curve{
      .x_title = how.x_title, .y_title = how.y_title, .x_log = how.x_log, .y_log = how.y_log};
  const std::string kind = is(Kernel::bulk_copy) ? "bulk" : std::to_string(trace_.bytes_per_load);
  std::vector<std::pair<double, double>> points;
  for (std::size_t row = 0; row < table->rows.size(); ++row) {
    if (copies() && text_in(*table, row, "kind") != kind) continue;
    const auto ilp = number_in(*table, row, "ilp"), warps = number_in(*table, row, "warps_per_sm");
    if (is(Kernel::fma) && ilp != static_cast<double>(trace_.ilp)) continue;
    const auto x = is(Kernel::fma) && ilp && warps ? std::optional(*ilp * *warps)
                                                   : number_in(*table, row, how.x);
    const auto y = number_in(*table, row, how.y);
    if (x && y && *x > 0 && *y > 0) points.emplace_back(*x, *y);
  }
  if (points.empty()) return std::nullopt;
  std::sort(points.begin(), points.end());
  for (const auto& [x, y] : points) {
    // Several ways to the same bytes: their best.
    if (!curve.x.empty() && curve.x.back() == x) {
      curve.y.back() = std::max(curve.y.back(), y);
      continue;
    }
    curve.x.push_back(x);
    curve.y.push_back(y);
  }
  switch (trace_.kernel) {
    case Kernel::copy:
    case Kernel::bulk_copy:
      curve.here = static_cast<double>(trace_.asked_bytes()) / 1024;
      break;
    case Kernel::fma:
      curve.here = trace_.warps_per_sm * trace_.ilp;
      break;
    case Kernel::spill:
      curve.here = trace_.max_registers;
      break;
    case Kernel::diverge:
      curve.here = trace_.divergence;
      break;
    case Kernel::tail:
      curve.here = trace_.blocks;
      break;
    case Kernel::chase:
      break;
  }
  return curve;
}

// ---- where things stand -----------------------------------------------------------------------------------

void LatencyHidingScene::add_side_axes(Extent& extent) const {
  extent.axes.push_back({.name = "limit",
                         .kind = Axis::band,
                         .count = static_cast<int>(kLimits),
                         .ticks = true,
                         .names = {"threads", "regs", "shared", "blocks"},
                         .least_slot = 0});
  extent.axes.push_back({.name = "limit_warps", .high = kMostWarps, .ticks = true});
  extent.axes.push_back(
      {.name = "lane", .kind = Axis::band, .count = kLanes, .group = 8, .least_slot = 0});
  const int arms = std::max(1, static_cast<int>(trace_.arms.size()));
  extent.axes.push_back({.name = "arm", .kind = Axis::band, .count = arms, .least_slot = 0});
  const auto curve = bench_curve();
  Axis x{.name = "bench_x", .low = 1, .high = 10, .ticks = true}, y{.name = "bench_y", .low = 0.1};
  y.ticks = true;
  if (curve) {
    const auto scale = [](Axis& axis, const std::vector<double>& values, double also, bool log) {
      const auto [least, most] = std::minmax_element(values.begin(), values.end());
      axis.kind = log ? Axis::log : Axis::linear;
      axis.low = log ? (also > 0 ? std::min(*least, also) : *least) / 1.3 : 0;
      axis.high = log ? std::max(*most, also) * 1.3 : rounded(0, std::max(*most, also)).second;
    };
    scale(x, curve->x, curve->here, curve->x_log);
    scale(y, curve->y, 0, curve->y_log);
    x.title = text(curve->x_title);
    y.title = text(curve->y_title);
  }
  extent.axes.push_back(std::move(x));
  extent.axes.push_back(std::move(y));
}

Box LatencyHidingScene::side(Cursor cursor) const {
  std::vector<Box> boxes = {occupancy()};
  if (!trace_.arms.empty()) boxes.push_back(arms(cursor));
  boxes.push_back(law(cursor));
  boxes.push_back(counters(cursor));
  return column({"side"}, std::move(boxes), {.rank = 1, .weight = 1, .least_width = 11});
}

// ---- occupancy --------------------------------------------------------------------------------------------

/// How many warps each limit alone lets in, up to the 64 that there is room for. The one that binds is framed.
Box LatencyHidingScene::occupancy() const {
  const Occupancy all = trace_.occupancy();
  const bool known = trace_.registers() > 0;
  Bars bars{items("limit", static_cast<int>(kLimits)), "limit", "limit_warps"};
  bars.items.format = {Format::integer};
  for (std::size_t i = 0; i < kLimits; ++i) {
    const bool unknown = static_cast<Limit>(i) == Limit::registers && !known;
    const int warps = warps_let_in(all, static_cast<Limit>(i));
    const bool binds = static_cast<Limit>(i) == all.binding && !unknown;
    bars.items.value.each.push_back(unknown ? NAN : static_cast<float>(warps));
    bars.items.tone.each.push_back(binds ? 5 : 0);
    bars.items.flags.each.push_back(binds ? kPicked : kNone);
    bars.items.state.each.push_back(unknown ? State::to_come : State::plain);
  }
  bars.items.about = {{"limit", {0, numbers(static_cast<int>(kLimits))}}};
  Box made = box({"limits"}, {bars}, {}, {.least_height = 2.4f, .left = kScaleLeft - 1});
  const std::string share = words::percent(all.share());
  Box outer = column({"occupancy"}, {std::move(made)}, {.rank = 1, .weight = 1});
  outer.label =
      text(fmt::format("warps each limit allows: {} of {}, {}", all.warps, kMostWarps, share),
           fmt::format("occupancy: {} of {}", all.warps, kMostWarps), share);
  return outer;
}

// ---- the branch -------------------------------------------------------------------------------------------

int LatencyHidingScene::arms_shown(Cursor cursor) const {
  const int each = copies() ? std::max(trace_.loads_in_flight, 1) : 1;
  int shown = 0;
  for (int arm = 0; arm < std::ssize(trace_.arms); ++arm) {
    const Probe* begun = probe(0, arm * each);
    // Of loads the first sixteen are probed: arms beyond them begin when those are through.
    const int from = begun == nullptr ? trace_.steps() : begun->issue_step;
    if (from > 0 && step(cursor) >= from) shown = arm + 1;
  }
  return shown;
}

/// A row an arm: the lanes that voted for it run, the others stand still.
Box LatencyHidingScene::arms(Cursor cursor) const {
  const int count = static_cast<int>(trace_.arms.size()), shown = arms_shown(cursor);
  picture::Cells cells{items("vote", count * kLanes)};
  cells.items.per_row = kLanes;
  cells.columns = kLanes;
  cells.x = "lane";
  cells.y = "arm";
  const latency_hiding::Moment* at = moment(cursor);
  const int each = copies() ? std::max(trace_.loads_in_flight, 1) : 1;
  const int current = at == nullptr || at->number < 0 ? -1 : at->number / each % count;
  std::vector<int> about;
  for (int arm = 0; arm < count; ++arm) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const bool active =
          arm < shown && (trace_.arms[static_cast<std::size_t>(arm)].voted >> lane & 1u) != 0;
      cells.items.state.each.push_back(!active          ? State::to_come
                                       : arm == current ? State::current
                                                        : State::done);
      cells.items.glyph.each.push_back(active ? kSolid : kHollow);
      about.push_back(arm);
    }
  }
  cells.items.about = {{"arm", {0, about}}};
  return box(
      {"arms"}, {cells},
      text("active lanes: one row per arm, one column per lane", "active lanes by arm", "lanes"),
      {.weight = 0.6f, .least_height = std::clamp(0.4f * static_cast<float>(count), 1.2f, 2.4f)});
}

// ---- what must be in flight -------------------------------------------------------------------------------

std::vector<Text> LatencyHidingScene::formulas(Cursor cursor) const {
  const bool known = step(cursor) > 0;
  std::vector<Text> rows;
  const auto add = [&](std::string full, std::string brief = {}) {
    rows.push_back(text(std::move(full), std::move(brief)));
  };
  switch (trace_.kernel) {
    case Kernel::copy:
    case Kernel::bulk_copy: {
      const double kib = static_cast<double>(trace_.asked_bytes()) / 1024;
      const int warps = std::max(trace_.warps_per_sm, 1);
      add(known ? fmt::format("ask  = {} · {} KiB = {} KiB", warps, significant(kib / warps, 3),
                              significant(kib, 4))
                : std::string("ask  = warps · loads · bytes"),
          known ? fmt::format("ask = {} KiB", significant(kib, 4)) : "ask = bytes");
      const auto ns = idle_latency(), rate = copy_bandwidth();
      // A copy's rate counts what is read and what is written: only the reads wait to arrive.
      if (ns && rate) {
        const double each = *rate / 2 / trace_.multiprocessors;
        add(fmt::format("need = {:.0f} ns · {} GB/s = {} KiB", *ns, significant(each, 2),
                        significant(*ns * each / 1024, 2)),
            fmt::format("need = {} KiB", significant(*ns * each / 1024, 2)));
      } else {
        add("need = latency · bandwidth", "need = …");
      }
      break;
    }
    case Kernel::chase:
      add("in flight = 1 load a warp", "in flight = 1");
      add("next address = this load's result", "next = this load");
      break;
    case Kernel::fma:
      add(fmt::format("chains = {} · {} = {}", trace_.warps_per_sm, trace_.ilp,
                      trace_.warps_per_sm * trace_.ilp));
      add(fmt::format("a scheduler = {} / 4 = {}", trace_.warps_per_sm * trace_.ilp,
                      significant(trace_.warps_per_sm * trace_.ilp / 4.0, 3)));
      break;
    case Kernel::spill:
      add(fmt::format("live numbers > {} registers", trace_.max_registers), "live > registers");
      add(trace_.machine.compiled.registers == 0
              ? "spilled = not known here"
              : fmt::format("spilled = {} B a thread", trace_.machine.compiled.local_bytes));
      break;
    case Kernel::diverge:
      add(fmt::format("lanes at work = 32 / {} = {}", trace_.divergence,
                      significant(32.0 / std::max(trace_.divergence, 1), 3)));
      break;
    case Kernel::tail: {
      const int fit = std::max(trace_.occupancy().resident, 1);
      add(known ? fmt::format("waves = {} / ({} · {}) = {}", trace_.blocks, trace_.multiprocessors,
                              fit, significant(trace_.waves(), 3))
                : "waves = blocks / (SMs · blocks an SM)",
          known ? fmt::format("waves = {}", significant(trace_.waves(), 3)) : "waves");
      break;
    }
  }
  return rows;
}

/// Little's law for the knobs, and at the end the bench's curve with the knobs' place on it.
Box LatencyHidingScene::law(Cursor cursor) const {
  const auto curve = bench_curve();
  Box plot = box({"bench_plot"}, {}, {},
                 {.weight = 2, .least_height = 2.6f, .left = kScaleLeft, .right = 0.4f});
  std::string label = "no bench was recorded here";
  if (curve)
    label = at_end(cursor)
                ? measured::where_measured(*bench()) + (curve->here > 0 ? "; dot: here" : "")
                : "recorded rates: at the end";
  if (curve && at_end(cursor)) {
    plot.marks.emplace_back(Curve{.key = {"bench_curve"},
                                  .x = curve->x,
                                  .y = curve->y,
                                  .ax = "bench_x",
                                  .ay = "bench_y",
                                  .tone = 5,
                                  .flags = kPicked});
    if (const auto rate = curve->at(curve->here)) {
      plot.marks.emplace_back(Curve{.key = {"here"},
                                    .x = {curve->here},
                                    .y = {*rate},
                                    .ax = "bench_x",
                                    .ay = "bench_y",
                                    .tone = 5,
                                    .flags = kPicked});
    }
  } else if (curve) {
    plot.marks.emplace_back(
        Curve{.key = {"bench_curve"}, .ax = "bench_x", .ay = "bench_y", .tone = 5});
  }
  const auto ns = idle_latency();
  const auto rate = copy_bandwidth();
  if (curve && copies() && ns && rate) {
    // Bytes in flight over the latency of an idle memory, as long as that is not more than a copy reaches.
    Curve law{.key = {"law_curve"}, .ax = "bench_x", .ay = "bench_y", .dashed = true};
    const double a_kib = 2 * 1024.0 * trace_.multiprocessors / *ns;
    const Extent all = extent();
    const auto axis = std::find_if(all.axes.begin(), all.axes.end(),
                                   [](const Axis& each) { return each.name == Name("bench_x"); });
    const double knee = *rate / a_kib;
    const double ratio = std::pow(axis->high / axis->low, 1 / 40.0);
    for (double x = axis->low; x < knee; x *= ratio) {
      law.x.push_back(x);
      law.y.push_back(a_kib * x);
    }
    if (knee < axis->high) {
      law.x.insert(law.x.end(), {knee, axis->high});
      law.y.insert(law.y.end(), {*rate, *rate});
    }
    plot.marks.emplace_back(std::move(law));
  }
  Box plotted = column({"bench"}, {std::move(plot)}, {.rank = 2, .weight = 2});
  plotted.label = text(std::move(label), curve && at_end(cursor) ? "recorded" : "");
  const char* title = copies()              ? "Little's law, for one SM"
                      : is(Kernel::tail)    ? "waves"
                      : is(Kernel::chase)   ? "nothing to hide the wait behind"
                      : is(Kernel::diverge) ? "the branch"
                      : is(Kernel::spill)   ? "registers of a thread"
                                            : "what hides the latency";
  Box said =
      box({"formulas"}, {lines("formula", formulas(cursor), Lines::formula)}, text(title),
          {.weight = 0, .least_height = is(Kernel::diverge) || is(Kernel::tail) ? 1.2f : 2.15f});
  return column({"law"}, {std::move(said), std::move(plotted)}, {.rank = 1, .weight = 2});
}

// ---- what the hardware counted ----------------------------------------------------------------------------

Box LatencyHidingScene::counters(Cursor cursor) const {
  const auto& all = trace_.machine.counted;
  std::string why;
  if (all.empty())
    why = trace_.machine.not_counted.empty() ? "Nothing was counted." : trace_.machine.not_counted;
  if (!all.empty() && !at_end(cursor)) why = "Counters are read when the launch is through.";
  const Layout layout{.rank = 3, .weight = 0, .least_height = 5.6f};
  if (!why.empty()) {
    return box({"counted"}, {lines("count", {text(why, "Not counted.", "–")})}, {}, layout);
  }
  Ledger table{items("count", 0), {}, {text("counted, a scheduler", "counted")}};
  const auto add = [&](const std::string& name, double value, const std::string& brief = {}) {
    table.rows.push_back(text(name, brief));
    table.items.names.push_back(significant(value, 3));
  };
  std::vector<std::pair<double, std::string>> reasons;
  for (const Counted& one : all) {
    const auto is = [&](std::string_view metric) { return one.metric.starts_with(metric); };
    if (is("smsp__warps_active")) add("active warps", one.value);
    if (is("smsp__warps_eligible")) add("eligible warps", one.value);
    if (is("smsp__issue_active")) add("issues a cycle", one.value);
    const std::string reason = reason_of(one.metric);
    if (!reason.empty() && reason != "selected") reasons.emplace_back(one.value, reason);
  }
  std::sort(reasons.rbegin(), reasons.rend());
  reasons.resize(std::min<std::size_t>(reasons.size(), kMostReasons));
  for (const auto& [value, reason] : reasons) add("stall: " + reason, value, reason);
  table.items.count = static_cast<int>(table.items.names.size());
  return box({"counted"}, {std::move(table)}, {}, layout);
}

// ---- what the pointer is told -------------------------------------------------------------------------------

std::string LatencyHidingScene::explain_side(Cursor cursor, const Key& key) const {
  if (key.is({"limit"}) && key.i >= 0 && key.i < static_cast<int>(kLimits)) {
    const auto i = static_cast<std::size_t>(key.i);
    const auto limit = static_cast<Limit>(key.i);
    const Occupancy all = trace_.occupancy();
    const latency_hiding::Multiprocessor sm;
    if (limit == Limit::registers && trace_.registers() == 0) {
      return "registers: known where the kernel was compiled for a GPU";
    }
    std::string said =
        fmt::format("{}: {} of {}", name_of(limit), words::counted(all.blocks[i], "block"),
                    words::counted(all.warps_allocated, "warp"));
    if (limit == Limit::threads)
      said += fmt::format("\n{} of {} warps a block", all.warps_allocated, sm.warps);
    if (limit == Limit::registers) {
      said += fmt::format("\n{} a warp, of {}", all.registers_allocated, sm.registers);
    }
    if (limit == Limit::shared_memory) {
      said += fmt::format("\n{} B a block, of {}", all.shared_allocated, all.shared_carveout);
    }
    return said + (limit == all.binding ? "\nthis one binds" : "");
  }
  if (key.is({"vote"}) && key.i >= 0 && key.i < arms_shown(cursor)) {
    const latency_hiding::Arm& arm = trace_.arms[static_cast<std::size_t>(key.i)];
    return fmt::format("arm {}: {} of 32 lanes run\nlane {} {}", arm.number,
                       std::popcount(arm.voted), key.j,
                       (arm.voted >> key.j & 1u) != 0 ? "is one of them" : "stands still");
  }
  if (key.is({"law_curve"}))
    return "bytes in flight / idle latency, up to a plain copy's bandwidth";
  if (key.is({"here"})) return "these knobs";
  if (key.is({"count"}) && at_end(cursor)) {
    std::string said;
    for (const Counted& one : trace_.machine.counted) {
      if (said.size() > 400) break;
      if (!said.empty()) said += "\n";
      said += fmt::format("{} = {}", one.metric, significant(one.value, 3));
    }
    return said;
  }
  return {};
}

}  // namespace tilestep::scenes

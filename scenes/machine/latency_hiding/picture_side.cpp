// The boxes beside the lanes: the limits on resident warps, the lanes' votes for arms, Little's law, the bench's
// results drawn as lengths, and the hardware's counts.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

#include "kernels/base/lab/recording.hpp"
#include "scenes/machine/latency_hiding/scene.hpp"
#include "scenes/picture/parts.hpp"
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

constexpr float kScaleLeft = 3;  ///< margin for numbers along a scale, in heights of a line

const lab::Report* bench() {
  const lab::Recording* recording = lab::recording("latency-hiding");
  return recording == nullptr ? nullptr : &recording->bench;
}

/// Lengths one below the other, each with its name before it and its number at its end.
Box bars_of(const Results& results, Key key, Name item, Name x, Name lanes, bool known) {
  SpanList list(item, x, lanes);
  const std::string unit = std::strlen(results.unit) > 3 ? "" : std::string(" ") + results.unit;
  std::size_t longest = 0;
  for (const std::string& name : results.names) longest = std::max(longest, name.size());
  Box made = box(
      key, {}, {},
      {.least_height = 1.1f * static_cast<float>(std::max<std::size_t>(results.names.size(), 3)),
       .left = 0.42f * static_cast<float>(longest) + 1});
  std::vector<Curve> ends;
  for (std::size_t k = 0; k < results.values.size() && known; ++k) {
    const auto lane = static_cast<int>(k);
    const bool here = lane == results.here;
    list.add({.lane = lane,
              .end = results.values[k],
              .state = here ? State::plain : State::done,
              .tone = 5,
              .flags = here ? kPicked : kNone});
    ends.push_back(lane_end({key.name, lane}, x, lanes, results.values[k],
                            text(significant(results.values[k], 3) + unit), 5));
  }
  made.marks.emplace_back(list.made(results.high));
  for (Curve& end : ends) made.marks.emplace_back(std::move(end));
  return made;
}

}  // namespace

// ---- what was recorded --------------------------------------------------------------------------------------

/// The fastest copy by threads for each number of bytes in flight, and the row at the knobs.
std::optional<Rates> LatencyHidingScene::rates() const {
  const lab::Table* table = bench() == nullptr ? nullptr : bench()->table("bytes_in_flight");
  if (table == nullptr || !copies()) return std::nullopt;
  const std::string own = is(Kernel::bulk_copy) ? "bulk" : std::to_string(trace_.bytes_per_load);
  const double loads =
      trace_.broken == latency_hiding::Break::serialize_loads ? 1 : trace_.loads_in_flight;
  std::map<double, double> best;
  Rates all;
  for (std::size_t row = 0; row < table->rows.size(); ++row) {
    const auto kib = number_in(*table, row, "in_flight"),
               rate = number_in(*table, row, "bandwidth");
    if (!kib || !rate) continue;
    const std::string kind = text_in(*table, row, "kind");
    if (kind != "bulk") best[*kib] = std::max(best[*kib], *rate);
    const bool mine = kind == own && number_in(*table, row, "loads") == loads &&
                      number_in(*table, row, "warps_per_sm") == trace_.warps_per_sm;
    if (mine && trace_.broken != latency_hiding::Break::divergent_branch) all.here = rate;
  }
  if (best.empty()) return std::nullopt;
  for (const auto& [kib, rate] : best) {
    all.kib.push_back(kib);
    all.rate.push_back(rate);
    all.enough = std::max(all.enough, 0.9 * rate);
  }
  all.idle = number_with(*bench(), "latencies", {{"level", "HBM"}}, "ns").value_or(0);
  all.loaded = number_with(*bench(), "knees", {{"kind", "16"}}, "loaded_latency").value_or(0);
  return all;
}

/// One chain per thread, and four: cycles for the same steps, or the share of issue slots that they fill.
Results LatencyHidingScene::chains(bool slots) const {
  Results all{slots ? "issue slots used, as counted" : "cycles for 64 steps of each chain",
              slots ? "%" : "cycles", slots ? 100.0 : 600.0};
  for (const int ilp : {1, 4}) {
    latency_hiding::Params params = params_;
    params.ilp = ilp;
    const auto machine = latency_hiding::known_machine(params);
    if (!machine) continue;
    double sum = 0, value = NAN;
    for (const Probe& probe : probes_of(*machine)) {
      if (probe.row == 0) sum += static_cast<double>(probe.use - probe.issue);
    }
    if (!slots) value = sum / latency_hiding::kProbes - machine->probe_cost;
    for (const Counted& one : machine->counted) {
      if (slots && one.metric.starts_with("smsp__issue_active")) value = 100 * one.value;
    }
    if (!std::isfinite(value)) continue;
    if (ilp == trace_.ilp) all.here = static_cast<int>(all.values.size());
    all.names.push_back(fmt::format("{}: {} FMAs", counted(ilp, "chain"), 64 * ilp));
    all.values.push_back(value);
  }
  return all;
}

Results LatencyHidingScene::results() const {
  if (is(Kernel::fma)) return chains(false);
  struct How {
    const char *table, *name, *value, *title, *unit;
    double scale, here;
  };
  const double limit = trace_.max_registers, blocks = trace_.blocks;
  const How how =
      is(Kernel::chase) ? How{"latencies", "{level}", "cycles", "latency of a hop", "cycles", 1, -1}
      : tails() ? How{"tail", "{blocks} blocks", "time", "time of a launch", "µs", 1000, blocks}
                : How{"registers", "{max_registers} regs, {warps_per_sm} warps",
                      "time",      "time for the same work",
                      "ms",        1,
                      limit};
  const std::size_t most = tails() ? 5 : 8;
  Results all{how.title, how.unit};
  const lab::Table* table = bench() == nullptr ? nullptr : bench()->table(how.table);
  for (std::size_t row = 0; table != nullptr && row < std::min(table->rows.size(), most); ++row) {
    const auto value = number_in(*table, row, how.value);
    if (!value) continue;
    const double* first = std::get_if<double>(&table->rows[row][0]);
    if (first != nullptr && *first == how.here) all.here = static_cast<int>(all.values.size());
    all.names.push_back(filled_in(how.name, *table, row));
    all.values.push_back(how.scale * *value);
    all.high = std::max(all.high, 1.9 * all.values.back());
  }
  all.high = rounded(0, all.high).second;
  return all;
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
  extent.axes.push_back({.name = "lane",
                         .kind = Axis::band,
                         .count = kLanes,
                         .group = 8,
                         .title = text("lane"),
                         .ticks = true,
                         .least_slot = 0});
  const int arms = std::max(1, static_cast<int>(trace_.arms.size()));
  extent.axes.push_back({.name = "arm", .kind = Axis::band, .count = arms, .least_slot = 0});
  // For copies: one domain for all runs, whatever they have in flight.
  extent.axes.push_back({.name = "kib",
                         .kind = Axis::log,
                         .low = 0.1,
                         .high = 256,
                         .title = text("KiB in flight"),
                         .ticks = true});
  extent.axes.push_back({.name = "rate",
                         .high = rates_ ? rounded(0, rates_->enough / 0.8).second : 1,
                         .fixed = true,
                         .title = text("GB/s"),
                         .ticks = true});
  for (const auto& [name, lane, of] :
       {std::tuple(Name("length"), Name("length_lane"), &results_),
        std::tuple(Name("share"), Name("share_lane"), &slots_),
        std::tuple(Name("a_cycle"), Name("count_lane"), &counted_)}) {
    extent.axes.push_back({.name = name, .high = of->high, .title = text(of->unit), .ticks = true});
    extent.axes.push_back({.name = lane,
                           .kind = Axis::band,
                           .count = std::max(1, static_cast<int>(of->names.size())),
                           .names = of->names,
                           .least_slot = 2});
    if (of->names.empty()) extent.axes.back().names = {""};
  }
}

// ---- occupancy --------------------------------------------------------------------------------------------

/// How many warps each limit alone admits, up to 64. The binding one is framed.
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
  return labelled(
      {"occupancy"}, std::move(made),
      text(fmt::format("warps each limit allows: {} of {}, {}", all.warps, kMostWarps, share),
           fmt::format("occupancy: {} of {}", all.warps, kMostWarps), share),
      {.rank = 2});
}

// ---- the branch -------------------------------------------------------------------------------------------

int LatencyHidingScene::arms_shown(Cursor cursor) const {
  const int each = copies() ? std::max(trace_.loads_in_flight, 1) : 1;
  int shown = 0;
  for (int arm = 0; arm < std::ssize(trace_.arms); ++arm) {
    const Probe* begun = probe(0, arm * each);
    // Only the first sixteen loads are probed: arms beyond them begin when those are done.
    const int from = begun == nullptr ? trace_.steps() : begun->issue_step;
    if (from > 0 && step(cursor) >= from) shown = arm + 1;
  }
  return shown;
}

/// One row per arm: the lanes that voted for it run, the others idle.
Box LatencyHidingScene::arms(Cursor cursor) const {
  const int count = static_cast<int>(trace_.arms.size()), shown = arms_shown(cursor);
  picture::Cells cells{items("vote", count * kLanes)};
  cells.items.per_row = kLanes;
  cells.columns = kLanes;
  cells.x = "lane";
  cells.y = "arm";
  const latency_hiding::Moment* at = moment(cursor);
  const int current = at == nullptr || at->number < 0 ? -1 : trace_.arm_of(at->number);
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
  // Spans name the lanes that they are on: this one is empty and there only for the names.
  Spans named{items("arm_of", 0)};
  named.x = "lane";
  named.lanes = "arm";
  Box made =
      box({"arm_lanes"}, {named, cells}, {},
          {.least_height = std::clamp(1.1f * static_cast<float>(count), 1.2f, 4.4f), .left = 4});
  return labelled({"arms"}, std::move(made),
                  text("the warp's 32 lanes, a row per arm: filled lanes run, the others idle",
                       "filled lanes run, the others idle", "lanes by arm"),
                  {.weight = is(Kernel::diverge) ? 5.0f : 0.6f});
}

// ---- what was measured --------------------------------------------------------------------------------------

/// The recorded rate over bytes in flight, with the point at the knobs, and the bytes that each latency needs for nine
/// tenths of the maximum. A copy's rate counts bytes read and written: only the reads have to arrive.
Box LatencyHidingScene::law(Cursor cursor) const {
  const std::optional<Rates>& all = rates_;
  Box plot = box({"bench_plot"}, {}, {}, {.least_height = 4, .left = kScaleLeft});
  std::vector<Text> needs;
  if (all) {
    plot.marks.emplace_back(Curve{.key = {"bench_curve"},
                                  .x = all->kib,
                                  .y = all->rate,
                                  .ax = "kib",
                                  .ay = "rate",
                                  .tone = 5,
                                  .flags = kPicked,
                                  .about = {"flight", 0},
                                  .base = {0}});
    plot.marks.emplace_back(
        Rule{.key = {"enough"}, .axis = "rate", .at = all->enough, .label = text("9/10")});
    const double each = all->enough / 2 / trace_.multiprocessors;
    for (const auto& [key, ns, name, low] :
         {std::tuple(Key{"need_idle"}, all->idle, "idle", 0.12),
          std::tuple(Key{"need_loaded"}, all->loaded, "loaded", 0.4)}) {
      const double need = ns * each / 1024;
      plot.marks.emplace_back(Curve{.key = key,
                                    .x = {need, need},
                                    .y = {all->enough, low * all->enough},
                                    .ax = "kib",
                                    .ay = "rate",
                                    .dashed = true,
                                    .end = text(name),
                                    .ends_free = true});
      needs.push_back(text(fmt::format("{}: {:.0f} ns · {} GB/s = {} KiB", name, ns,
                                       significant(each, 3), significant(need, 3))));
    }
    // Not before the first step: the bytes that the warps request are a question there.
    if (all->here && step(cursor) > 0) {
      plot.marks.emplace_back(Curve{.key = {"here"},
                                    .x = {static_cast<double>(trace_.asked_bytes()) / 1024},
                                    .y = {*all->here},
                                    .ax = "kib",
                                    .ay = "rate",
                                    .tone = 5,
                                    .flags = kPicked,
                                    .end = text("here")});
    }
  }
  const std::string whose = all ? measured::where_measured(*bench()) : "not recorded";
  Box said = box({"needs"}, {lines("need", needs)}, text(whose, "recorded"),
                 {.rank = 2, .weight = 0, .least_height = 2.8f});
  return labelled({"law"}, {std::move(plot), std::move(said)},
                  text("Little's law: bytes = latency × rate", "Little's law"),
                  {.rank = 1, .weight = 2});
}

Box LatencyHidingScene::lengths(Cursor cursor) const {
  const std::string whose = is(Kernel::fma) || bench() == nullptr
                                ? std::string("recorded runs")
                                : measured::where_measured(*bench());
  return labelled(
      {"lengths"},
      bars_of(results_, {"length_box"}, "result", "length", "length_lane", step(cursor) >= kSeen),
      text(fmt::format("{}; {}", results_.title, whose), results_.title), {.rank = 1, .weight = 2});
}

Box LatencyHidingScene::slots_used(Cursor cursor) const {
  return labelled(
      {"slots_used"},
      bars_of(slots_, {"share_box"}, "filled", "share", "share_lane", step(cursor) >= kSeen),
      text(slots_.title), {.rank = 2});
}

// ---- what the hardware counted ----------------------------------------------------------------------------

/// A scheduler's warps that could issue in an average cycle, and those that waited for memory.
Results LatencyHidingScene::counts() const {
  Results all{"a scheduler's warps in an average cycle", "warps"};
  double active = 0, eligible = 0, issues = 0, waits = 0;
  for (const Counted& one : trace_.machine.counted) {
    if (one.metric.starts_with("smsp__warps_active")) active = one.value;
    if (one.metric.starts_with("smsp__warps_eligible")) eligible = one.value;
    if (one.metric.starts_with("smsp__issue_active")) issues = one.value;
    if (one.metric.find("stalled_long_scoreboard_per_issue") != std::string::npos)
      waits = one.value;
  }
  all.names = {"active", "eligible", "long scoreboard"};
  if (!trace_.machine.counted.empty()) all.values = {active, eligible, waits * issues};
  // The scheduler's warps by the knobs; the counts are not known before the end.
  all.high = rounded(0, 2.4 * std::max(trace_.warps_per_sm / 4.0, 1.0)).second;
  return all;
}

Box LatencyHidingScene::counters(Cursor cursor) const {
  const bool none = trace_.machine.counted.empty();
  return labelled(
      {"counted"},
      bars_of(counted_, {"count_box"}, "count", "a_cycle", "count_lane", at_end(cursor)),
      none             ? text("Nothing was counted.")
      : at_end(cursor) ? text(counted_.title, "counted")
                       : text("Counted once the launch has ended.", "not counted yet"),
      {.rank = 3, .weight = 0.6f});
}

// ---- what the pointer is told -------------------------------------------------------------------------------

std::string LatencyHidingScene::explain_side(Cursor cursor, const Key& key) const {
  if (key.is({"limit"}) && key.i >= 0 && key.i < static_cast<int>(kLimits)) {
    const auto i = static_cast<std::size_t>(key.i);
    const auto limit = static_cast<Limit>(key.i);
    const Occupancy all = trace_.occupancy();
    if (limit == Limit::registers && trace_.registers() == 0) {
      return "registers: known once the kernel is compiled for a GPU";
    }
    return fmt::format("{}: {} of {}{}", name_of(limit), counted(all.blocks[i], "block"),
                       counted(all.warps_allocated, "warp"),
                       limit == all.binding ? "\nthis one binds" : "");
  }
  if (key.is({"vote"}) && key.i >= 0 && key.i < arms_shown(cursor)) {
    const latency_hiding::Arm& arm = trace_.arms[static_cast<std::size_t>(key.i)];
    return fmt::format("arm {}: {} of 32 lanes run\nlane {} {}", arm.number,
                       std::popcount(arm.voted), key.j,
                       (arm.voted >> key.j & 1u) != 0 ? "is one of them" : "idles");
  }
  if (key.is({"need_idle", "need_loaded"}))
    return "latency × a multiprocessor's share of the reads, at 9/10 of the maximum";
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

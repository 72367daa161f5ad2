// The picture of the lesson on latency hiding: the loads of one warp with the issue slots of its scheduler, the warps of
// one multiprocessor on its four schedulers, and the layout of the boxes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "scenes/machine/latency_hiding/scene.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using latency_hiding::Break, latency_hiding::kSubPartitions, latency_hiding::Kernel;
using words::counted, words::significant;

namespace {

constexpr float kLeft = 5.4f;  ///< margin for schedulers and lanes, in heights of a line

/// A bar of a probe, in the tone of its kind.
SpanList::Bar bar_of(int id, int lane, const Stretch& stretch, bool current, std::uint8_t tone,
                     bool picked, std::string name, int of_kind) {
  const State state = current ? State::current : stretch.used ? State::done : State::plain;
  return {lane,       stretch.from,
          stretch.to, state,
          tone,       std::move(name),
          of_kind,    id,
          0,          picked ? kPicked : kNone};
}

/// Each bar is about its warp, and those of the first warp about their probes too.
Spans of_probes(SpanList list, const std::vector<const Probe*>& probes, double now) {
  Spans spans = list.made(now);
  std::vector<int> rows, numbers;
  for (const Probe* each : probes) {
    rows.push_back(each->row);
    numbers.push_back(each->row == 0 ? each->number : -1);
  }
  spans.items.about.insert(spans.items.about.begin(),
                           {{"warp", {0, rows}}, {"probe", {0, numbers}}});
  return spans;
}

}  // namespace

// ---- where things stand -----------------------------------------------------------------------------------

void LatencyHidingScene::add_lane_axes(Extent& extent) const {
  const auto& rows = trace_.machine.rows;
  extent.axes.push_back(
      {.name = time_axis(),
       .high = time_high(),
       .fixed = time_axis() == Name("time"),
       .title = clocked() ? text(unit()) : text("turns: order, not time", "turns"),
       .ticks = true});
  std::vector<std::string> lanes;
  for (int lane = 0; lane < zoom_lanes(); ++lane) {
    std::string name = copies() ? fmt::format("{} {}", noun(), lane) : std::string(noun());
    if (is(Kernel::chase)) name = std::string(name_of(static_cast<latency_hiding::Level>(lane)));
    if (is(Kernel::diverge)) name = fmt::format("arm {}", lane);
    lanes.push_back(std::move(name));
  }
  for (const Name name : {Name("apart_lane"), Name("probe_lane")}) {
    if (name == Name("probe_lane") && is(Kernel::copy)) lanes.emplace_back("scheduler");
    extent.axes.push_back({.name = name,
                           .kind = Axis::band,
                           .count = static_cast<int>(lanes.size()),
                           .names = lanes,
                           .least_slot = 2});
  }
  std::array<int, kSubPartitions> lanes_of{};
  for (const latency_hiding::Row& row : rows) {
    lanes_of[static_cast<std::size_t>(row.sub_partition)] += lanes_a_warp();
  }
  const int most = *std::max_element(lanes_of.begin(), lanes_of.end());
  extent.axes.push_back({.name = "warp_lane",
                         .kind = Axis::band,
                         .count = most,
                         .group = lanes_a_warp() > 1 ? lanes_a_warp() : 0,
                         .names = std::vector<std::string>(static_cast<std::size_t>(most)),
                         .least_slot = 0.5f});
}

Extent LatencyHidingScene::extent() const {
  Extent extent;
  add_lane_axes(extent);
  add_side_axes(extent);
  return extent;
}

/// The subjects of the lesson's stops are large, with few boxes beside them.
Picture LatencyHidingScene::picture(const Extent& extent, const View& view) const {
  const Cursor cursor = view.cursor;
  std::vector<Box> main, side;
  if (!trace_.arms.empty()) main.push_back(arms(cursor));
  if (is(Kernel::fma) || is(Kernel::chase) || is(Kernel::spill)) main.push_back(lengths(cursor));
  if (is(Kernel::fma)) main.push_back(slots_used(cursor));
  if (copies() || is(Kernel::spill)) side.push_back(occupancy());
  if (!tails()) (is(Kernel::spill) ? side : main).push_back(warp_loads(view));
  if (!one_at_a_time_.empty()) main.push_back(apart(cursor));
  if (tails() || (copies() && trace_.machine.rows.size() > 1)) main.push_back(schedulers(view));
  if (copies()) side.push_back(law(cursor));
  if (copies()) side.push_back(counters(cursor));
  if (tails()) side.push_back(lengths(cursor));
  // Lengths of copies compare: their column has one width.
  const float weight = copies() ? 1.9f : tails() ? 1 : 4, least = copies() ? 16.5f : 13;
  std::vector<Box> both;
  both.push_back(column({"over_time"}, std::move(main), {.weight = weight, .least_width = least}));
  if (!side.empty()) {
    both.push_back(column({"side"}, std::move(side),
                          {.rank = 1, .weight = 1, .least_width = copies() ? 11.0f : 8}));
  }
  return {text(sentence(cursor)),
          extent.axes,
          row({"latency_hiding"}, std::move(both)),
          {"warp_loads", "multiprocessor_box"}};
}

// ---- over time --------------------------------------------------------------------------------------------

/// One warp's round, each load on its own lane with its clocks at its end, and below them its scheduler's activity.
Box LatencyHidingScene::warp_loads(const View& view) const {
  const int row = followed(view);
  const Cursor cursor = view.cursor;
  const latency_hiding::Moment* at = moment(cursor);
  const std::int64_t zero = origin(cursor);
  SpanList loads("followed", time_axis(), "probe_lane", tone_kind());
  std::vector<const Probe*> probes;
  std::vector<Curve> ends;
  for (const Probe& each : probes_) {
    if (each.row != row) continue;
    const std::optional<Stretch> bar = stretch(each, cursor, zero);
    if (!bar) continue;
    const bool current = at != nullptr && row == 0 && at->number == each.number;
    const int lane = zoom_lane(each.number);
    const bool tells = bar->used && clocked();
    std::string inside = tells ? fmt::format("{:.0f}", latency(each)) : std::string();
    loads.add(bar_of(each.number, lane, *bar, current, tone_of(each.number), false,
                     std::move(inside), tone_number(each.number)));
    probes.push_back(&each);
    const bool whole = each.issue >= zero;
    // With a branch each lane has a load of every arm: no room for words between them.
    if (tells && copies() && trace_.broken != Break::divergent_branch)
      ends.push_back(end_of({"arrival", each.number}, *bar, "probe_lane", lane, whole));
  }
  const std::string what = is(Kernel::fma)         ? "64 steps of each chain"
                           : is(Kernel::spill)     ? "a load, then arithmetic on it"
                           : is(Kernel::diverge)   ? "arms of the branch"
                           : is(Kernel::chase)     ? "hops, from the first of each level"
                           : is(Kernel::bulk_copy) ? "stages from request to arrival"
                                                   : "loads from issue to first use";
  const auto lanes = static_cast<float>(zoom_lanes() + 1);
  // The votes tell the arms apart; their times are shown below.
  const float each = is(Kernel::diverge) ? 0.45f : 0.85f;
  Box made = box({"warp_loads"}, {of_probes(std::move(loads), probes, time_high())}, {},
                 {.least_height = std::clamp(each * lanes, 1.2f, 4.3f), .left = kLeft});
  if (is(Kernel::copy)) made.marks.emplace_back(issue_slots(view));
  for (Curve& end : ends) made.marks.emplace_back(std::move(end));
  return labelled({"one_warp"}, std::move(made),
                  text(fmt::format("{}: {}; {}", warp_name(row), what, where()),
                       fmt::format("{}; {}", warp_name(row), where()), warp_name(row)),
                  {.rank = is(Kernel::fma) ? 3 : 0});
}

/// Both clocks of a bar at its end; only the last if the bar began before the round.
Curve LatencyHidingScene::end_of(Key key, const Stretch& bar, Name lanes, int lane,
                                 bool whole) const {
  const std::string to = fmt::format("{:.0f}", bar.to);
  return {.key = key,
          .x = {bar.to, bar.to},
          .y = {lane + 0.5, lane + 0.5},
          .ax = time_axis(),
          .ay = lanes,
          .tone = tone_of(0),
          .end = whole ? text(fmt::format("{:.0f}–{}", bar.from, to), to) : text(to),
          .ends_free = true};
}

/// The same loads in the other order, once these have ended.
Box LatencyHidingScene::apart(Cursor cursor) const {
  const latency_hiding::Moment* at = moment(cursor);
  const bool done =
      at != nullptr && at->what == latency_hiding::What::use && (at->number + 1) % group() == 0;
  SpanList other("other_order", time_axis(), "apart_lane");
  Box made = box({"apart_box"}, {}, {}, {.least_height = 2.8f, .left = kLeft});
  std::vector<Curve> ends;
  for (int k = 0; k < std::ssize(one_at_a_time_) && done; ++k) {
    const Stretch& bar = one_at_a_time_[static_cast<std::size_t>(k)];
    other.add({.lane = k, .begin = bar.from, .end = bar.to, .flags = kWas});
    ends.push_back(end_of({"other_end", k}, bar, "apart_lane", k, false));
  }
  made.marks.emplace_back(other.made(time_high()));
  for (Curve& end : ends) made.marks.emplace_back(std::move(end));
  return labelled({"apart"}, std::move(made), text("the same loads one at a time", "one at a time"),
                  {.rank = 4, .weight = 0.8f});
}

/// When the followed warp's scheduler issues a load or a store of one of its warps, and how long it issues none.
Spans LatencyHidingScene::issue_slots(const View& view) const {
  constexpr double kGap = 100;  // cycles that are worth a bar
  const auto& rows = trace_.machine.rows;
  const auto mine = static_cast<std::size_t>(followed(view));
  const std::int64_t zero = origin(view.cursor);
  const double now_at = std::min(static_cast<double>(now(view.cursor) - zero), time_high());
  std::vector<double> at;
  for (const Probe& each : probes_) {
    const auto of = static_cast<std::size_t>(each.row);
    if (rows[of].sub_partition != rows[mine].sub_partition || (!clocked() && of != mine)) continue;
    for (const auto& [clock, since] :
         {std::pair(each.issue, each.issue_step), std::pair(each.use, each.use_step)}) {
      const auto place = static_cast<double>(clock - zero);
      const bool known = since > 0 && since <= step(view.cursor);
      if (known && place >= 0 && place <= now_at) at.push_back(place);
    }
  }
  std::sort(at.begin(), at.end());
  SpanList slots("slot", time_axis(), "probe_lane");
  const auto add = [&](double from, double to, bool idle) {
    slots.add({zoom_lanes(), from, to, idle ? State::to_come : State::done,
               std::uint8_t(idle ? 0 : 5), idle ? fmt::format("idle {:.0f}", to - from) : ""});
  };
  for (std::size_t k = 0; k < at.size(); ++k) {
    add(at[k], at[k], false);
    const double next = k + 1 < at.size() ? at[k + 1] : now_at;
    if (clocked() && next - at[k] >= kGap) add(at[k], next, true);
  }
  return slots.made(time_high());
}

/// The lanes of one scheduler's warps; for the kernel tail those of all multiprocessors.
Box LatencyHidingScene::scheduler(const View& view, int which) const {
  const auto& rows = trace_.machine.rows;
  const latency_hiding::Moment* at = moment(view.cursor);
  const std::int64_t zero = origin(view.cursor);
  SpanList list(probe_name(), time_axis(), "warp_lane", tone_kind());
  std::vector<const Probe*> probes;
  const int row = followed(view);
  std::vector<int> first_lane(rows.size(), -1);
  int lane = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (!tails() && rows[r].sub_partition != which) continue;
    first_lane[r] = lane;
    lane += lanes_a_warp();
  }
  for (const Probe& each : probes_) {
    const int first = first_lane[static_cast<std::size_t>(each.row)];
    const std::optional<Stretch> bar = first < 0 ? std::nullopt : stretch(each, view.cursor, zero);
    if (!bar) continue;
    const bool current = at != nullptr && each.row == 0 && !tails() && at->number == each.number;
    const int id = tails() ? each.number : each.row * a_row_ + each.number;
    list.add(bar_of(id, first + (tails() ? 0 : each.number % lanes_a_warp()), *bar, current,
                    tone_of(each.number), row > 0 && each.row == row,
                    tails() ? std::to_string(each.number) : std::string(),
                    tone_number(each.number)));
    probes.push_back(&each);
  }
  Spans spans = of_probes(std::move(list), probes, time_high());
  if (!tails()) spans.items.act = {Act::pick, "warp"};
  static constexpr std::array<Name, kSubPartitions> kBoxes = {"scheduler_0", "scheduler_1",
                                                              "scheduler_2", "scheduler_3"};
  return box({kBoxes[static_cast<std::size_t>(which)]}, {std::move(spans)},
             tails() ? Text{} : text(fmt::format("sched. {}", which), std::to_string(which)),
             {.least_height = tails() ? 3.0f : 0.6f, .left = tails() ? 1 : kLeft});
}

Box LatencyHidingScene::schedulers(const View& view) const {
  std::vector<Box> boxes;
  const int count = tails() ? 1 : kSubPartitions;
  for (int which = 0; which < count; ++which) boxes.push_back(scheduler(view, which));
  const auto rows = static_cast<std::int64_t>(trace_.machine.rows.size());
  const std::string what =
      tails() ? counted(rows, "SM") + ", a row each"
              : fmt::format("all of one SM: {}{}", counted(rows, "warp"),
                            is(Kernel::bulk_copy) ? ", those issuing" : " on four schedulers");
  return labelled({"multiprocessor_box"}, std::move(boxes),
                  tails() ? text(fmt::format("{}, {}", what, where()), what) : text(what),
                  {.close = true, .rank = tails() ? 0 : 2, .weight = tails() ? 2.0f : 1.2f});
}

// ---- what the pointer is told -------------------------------------------------------------------------------

std::string LatencyHidingScene::explain_probe(Cursor cursor, int row, int number) const {
  const Probe* one = probe(row, number);
  if (one == nullptr || one->issue_step == 0 || one->issue_step > step(cursor)) return {};
  const latency_hiding::Row& warp = trace_.machine.rows.at(static_cast<std::size_t>(row));
  const char* of_unit = clocked() ? trace_.machine.unit.c_str() : "turn";
  std::string said =
      tails() ? fmt::format("block {} on SM {}, wave {}", number, warp.sm, wave_of(number))
              : fmt::format("warp {} of block {}, scheduler {}\n{} {}", warp_name(row), warp.block,
                            warp.sub_partition, noun(), number);
  said += fmt::format("\nfrom {} {}", of_unit, one->issue);
  if (one->use_step > step(cursor)) return said + ", not used yet";
  said += fmt::format(" to {}", one->use);
  if (!clocked()) return said;
  return said + fmt::format("\n{} {}", one->use - one->issue, of_unit);
}

std::string LatencyHidingScene::explain(const View& view, const Key& key) const {
  if (key.is({"followed"})) return explain_probe(view.cursor, followed(view), key.i);
  if (key.is({"slot"})) {
    return "a mark is a load or a store issued by the warp's scheduler\ngrey: none of its warps "
           "has one ready";
  }
  if (key.is({"other_order"}))
    return "the same loads, each used before the next is issued; " + where();
  if (key.name == probe_name() && key.i >= 0) {
    if (!tails()) return explain_probe(view.cursor, key.i / a_row_, key.i % a_row_);
    for (const Probe& each : probes_) {
      if (each.number == key.i) return explain_probe(view.cursor, each.row, each.number);
    }
  }
  return explain_side(view.cursor, key);
}

}  // namespace tilestep::scenes

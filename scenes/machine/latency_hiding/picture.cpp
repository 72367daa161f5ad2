// The picture of the lesson on latency hiding: the loads of one warp, the warps of one multiprocessor on its four
// schedulers, and what all of them have in flight.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "scenes/machine/latency_hiding/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using latency_hiding::kSubPartitions, latency_hiding::Kernel;
using words::counted, words::significant;

namespace {

constexpr float kLeft = 4.9f;    ///< margin for schedulers and warps, in heights of a line
constexpr int kMostSteps = 120;  ///< of the curve along the whole axis
constexpr std::array<Name, kSubPartitions> kSlots = {"slots_0", "slots_1", "slots_2", "slots_3"};

/// Spans of one kind that are made one by one.
class SpanList {
 public:
  /// `kind`: what probes of one tone have in common: a level, an arm, a wave; empty: nothing.
  SpanList(Name name, Name lanes, double now, Name kind = {}) : kind_(kind) {
    spans_.items = items(name, 0);
    spans_.x = "time";
    spans_.lanes = lanes;
    spans_.now = now;
  }
  void add(const Probe& probe, int id, int lane, double end, State state, std::uint8_t tone,
           bool picked, std::string name, int of_kind = -1) {
    ++spans_.items.count;
    spans_.items.ids.push_back(id);
    spans_.lane.push_back(lane);
    spans_.begin.push_back(static_cast<double>(probe.issue));
    spans_.end.push_back(std::max(end, static_cast<double>(probe.issue)));
    spans_.items.state.each.push_back(state);
    spans_.items.tone.each.push_back(tone);
    spans_.items.flags.each.push_back(picked ? kPicked : kNone);
    spans_.items.names.push_back(std::move(name));
    rows_.push_back(probe.row);
    kinds_.push_back(of_kind);
    numbers_.push_back(probe.row == 0 ? probe.number : -1);
  }
  Spans made(bool can_pick) {
    spans_.items.about = {{"warp", {0, rows_}}, {"probe", {0, numbers_}}};
    if (!kind_.empty()) spans_.items.about.emplace_back(kind_, Column<int>{0, kinds_});
    if (can_pick) spans_.items.act = {Act::pick, "warp"};
    return std::move(spans_);
  }

 private:
  Spans spans_;
  Name kind_;
  std::vector<int> rows_, numbers_, kinds_;
};

/// A box with a label above and a margin at its left.
Box labelled(Key key, Box inner, Text label, const Layout& layout) {
  Box made = column(key, {std::move(inner)}, layout);
  made.label = std::move(label);
  return made;
}

}  // namespace

// ---- where things stand -----------------------------------------------------------------------------------

void LatencyHidingScene::add_lane_axes(Extent& extent) const {
  const auto& rows = trace_.machine.rows;
  const double span = std::max<double>(1, static_cast<double>(trace_.machine.span));
  extent.axes.push_back(
      {.name = "time",
       .high = clocked() ? rounded(0, span).second : span + 1,
       .title = clocked() ? text(unit()) : text("turns: order, not time", "turns"),
       .ticks = true});
  std::vector<std::string> lanes;
  for (int lane = 0; lane < zoom_lanes(); ++lane) {
    std::string name = zoom_lanes() == 1 ? std::string(noun()) : std::to_string(lane);
    if (is(Kernel::chase)) name = std::string(name_of(static_cast<latency_hiding::Level>(lane)));
    if (is(Kernel::diverge)) name = fmt::format("arm {}", lane);
    lanes.push_back(std::move(name));
  }
  extent.axes.push_back({.name = "probe_lane",
                         .kind = Axis::band,
                         .count = zoom_lanes(),
                         .names = std::move(lanes),
                         .least_slot = 2});
  const int each = lanes_a_warp();
  if (tails()) {
    extent.axes.push_back({.name = "multiprocessor",
                           .kind = Axis::band,
                           .count = static_cast<int>(rows.size()),
                           .names = std::vector<std::string>(rows.size()),
                           .least_slot = 0.5f});
  }
  std::array<int, kSubPartitions> lanes_of{};
  int most = 1;
  for (int row = 0; row < std::ssize(rows) && !tails(); ++row) {
    const latency_hiding::Row& warp = rows[static_cast<std::size_t>(row)];
    int& of = lanes_of[static_cast<std::size_t>(warp.sub_partition)];
    of += each;
    most = std::max(most, of);
  }
  for (std::size_t sub = 0; sub < kSlots.size() && !tails(); ++sub) {
    extent.axes.push_back({.name = kSlots[sub],
                           .kind = Axis::band,
                           .count = most,
                           .group = each > 1 ? each : 0,
                           .names = std::vector<std::string>(static_cast<std::size_t>(most)),
                           .least_slot = 0.5f});
  }
  const double high = most_in_flight();
  extent.axes.push_back({.name = "flight",
                         .high = rounded(0, std::max(1.5 * high, 1.0)).second,
                         .title = copies() ? text("KiB") : Text{},
                         .ticks = true});
}

Extent LatencyHidingScene::extent() const {
  Extent extent;
  add_lane_axes(extent);
  add_side_axes(extent);
  return extent;
}

Picture LatencyHidingScene::picture(const Extent& extent, const View& view) const {
  return {text(sentence(view.cursor)), extent.axes,
          row({"latency_hiding"}, {over_time(view), side(view.cursor)})};
}

// ---- over time --------------------------------------------------------------------------------------------

Box LatencyHidingScene::over_time(const View& view) const {
  std::vector<Box> boxes;
  if (!tails()) boxes.push_back(zoom(view));
  boxes.push_back(schedulers(view));
  boxes.push_back(flight(view.cursor));
  return column({"over_time"}, std::move(boxes), {.weight = 1.9f, .least_width = 13});
}

/// One warp, each of its loads in flight on a lane of its own. The probe's own cycles are hatched, to scale.
Box LatencyHidingScene::zoom(const View& view) const {
  const int row = followed(view);
  const auto until = static_cast<double>(now(view.cursor));
  const latency_hiding::Moment* at = moment(view.cursor);
  SpanList loads("followed", "probe_lane", until, tone_kind()), cost("cost", "probe_lane", until);
  for (const Probe& each : probes_) {
    if (each.row != row || each.issue_step == 0 || each.issue_step > step(view.cursor)) continue;
    const bool used = each.use_step <= step(view.cursor);
    const bool current = at != nullptr && row == 0 && at->number == each.number;
    const double end = used ? static_cast<double>(each.use) : until;
    const int lane = zoom_lane(each.number);
    std::string name = std::to_string(each.number);
    if (used && clocked()) name = fmt::format("{}: {:.0f}", each.number, latency(each));
    loads.add(each, each.number, lane, end,
              current ? State::current
              : used  ? State::done
                      : State::plain,
              tone_of(each.number), false, std::move(name), tone_number(each.number));
    if (!used || trace_.machine.probe_cost <= 0) continue;
    Probe own = each;
    own.issue = std::max(
        each.issue, each.use - static_cast<std::int64_t>(std::llround(trace_.machine.probe_cost)));
    cost.add(own, each.number, lane, end, State::wasted, 0, false, {});
  }
  const latency_hiding::Row& warp = trace_.machine.rows.at(static_cast<std::size_t>(row));
  const std::string name = fmt::format("warp {} of block {}", warp_name(row), warp.block);
  const std::string what = is(Kernel::fma)         ? "chains of multiply-adds"
                           : is(Kernel::spill)     ? "a load, then arithmetic on it"
                           : is(Kernel::diverge)   ? "arms of the branch"
                           : is(Kernel::bulk_copy) ? "stages from request to arrival"
                                                   : "loads from issue to first use";
  return labelled(
      {"zoom"},
      box({"warp_loads"}, {loads.made(false), cost.made(false)}, {},
          {.least_height = is(Kernel::chase)
                               ? 3.2f
                               : std::clamp(0.35f * static_cast<float>(zoom_lanes()), 0.8f, 2.2f),
           .left = kLeft}),
      text(fmt::format("{}: {}", name, what), name), {.weight = 0.7f});
}

/// The lanes of one scheduler's warps.
Box LatencyHidingScene::scheduler(const View& view, int which) const {
  const auto& rows = trace_.machine.rows;
  const latency_hiding::Moment* at = moment(view.cursor);
  const Name lanes = tails() ? Name("multiprocessor") : kSlots[static_cast<std::size_t>(which)];
  SpanList list(probe_name(), lanes, static_cast<double>(now(view.cursor)), tone_kind());
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
    if (first < 0 || each.issue_step == 0 || each.issue_step > step(view.cursor)) continue;
    const bool used = each.use_step <= step(view.cursor);
    const bool current = at != nullptr && each.row == 0 && !tails() && at->number == each.number;
    const double end = static_cast<double>(used ? each.use : now(view.cursor));
    const int id = tails() ? each.number : each.row * a_row_ + each.number;
    list.add(each, id, first + (lanes_a_warp() > 1 ? zoom_lane(each.number) : 0), end,
             current ? State::current
             : used  ? State::done
                     : State::plain,
             tone_of(each.number), row > 0 && each.row == row,
             tails() ? std::to_string(each.number) : std::string(), tone_number(each.number));
  }
  static constexpr std::array<Name, kSubPartitions> kBoxes = {"scheduler_0", "scheduler_1",
                                                              "scheduler_2", "scheduler_3"};
  return box({kBoxes[static_cast<std::size_t>(which)]}, {list.made(!tails())},
             tails() ? Text{} : text(fmt::format("sched. {}", which), std::to_string(which)),
             {.least_height = tails() ? 3.0f : 1.0f, .left = kLeft});
}

Box LatencyHidingScene::schedulers(const View& view) const {
  std::vector<Box> boxes;
  const int count = tails() ? 1 : kSubPartitions;
  for (int which = 0; which < count; ++which) boxes.push_back(scheduler(view, which));
  const std::string what =
      tails()
          ? counted(static_cast<std::int64_t>(trace_.machine.rows.size()), "SM") + ", a row each"
          : fmt::format("one SM: {}{}", counted(std::ssize(trace_.machine.rows), "warp"),
                        is(Kernel::bulk_copy) ? ", those that ask" : "");
  const std::string said = fmt::format("{}, {}", what, where());
  Box made = column({"multiprocessor_box"}, std::move(boxes), {.close = true, .weight = 2});
  made.label = text(said, what);
  return made;
}

/// What all warps have in flight together, up to the cursor. Turns of different warps are not comparable: there it is
/// the followed one's.
Box LatencyHidingScene::flight(Cursor cursor) const {
  std::vector<std::pair<std::int64_t, int>> changes;
  for (const Probe& each : probes_) {
    if (!clocked() && each.row != 0) continue;
    if (each.issue_step == 0 || each.issue_step > step(cursor)) continue;
    changes.emplace_back(each.issue, 1);
    if (each.use_step <= step(cursor)) changes.emplace_back(each.use, -1);
  }
  std::sort(changes.begin(), changes.end());
  Curve curve{
      .key = {"flight_curve"}, .ax = "time", .ay = "flight", .tone = 5, .about = {"flight", 0}};
  double level = 0;
  const auto put = [&](double at) {
    curve.x.push_back(at);
    curve.y.push_back(level * weight());
  };
  // Steps closer together than this would be all corners: they are taken as one.
  const double least = static_cast<double>(trace_.machine.span) / kMostSteps;
  const auto until = static_cast<double>(now(cursor));
  double from = 0;
  for (std::size_t next = 0; next < changes.size();) {
    const double at = std::min(std::max(static_cast<double>(changes[next].first), from), until);
    put(at);
    for (; next < changes.size() && static_cast<double>(changes[next].first) <= at; ++next) {
      level += changes[next].second;
    }
    put(at);
    from = at + least;
  }
  if (step(cursor) > 0 && (curve.x.empty() || curve.x.back() < until)) put(until);
  curve.flags = kPicked;
  Box made = box({"flight_box"}, {}, {}, {.least_height = 1.6f, .left = kLeft});
  made.marks.emplace_back(std::move(curve));
  // Hidden until something has been seen: a question asks for it.
  const bool known = step(cursor) > 0;
  const double most = most_in_flight();
  made.marks.emplace_back(
      Rule{.key = {"asked"},
           .axis = "flight",
           .at = known ? most : 0,
           .state = known ? State::plain : State::to_come,
           .label = !known ? Text{}
                    : copies()
                        ? text(fmt::format("asked for: {} KiB", significant(most, 4)), "asked for")
                    : tails() ? text(fmt::format("room for {}", significant(most, 4)), "room")
                              : text(fmt::format("{} at most", significant(most, 4)), "at most")});
  const std::string of = clocked() ? tails() ? "all SMs" : "all warps of the SM" : "one warp";
  const std::string what =
      copies()  ? fmt::format("bytes in flight, {}", of)
      : tails() ? std::string("blocks running")
                : fmt::format("{} under way, {}", is(Kernel::chase) ? "loads" : "warps", of);
  return labelled({"flight"}, std::move(made),
                  text(what, copies() ? "bytes in flight" : "under way"),
                  {.rank = 4, .weight = 0.9f});
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
  said += fmt::format("\n{} {}", one->use - one->issue, of_unit);
  if (trace_.machine.probe_cost > 0 && !tails()) {
    said += fmt::format(", {:.0f} of them the probe's own", trace_.machine.probe_cost);
  }
  return said;
}

std::string LatencyHidingScene::explain(const View& view, const Key& key) const {
  if (key.is({"followed"})) return explain_probe(view.cursor, followed(view), key.i);
  if (key.is({"cost"})) {
    return fmt::format("the probe's own {:.0f} {}: two clocks and nothing between them",
                       trace_.machine.probe_cost, unit());
  }
  if (key.name == probe_name() && key.i >= 0) {
    if (!tails()) return explain_probe(view.cursor, key.i / a_row_, key.i % a_row_);
    for (const Probe& each : probes_) {
      if (each.number == key.i) return explain_probe(view.cursor, each.row, each.number);
    }
  }
  return explain_side(view.cursor, key);
}

}  // namespace tilestep::scenes

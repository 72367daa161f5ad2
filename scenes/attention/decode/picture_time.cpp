// When the blocks of the launch were at work.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "scenes/attention/decode/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using decode::ItemTrace;
using words::counted, words::number;

namespace {

constexpr float kRight = 4.5f;  ///< the margin for what lines across say

}  // namespace

// ---- time -------------------------------------------------------------------------------------------------

std::vector<Axis> DecodeScene::time_axes() const {
  return {{.name = "time",
           .high = rounded(0, std::max(1.0, trace_.launch_end())).second,
           .title = trace_.clocked() ? text("ns") : text("tiles, no clock", "tiles"),
           .ticks = true},
          {.name = "time_block",
           .kind = Axis::band,
           .count = trace_.blocks,
           .names = block_names(),
           .least_slot = 1},
          {.name = "at_work",
           .high = 1.1 * std::max(decode::kMultiprocessors, trace_.blocks),
           .ticks = true}};
}

std::string DecodeScene::time_sentence() const {
  const std::string mean = number(trace_.mean_at_work(), 1);
  if (!trace_.clocked()) {
    return fmt::format(
        "Time: emulated, so there is no clock. Over tiles {} of {} are at work on average.", mean,
        counted(trace_.blocks, "block"));
  }
  return fmt::format("Time: the launch took {} µs, with {} of {} at work on average.",
                     number(trace_.launch_end() / 1e3, 1), mean, counted(trace_.blocks, "block"));
}

/// How many blocks are at work at each moment, against the multiprocessors that there are.
Box DecodeScene::at_work_curve() const {
  std::map<double, int> change;
  for (const ItemTrace& item : trace_.items) {
    const decode::Trace::Worked worked = trace_.worked(item);
    ++change[worked.begin];
    --change[worked.end];
  }
  Curve curve{.key = {"busy"}, .ax = "time", .ay = "at_work"};
  int now = 0;
  for (const auto& [at, by] : change) {
    curve.x.insert(curve.x.end(), 2, at);
    curve.y.push_back(now);
    now += by;
    curve.y.push_back(now);
  }
  curve.tone = 6;
  curve.about = {"share", 0};
  Rule all{.key = {"multiprocessors"},
           .axis = "at_work",
           .at = decode::kMultiprocessors,
           .state = State::done,
           .label = text(fmt::format("{} SMs", decode::kMultiprocessors))};
  Rule mean{.key = {"mean_at_work"},
            .axis = "at_work",
            .at = trace_.mean_at_work(),
            .label = text(fmt::format("{} mean", number(trace_.mean_at_work(), 1)),
                          number(trace_.mean_at_work(), 1))};
  return labelled({"at_work_box"},
                  box({"work_lines"}, {std::move(curve), std::move(all), std::move(mean)}, {},
                      {.least_height = 1.5f, .left = kLaneLeft, .right = kRight}),
                  text("blocks at work at once: a block has a multiprocessor to itself while there "
                       "are enough",
                       "blocks at work at once", "at work"),
                  {.weight = 1.8f, .least_height = 2.1f});
}

/// The blocks over the launch's time; under emulation over tiles, which only say what came before what.
Box DecodeScene::clocks() const {
  SpanList list("worked", "time", "time_block");
  const double now = trace_.launch_end();
  std::vector<double> last(static_cast<std::size_t>(trace_.blocks));
  for (std::size_t i = 0; i < trace_.items.size(); ++i) {
    const ItemTrace& item = trace_.items[i];
    const decode::Trace::Worked worked = trace_.worked(item);
    double& end = last[static_cast<std::size_t>(item.block)];
    end = std::max(end, worked.end);
    list.add(
        static_cast<int>(i), item.block, worked.begin, worked.end, State::plain,
        fmt::format("R{} head {}, {}", item.request, item.kv_head, counted(item.tiles, "tile")),
        item.request);
  }
  for (int block = 0; block < trace_.blocks; ++block) {
    const double end = last[static_cast<std::size_t>(block)];
    if (end < now) {
      list.add(static_cast<int>(trace_.items.size()) + block, block, end, now, State::to_come,
               "idle", -1);
    }
  }
  return labelled(
      {"clocks"},
      box({"clock_lanes"}, {list.made(now)}, {}, {.least_height = 2, .left = kLaneLeft}),
      trace_.clocked()
          ? text(fmt::format("{} over the launch's time", counted(trace_.blocks, "block")),
                 counted(trace_.blocks, "block"))
          : text(fmt::format("{}, tile by tile: order, not time", counted(trace_.blocks, "block")),
                 "order, not time"),
      {.weight = 1, .least_width = 9, .least_height = 3.8f});
}

Box DecodeScene::look_back() const {
  return column(
      {"right"},
      {row({"above"}, {at_work_curve()}, {.rank = 2, .weight = 1.8f, .least_height = 2.1f}),
       box({"gap"}, {}, {}, {.weight = 0, .least_height = 0.9f}),
       row({"below"}, {clocks()}, {.weight = 1.5f, .least_height = 3.6f})},
      {.even = true});
}

std::string DecodeScene::explain_time(const Key& key) const {
  if (key.is({"worked"}) && key.i >= 0 && key.i < std::ssize(trace_.items)) {
    const ItemTrace& item = trace_.items[static_cast<std::size_t>(key.i)];
    const decode::Trace::Worked worked = trace_.worked(item);
    return fmt::format("block {}: K/V head {} of R{}, {}\nfrom {:.0f} to {:.0f} {}", item.block,
                       item.kv_head, item.request, counted(item.tiles, "tile"), worked.begin,
                       worked.end, trace_.clocked() ? "ns" : "tiles");
  }
  return {};
}

}  // namespace tilestep::scenes

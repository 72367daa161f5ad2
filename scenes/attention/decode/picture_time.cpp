// When the blocks of the launch were at work.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/attention/decode/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using decode::ItemTrace;
using words::counted, words::number;

namespace {

constexpr int kChipColumns = 22;

}  // namespace

// ---- time -------------------------------------------------------------------------------------------------

std::vector<Axis> DecodeScene::time_axes() const {
  std::vector<std::string> parts;
  do parts.push_back(fmt::format("part {}", parts.size()));
  while (std::ssize(parts) < std::min<std::int64_t>(std::ssize(trace_.parts), kMostParts));
  // In tiles: as far as one block would need for all keys of a request, however they are split.
  double high = std::max(1.0, trace_.launch_end());
  const int longest = *std::max_element(trace_.tokens.begin(), trace_.tokens.end());
  if (!trace_.clocked()) high = std::max(high, std::ceil(double(longest) / trace_.shape.tile));
  return {{.name = "time",
           .high = rounded(0, high).second,
           .title = trace_.clocked() ? text("ns") : text("tiles, no clock", "tiles"),
           .ticks = true},
          {.name = "time_block",
           .kind = Axis::band,
           .count = trace_.blocks,
           .names = block_names(),
           .least_slot = 1},
          {.name = "weight", .fixed = true, .ticks = true},
          {.name = "part_lane",
           .kind = Axis::band,
           .count = static_cast<int>(parts.size()),
           .names = parts,
           .least_slot = 2},
          {.name = "chip_column", .kind = Axis::band, .count = kChipColumns, .least_slot = 2},
          {.name = "chip_row",
           .kind = Axis::band,
           .count = decode::kMultiprocessors / kChipColumns,
           .least_slot = 2}};
}

std::string DecodeScene::time_sentence() const {
  const std::string mean = number(trace_.mean_at_work(), 1);
  if (!trace_.clocked()) {
    return fmt::format("Time: emulated, so no clock. By tiles, {} of {} are at work on average.",
                       mean, counted(trace_.blocks, "block"));
  }
  return fmt::format("Time: the launch took {} µs, with {} of {} at work on average.",
                     number(trace_.launch_end() / 1e3, 1), mean, counted(trace_.blocks, "block"));
}

/// A cell per multiprocessor, in the tone of the request whose block it has: one each while there are enough.
Box DecodeScene::chip() const {
  Cells cells{items("multiprocessor", decode::kMultiprocessors)};
  cells.x = "chip_column";
  cells.y = "chip_row";
  cells.columns = kChipColumns;
  std::vector<int> requests(decode::kMultiprocessors, -1);
  for (const ItemTrace& item : trace_.items) {
    if (item.block < decode::kMultiprocessors)
      requests[static_cast<std::size_t>(item.block)] = item.request;
  }
  for (const int request : requests) {
    cells.items.tone.each.push_back(tone_of(request));
    cells.items.names.push_back(request < 0 ? "" : fmt::format("R{}", request));
    cells.items.state.each.push_back(request < 0 ? State::to_come : State::plain);
    cells.items.glyph.each.push_back(request < 0 ? kHollow : kSolid);
  }
  const int with = std::min(trace_.blocks, decode::kMultiprocessors);
  cells.items.about = {{"request", {-1, requests}}};
  return labelled(
      {"chip_box"}, box({"chip"}, {cells}, {}, {.least_height = 1.5f}),
      text(fmt::format("{} of {} multiprocessors have a block; {} at work on average", with,
                       decode::kMultiprocessors, number(trace_.mean_at_work(), 1)),
           fmt::format("{} of {} SMs", with, decode::kMultiprocessors)),
      {.weight = 1, .least_height = 2.1f});
}

/// The blocks over the launch's time; under emulation over tiles, which give only the order.
Box DecodeScene::clocks() const {
  const double now = trace_.launch_end();
  SpanList list = block_spans("worked", "time", "time_block", now, [this](const ItemTrace& item) {
    const decode::Trace::Worked worked = trace_.worked(item);
    return SpanList::Bar{.begin = worked.begin,
                         .end = worked.end,
                         .name = fmt::format("R{} head {}, {}", item.request, item.kv_head,
                                             counted(item.tiles, "tile"))};
  });
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
  return column({"right"},
                {row({"above"}, {chip()}, {.rank = 2, .weight = 1.8f, .least_height = 2.1f}),
                 box({"gap"}, {}, {}, {.weight = 0, .least_height = 0.5f}),
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

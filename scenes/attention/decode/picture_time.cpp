// What the launch looks like in memory and in time: the sectors that an item's keys came from, and when the blocks were at
// work.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "scenes/attention/decode/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using decode::GatherTrace, decode::ItemTrace, decode::Piece;
using words::counted, words::number;

namespace {

constexpr std::int64_t kSector = 32, kLine = 128;
constexpr int kMostLines = 8;   ///< of the gather that are drawn
constexpr float kRight = 4.5f;  ///< and for what lines across say

}  // namespace

// ---- the gather -------------------------------------------------------------------------------------------

bool DecodeScene::gathered(Cursor cursor) const {
  const ItemTrace& item = trace_.items[static_cast<std::size_t>(trace_.traced_item)];
  return reading(cursor) && cursor.tile >= trace_.end_of(item);
}

/// The sectors that the traced item's keys came from, page after page, as far as there is room for their lines.
Strip DecodeScene::sectors() const {
  const decode::Shape& shape = trace_.shape;
  const ItemTrace& item = trace_.items[static_cast<std::size_t>(trace_.traced_item)];
  const std::int64_t piece =
      std::int64_t{shape.key} * decode::bits_of(shape.kv_dtype) / 8 * shape.page_size;
  Strip strip{items("gather_sector", 0)};
  std::int64_t line = -1;
  int lines = 0;
  for (const GatherTrace& gather : trace_.gathers) {
    const std::int64_t first =
        (std::int64_t{gather.page} * shape.cached_heads + item.kv_head) * piece;
    const std::int64_t end = first + gather.bytes;
    for (std::int64_t at = first / kSector * kSector; at < end; at += kSector) {
      if (at / kLine != line) {
        line = at / kLine;
        if (++lines > kMostLines) return strip;
      }
      const auto from = static_cast<int>(std::max(at, first) - at);
      const auto to = static_cast<int>(std::min(at + kSector, end) - at);
      strip.address.push_back(at);
      strip.used.push_back(((std::uint64_t{1} << (to - from)) - 1) << from);
      strip.items.state.each.push_back(gather.owned ? State::plain : State::wrong);
      ++strip.items.count;
    }
  }
  return strip;
}

/// Pages of each size: sectors that hold what a head has in one, how much of them is used, how many pages a tile needs.
Ledger DecodeScene::page_sizes() const {
  constexpr int kColumns = 3;
  const decode::LayerShape layer = decode::layer_shape(params_);
  Ledger table{items("page_size", 0), {}, {}};
  table.columns = {text("sectors"), text("used"), text("look-ups", "asks")};
  for (const decode::PageSize size : all_of<decode::PageSize>()) {
    const int tokens = tokens_of(size);
    const Piece piece = decode::piece_of(layer, trace_.shape.kv_dtype, tokens);
    table.rows.push_back(text(std::to_string(tokens)));
    table.items.names.push_back(words::significant(piece.sectors, 4));
    table.items.names.push_back(words::percent(piece.of_sectors()));
    table.items.names.push_back(std::to_string(std::max(1, trace_.shape.tile / tokens)));
    const bool own = tokens == trace_.shape.page_size;
    table.items.flags.each.insert(table.items.flags.each.end(), kColumns,
                                  static_cast<std::uint8_t>(own ? kPicked : kNone));
  }
  table.items.count = static_cast<int>(table.items.names.size());
  table.items.per_row = kColumns;
  return table;
}

/// Where the traced item found its keys, and what pages of other sizes would make of it.
Box DecodeScene::gather(Cursor cursor) const {
  const ItemTrace& item = trace_.items[static_cast<std::size_t>(trace_.traced_item)];
  const std::string whose = fmt::format("K of {}, head {}", requests_of(item), item.kv_head);
  Strip strip = gathered(cursor) ? sectors() : Strip{items("gather_sector", 0)};
  const int request = request_number(item.row);
  strip.items.tone.all = request_tone(request);
  strip.items.about = {{"request", {request, {}}}};
  Text label = text(whose + ": not yet gathered", whose);
  if (gathered(cursor)) {
    std::int64_t sectors = 0, bytes = 0;
    for (const GatherTrace& one : trace_.gathers) {
      sectors += one.sectors;
      bytes += one.bytes;
    }
    const double used =
        sectors > 0 ? static_cast<double>(bytes) / static_cast<double>(kSector * sectors) : 1;
    label = text(fmt::format("{}: {}, {} of each used", whose, counted(sectors, "sector"),
                             words::percent(used)),
                 fmt::format("{}, {} used", counted(sectors, "sector"), words::percent(used)),
                 counted(sectors, "sector"));
  }
  return column({"gather"},
                {labelled({"sector_box"},
                          box({"sectors"}, {std::move(strip)}, {},
                              {.least_height = 1.2f, .most_height = 1.2f}),
                          std::move(label), {.weight = 0, .least_height = 2.6f}),
                 labelled({"page_size_box"},
                          box({"page_size_table"}, {page_sizes()}, {}, {.least_height = 4}),
                          text("tokens per page (derived)", "tokens a page", "pages"),
                          {.rank = 2, .weight = 1.4f, .least_height = 5})},
                {.weight = 1, .least_width = 7, .least_height = 2.1f});
}

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
        fmt::format("{} head {}, {}", requests_of(item), item.kv_head, counted(item.tiles, "tile")),
        request_number(item.row));
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
  if (key.is({"page_size"}) && key.i >= 0 &&
      key.i < static_cast<int>(count_of<decode::PageSize>())) {
    const int tokens = tokens_of(static_cast<decode::PageSize>(key.i));
    const Piece piece =
        decode::piece_of(decode::layer_shape(params_), trace_.shape.kv_dtype, tokens);
    return fmt::format(
        "pages of {}\nkeys of a head: {:.0f} bytes in {} of 32 bytes, in one piece\na tile of {} "
        "tokens looks up {}\nby formula",
        counted(tokens, "token"), piece.bytes,
        piece.sectors == 1 ? "1 sector" : words::significant(piece.sectors, 4) + " sectors",
        trace_.shape.tile, counted(std::max(1, trace_.shape.tile / tokens), "page"));
  }
  if (key.is({"gather_sector"})) {
    const Strip strip = sectors();
    if (key.i < 0 || key.i >= strip.items.count) return {};
    const auto at = static_cast<std::size_t>(key.i);
    return fmt::format("sector at byte {} of K\n{} of 32 bytes used", strip.address[at],
                       std::popcount(strip.used[at]));
  }
  if (key.is({"worked"}) && key.i >= 0 && key.i < std::ssize(trace_.items)) {
    const ItemTrace& item = trace_.items[static_cast<std::size_t>(key.i)];
    const decode::Trace::Worked worked = trace_.worked(item);
    return fmt::format("block {}: K/V head {} of {}, {}\nfrom {:.0f} to {:.0f} {}", item.block,
                       item.kv_head, requests_of(item), counted(item.tiles, "tile"), worked.begin,
                       worked.end, trace_.clocked() ? "ns" : "tiles");
  }
  return {};
}

}  // namespace tilestep::scenes

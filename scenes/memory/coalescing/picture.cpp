// The picture of the coalescing lesson: lanes above, below them the 128-byte lines that the request touches,
// with every sector and every byte in its place, and the train of sectors that moves.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "scenes/memory/coalescing/scene.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/recorded.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using coalescing::Access, coalescing::RequestStats, coalescing::Sector, coalescing::WarpRequest;
using coalescing::kLanes, coalescing::kLineBytes, coalescing::kSectorBytes;

namespace {

constexpr std::uint8_t kAsked = 5;  ///< tone of what the lanes ask for: sky
constexpr float kRight = 2.9f;      ///< margin of all boxes, for the names of lines

int sector_of(const WarpRequest& request, int lane) {
  return static_cast<int>(request.byte_offset[lane] / kSectorBytes);
}

/// The lanes; a lane and its sector highlight each other.
Cells lanes_of(const WarpRequest* request, int picked) {
  Cells lanes;
  lanes.items = items("lane", kLanes);
  lanes.x = "lane";
  lanes.items.act = {Act::set, "lane"};
  lanes.items.format = {Format::integer, 0, "B"};
  std::vector<int> sectors;
  for (int lane = 0; lane < kLanes; ++lane) {
    const bool active = request != nullptr && request->active(lane);
    lanes.items.value.each.push_back(active ? static_cast<float>(request->byte_offset[lane]) : NAN);
    lanes.items.names.push_back(std::to_string(lane));
    lanes.items.state.each.push_back(request == nullptr ? State::to_come
                                     : active           ? State::plain
                                                        : State::wasted);
    lanes.items.tone.each.push_back(active ? kAsked : 0);
    lanes.items.flags.each.push_back(lane == picked ? kPicked : kNone);
    sectors.push_back(active ? sector_of(*request, lane) : -1);
  }
  lanes.items.about = {{"lane", {0, numbers(kLanes)}}, {"sector", {-1, sectors}}};
  return lanes;
}

/// Loaded sectors move on to their lanes at the next request; stored ones come from the lanes.
Strip memory_of(const WarpRequest& request, const std::vector<Sector>& sectors, int picked,
                bool moved) {
  Strip strip{items("sector", static_cast<int>(sectors.size()))};
  strip.x = "byte";
  strip.items.tone.all = kAsked;
  strip.items.state.all = moved ? State::plain : State::to_come;
  strip.items.format = {Format::integer, 0, "of 32 bytes used"};
  strip.bytes = kSectorBytes;
  strip.line = kLineBytes;
  for (const Sector& sector : sectors) {
    strip.items.ids.push_back(static_cast<int>(sector.index));
    strip.address.push_back(sector.index * kSectorBytes);
    strip.used.push_back(sector.used_bytes);
    strip.items.value.each.push_back(static_cast<float>(std::popcount(sector.used_bytes)));
    const bool followed = picked >= 0 && (sector.lanes >> picked & 1u) != 0;
    strip.items.flags.each.push_back(followed ? kPicked : kNone);
    if (!moved) continue;
    const Key lane{"lane", std::countr_zero(sector.lanes)};
    strip.items.ways.push_back(request.kind == Access::load ? Way{{}, lane, 0, true}
                                                            : Way{lane, {}, 0, true});
  }
  strip.items.about = {{"sector", {-1, strip.items.ids}}};
  return strip;
}

/// The bytes of each lane, with its number, or with the count of lanes that share them. Links start at all lanes,
/// or only at the followed one where they would cross many lines.
Links links_of(const WarpRequest& request, int element_bytes, int picked, bool all) {
  Links links{items("request", 0)};
  links.items.tone.all = kAsked;
  links.items.act = {Act::pick, "lane"};
  std::vector<int>& lanes = links.items.ids;
  std::vector<int> sectors;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!request.active(lane)) continue;
    const std::int64_t at = request.byte_offset[lane];
    const float first = static_cast<float>(at % kSectorBytes) / kSectorBytes,
                size = static_cast<float>(element_bytes) / kSectorBytes;
    const auto same = std::count(request.byte_offset.begin(), request.byte_offset.end(), at);
    lanes.push_back(lane);
    sectors.push_back(sector_of(request, lane));
    links.items.names.push_back(same > 1 ? fmt::format("×{}", same) : std::to_string(lane));
    links.items.flags.each.push_back(lane == picked ? kPicked : kNone);
    links.from.push_back(all || lane == picked ? Anchor{{"lane", lane}} : Anchor{});
    links.to.push_back({{"sector", sectors.back()}, first, first + size});
  }
  links.items.count = static_cast<int>(lanes.size());
  links.items.about = {{"lane", {-1, lanes}}, {"sector", {-1, sectors}}};
  return links;
}

}  // namespace

Extent CoalescingScene::extent() const {
  return {{{.name = "lane", .kind = Axis::band, .count = kLanes},
           {.name = "byte", .high = kLineBytes, .fixed = true},
           {.name = "sectors", .high = kLanes, .fixed = true, .step = 8, .ticks = true}}};
}

std::vector<int> CoalescingScene::partly_stored(const WarpRequest& request) const {
  std::vector<int> stored;
  for (const Sector& sector : touched_sectors(request, trace_.element_bytes)) {
    const int bytes = std::popcount(sector.used_bytes);
    if (request.kind == Access::store && bytes < kSectorBytes) stored.push_back(bytes);
  }
  return stored;
}

/// The sectors that move, end to end: the length is the request's cost, the filled part is used.
Box CoalescingScene::moved(Cursor cursor) const {
  Strip train = picture::train("moved", "sectors", kSectorBytes, kLanes);
  Text said = text("moved: nothing yet");
  const WarpRequest* one = request(cursor);
  if (one == nullptr || part(cursor) != Part::moved) {
    add_row(train, "", {});
  } else {
    const std::vector<Sector> sectors = touched_sectors(*one, trace_.element_bytes);
    const RequestStats stats = request_stats(*one, trace_.element_bytes);
    std::vector<int> used, from;
    for (const Sector& sector : sectors) {
      used.push_back(std::popcount(sector.used_bytes));
      from.push_back(static_cast<int>(sector.index));
      train.items.ways.push_back({{"sector", from.back()}, {}, 0, true});
    }
    add_row(train, fmt::format("{} B", stats.bytes_fetched), used);
    const std::vector<int> left_out = partly_stored(*one);
    if (!left_out.empty()) add_row(train, "read", std::vector<int>(left_out.size(), 0));
    from.resize(static_cast<std::size_t>(train.items.count), -1);
    train.items.about = {{"sector", {-1, from}}, {"share", {0}}};
    const std::string count = words::counted(stats.sectors, "sector"),
                      again =
                          left_out.empty() ? "" : fmt::format(", {} read first", left_out.size());
    said = text(fmt::format("moved: {} of 32 bytes{}; {} of {} bytes used", count, again,
                            stats.bytes_used, stats.bytes_fetched),
                fmt::format("moved: {}{}; {} of {} B used", count, again, stats.bytes_used,
                            stats.bytes_fetched),
                "moved: " + count + again);
  }
  train.items.tone.all = kAsked;
  train.items.format = {Format::integer, 0, "of 32 bytes used"};
  // Sectors that move twice are the point then.
  const bool twice = train.names.size() > 1;
  return box({"moved"}, {train}, said,
             {.weight = twice ? 8.0f : 0.1f, .least_height = twice ? 2.6f : 1.8f, .right = kRight});
}

Picture CoalescingScene::picture(const Extent& extent, const View& view) const {
  const WarpRequest* one = request(view.cursor);
  const int picked = view.pick("lane", -1);
  Strip memory{items("sector", 0)};
  memory.x = "byte";
  Links links{items("request", 0)};
  std::string brief = "32 lanes are about to run.";
  if (one != nullptr) {
    const bool asking = part(view.cursor) == Part::addresses;
    memory = memory_of(*one, touched_sectors(*one, trace_.element_bytes), picked, !asking);
    const RequestStats stats = request_stats(*one, trace_.element_bytes);
    links = links_of(*one, trace_.element_bytes, picked, asking || stats.lines <= 2);
    brief = asking ? fmt::format("{} each.", words::counted(trace_.element_bytes, "byte"))
                   : fmt::format("{} for {}.", words::counted(stats.sectors, "sector"),
                                 words::counted(stats.bytes_used, "byte"));
  }
  // An edited kernel's addresses are shown; the pattern's statement does not describe them.
  const bool other = fails(report_, "traced_addresses");
  const Run statement{
      (other ? "not " : "") + trace_.statement, {}, other ? State::wrong : State::plain};
  return {
      text(sentence(view.cursor), brief), extent.axes,
      column({"all"}, {box({"lanes"}, {lanes_of(one, picked)},
                           Text{{{"32 lanes of a warp run "}, statement}, {statement}},
                           {.rank = 1, .weight = 0, .least_height = 1.4f, .right = kRight}),
                       box({"memory"}, {memory, links},
                           text("a row is a line: 128 bytes, 4 sectors", "lines of 128 bytes"),
                           {.least_height = 2.8f, .right = kRight, .place = Place::device_memory}),
                       moved(view.cursor)})};
}

std::vector<Symbol> CoalescingScene::symbols(const View&) const {
  return {{"bytes used",
           {"share", 0},
           kAsked,
           "Bytes that some lane requested, of all that moved: a sector moves whole, 32 bytes."}};
}

std::string CoalescingScene::explain(const View& view, const Key& key) const {
  const WarpRequest* one = request(view.cursor);
  if (one == nullptr) return {};
  if (key.is({"lane", "request"})) {
    if (!one->active(key.i)) return fmt::format("lane {}: idle", key.i);
    const bool movable = key.is({"lane"}) && one->site == coalescing::Site::pattern;
    return fmt::format("lane {}: byte {}\nin sector {}{}", key.i, one->byte_offset[key.i],
                       sector_of(*one, key.i),
                       movable ? "\nclick to follow it, drag it to another sector or lane" : "");
  }
  const std::vector<Sector> sectors = touched_sectors(*one, trace_.element_bytes);
  const bool moving = key.is({"moved"}) && key.i >= 0;
  if (moving && key.i >= kLanes) {
    return "read before it is written back, as this request leaves some bytes unchanged\n"
           "not needed if other warps store them in time";
  }
  for (const Sector& sector : sectors) {
    const bool meant =
        moving ? &sector == &sectors[0] + key.i : key.is({"sector"}) && sector.index == key.i;
    if (!meant) continue;
    const std::int64_t first = sector.index * kSectorBytes;
    return fmt::format("sector {}: bytes {}–{}\n{} of 32 bytes used by {}", sector.index, first,
                       first + kSectorBytes - 1, std::popcount(sector.used_bytes),
                       words::counted(std::popcount(sector.lanes), "lane"));
  }
  return {};
}

std::vector<Readout> CoalescingScene::readouts(const View& view) const {
  const WarpRequest* one = request(view.cursor);
  const RequestStats stats =
      one == nullptr ? RequestStats{} : request_stats(*one, trace_.element_bytes);
  const std::string traced =
      "counted from the addresses that the kernel recorded while it ran on " + report_.device.name;
  const auto value = [&](double number, Part from = Part::sectors) {
    const bool known = one != nullptr && part(view.cursor) >= from;
    return known ? fmt::format("{:g}", std::round(10 * number) / 10) : std::string("–");
  };
  const bool told = one != nullptr && part(view.cursor) != Part::addresses;
  const bool best = stats.sectors == stats.best_sectors;
  constexpr auto kTraced = lab::Provenance::traced;
  std::vector<Readout> all = {
      {"sectors", "sectors", value(stats.sectors),
       told ? fmt::format("best {}", stats.best_sectors) : "", kTraced, traced, Readout::plain},
      {"fetched", "bytes moved", value(stats.bytes_fetched), told ? "B" : "", kTraced, traced},
      {"efficiency",
       "efficiency",
       value(stats.efficiency(), Part::moved),
       one != nullptr && part(view.cursor) == Part::moved ? "%" : "",
       kTraced,
       "bytes used / (sectors × 32)",
       best ? Readout::good : Readout::plain,
       {"share", 0}},
      {"lines", "128-byte lines", value(stats.lines), "", kTraced, traced}};
  const auto* counted = number_of_run(report_, "sectors_per_request", "hardware").number;
  if (one != nullptr && counted != nullptr) {
    all.push_back({"sectors_per_request", "sectors, by hardware",
                   fmt::format("{:.2f}", counted->value), "", counted->provenance,
                   lab::provenance_sentence(*counted, report_)});
  }
  return all;
}

}  // namespace tilestep::scenes

// The picture of the coalescing lesson: lanes above, links, and below them the 128-byte lines that the
// request touches, with every sector and every byte in its place.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "scenes/memory/coalescing/scene.hpp"
#include "scenes/shared/recorded.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using coalescing::Access, coalescing::RequestStats, coalescing::Sector, coalescing::WarpRequest;
using coalescing::kLanes, coalescing::kLineBytes, coalescing::kSectorBytes;

namespace {

constexpr std::uint8_t kAsked = 5;  ///< tone of what the lanes ask for: sky

int sector_of(const WarpRequest& request, int lane) {
  return static_cast<int>(request.byte_offset[lane] / kSectorBytes);
}

/// The lanes; a lane and its sector light up each other.
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

/// What is loaded goes to its lanes when the next request comes; what is stored comes from them.
Strip memory_of(const WarpRequest& request, const std::vector<Sector>& sectors, int picked,
                bool moved) {
  Strip strip;
  strip.items = items("sector", static_cast<int>(sectors.size()));
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

/// From each lane to its bytes.
Links links_of(const WarpRequest& request, int element_bytes) {
  Links links;
  links.items = items("request", 0);
  links.items.tone.all = kAsked;
  std::vector<int>& lanes = links.items.ids;
  std::vector<int> sectors;
  for (int lane = 0; lane < kLanes; ++lane) {
    if (!request.active(lane)) continue;
    const auto byte = static_cast<float>(request.byte_offset[lane] % kSectorBytes);
    const float first = byte / kSectorBytes,
                size = static_cast<float>(element_bytes) / kSectorBytes;
    lanes.push_back(lane);
    sectors.push_back(sector_of(request, lane));
    links.from.push_back({{"lane", lane}});
    links.to.push_back({{"sector", sectors.back()}, first, first + size});
  }
  links.items.count = static_cast<int>(lanes.size());
  links.items.about = {{"lane", {-1, lanes}}, {"sector", {-1, sectors}}};
  return links;
}

/// How much of what moves is used; the rest is waste.
Box share_of(const RequestStats* stats) {
  Bars used{items("used", 0), "share", "whole"}, wasted{items("wasted", 0), "share", "whole"};
  Text said;
  if (stats != nullptr) {
    const auto percent = static_cast<float>(stats->efficiency());
    used.items = items("used", {percent}, {Format::fixed, 0, "%"});
    used.items.tone.all = kAsked;
    used.items.about = {{"share", {0}}};
    wasted.items = items("wasted", std::vector<float>{100});
    wasted.items.base.all = percent;
    wasted.items.state.all = State::wasted;
    said = text(fmt::format("{} of {} bytes used", stats->bytes_used, stats->bytes_fetched),
                fmt::format("{} of {} B", stats->bytes_used, stats->bytes_fetched));
  }
  Box share = box({"share"}, {used, wasted}, {},
                  {.rank = 1, .weight = 0, .least_height = 1.15f, .right = 12});
  share.value = said;
  return share;
}

}  // namespace

Extent CoalescingScene::extent() const {
  return {
      {{.name = "lane", .kind = Axis::band, .count = kLanes},
       {.name = "whole", .kind = Axis::band, .count = 1},
       {.name = "share", .high = 100},
       {.name = "request", .kind = Axis::band, .count = static_cast<int>(trace_.requests.size())},
       {.name = "sectors", .high = kLanes}}};
}

Picture CoalescingScene::picture(const Extent& extent, const View& view) const {
  const WarpRequest* shown = request(view.cursor);
  const int picked = view.pick("lane", -1);
  Strip memory{items("sector", 0)};
  Links links{items("request", 0)};
  Text legend = text("memory: nothing asked for yet");
  Box share = share_of(nullptr);
  std::string brief = "32 lanes are about to run.";
  if (shown != nullptr) {
    legend = text("memory: 32-byte sectors in 128-byte lines", "32-byte sectors, 128-byte lines");
    memory = memory_of(*shown, touched_sectors(*shown, trace_.element_bytes), picked,
                       part(view.cursor) != Part::addresses);
    links = links_of(*shown, trace_.element_bytes);
    const RequestStats stats = request_stats(*shown, trace_.element_bytes);
    if (part(view.cursor) == Part::share) share = share_of(&stats);
    brief = part(view.cursor) == Part::addresses
                ? fmt::format("{} each.", words::counted(trace_.element_bytes, "byte"))
                : fmt::format("{} for {}.", words::counted(stats.sectors, "sector"),
                              words::counted(stats.bytes_used, "byte"));
  }
  // An edited kernel's addresses are shown; the pattern's statement is not theirs.
  const bool other = fails(report_, "traced_addresses");
  Lines statement =
      lines("statement", {text((other ? "not " : "") + trace_.statement)}, Lines::formula);
  if (other) statement.items.state.all = State::wrong;
  return {
      text(sentence(view.cursor), brief), extent.axes,
      column({"all"},
             {box({"code"}, {std::move(statement)}, {}, {.weight = 0, .least_height = 1.25f}),
              box({"lanes"}, {lanes_of(shown, picked)}, text("32 lanes of the warp", "32 lanes"),
                  {.weight = 0, .least_height = 1.4f}),
              box({"requests"}, {links}, {}, {.least_height = 1.2f}),
              box({"memory"}, {memory}, {}, {.weight = 0.35f, .least_height = 1.8f}),
              box({"legend"}, {}, legend, {.rank = 2, .weight = 0, .least_height = 0.05f}), share,
              history(view.cursor)})};
}

/// The sectors of each request so far: what one warp has shown in full, at a glance for all.
Box CoalescingScene::history(Cursor cursor) const {
  const int shown = requests_shown(cursor);
  const int counted = shown - (part(cursor) == Part::addresses && shown > 0 ? 1 : 0);
  std::vector<float> sectors;
  for (int r = 0; r < counted; ++r) {
    const RequestStats stats =
        request_stats(trace_.requests[static_cast<std::size_t>(r)], trace_.element_bytes);
    sectors.push_back(static_cast<float>(stats.sectors));
  }
  Bars bars{items("history", std::move(sectors), {Format::integer, 0, "sectors"}), "request",
            "sectors"};
  bars.items.tone.all = kAsked;
  for (int r = 0; r < counted; ++r) {
    bars.items.state.each.push_back(r + 1 < shown ? State::done : State::current);
  }
  bars.items.about = {{"history", {0, numbers(counted)}}};
  bars.items.act = {Act::go, "history"};
  return box(
      {"all_requests"}, {bars},
      text("sectors of each request, load and store in turn", "sectors of each request", "sectors"),
      {.rank = 3, .weight = 0.05f, .least_height = 1.0f});
}

std::vector<Symbol> CoalescingScene::symbols(const View&) const {
  return {
      {"bytes used",
       {"share", 0},
       kAsked,
       "Bytes that some lane asked for, of all that moved: sectors move whole, 32 bytes each."}};
}

std::string CoalescingScene::explain(const View& view, const Key& key) const {
  const WarpRequest* shown = request(view.cursor);
  if (shown == nullptr) return {};
  if (key.is({"lane", "request"})) {
    if (!shown->active(key.i)) return fmt::format("lane {}: idle", key.i);
    const bool movable = key.is({"lane"}) && shown->site == coalescing::Site::pattern;
    return fmt::format("lane {}: byte {}\nin sector {}{}", key.i, shown->byte_offset[key.i],
                       sector_of(*shown, key.i),
                       movable ? "\nclick to follow it, drag it to another sector or lane" : "");
  }
  if (key.is({"sector"})) {
    for (const Sector& sector : touched_sectors(*shown, trace_.element_bytes)) {
      if (sector.index != key.i) continue;
      const std::int64_t first = sector.index * kSectorBytes;
      return fmt::format("sector {}: bytes {}–{}\n{} of 32 bytes used by {}", sector.index, first,
                         first + kSectorBytes - 1, std::popcount(sector.used_bytes),
                         words::counted(std::popcount(sector.lanes), "lane"));
    }
  }
  if (key.is({"history"}) && key.i >= 0 && key.i < requests_shown(view.cursor)) {
    const WarpRequest& one = trace_.requests[static_cast<std::size_t>(key.i)];
    const std::string who =
        fmt::format("block {}, warp {}, {}", one.block, one.warp, name_of(one.kind));
    if (&one == shown && part(view.cursor) == Part::addresses) return who;
    return fmt::format("{}: {}\nclick to go there", who,
                       words::counted(request_stats(one, trace_.element_bytes).sectors, "sector"));
  }
  if (key.is({"used"})) return "bytes used / (sectors × 32)";
  return key.is({"wasted"}) ? "moved, and used by no lane" : "";
}

std::vector<Readout> CoalescingScene::readouts(const View& view) const {
  const WarpRequest* shown = request(view.cursor);
  const RequestStats stats =
      shown == nullptr ? RequestStats{} : request_stats(*shown, trace_.element_bytes);
  const std::string traced =
      "counted from the addresses that the kernel recorded while it ran on " + report_.device.name;
  const auto value = [&](double number, Part from = Part::sectors) {
    const bool known = shown != nullptr && part(view.cursor) >= from;
    return known ? fmt::format("{:g}", std::round(10 * number) / 10) : std::string("–");
  };
  const bool told = shown != nullptr && part(view.cursor) != Part::addresses;
  const bool best = stats.sectors == stats.best_sectors;
  constexpr auto kTraced = lab::Provenance::traced;
  std::vector<Readout> all = {
      {"sectors", "sectors", value(stats.sectors),
       told ? fmt::format("best {}", stats.best_sectors) : "", kTraced, traced,
       best ? Readout::plain : Readout::accent},
      {"fetched", "bytes moved", value(stats.bytes_fetched), told ? "B" : "", kTraced, traced},
      {"efficiency",
       "efficiency",
       value(stats.efficiency(), Part::share),
       shown != nullptr && part(view.cursor) == Part::share ? "%" : "",
       kTraced,
       "bytes used / (sectors × 32)",
       best ? Readout::good : Readout::accent,
       {"share", 0}},
      {"lines", "128-byte lines", value(stats.lines), "", kTraced, traced}};
  const auto* counted = number_of_run(report_, "sectors_per_request", "hardware").number;
  if (shown != nullptr && counted != nullptr) {
    all.push_back({"sectors_per_request", "sectors, by hardware",
                   fmt::format("{:.2f}", counted->value), "", counted->provenance,
                   lab::provenance_sentence(*counted, report_)});
  }
  return all;
}

}  // namespace tilestep::scenes

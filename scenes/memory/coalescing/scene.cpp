#include "scenes/memory/coalescing/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using coalescing::Access, coalescing::RequestStats, coalescing::Site, coalescing::WarpRequest;

StepAxis CoalescingScene::loaded(const coalescing::Trace&) {
  params_ = coalescing::knob_table().params(report_.params);
  in_full_ = static_cast<int>(trace_.requests_in_full());
  find_events();
  StepAxis axis{in_full_, 3, "step", {"addresses", "sectors", "moved"}, "requests"};
  if (std::ssize(trace_.requests) == in_full_) return axis;
  axis.folded = trace_.shown_at(trace_.requests.size() - 1).second + 1;
  ++axis.tiles;
  return axis;
}

CoalescingScene::Part CoalescingScene::part(Cursor cursor) const {
  return cursor.tile > in_full_ ? Part::moved : static_cast<Part>(std::clamp(cursor.phase, 0, 2));
}

int CoalescingScene::shown(Cursor cursor) const {
  if (cursor.tile <= in_full_) return cursor.tile - 1;
  const int first = in_full_ * (cursor.phase + 1);
  const int end = std::min(first + in_full_, static_cast<int>(trace_.requests.size()));
  int own = first;
  while (own + 1 < end && trace_.requests[own].site != Site::pattern) ++own;
  return std::min(own, end - 1);
}

Cursor CoalescingScene::after(std::size_t request) const {
  const auto [step, phase] = trace_.shown_at(request);
  return {step, step > in_full_ ? phase : static_cast<int>(Part::moved)};
}

double CoalescingScene::progress(Cursor cursor) const {
  return shown(cursor) + 1 - (2 - static_cast<int>(part(cursor))) / 3.0;
}

const WarpRequest* CoalescingScene::request(Cursor cursor) const {
  const int number = shown(cursor);
  return number < 0 ? nullptr : &trace_.requests[number];
}

std::string CoalescingScene::sentence(Cursor cursor) const {
  const WarpRequest* one = request(cursor);
  if (one == nullptr && fails(report_, "traced_addresses")) {
    return fmt::format("32 lanes are about to run a kernel whose addresses are not those of {}.",
                       trace_.statement);
  }
  if (one == nullptr) {
    return fmt::format("32 lanes are about to run {}, {} each.", trace_.statement,
                       words::counted(trace_.element_bytes, "byte"));
  }
  const RequestStats stats = request_stats(*one, trace_.element_bytes);
  const std::string who = fmt::format("Block {}, warp {} {}", one->block, one->warp,
                                      one->kind == Access::load ? "loads" : "stores");
  if (part(cursor) == Part::addresses) {
    return fmt::format("{}: {} request {} each, all at once.", who,
                       words::counted(stats.lanes, "lane"),
                       words::counted(trace_.element_bytes, "byte"));
  }
  if (part(cursor) == Part::sectors) {
    return fmt::format("{}: every sector touched moves whole, {}.", who,
                       words::counted(stats.sectors, "sector"));
  }
  if (const auto twice = std::ssize(partly_stored(*one)); twice > 0) {
    return fmt::format(
        "{}: {} for {}, {} twice: read first, then written.", who,
        words::counted(stats.sectors, "sector"), words::counted(stats.bytes_used, "byte"),
        twice == stats.sectors ? "all moved" : fmt::format("{} of them moved", twice));
  }
  if (stats.sectors == stats.best_sectors) {
    return fmt::format("{}: {}, the fewest that can hold its {}.", who,
                       words::counted(stats.sectors, "sector"),
                       words::counted(stats.bytes_used, "byte"));
  }
  return fmt::format("{}: {} sectors move for {} that {} could hold.", who, stats.sectors,
                     words::counted(stats.bytes_used, "byte"), stats.best_sectors);
}

/// The patterns' costs follow from their definitions, but would answer the first questions.
Cursor CoalescingScene::known(const lab::Table& table, int row, int column) const {
  if (table.id == "requests") return after(static_cast<std::size_t>(row));
  if (table.id != "patterns" || column <= 1) return {};
  return after(std::min<std::size_t>(1, trace_.requests.size() - 1));
}

int CoalescingScene::table_row(std::string_view table_id, const View& view) const {
  return table_id == "requests" ? shown(view.cursor) : -1;
}

std::optional<CoalescingScene::Lanes> CoalescingScene::lane_places(
    const WarpRequest& request) const {
  using coalescing::kLaneElements, coalescing::kLanes;
  const std::int64_t own = std::int64_t{kLaneElements} * trace_.element_bytes;
  Lanes lanes;
  lanes.first_byte = -1;
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::int64_t byte = request.byte_offset[lane];
    if (!request.active(lane)) continue;
    if (lanes.first_byte < 0 || byte < lanes.first_byte) lanes.first_byte = byte;
  }
  // Custom has its own places for each warp; other patterns count from the start of a line.
  const bool custom = trace_.pattern == coalescing::Pattern::custom;
  lanes.first_byte -= lanes.first_byte % (custom ? own : coalescing::kLineBytes);
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto at = static_cast<std::size_t>(lane);
    const std::int64_t element =
        request.active(lane) ? (request.byte_offset[at] - lanes.first_byte) / trace_.element_bytes
                             : lane;
    if (element < 0 || element >= kLaneElements) return std::nullopt;
    lanes.element[at] = static_cast<int>(element);
  }
  return lanes;
}

std::optional<lab::Settings> CoalescingScene::dropped(const View& view, const picture::Key& item,
                                                      const picture::Key& onto) const {
  const WarpRequest* one = request(view.cursor);
  const bool known = one != nullptr && one->site == coalescing::Site::pattern &&
                     item.is({"lane"}) && one->active(item.i);
  const auto now = known ? lane_places(*one) : std::nullopt;
  if (!now) return std::nullopt;
  std::array<int, coalescing::kLanes> lanes = now->element;
  const auto lane = static_cast<std::size_t>(item.i);
  int to = -1;
  if (onto.is({"lane"}) && onto.i != item.i && one->active(onto.i)) {
    to = lanes[onto.i];
  } else if (onto.is({"sector"}) || (onto.is({"request"}) && one->active(onto.i))) {
    const std::int64_t sector =
        onto.is({"sector"}) ? onto.i : one->byte_offset[onto.i] / coalescing::kSectorBytes;
    const std::int64_t byte = sector * coalescing::kSectorBytes - now->first_byte;
    const int first = static_cast<int>(byte / trace_.element_bytes);
    const int end = first + std::max(coalescing::kSectorBytes / trace_.element_bytes, 1);
    to = first;  // the first free one, otherwise the first
    const auto taken = [&](int element) {
      return std::find(lanes.begin(), lanes.end(), element) != lanes.end();
    };
    while (to < end && taken(to)) ++to;
    if (to == end) to = first;
  }
  if (to < 0 || to >= coalescing::kLaneElements || to == lanes[lane]) return std::nullopt;
  // No two lanes may store to one place: they swap.
  const auto other = std::find(lanes.begin(), lanes.end(), to);
  if (trace_.access == Access::store && other != lanes.end()) *other = lanes[lane];
  lanes[lane] = to;
  return lab::Settings{{"pattern", std::string(name_of(coalescing::Pattern::custom))},
                       {"lanes", coalescing::lanes_text(lanes)}};
}

std::optional<picture::Subject> CoalescingScene::subject_of_column(
    std::string_view table_id, std::string_view column_id) const {
  if (table_id == "requests" && column_id == "efficiency") return picture::Subject{"share", 0};
  return std::nullopt;
}

SourceMark CoalescingScene::source(const View& view) const {
  const bool apart = trace_.index_line != trace_.access_line;
  const int lines[] = {trace_.access_line, apart ? trace_.index_line : 0};
  SourceMark mark = source_mark(coalescing::kSourcePath, lines, view.cursor.tile > 0 ? 0 : -1);
  const WarpRequest* one = request(view.cursor);
  if (one == nullptr) return mark;
  int lane = view.pick("lane", -1);
  if (lane < 0 || !one->active(lane)) lane = std::countr_zero(one->active_lanes);
  const char* array = (one->kind == Access::load) ? "in" : "out";
  mark.values[trace_.access_line] =
      fmt::format("lane {}: byte {} of {}", lane, one->byte_offset[lane], array);
  return mark;
}

}  // namespace tilestep::scenes
TILESTEP_SCENE(coalescing, CoalescingScene)

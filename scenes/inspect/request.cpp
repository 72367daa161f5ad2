#include "scenes/inspect/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "kernels/base/inspect/requests.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;

namespace {

using nlohmann::json;

constexpr std::uint8_t kAsked =
    5;  ///< tone of what the lanes ask for: sky, as in the lesson on coalescing
constexpr int kLine = 128, kSectorSize = 32, kBankCount = 32, kWordSize = 4, kMostBytes = 64;
constexpr std::int64_t kFarthest = std::int64_t{1} << 35;
constexpr float kRight = 2.9f;

[[noreturn]] void refuse() {
  throw Error("this is no report of `tilestep inspect`: its requests cannot be read");
}

std::int64_t whole(const json& of, const char* name, std::int64_t low, std::int64_t high) {
  const auto found = of.find(name);
  if (found == of.end() || !found->is_number_integer()) refuse();
  const auto value = found->get<std::int64_t>();
  if (value < low || value > high) refuse();
  return value;
}

/// Lanes of a part of the warp that shared memory serves by itself.
int lanes_at_once(const InspectedRequest& of) {
  inspect::Request request;
  request.bytes = static_cast<std::uint32_t>(of.bytes);
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    if (of.offset[lane] < 0) continue;
    request.lanes |= 1u << lane;
    request.address[lane] = static_cast<std::uintptr_t>(of.offset[lane]);
  }
  return kWarpLanes / inspect::parts_of(request);
}

Cells lanes_of(const InspectedRequest& request) {
  Cells lanes;
  lanes.items = items("lane", kWarpLanes);
  lanes.x = "lane";
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const std::int64_t at = request.offset[static_cast<std::size_t>(lane)];
    lanes.items.value.each.push_back(at >= 0 ? static_cast<float>(at) : NAN);
    lanes.items.state.each.push_back(at >= 0 ? State::plain : State::wasted);
    lanes.items.tone.each.push_back(at >= 0 ? kAsked : 0);
  }
  return lanes;
}

/// The bytes that are wanted of each sector.
std::map<std::int64_t, std::uint32_t> sectors_of(const InspectedRequest& request) {
  std::map<std::int64_t, std::uint32_t> used;
  for (const std::int64_t at : request.offset) {
    for (std::int64_t byte = at; at >= 0 && byte < at + request.bytes; ++byte)
      used[byte / kSectorSize] |= 1u << byte % kSectorSize;
  }
  return used;
}

Box sectors_box(const InspectedRequest& request) {
  const auto used = sectors_of(request);
  Strip memory{items("sector", static_cast<int>(used.size()))};
  memory.x = "byte";
  memory.items.tone.all = kAsked;
  memory.bytes = kSectorSize;
  memory.line = kLine;
  for (const auto& [sector, bytes] : used) {
    memory.items.ids.push_back(static_cast<int>(sector));
    memory.address.push_back(sector * kSectorSize);
    memory.used.push_back(bytes);
  }
  Links links{items("request", 0)};
  links.items.tone.all = kAsked;
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const std::int64_t at = request.offset[static_cast<std::size_t>(lane)];
    if (at < 0) continue;
    const float first = static_cast<float>(at % kSectorSize) / kSectorSize;
    const auto same = std::count(request.offset.begin(), request.offset.end(), at);
    links.items.ids.push_back(lane);
    links.items.names.push_back(same > 1 ? fmt::format("×{}", same) : std::to_string(lane));
    links.from.push_back({});
    links.to.push_back({{"sector", static_cast<int>(at / kSectorSize)},
                        first,
                        std::min(first + static_cast<float>(request.bytes) / kSectorSize, 1.0f)});
  }
  links.items.count = static_cast<int>(links.items.ids.size());
  return box({"memory"}, {memory, links},
             text("a row is a line: 128 bytes, 4 sectors", "lines of 128 bytes"),
             {.least_height = 3.4f, .right = kRight, .place = Place::device_memory});
}

Box train_box(const InspectedRequest& request) {
  Strip train = picture::train("moved", "sectors", kSectorSize, kWarpLanes);
  std::vector<int> used;
  for (const auto& [sector, bytes] : sectors_of(request)) used.push_back(__builtin_popcount(bytes));
  used.resize(std::min<std::size_t>(used.size(), kWarpLanes));
  add_row(train, fmt::format("{} B", kSectorSize * request.moved), used);
  train.items.tone.all = kAsked;
  return box({"moved"}, {train},
             text(fmt::format("moved: {} of 32 bytes, where {} would do",
                              words::counted(request.moved, "sector"), request.least)),
             {.rank = 2, .weight = 0.25f, .least_height = 1.8f, .right = kRight});
}

/// A row a turn: which lanes each bank gives a word to.
Box banks_box(const InspectedRequest& request) {
  std::vector<std::map<int, std::string>> turns;
  const int at_once = lanes_at_once(request);
  for (int part = 0; part < kWarpLanes; part += at_once) {
    std::array<std::map<std::int64_t, std::vector<int>>, kBankCount> banks;
    std::size_t most = 0;
    for (int lane = part; lane < part + at_once; ++lane) {
      const std::int64_t at = request.offset[static_cast<std::size_t>(lane)];
      if (at < 0) continue;
      for (std::int64_t word = at / kWordSize; word <= (at + request.bytes - 1) / kWordSize;
           ++word) {
        auto& of_bank = banks[static_cast<std::size_t>(word % kBankCount)];
        of_bank[word].push_back(lane);
        most = std::max(most, of_bank.size());
      }
    }
    const std::size_t first = turns.size();
    turns.resize(first + most);
    for (std::size_t bank = 0; bank < banks.size(); ++bank) {
      std::size_t turn = first;
      for (const auto& [word, lanes] : banks[bank])
        turns[turn++][static_cast<int>(bank)] =
            lanes.size() == 1 ? std::to_string(lanes[0]) : fmt::format("×{}", lanes.size());
    }
  }
  Cells cells;
  cells.items = items("turn", static_cast<int>(turns.size()) * kBankCount);
  cells.items.per_row = cells.columns = kBankCount;
  cells.x = "bank";
  cells.y = "turns";
  for (const auto& turn : turns) {
    for (int bank = 0; bank < kBankCount; ++bank) {
      const auto found = turn.find(bank);
      cells.items.names.push_back(found == turn.end() ? "" : found->second);
      cells.items.state.each.push_back(found == turn.end() ? State::to_come : State::plain);
      cells.items.tone.each.push_back(found == turn.end() ? 0 : kAsked);
    }
  }
  return box({"banks"}, {cells},
             text(fmt::format("the 32 banks, a row a turn: {}, where {} would do",
                              words::counted(request.moved, "turn"), request.least)),
             {.least_height = 3.4f, .right = kRight, .place = Place::shared_memory});
}

}  // namespace

std::vector<InspectedRequest> inspected_requests(const lab::Report& report) {
  std::vector<InspectedRequest> all;
  const auto worst = report.trace->find("worst");
  if (worst == report.trace->end() || !worst->is_array()) refuse();
  for (const json& each : *worst) {
    if (!each.is_object()) refuse();
    constexpr std::int64_t kMost = 2147483647;
    InspectedRequest request;
    request.launch = static_cast<int>(whole(each, "launch", 1, kMost));
    request.line = static_cast<int>(whole(each, "line", 1, kMost));
    request.bytes = static_cast<int>(whole(each, "bytes", 1, kMost));
    request.block = static_cast<int>(whole(each, "block", 0, kMost));
    request.warp = static_cast<int>(whole(each, "warp", 0, kMost));
    request.moved = static_cast<int>(whole(each, "moved", 0, kMost));
    request.least = static_cast<int>(whole(each, "least", 0, kMost));
    if (request.bytes > kMostBytes) continue;  // a copy of a whole array has no picture
    const auto offsets = each.find("offsets");
    const auto space = each.find("space"), use = each.find("use");
    if (offsets == each.end() || !offsets->is_array() || offsets->size() != kWarpLanes ||
        space == each.end() || use == each.end() || !use->is_string())
      refuse();
    request.shared = *space == "shared";
    request.use = use->get<std::string>();
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      const json& at = offsets->at(lane);
      if (!at.is_null() && !at.is_number_integer()) refuse();
      request.offset[lane] = at.is_null() ? -1 : at.get<std::int64_t>();
      if (request.offset[lane] < -1 || request.offset[lane] > kFarthest) refuse();
    }
    all.push_back(std::move(request));
  }
  return all;
}

std::vector<std::string> differences_of(const lab::Report& report) {
  std::vector<std::string> all;
  const auto found = report.trace->find("differences");
  if (found == report.trace->end() || !found->is_array()) return all;
  for (const json& each : *found) {
    if (each.is_string()) all.push_back(lab::shown(each.get<std::string>()));
  }
  return all;
}

std::string said_of(const InspectedRequest& request) {
  const auto active = kWarpLanes - std::count(request.offset.begin(), request.offset.end(), -1);
  return fmt::format("warp {} of block {}: a {} of {}, {} each", request.warp, request.block,
                     request.use, words::counted(static_cast<int>(active), "lane"),
                     words::counted(request.bytes, "byte"));
}

Picture picture_of(const InspectedRequest& request) {
  std::vector<Box> boxes = {box({"lanes"}, {lanes_of(request)}, text("lanes of the warp"),
                                {.rank = 1, .weight = 0, .least_height = 2.4f, .right = kRight})};
  std::vector<Axis> axes = {
      {.name = "lane", .kind = Axis::band, .count = kWarpLanes, .ticks = true}};
  if (request.shared) {
    boxes.push_back(banks_box(request));
    axes.push_back({.name = "bank", .kind = Axis::band, .count = kBankCount, .ticks = true});
    // As many as the addresses take: `moved` is what somebody says.
    const auto* turns = std::get_if<Cells>(&boxes.back().marks.front());
    axes.push_back({.name = "turns",
                    .kind = Axis::band,
                    .count = std::max(turns->items.count / kBankCount, 1)});
  } else {
    axes.push_back({.name = "byte", .high = kLine, .fixed = true});
    axes.push_back(
        {.name = "sectors", .high = kWarpLanes, .fixed = true, .step = 8, .ticks = true});
    boxes.push_back(sectors_box(request));
    boxes.push_back(train_box(request));
  }
  return {text(said_of(request)), axes, column({"all"}, std::move(boxes))};
}

}  // namespace tilestep::scenes

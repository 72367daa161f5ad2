#include "scenes/inspect/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/base/lab/sentence.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;

namespace {

constexpr int kMostStreams = 6;
constexpr std::size_t kMostEvents = 48;

struct Kind {
  std::string_view what;
  const char* sign;
  std::uint8_t tone;
  bool of_host;
};
constexpr std::array<Kind, 6> kKinds = {{{"allocate", "+", 0, true},
                                         {"free", "−", 0, true},
                                         {"wait", "wait", 0, true},
                                         {"copy", "", 5, false},
                                         {"fill", "0", 5, false},
                                         {"launch", "k", 3, false}}};

const Kind* kind_of(std::string_view what) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(),
                                  [&](const Kind& each) { return each.what == what; });
  return found == kKinds.end() ? nullptr : &*found;
}

std::string sign_of(const InspectedTimeline::Event& event, const Kind& kind) {
  if (event.what == "launch") return fmt::format("k{}", event.launch);
  if (event.what == "copy")
    return event.detail == "host to device"   ? "in"
           : event.detail == "device to host" ? "out"
                                              : "copy";
  return kind.sign;
}

}  // namespace

InspectedTimeline inspected_timeline(const lab::Report& report) {
  InspectedTimeline timeline;
  const lab::Table* table = report.table("events");
  for (std::size_t row = 0; table != nullptr && row < table->rows.size(); ++row) {
    InspectedTimeline::Event event;
    for (std::size_t i = 0; i < table->columns.size() && i < table->rows[row].size(); ++i) {
      const std::string& id = table->columns[i].id;
      const auto* number = std::get_if<double>(&table->rows[row][i]);
      const int whole =
          number == nullptr ? 0 : static_cast<int>(std::clamp(*number, 0.0, 2147483647.0));
      if (id == "what") event.what = table->text(row, i);
      if (id == "name") event.name = lab::shown(table->text(row, i));
      if (id == "detail") event.detail = lab::shown(table->text(row, i));
      if (id == "line") event.line = whole;
      if (id == "stream") event.stream = std::min(whole, kMostStreams - 1);
      if (id == "launch") event.launch = whole;
    }
    if (kind_of(event.what) == nullptr) continue;
    timeline.streams = std::max(timeline.streams, event.stream + 1);
    timeline.events.push_back(std::move(event));
  }
  return timeline;
}

std::string said_of(const InspectedTimeline& timeline) {
  return fmt::format("{} on {}, in their order",
                     words::counted(static_cast<int>(timeline.events.size()), "call"),
                     words::counted(timeline.streams, "stream"));
}

Picture picture_of(const InspectedTimeline& timeline) {
  const int count = static_cast<int>(std::min(timeline.events.size(), kMostEvents));
  const int lanes = timeline.streams + 1;
  Cells cells;
  cells.items = items("call", lanes * count);
  cells.items.per_row = cells.columns = count;
  cells.x = "beat";
  cells.y = "lane";
  Axis rows{.name = "lane", .kind = Axis::band, .count = lanes, .ticks = true};
  for (int lane = 0; lane < lanes; ++lane) {
    rows.names.push_back(lane == 0 ? "host" : fmt::format("stream {}", lane - 1));
    for (int i = 0; i < count; ++i) {
      const auto& event = timeline.events[static_cast<std::size_t>(i)];
      const Kind& kind = *kind_of(event.what);
      const bool here = lane == (kind.of_host ? 0 : event.stream + 1);
      cells.items.names.push_back(here ? sign_of(event, kind) : std::string());
      cells.items.state.each.push_back(here ? State::plain : State::to_come);
      cells.items.tone.each.push_back(here ? kind.tone : 0);
    }
  }
  Axis beats{.name = "beat", .kind = Axis::band, .count = count, .ticks = true};
  // The table of calls counts from 1.
  for (int i = 1; i <= count; ++i)
    beats.names.push_back(count <= 24 || i % 4 == 0 ? std::to_string(i) : std::string());
  const bool whole = timeline.events.size() <= kMostEvents;
  return {text(said_of(timeline)),
          {beats, rows},
          labelled({"calls"},
                   box({"lanes"}, {cells}, {}, {.least_height = 3.4f, .left = 4, .right = 1}),
                   text(fmt::format("{}: + allocates, − frees, k1 is launch 1",
                                    whole ? "each column is a call"
                                          : fmt::format("the first {} calls", kMostEvents)),
                        "calls in their order"),
                   {})};
}

}  // namespace tilestep::scenes

#include "scenes/inspect/paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "kernels/base/lab/json.hpp"
#include "kernels/base/lab/sentence.hpp"
#include "scenes/picture/parts.hpp"

namespace tilestep::scenes {

using namespace picture;

namespace {

constexpr std::uint8_t kRan = 5;  // sky, as the requests of the other picture
constexpr std::size_t kMostRows = 3;
constexpr std::int64_t kMostTimes = 4'000'000'000;

/// Lines that the lanes executed equally often, drawn once.
struct Row {
  std::vector<int> lines;
  InspectedPaths::Line of;
};

/// The lines with the most idle lanes, in the order of the source.
std::vector<Row> rows_of(const InspectedPaths& paths) {
  std::vector<Row> rows;
  for (const auto& each : paths.lines) {
    if (each.idle() == 0) continue;
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
      return row.of.warp == each.warp && row.of.lanes == each.lanes;
    });
    if (same == rows.end()) {
      rows.push_back({{each.line}, each});
    } else {
      same->lines.push_back(each.line);
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.of.idle() > b.of.idle(); });
  rows.resize(std::min(rows.size(), kMostRows));
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.lines < b.lines; });
  return rows;
}

std::string words_of(const std::vector<int>& lines) {
  if (lines.size() == 1) return fmt::format("line {}", lines[0]);
  if (lines.size() == 2) return fmt::format("lines {} and {}", lines[0], lines[1]);
  return fmt::format("lines {}, {} and {} more", lines[0], lines[1], lines.size() - 2);
}

Box box_of(const Row& row, int index) {
  Bars ran{items("executions", kWarpLanes), "lane", "times"};
  Bars idle{items("idle", kWarpLanes), "lane", "times"};
  ran.items.tone.all = kRan;
  idle.items.state.all = State::wasted;
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const auto times = static_cast<float>(row.of.lanes[static_cast<std::size_t>(lane)]);
    ran.items.ids.push_back(index * kWarpLanes + lane);
    idle.items.ids.push_back(index * kWarpLanes + lane);
    ran.items.value.each.push_back(times);
    ran.items.names.push_back(times > 0 ? fmt::format("{:.0f}", times) : std::string());
    idle.items.base.each.push_back(times);
    idle.items.value.each.push_back(static_cast<float>(row.of.warp));
  }
  const auto warp = static_cast<double>(row.of.warp);
  const double lanes = kWarpLanes - static_cast<double>(row.of.idle()) / warp;
  Box bars = box({"bars", index}, {idle, ran}, {}, {.least_height = 1.6f, .left = 1, .right = 1});
  return labelled(
      {"line", index}, std::move(bars),
      text(fmt::format("{}: {:.0f} warp {}, {:.3g} of 32 lanes on average", words_of(row.lines),
                       warp, warp == 1 ? "execution" : "executions", lanes),
           fmt::format("{}: {:.3g} of 32 lanes", words_of(row.lines), lanes)),
      {});
}

}  // namespace

std::int64_t InspectedPaths::Line::idle() const {
  return kWarpLanes * warp - std::accumulate(lanes.begin(), lanes.end(), std::int64_t{0});
}

std::vector<InspectedPaths> inspected_paths(const lab::Report& report) {
  const lab::Place trace(*report.trace, "report of inspect");
  std::vector<InspectedPaths> all;
  const auto paths = trace.find("paths");
  if (!paths) return all;
  for (std::size_t i = 0; i < paths->size(); ++i) {
    const lab::Place of = paths->at(i);
    constexpr std::int64_t kMost = 2147483647;
    InspectedPaths one;
    const lab::Place launch = of.at("launch"), block = of.at("block"), warp = of.at("warp"),
                     kernel = of.at("kernel"), lines = of.at("lines");
    one.launch = launch.whole<int>(1, kMost);
    one.block = block.whole<int>(0, kMost);
    one.warp = warp.whole<int>(0, kMost);
    one.kernel = lab::shown(kernel.text());
    for (std::size_t j = 0; j < lines.size(); ++j) {
      const lab::Place line = lines.at(j);
      const lab::Place number = line.at("line"), executed = line.at("warp"),
                       times = line.at("lanes");
      times.require_size(kWarpLanes);
      InspectedPaths::Line& kept = one.lines.emplace_back();
      kept.line = number.whole<int>(1, kMost);
      kept.warp = executed.whole<std::int64_t>(1, kMostTimes);
      for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
        const lab::Place count = times.at(lane);
        kept.lanes[lane] = count.whole<std::int64_t>(0, kept.warp);
      }
    }
    if (std::any_of(one.lines.begin(), one.lines.end(), [](const auto& l) { return l.idle() > 0; }))
      all.push_back(std::move(one));
  }
  return all;
}

std::string said_of(const InspectedPaths& paths) {
  return fmt::format("warp {} of block {}, executions by lane", paths.warp, paths.block);
}

Picture picture_of(const InspectedPaths& paths) {
  std::vector<Box> boxes;
  std::int64_t most = 1;
  for (const Row& row : rows_of(paths)) {
    most = std::max(most, row.of.warp);
    boxes.push_back(box_of(row, static_cast<int>(boxes.size())));
  }
  return {text(said_of(paths)),
          {{.name = "lane", .kind = Axis::band, .count = kWarpLanes, .ticks = true},
           {.name = "times", .high = static_cast<double>(most), .fixed = true}},
          column({"all"}, std::move(boxes))};
}

}  // namespace tilestep::scenes

// What only the picture of launches does, held to the trace that it is drawn from.
#include "scenes/systems/launches/scene.hpp"

#include <algorithm>

#include "tests/scenes/marks.hpp"

using namespace tilestep;
using launches::CallTrace, launches::StepTrace, launches::WorkTrace;
using picture::State;
using scenes::Cursor, scenes::LaunchesScene;
using tests::contains, tests::count_of, tests::items_named, tests::mark_named, tests::picture_at;
using ShownLaunches = tests::Shown<LaunchesScene>;

namespace {

lab::Settings with_mode(const char* mode, const char* broken = "none") {
  return {{"mode", std::string(mode)}, {"break", std::string(broken)}};
}

}  // namespace

TEST_CASE("Launches: a bar per call and per piece of work, at its beat and in its stream",
          "[launches_scene]") {
  for (const char* mode : {"eager", "graph", "bucketed", "persistent"}) {
    ShownLaunches shown(with_mode(mode));
    const auto& trace = shown.trace();
    for (int beat = 1; beat <= trace.beats; ++beat) {
      const StepTrace& step = trace.steps[static_cast<std::size_t>(trace.step_of(beat))];
      const picture::Picture picture = picture_at(*shown, {beat, 0});
      const auto& bars = mark_named<picture::Spans>(picture, "bar");
      std::vector<std::pair<int, int>> drawn, happened;
      for (int i = 0; i < bars.items.count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        drawn.emplace_back(bars.lane[at], static_cast<int>(bars.begin[at]) + step.first_beat);
        CHECK(bars.end[at] == bars.begin[at] + 1);  // order, not time
      }
      const auto add = [&](int lane, int its_beat) {
        if (its_beat >= step.first_beat && its_beat <= beat) happened.emplace_back(lane, its_beat);
      };
      for (const CallTrace& call : trace.calls) add(0, call.beat);
      for (const WorkTrace& work : trace.works) add(1 + work.stream, work.beat);
      std::sort(drawn.begin(), drawn.end());
      std::sort(happened.begin(), happened.end());
      CHECK(drawn == happened);
    }
  }
}

TEST_CASE("Launches: the host runs ahead of the device, and a graph is submitted at once",
          "[launches_scene]") {
  ShownLaunches eager(with_mode("eager"));
  const auto striped = [](const LaunchesScene& scene, int beat) {
    const picture::Items kernels = items_named(picture_at(scene, {beat, 0}), "kernel");
    int count = 0;
    for (int i = 0; i < kernels.count; ++i)
      count += kernels.glyph[static_cast<std::size_t>(i)] == picture::kStriped ? 1 : 0;
    return count;
  };
  int most = 0;
  for (int beat = 1; beat <= eager.trace().steps[0].last_beat; ++beat)
    most = std::max(most, striped(*eager, beat));
  CHECK(most >= 1);
  CHECK(most < 6);
  ShownLaunches graph(
      lab::Settings{{"mode", std::string("graph")}, {"batches", std::string("3,3")}});
  const StepTrace& second = graph.trace().steps[1];
  const int all = launches::launches_of(graph.trace().layers);
  CHECK(striped(*graph, second.first_beat) == all);  // they are in the graph
  CHECK(striped(*graph, second.last_beat) == 0);
}

TEST_CASE("Launches: padding is hatched once its step has begun", "[launches_scene]") {
  ShownLaunches shown(with_mode("bucketed"));
  int padding = 0;
  for (const StepTrace& step : shown.trace().steps) padding += step.rows - step.batch;
  REQUIRE(padding > 0);
  const auto wasted = [&](int beat) {
    return count_of(items_named(picture_at(*shown, {beat, 0}), "token"), State::wasted);
  };
  CHECK(wasted(0) == 0);
  CHECK(wasted(shown.trace().beats) == padding);
}

TEST_CASE("Launches: a layer that falls back is called by its kernel", "[launches_scene]") {
  ShownLaunches shown(lab::Settings{{"fallback", std::int64_t{1}}});
  const picture::Items kernels = items_named(picture_at(*shown, {1, 0}), "kernel");
  CHECK(kernels.names[2] == "gate");
  CHECK(kernels.names[9] == "single");
  std::string said;
  for (int beat = 1; beat <= shown.trace().steps[0].last_beat; ++beat)
    said += shown->sentence({beat, 0});
  CHECK(contains(said, "gate 2 (single)"));
  CHECK_FALSE(contains(said, "gate 1 (single)"));
}

TEST_CASE("Launches: a mistake is crossed out, and its calls are named", "[launches_scene]") {
  for (const char* mode : {"eager", "graph"}) {
    ShownLaunches shown(with_mode(mode, "missing-dependency"));
    const auto& found = shown.trace().findings.front();
    const auto wrong = [&](int beat) {
      return count_of(items_named(picture_at(*shown, {beat, 0}), "bar"), State::wrong);
    };
    CHECK(wrong(found.beat) == 2);
    const auto readout = [&](int beat) {
      const auto all = shown->readouts({Cursor{beat, 0}});
      return std::find_if(all.begin(), all.end(),
                          [](const auto& each) { return each.id == "mistake"; }) != all.end();
    };
    CHECK(readout(found.beat));
    CHECK_FALSE(readout(found.beat - 1));
  }
  ShownLaunches sound;
  CHECK(count_of(items_named(picture_at(*sound, {sound.trace().beats, 0}), "bar"), State::wrong) ==
        0);
}

TEST_CASE("Launches: the staircase stops at m until waves are counted", "[launches_scene]") {
  ShownLaunches shown(lab::Settings{{"m", std::int64_t{300}}});
  const auto end = [&](int step) {
    return mark_named<picture::Curve>(picture_at(*shown, {step, 0}), "staircase").x.back();
  };
  CHECK(end(shown.trace().tiles_step()) == 300);
  CHECK(end(shown.trace().waves_step()) == launches::kMostSide);
  const picture::Items tiles =
      items_named(picture_at(*shown, {shown.trace().tiles_step(), 0}), "tile");
  int over = 0;
  for (int i = 0; i < tiles.count; ++i)
    over += tiles.glyph[static_cast<std::size_t>(i)] == picture::kStriped ? 1 : 0;
  CHECK(tiles.count == 3 * 16);
  CHECK(over == 16);
  const picture::Items choices =
      items_named(picture_at(*shown, {shown.trace().dispatch_step(), 0}), "choice");
  CHECK(choices.names[0] == "tensor");
  ShownLaunches odd(lab::Settings{{"k", std::int64_t{4095}}});
  CHECK(contains(odd->sentence({odd.trace().dispatch_step(), 0}), "single"));
}

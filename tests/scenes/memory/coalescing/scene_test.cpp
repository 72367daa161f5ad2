#include "scenes/memory/coalescing/scene.hpp"

#include <set>

#include "kernels/catalog.hpp"
#include "tests/catch.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using scenes::CoalescingScene;
using scenes::Cursor;

namespace {

lab::Report report_of(const lab::Settings& settings) {
  lab::NoProgress progress;
  return answer({"coalescing", settings, lab::Request::Action::run, "emulated"}, progress);
}

const ImVec2 kSizes[] = {{860, 480}, {560, 240}, {1900, 1000}};

}  // namespace

TEST_CASE("lanes and sectors on screen are those of the trace", "[coalescing_scene]") {
  tests::SceneFrame frame;
  for (const char* pattern : {"sequential", "strided", "offset", "broadcast", "aos", "permuted"}) {
    const lab::Report report =
        report_of({{"pattern", std::string(pattern)}, {"elements", std::int64_t{100}}});
    const auto trace = coalescing::trace_from_json(report.trace);
    CoalescingScene scene;
    scene.load(report);
    for (int step = 1; step <= static_cast<int>(trace.requests.size()); ++step) {
      CAPTURE(pattern, step);
      const auto& request = trace.requests[static_cast<std::size_t>(step) - 1];
      const auto parts = frame.draw(kSizes[0], [&] { scene.draw_picture({step, 0}); });
      std::set<std::int64_t> sectors;
      for (int lane = 0; lane < 32; ++lane) {
        const auto& part = parts.at("lane_" + std::to_string(lane));
        if (!request.active(lane)) {
          CHECK(part.value == "idle");
          continue;
        }
        const std::int64_t byte = request.byte_offset[static_cast<std::size_t>(lane)];
        CHECK(part.value == "byte " + std::to_string(byte));
        for (int b = 0; b < trace.element_bytes; ++b) sectors.insert((byte + b) / 32);
      }
      std::set<std::int64_t> shown;
      for (const auto& [id, part] : parts) {
        if (id.rfind("sector_", 0) == 0) shown.insert(std::stoll(id.substr(7)));
      }
      CHECK(shown == sectors);
      CHECK(scene.table_row("requests", {step, 0}) == step - 1);
    }
  }
}

TEST_CASE("the first question asks for the traced number of sectors", "[coalescing_scene]") {
  const lab::Report report =
      report_of({{"pattern", std::string("strided")}, {"stride", std::int64_t{4}}});
  CoalescingScene scene;
  scene.load(report);
  const auto question = scene.question({0, 0});
  REQUIRE(question);
  CHECK(question->choices[static_cast<std::size_t>(question->answer)] == "16");
}

TEST_CASE("the coalescing scene draws at every knob's extremes and sizes", "[coalescing_scene]") {
  tests::SceneFrame frame;
  std::vector<lab::Settings> cases = {{}};
  for (const lab::Knob& knob : lesson("coalescing").knobs()) {
    if (knob.kind == lab::KnobKind::choice) {
      for (const std::string& choice : knob.choices) cases.push_back({{knob.id, choice}});
    } else if (knob.id == "elements") {
      cases.push_back({{knob.id, static_cast<std::int64_t>(knob.min)}});
      cases.push_back({{knob.id, std::int64_t{1000}}});
    } else {
      for (const double value : {knob.min, knob.max}) {
        lab::Settings settings = {{knob.id, static_cast<std::int64_t>(value)}};
        if (knob.id == "offset") settings["pattern"] = std::string("offset");
        if (knob.id == "fields") settings["pattern"] = std::string("aos");
        cases.push_back(settings);
      }
    }
  }
  for (const lab::Settings& settings : cases) {
    const lab::Report report = report_of(settings);
    CAPTURE(lab::to_json(report.params).dump());
    CHECK(report.ok());
    CoalescingScene scene;
    scene.load(report);
    const int steps = scene.steps().tiles;
    for (const ImVec2 size : kSizes) {
      for (const Cursor cursor : {Cursor{0, 0}, Cursor{1, 0}, Cursor{steps, 0}}) {
        const auto parts = frame.draw(size, [&] { scene.draw_picture(cursor); });
        for (const auto& [id, part] : parts) {
          CAPTURE(id, part.min.x, part.max.x, part.min.y, part.max.y);
          REQUIRE(part.min.x >= -1);
          REQUIRE(part.max.x <= size.x + 1);
          REQUIRE(part.max.y <= size.y + 1);
        }
        frame.draw(size, [&] { scene.draw_readouts(cursor); });
      }
      frame.draw(size, [&] { scene.draw_measured(report); });
    }
  }
}

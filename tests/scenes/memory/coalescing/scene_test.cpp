#include "scenes/memory/coalescing/scene.hpp"

#include <set>

#include "tests/reports.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using scenes::CoalescingScene;
using scenes::Cursor;

namespace {

const lab::Report& report_of(const lab::Settings& settings) {
  return tests::report_of("coalescing", settings);
}

}  // namespace

TEST_CASE("lanes and sectors on screen are those of the trace", "[coalescing_scene]") {
  tests::SceneFrame frame;
  for (const char* pattern : {"sequential", "strided", "offset", "broadcast", "aos", "permuted"}) {
    const lab::Report& report =
        report_of({{"pattern", std::string(pattern)}, {"elements", std::int64_t{100}}});
    const auto trace = coalescing::trace_from_json(report.trace);
    CoalescingScene scene;
    scene.load(report);
    for (int step = 1; step <= static_cast<int>(trace.requests.size()); ++step) {
      CAPTURE(pattern, step);
      const auto& request = trace.requests[static_cast<std::size_t>(step) - 1];
      const auto parts = frame.draw(tests::kPictureSizes[0], [&] {
        scene.draw_picture({step, 0});
      });
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
  const lab::Report& report =
      report_of({{"pattern", std::string("strided")}, {"stride", std::int64_t{4}}});
  CoalescingScene scene;
  scene.load(report);
  const auto question = scene.question({0, 0});
  REQUIRE(question);
  CHECK(question->choices[static_cast<std::size_t>(question->answer)] == "16");
}

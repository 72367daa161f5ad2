#include "scenes/memory/coalescing/scene.hpp"

#include <set>

#include "scenes/shared/rows.hpp"
#include "tests/scenes/shown.hpp"

using namespace tilestep;
using Shown = tests::Shown<scenes::CoalescingScene>;

TEST_CASE("lanes and sectors on screen are those of the trace", "[coalescing_scene]") {
  for (const char* pattern : {"sequential", "strided", "offset", "broadcast", "aos", "permuted"}) {
    Shown shown({{"pattern", std::string(pattern)}, {"elements", std::int64_t{100}}});
    const auto& trace = shown.trace();
    for (int step = 1; step <= static_cast<int>(trace.requests.size()); ++step) {
      CAPTURE(pattern, step);
      const auto& request = trace.requests[static_cast<std::size_t>(step) - 1];
      const auto parts = shown.picture({step, 0});
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
      std::set<std::int64_t> on_screen;
      for (const auto& [id, part] : parts) {
        if (id.rfind("sector_", 0) == 0) on_screen.insert(std::stoll(id.substr(7)));
      }
      CHECK(on_screen == sectors);
      CHECK(shown->table_row("requests", {step, 0}) == step - 1);
    }
  }
}

TEST_CASE("the first question asks for the traced number of sectors", "[coalescing_scene]") {
  Shown shown({{"pattern", std::string("strided")}, {"stride", std::int64_t{4}}});
  CHECK(shown.answer({0, 0}) == "16");
}

TEST_CASE("the measured views of the coalescing lesson show the recording", "[coalescing_scene]") {
  Shown shown;
  const lab::Table& elements = *tests::recorded_bench("coalescing").table("bandwidth_by_element");
  const std::string one_byte = scenes::filled_in("{bandwidth} GB/s", elements);
  // In the smallest the views are a list to choose from.
  for (const ImVec2 size : {tests::kPictureSizes[0], tests::kPictureSizes[2]}) {
    auto parts = shown.measured("measured_view_0", size);
    CHECK(parts.at("bandwidth_by_stride").value == "4 curves");
    parts = shown.measured("measured_view_1", size);
    CHECK(parts.at("measured_view_1").label == "DRAM traffic");
    CHECK(parts.at("dram_bytes").value == "2 curves");
    // Loads and stores have their own; a store reads what it does not fill.
    CHECK(shown.measured("dram_access_1", size).at("dram_access_1").value == "selected");
    parts = shown.measured("measured_view_2", size);
    CHECK(parts.at("bandwidth_by_element_0").label == "1 byte");
    CHECK(parts.at("bandwidth_by_element_0").value == one_byte);
    CHECK(parts.at("bandwidth_by_element_4").label == "16 bytes");
  }
}

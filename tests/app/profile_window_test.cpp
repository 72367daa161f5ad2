// A profiler's trace in a real window: a real wheel, real drags and clicks.
#include <algorithm>
#include <cstdio>
#include <fstream>

#include "tests/app/display_window.hpp"
#include "tests/catch.hpp"
#include "tests/paths.hpp"
#include "tests/skip.hpp"

using namespace tilestep::tests;
using namespace std::chrono_literals;

namespace {

/// What the timeline shows, in microseconds.
std::pair<double, double> shown_in(const Window& window) {
  std::pair<double, double> shown;
  std::sscanf(window.value("profile_timeline").c_str(), "%lf to %lf", &shown.first, &shown.second);
  return shown;
}

double width_of(const std::pair<double, double>& shown) {
  return shown.second - shown.first;
}

}  // namespace

TEST_CASE("a trace opens in a window, where the wheel zooms, dragging pans and questions lead on",
          "[window]") {
  const auto display = make_display();
  if (!display) return;
  const auto file = std::filesystem::path(paths::kSource) / "assets/profiles/decode.json";
  const std::string before = file_text(file);
  for (const char* size : {"1440x900", "1280x720"}) {
    INFO(size);
    Window window(*display, {"open", file.string(), "--size", size});
    REQUIRE(eventually([&] { return window.has("profile_timeline"); }, 60s));
    window.focus();
    const auto all = shown_in(window);
    const auto lane = window.steady("lane_3");
    REQUIRE(lane);
    window.scroll(inside(*lane, 0.7), -3);
    REQUIRE(eventually([&] { return width_of(shown_in(window)) < 0.7 * width_of(all); }));
    const auto zoomed = shown_in(window);
    window.take_hold(inside(*lane, 0.8));
    // The button goes down in a frame of its own, as a hand has it.
    REQUIRE(eventually([&] { return window.answered(window.map()); }));
    window.point_at(inside(*lane, 0.6));
    CHECK(eventually([&] { return shown_in(window).first > zoomed.first; }));
    window.let_go();
    REQUIRE(window.click_on("question_1"));
    CHECK(eventually([&] { return window.is_selected("question_1"); }));
    window.press("bracketright");
    CHECK(eventually([&] { return window.is_selected("question_2"); }));
    window.press("Home");
    CHECK(eventually([&] { return shown_in(window) == all; }));
    window.press("n");
    CHECK(eventually([&] { return width_of(shown_in(window)) < width_of(all); }));
    window.press("Escape");
    CHECK(eventually([&] { return !window.has("profile_timeline"); }));
  }
  CHECK(file_text(file) == before);
}

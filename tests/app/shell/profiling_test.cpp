// The page of a profiler's trace: lanes over one clock, kernels, and six questions that lead to what answers them.
#include "app/shell/profiling.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "tests/app/profile/fixtures.hpp"
#include "tests/app/shell/stage.hpp"

using namespace tilestep;
using namespace tilestep::app;
using tests::contains;
using tests::Stage;

namespace {

ShellOptions with_trace() {
  ShellOptions options;
  options.profiled = open_profile_example("decode");
  return options;
}

/// What the timeline shows, in microseconds.
std::pair<double, double> window_of(Stage& stage) {
  stage.frame();
  const std::string value = stage.part("profile_timeline")["value"];
  std::pair<double, double> window;
  REQUIRE(std::sscanf(value.c_str(), "%lf to %lf", &window.first, &window.second) == 2);
  return window;
}

/// Draws until a part is there, which another thread brings.
bool eventually_shown(Stage& stage, const std::string& id) {
  for (int i = 0; i < 2000; ++i) {
    stage.frame();
    if (stage.has(id)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

/// Puts the pointer on a share of the timeline's width, in a lane.
void point(Stage& stage, double share, int lane) {
  const auto area = stage.part("profile_timeline")["rect"].get<std::vector<float>>();
  const auto row = stage.part("lane_" + std::to_string(lane))["rect"].get<std::vector<float>>();
  ImGui::GetIO().MousePos = {area[0] + area[2] * static_cast<float>(share), row[1] + row[3] / 2};
}

}  // namespace

TEST_CASE("a trace's page shows lanes, kernels and six questions", "[ui_shell]") {
  Stage stage(with_trace());
  for (const ImVec2 size : {ImVec2(1440, 900), ImVec2(1280, 720)}) {
    stage.frame(size);
    CHECK(stage.part("profile")["label"] == "decode.json");
    CHECK(contains(stage.part("profile")["value"].get<std::string>(), "39 kernels"));
    CHECK(contains(stage.shell.window_title(), "decode.json"));
    CHECK(stage.part("profile_row")["value"] == "selected");
    for (int lane = 0; lane < 5; ++lane) CHECK(stage.has("lane_" + std::to_string(lane)));
    CHECK(stage.part("lane_4")["label"] == "GPU 0 stream 8");
    CHECK(stage.part("kernel_1")["label"] == "gate");
    CHECK(stage.part("question_1")["label"] == "Bottleneck");
  }
}

TEST_CASE("a question sets the timeline to what it is about, by key and by click", "[ui_shell]") {
  Stage stage(with_trace());
  const auto all = window_of(stage);
  stage.shell.key(Key::bracket_right, false);
  const auto gap = window_of(stage);
  CHECK(stage.part("question_1")["value"] == "selected");
  CHECK(gap.first > all.first);
  CHECK(gap.second < all.second);
  stage.click("question_3");
  CHECK(stage.part("question_3")["value"] == "selected");
  CHECK(stage.part("kernel_1")["value"] == "lit");
  CHECK(window_of(stage).second - window_of(stage).first < 50);
  stage.shell.key(Key::bracket_left, false);
  stage.frame();
  CHECK(stage.part("question_2")["value"] == "selected");
  stage.click("profile_all");
  CHECK(window_of(stage) == all);
  for (int i = 0; i < 9; ++i) stage.shell.key(Key::bracket_right, false);
  stage.frame();
  CHECK(stage.part("question_6")["value"] == "selected");
}

TEST_CASE(
    "the wheel zooms about the pointer, dragging pans, and a click pins a kernel and its call",
    "[ui_shell]") {
  Stage stage(with_trace());
  const auto all = window_of(stage);
  point(stage, 0.6, 3);
  stage.frame();
  ImGui::GetIO().MouseWheel = 3;
  stage.frame();
  ImGui::GetIO().MouseWheel = 0;
  const auto near = window_of(stage);
  CHECK(near.second - near.first < 0.6 * (all.second - all.first));
  CHECK(near.first > all.first);
  CHECK(near.second < all.second);
  // Dragging to the left shows what comes later.
  ImGui::GetIO().MouseDown[0] = true;
  stage.frame();
  ImGui::GetIO().MousePos.x -= 100;
  stage.frame();
  ImGui::GetIO().MouseDown[0] = false;
  const auto later = window_of(stage);
  CHECK(later.first > near.first);
  CHECK(later.second - later.first == Approx(near.second - near.first));
  // The question about a kernel has it in the middle; that is where one clicks.
  stage.shell.key(Key::home, false);
  for (int i = 0; i < 5; ++i) stage.shell.key(Key::bracket_right, false);
  stage.frame();
  CHECK(contains(stage.part("profile_said")["label"].get<std::string>(), "gate: "));
  stage.click("kernel_1");  // pins nothing any more
  const auto lane = stage.part("lane_3")["rect"].get<std::vector<float>>();
  const auto area = stage.part("profile_timeline")["rect"].get<std::vector<float>>();
  for (float x = area[0] + area[2] * 0.4f; x < area[0] + area[2] * 0.8f; x += 4) {
    ImGui::GetIO().MousePos = {x, lane[1] + lane[3] / 2};
    stage.frame();
    if (contains(stage.part("profile_said")["label"].get<std::string>(), "gate: ")) break;
  }
  ImGui::GetIO().MouseDown[0] = true;
  stage.frame();
  ImGui::GetIO().MouseDown[0] = false;
  stage.frame();
  ImGui::GetIO().MousePos = {5, 5};
  stage.frame();
  const std::string said = stage.part("profile_said")["value"];
  CHECK(contains(said, "gate: "));
  CHECK(contains(said, "cudaLaunchKernel began"));
  CHECK(contains(said, "launches::gate"));
  CHECK(stage.part("kernel_1")["value"] == "lit");
}

TEST_CASE("keys pan and zoom, go from gap to gap, and leave the page", "[ui_shell]") {
  Stage stage(with_trace());
  const auto all = window_of(stage);
  stage.shell.key(Key::period, false);
  const auto half = window_of(stage);
  CHECK(half.second - half.first == Approx((all.second - all.first) / 2));
  stage.shell.key(Key::right, false);
  CHECK(window_of(stage).first > half.first);
  stage.shell.key(Key::left, false);
  stage.shell.key(Key::comma, false);
  stage.shell.key(Key::n, false);
  const auto first = window_of(stage);
  stage.shell.key(Key::n, false);
  CHECK(window_of(stage).first > first.first);
  stage.shell.key(Key::home, false);
  CHECK(window_of(stage) == all);
  stage.click("kernel_2");
  CHECK(stage.part("kernel_2")["value"] == "lit");
  stage.click("kernel_2");
  CHECK(stage.part("kernel_2")["value"] != "lit");
  stage.shell.key(Key::escape, false);
  stage.frame();
  CHECK_FALSE(stage.has("profile_timeline"));
  stage.click("profile_row");
  CHECK(stage.has("profile_timeline"));
}

TEST_CASE("the page asks for a trace, opens the examples, and says why it cannot read one",
          "[ui_shell]") {
  ShellOptions options;
  options.profile_page = true;
  Stage stage(options);
  stage.frame();
  CHECK(stage.has("profile_path"));
  stage.click("example_decode-graph");
  CHECK(eventually_shown(stage, "question_6"));
  CHECK(stage.part("question_3")["value"] == "unknown");
  stage.click("profile_other");
  CHECK(stage.has("profile_path"));
  stage.shell.profile("/no/such/trace.json");
  CHECK(eventually_shown(stage, "profile_failure"));
  CHECK(contains(stage.part("profile_failure")["label"].get<std::string>(), "/no/such/trace.json"));
}

TEST_CASE("a file is taken for a trace by what it begins with", "[ui_shell]") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const auto file = folder / ("holds_trace_" + std::to_string(::getpid()) + ".json");
  tests::write_text(file, tests::kineto_trace().dump());
  CHECK(holds_trace(file));
  tests::write_text(file, "{\"bench\": null, \"lesson\": \"tiling\", \"tilestep_capsule\": 1}");
  CHECK_FALSE(holds_trace(file));
  std::filesystem::remove(file);
  CHECK_FALSE(holds_trace("a.tilestep.json"));
  CHECK_FALSE(holds_trace("tiling"));
  CHECK(holds_trace("report.sqlite"));
}

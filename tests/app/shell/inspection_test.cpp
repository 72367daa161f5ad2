// The page of any CUDA file: what was found, its lines and the pictures of their requests.
#include <map>

#include "kernels/base/inspect/run.hpp"
#include "kernels/base/workbench/exercise.hpp"
#include "kernels/catalog.hpp"
#include "scenes/shared/course.hpp"
#include "scenes/shared/guide.hpp"
#include "tests/app/shell/inspected.hpp"
#include "tests/app/shell/stage.hpp"

using namespace tilestep;
using namespace tilestep::app;
using tests::contains;
using tests::Stage;

namespace {

ShellOptions with_program() {
  ShellOptions options;
  options.inspected = std::make_shared<const Inspected>(tests::inspected());
  return options;
}

std::string request_on_show(Stage& stage) {
  stage.frame();
  return stage.part("request")["label"];
}

}  // namespace

TEST_CASE("a CUDA file's page begins at the first mistake, and goes where one points",
          "[ui_shell]") {
  Stage stage(with_program());
  CHECK(contains(request_on_show(stage), "Line 8"));
  CHECK(contains(stage.shell.window_title(), "a_program_with"));
  CHECK(stage.part("finding_1")["label"] == "shared race, line 8");
  CHECK(stage.part("finding_2")["label"] == "coalescing, line 12 (slow, not wrong)");
  CHECK(stage.part("cost_8")["label"] == "1×");
  CHECK(stage.part("cost_12")["label"] == "32×");
  CHECK(stage.has("sector_0"));
  stage.click("finding_3");
  // Of its two requests the one with more to spare.
  CHECK(
      contains(request_on_show(stage), "Line 12, launch 1, warp 7 of block 0: a load of 32 lanes"));
  CHECK(stage.has("turn_31_0"));
  stage.shell.key(Key::left, false);
  CHECK(contains(request_on_show(stage),
                 "Line 12, launch 1, warp 7 of block 0: a store of 32 lanes"));
  for (int i = 0; i < 5; ++i) stage.shell.key(Key::left, false);
  CHECK(contains(request_on_show(stage), "Line 8"));
  stage.click("request_after");
  CHECK(contains(request_on_show(stage), "Line 12"));
}

TEST_CASE("a CUDA file's page draws the lanes of a divergent warp, and kernels under a roofline",
          "[ui_shell]") {
  Stage stage(with_program());
  for (int i = 0; i < 3; ++i) stage.shell.key(Key::right, false);
  CHECK(contains(request_on_show(stage), "transpose, launch 1, warp 3 of block 0"));
  CHECK(stage.has("executions_5"));
  CHECK(stage.has("idle_5"));
  CHECK(stage.has("line_2"));
  CHECK_FALSE(stage.has("line_3"));  // lines 21 and 22 are one row
  stage.shell.key(Key::right, false);
  CHECK(request_on_show(stage) == "Program, 4 calls on 2 streams, in their order");
  CHECK(stage.part("call_0_0")["label"] != stage.part("call_2_1")["label"]);
  CHECK(stage.has("call_2_2"));
  stage.click("inspect_tab_2");
  stage.frame();
  CHECK(stage.has("inspect_roofline"));
}

TEST_CASE("each kind of finding names the stop and the exercise that teach it", "[ui_shell]") {
  const std::map<inspect::Kind, std::string> titles = {
      {inspect::Kind::bounds, "Where the tile does not divide"},
      {inspect::Kind::coverage, "Where the tile does not divide"},
      {inspect::Kind::uninitialized, "All wait for all"},
      {inspect::Kind::shared_race, "All wait for all"},
      {inspect::Kind::barrier, "All wait for all"},
      {inspect::Kind::global_race, "A place for every token"},
      {inspect::Kind::order, "Order matters"},
      {inspect::Kind::coalescing, "A stride in disguise"},
      {inspect::Kind::bank_conflict, "Thirty-two lanes, one bank"},
      {inspect::Kind::divergence, "Lanes that disagree"}};
  for (std::size_t i = 0; i < count_of<inspect::Kind>(); ++i) {
    const auto kind = static_cast<inspect::Kind>(i);
    const inspect::Taught* taught = inspect::taught_by(kind);
    INFO(name_of(kind));
    CHECK((taught != nullptr && taught->stop > 0) == (titles.count(kind) > 0));
    if (taught == nullptr) continue;
    CHECK_NOTHROW(lab::exercise(taught->exercise));
    if (taught->stop == 0) continue;
    const scenes::Guide guide =
        scenes::parse_guide(scenes::lesson_text(taught->lesson), lesson(taught->lesson).knobs());
    REQUIRE(taught->stop <= std::ssize(guide.stops));
    CHECK(guide.stops[static_cast<std::size_t>(taught->stop) - 1].title == titles.at(kind));
  }
}

TEST_CASE("pictures of warps and calls hold together", "[ui_shell]") {
  const lab::Report report = tests::inspected().report;
  const auto paths = scenes::inspected_paths(report);
  REQUIRE(paths.size() == 1);
  CHECK(paths[0].lines[0].idle() == 32 * 31 - 31 * 16);
  CHECK(picture::problems(scenes::picture_of(paths[0])).empty());
  const auto timeline = scenes::inspected_timeline(report);
  CHECK(timeline.streams == 2);
  CHECK(picture::problems(scenes::picture_of(timeline)).empty());
  CHECK(scenes::inspected_timeline(lab::Report()).events.empty());
}

TEST_CASE("from a finding one comes to its lesson, and back to the file by the rail",
          "[ui_shell]") {
  Stage stage(with_program());
  stage.frame();
  stage.click("finding_1_lesson");
  stage.lab.answer();
  stage.frame();
  CHECK_FALSE(stage.has("inspect"));
  CHECK(stage.shell.lesson() == "tiling");
  stage.click("inspect_row");
  stage.frame();
  CHECK(stage.part("inspect_row")["value"] == "selected");
  CHECK(stage.has("finding_1"));
  stage.shell.key(Key::escape, false);
  stage.frame();
  CHECK_FALSE(stage.has("inspect"));
}

TEST_CASE("Ctrl+O and Home ask for a CUDA file; what cannot be read says so", "[ui_shell]") {
  Stage stage;
  stage.lab.answer();
  stage.frame();
  stage.shell.key(Key::open, false);
  stage.frame();
  CHECK(stage.has("inspect_path"));
  CHECK(stage.part("step_1")["label"] == "1 Scale a vector");
  CHECK(stage.part("step_8")["label"] == "8 Add a bias");
  stage.shell.key(Key::escape, false);
  stage.frame();
  stage.shell.key(Key::escape, false);
  stage.shell.key(Key::h, false);
  stage.frame();
  stage.click("inspect_begin");
  stage.frame();
  CHECK(stage.has("inspect_path"));
  stage.shell.inspect("/no/such/program.cu");
  stage.frame();
  CHECK(contains(stage.part("inspect_failure")["label"].get<std::string>(), "/no/such/program.cu"));
  stage.click("inspect_other");
  stage.frame();
  CHECK(stage.has("inspect_path"));
}

TEST_CASE("a report that no inspection made is refused with a sentence", "[ui_shell]") {
  for (const char* damage :
       {"/worst", "/worst/0/offsets", "/worst/0/line", "/worst/0/offsets/3", "/worst/1/bytes"}) {
    lab::Report report = tests::inspected().report;
    (*report.trace)[nlohmann::json::json_pointer(damage)] = -7;
    INFO(damage);
    CHECK(contains(tests::error_of([&] { scenes::inspected_requests(report); }),
                   "no report of `tilestep inspect`"));
  }
  for (const char* damage : {"/paths", "/paths/0/lines", "/paths/0/lines/0/lanes",
                             "/paths/0/lines/1/lanes/3", "/paths/0/lines/1/warp"}) {
    lab::Report report = tests::inspected().report;
    (*report.trace)[nlohmann::json::json_pointer(damage)] = -7;
    INFO(damage);
    CHECK(contains(tests::error_of([&] { scenes::inspected_paths(report); }), "report of inspect"));
  }
}

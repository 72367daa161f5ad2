// Home: the course, what was done of it, and the way on.
#include "app/keep/progress.hpp"
#include "scenes/shared/course.hpp"
#include "tests/app/child.hpp"
#include "tests/app/shell/stage.hpp"

using namespace tilestep;
using namespace tilestep::app;
using tests::contains;
using tests::Stage;

namespace {

ShellOptions first_start(const std::filesystem::path& progress) {
  ShellOptions options;
  options.first_start = true;
  options.progress = progress;
  return options;
}

std::string said_of(const Stage& stage, const std::string& lesson) {
  return stage.part("course_" + lesson)["value"];
}

}  // namespace

TEST_CASE("the first start opens Home, and Begin the first stop of the first lesson",
          "[ui_shell]") {
  const tests::TemporaryFolder folder;
  const auto file = folder.path() / "progress.json";
  Stage stage(first_start(file));
  stage.lab.answer();
  stage.frame();
  REQUIRE(stage.has("home"));
  CHECK_FALSE(stage.has("continue"));
  CHECK_FALSE(stage.has("next"));
  const auto& course = scenes::course();
  CHECK(contains(said_of(stage, course.front().lesson), "0 of "));
  stage.click("begin");
  stage.lab.answer();
  stage.frame();
  CHECK_FALSE(stage.has("home"));
  CHECK(stage.shell.lesson() == course.front().lesson);
  REQUIRE(stage.has("stop_1"));
  CHECK(stage.part("stop_1")["value"] == "selected");
  CHECK(stage.part("stop_1")["label"] == course.front().stops.front());
  stage.shell.key(Key::bracket_right, false);
  stage.lab.answer();
  stage.frame();
  CHECK(ProgressFile(file).load().lessons.at(course.front().lesson).stops.size() == 2);
  stage.shell.key(Key::h, false);
  stage.frame();
  REQUIRE(stage.has("home"));
  CHECK(contains(said_of(stage, course.front().lesson), "2 of "));
  CHECK(stage.part("done_" + course.front().lesson)["value"] == "some");
  stage.click("continue");
  CHECK_FALSE(stage.has("home"));
  CHECK(stage.part("stop_2")["value"] == "selected");
}

TEST_CASE("a lesson of the course opens at the first stop that was not read", "[ui_shell]") {
  const tests::TemporaryFolder folder;
  const auto file = folder.path() / "progress.json";
  const scenes::CourseRow& row = scenes::course()[2];
  ProgressFile(file).add({{{row.lesson, {.stops = {row.stops[0], row.stops[1]}}}}});
  Stage stage(first_start(file));
  stage.lab.answer();
  stage.frame();
  CHECK(contains(said_of(stage, row.lesson), "2 of "));
  stage.click("course_" + row.lesson);
  stage.lab.answer();
  stage.frame();
  CHECK(stage.shell.lesson() == row.lesson);
  CHECK(stage.part("stop_3")["value"] == "selected");
}

TEST_CASE("all of a path that was read has its tick in the rail", "[ui_shell]") {
  const tests::TemporaryFolder folder;
  const auto file = folder.path() / "progress.json";
  const scenes::CourseRow& row = scenes::course()[1];
  ProgressFile(file).add({{{row.lesson, {.stops = {row.stops.begin(), row.stops.end()}}}}});
  ShellOptions options;
  options.progress = file;
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  CHECK(stage.part("done_" + row.lesson)["value"] == "all");
  CHECK_FALSE(stage.has("done_" + scenes::course()[0].lesson));
}

TEST_CASE("an answer counts, right or wrong", "[ui_shell]") {
  const tests::TemporaryFolder folder;
  const auto file = folder.path() / "progress.json";
  ShellOptions options;
  options.lesson = "coalescing";
  options.predict = true;
  options.progress = file;
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  for (int i = 0; i < 8 && !stage.has("predict_0"); ++i) {
    stage.shell.key(Key::right, false);
    stage.frame();
  }
  REQUIRE(stage.has("predict_0"));
  stage.shell.key(Key::a, false);
  stage.shell.key(Key::right, false);
  stage.shell.update();
  stage.frame();
  CHECK(ProgressFile(file).load().lessons.at("coalescing").asked.size() == 1);
}

TEST_CASE("at Home keys of the lesson do nothing, and a lesson's number opens it", "[ui_shell]") {
  ShellOptions options;
  options.lesson = "coalescing";
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  stage.shell.key(Key::h, false);
  stage.shell.key(Key::right, false);
  stage.shell.key(Key::l, false);
  stage.frame();
  REQUIRE(stage.has("home"));
  stage.shell.key(Key::escape, false);
  stage.frame();
  CHECK_FALSE(stage.has("home"));
  CHECK(stage.shell.step() == 0);
  CHECK_FALSE(stage.has("lesson_text"));
  stage.shell.key(Key::h, false);
  stage.shell.key(Key::digit_1, false);
  stage.frame();
  CHECK_FALSE(stage.has("home"));
}

// Home: the course, what was done of it, and the way on.
#include "app/keep/progress.hpp"
#include "scenes/shared/course.hpp"
#include "scenes/ui/context.hpp"
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

TEST_CASE("the rail has the lesson that is open in sight, and names what it shortens",
          "[ui_shell]") {
  const std::string last = scenes::course().back().lesson;
  for (const float text_scale : {1.0f, 1.25f, 1.5f, 1.75f, 2.0f}) {
    for (const ImVec2 size : {ImVec2(1440, 900), ImVec2(1024, 640)}) {
      CAPTURE(text_scale, size.x);
      ShellOptions options;
      options.lesson = last;
      options.text_scale = text_scale;
      Stage stage(options);
      stage.lab.answer();
      for (int i = 0; i < 3; ++i) stage.frame(size);
      REQUIRE(stage.has("lesson_" + last));
      const auto row = stage.part("lesson_" + last);
      CHECK(row["rect"] == row["raw"]);
      if (size.x > 1200 || text_scale > 1) continue;
      // The numbers of the narrow rail: Tab comes to Home, any file, a trace and the first lesson, the pointer to the last.
      const auto said = [&](const std::string& words) {
        stage.frame(size);
        const auto& texts = stage.shell.context().texts();
        return std::any_of(texts.begin(), texts.end(),
                           [&](const auto& each) { return contains(each.text, words); });
      };
      stage.shell.context().record_texts(true);
      stage.shell.key(Key::tab, false);
      CHECK(said("The course"));
      stage.shell.key(Key::tab, false);
      CHECK(said("Run a .cu file"));
      stage.shell.key(Key::tab, false);
      CHECK(said("Open a trace"));
      stage.shell.key(Key::tab, false);
      CHECK(said(scenes::course().front().title));
      const auto rect = row["rect"].get<std::vector<float>>();
      ImGui::GetIO().MousePos = {rect[0] + rect[2] / 2, rect[1] + rect[3] / 2};
      stage.frame(size);
      CHECK(said(scenes::course().back().title));
    }
  }
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

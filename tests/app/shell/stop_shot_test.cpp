// What of a picture is on show at a stop of the guided path.
#include <fmt/format.h>

#include "kernels/catalog.hpp"
#include "scenes/shared/guide.hpp"
#include "scenes/ui/context.hpp"
#include "tests/app/shell/stage.hpp"

using namespace tilestep;
using namespace tilestep::app;
using tests::Stage;

TEST_CASE(
    "at a stop the picture shows what it is about; V, a name or the closed text bring the rest",
    "[ui_shell]") {
  ShellOptions options;
  options.lesson = "tiling";
  options.reader = true;
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  CHECK(stage.has("aside_0"));  // before the first stop the step chooses
  CHECK_FALSE(stage.has("loads"));
  stage.shell.key(Key::bracket_right, false);
  stage.shell.key(Key::bracket_right, false);
  stage.shell.key(Key::bracket_right, false);
  stage.lab.answer();
  for (int i = 0; i < 3; ++i) stage.frame();
  REQUIRE(stage.part("stop_3")["value"] == "selected");
  const auto width_of = [&](const char* id) {
    const auto rect = stage.part(id)["rect"].get<std::vector<float>>();
    return rect[2];
  };
  CHECK(stage.has("tile_a"));
  CHECK_FALSE(stage.has("loads"));
  const float shot = width_of("tile_a");
  REQUIRE(stage.has("aside_0"));
  stage.shell.key(Key::v, false);
  stage.frame();
  CHECK(stage.has("loads"));
  CHECK_FALSE(stage.has("aside_0"));
  CHECK(shot > 1.2f * width_of("tile_a"));
  stage.shell.key(Key::v, false);
  stage.frame();
  CHECK_FALSE(stage.has("loads"));
  CHECK(width_of("tile_a") == shot);
  const auto brought = stage.part("aside_0")["label"];
  stage.click("aside_0");
  stage.frame();
  CHECK((!stage.has("aside_0") || stage.part("aside_0")["label"] != brought));
  CHECK(width_of("tile_a") < shot);
  stage.shell.key(Key::l, false);
  stage.frame();
  CHECK_FALSE(stage.has("loads"));  // as before the first stop
  CHECK(stage.has("sum"));
}

TEST_CASE(
    "a step shows what it is about, the same in all its phases; V and a drawing bring the rest",
    "[ui_shell]") {
  ShellOptions options;
  options.lesson = "tiling";
  options.step = 1;
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  const auto rect_of = [&](const char* id) {
    return stage.part(id)["rect"].get<std::vector<float>>();
  };
  CHECK_FALSE(stage.has("loads"));
  const auto tile = rect_of("tile_a");
  for (int phase = 0; phase < 4; ++phase) {
    stage.shell.key(Key::right, true);
    for (int i = 0; i < 60; ++i) stage.frame();
    CHECK(rect_of("tile_a") == tile);
  }
  stage.shell.key(Key::v, false);
  stage.frame();
  CHECK(stage.has("loads"));
  CHECK_FALSE(stage.has("aside_0"));
  CHECK(rect_of("tile_a")[2] < tile[2]);
  stage.shell.key(Key::right, false);  // all stays while one steps on
  for (int i = 0; i < 200; ++i) stage.frame();
  CHECK(stage.has("loads"));
  stage.shell.key(Key::v, false);
  stage.frame();
  REQUIRE(stage.has("aside_0"));
  stage.click("aside_0");
  stage.frame();
  CHECK(stage.has("loads"));
  CHECK_FALSE(stage.has("aside_0"));
}

TEST_CASE("what has nothing to show yet has no drawing in the strip", "[ui_shell]") {
  ShellOptions options;
  options.lesson = "flash-attention";
  options.step = 3;
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  const auto names = [&] {
    std::vector<std::string> all;
    for (int i = 0; stage.has(fmt::format("aside_{}", i)); ++i) {
      all.push_back(stage.part(fmt::format("aside_{}", i))["label"].get<std::string>());
    }
    return all;
  };
  CHECK(names() == std::vector<std::string>{"ℓ"});
  stage.shell.key(Key::end, false);
  for (int i = 0; i < 200; ++i) stage.frame();
  CHECK(names() == std::vector<std::string>{"ℓ", "FLOP of both products"});
}

TEST_CASE("steps of another kind are about something else", "[ui_shell]") {
  ShellOptions options;
  options.lesson = "decode";
  options.step = 3;
  Stage stage(options);
  stage.lab.answer();
  stage.frame();
  CHECK(stage.has("cache"));
  CHECK_FALSE(stage.has("intensity_box"));
  stage.shell.key(Key::right, false);
  for (int i = 0; i < 200; ++i) stage.frame();
  CHECK_FALSE(stage.has("cache"));
  CHECK(stage.has("weights"));
}

TEST_CASE("what a stop is about has its numbers and names on a projector", "[ui_shell]") {
  struct Named {
    const char* lesson;
    int stop;  ///< from 0
    std::vector<std::pair<const char*, int>> words;
  };
  const Named all[] = {{"tiling", 4, {{"8", 128}}},
                       {"hopper-gemm", 2, {{"0", 2}, {"3", 2}, {"5", 2}, {"B rows 0–127", 1}}},
                       {"attention-backward", 3, {{"K", 1}, {"V", 1}, {"dK", 1}, {"dV", 1}}}};
  for (const Named& each : all) {
    CAPTURE(each.lesson);
    const lab::Lesson& of = lesson(each.lesson);
    const auto stop =
        scenes::parse_guide(scenes::lesson_text(each.lesson), of.knobs()).stops.at(each.stop);
    ShellOptions options;
    options.lesson = each.lesson;
    options.settings = stop.settings;
    options.step = stop.step;
    options.phase = stop.phase;
    options.stop = each.stop;
    options.presenter = true;
    Stage stage(options);
    stage.lab.answer();
    stage.draw({1280, 720});
    stage.shell.context().record_texts(true);
    stage.draw({1280, 720});
    const auto& texts = stage.shell.context().texts();
    for (const auto& [words, times] : each.words) {
      CAPTURE(words);
      const std::string wanted = words;
      const auto is = [&](const ui::DrawnText& text) { return text.text == wanted; };
      CHECK(std::count_if(texts.begin(), texts.end(), is) >= times);
    }
  }
}

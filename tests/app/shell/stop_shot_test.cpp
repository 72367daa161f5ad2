// What of a picture is on show at a stop of the guided path.
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
  CHECK_FALSE(stage.has("aside_0"));  // before the first stop
  REQUIRE(stage.has("loads"));
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
  CHECK(stage.has("loads"));
  CHECK_FALSE(stage.has("aside_0"));
}

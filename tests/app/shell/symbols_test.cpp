// A symbol is one thing: pointed at anywhere it lights up everywhere, and a click pins what it means.
#include "scenes/ui/context.hpp"
#include "tests/app/shell/stage.hpp"

using namespace tilestep;
using namespace tilestep::app;
using tests::Stage;

namespace {

/// By what it says: a curve of the picture is called m as well.
nlohmann::json labelled(const Stage& stage, const std::string& label) {
  for (const auto& part : stage.map()["parts"]) {
    if (part["label"] == label) return part;
  }
  FAIL("nothing on screen says '" << label << "'");
  return {};
}

void point_at(Stage& stage, const nlohmann::json& part) {
  const auto rect = part["rect"].get<std::vector<float>>();
  ImGui::GetIO().MousePos = {rect[0] + rect[2] / 2, rect[1] + rect[3] / 2};
  stage.frame();
  stage.frame();
}

ShellOptions softmax_at(int step) {
  ShellOptions options;
  options.lesson = "online-softmax";
  options.step = step;
  return options;
}

}  // namespace

TEST_CASE("a symbol that is pointed at lights up in picture, readout and table", "[ui_shell]") {
  Stage stage(softmax_at(2));
  stage.lab.answer();
  stage.frame();
  const std::string dark = tests::ink_of_picture();
  CHECK(stage.part("head_m")["value"] == "");
  point_at(stage, labelled(stage, "running maximum m"));
  const std::string of_m = tests::ink_of_picture();
  CHECK((of_m != dark));
  CHECK(stage.part("head_m")["value"] == "lit");
  CHECK(stage.part("head_l")["value"] == "");
  point_at(stage, stage.part("head_m"));
  CHECK((tests::ink_of_picture() == of_m));
  point_at(stage, stage.part("l"));
  CHECK((tests::ink_of_picture() != of_m));
  CHECK(stage.part("head_m")["value"] == "");
  CHECK(stage.part("head_l")["value"] == "lit");
  ImGui::GetIO().MousePos = {-1, -1};
  stage.frame();
  stage.frame();
  CHECK((tests::ink_of_picture() == dark));
}

TEST_CASE("a click on a symbol pins what it means until Esc or a click elsewhere", "[ui_shell]") {
  Stage stage(softmax_at(2));
  stage.lab.answer();
  stage.frame();
  CHECK_FALSE(stage.has("definition"));
  stage.click("head_m");
  REQUIRE(stage.has("definition"));
  CHECK(stage.part("definition")["label"] == "m");
  CHECK(stage.part("definition")["value"].get<std::string>().starts_with("The largest score"));
  point_at(stage, stage.part("next"));
  CHECK(stage.has("definition"));  // it is pinned, wherever the pointer goes
  stage.shell.key(Key::escape, false);
  stage.frame();
  CHECK_FALSE(stage.has("definition"));
  stage.click("l");
  CHECK(stage.part("definition")["label"] == "ℓ");
  stage.click("head_m");
  CHECK(stage.part("definition")["label"] == "m");
  stage.click("title");
  CHECK_FALSE(stage.has("definition"));
  stage.click("l");
  stage.click("close_definition");
  CHECK_FALSE(stage.has("definition"));
  // Another lesson has other symbols.
  stage.click("l");
  stage.shell.key(Key::up, false);
  stage.frame();
  CHECK_FALSE(stage.has("definition"));
}

TEST_CASE("the kernel tab says what its lines computed, as far as the cursor is", "[ui_shell]") {
  ShellOptions options = softmax_at(2);
  options.phase = "rescale";
  options.tab = Tab::kernel;
  Stage stage(options);
  stage.lab.answer();
  stage.frame({1440, 1400});
  std::map<std::string, int> begins;
  for (const auto& part : stage.map()["parts"]) {
    if (!part["id"].get<std::string>().starts_with("value_")) continue;
    const auto label = part["label"].get<std::string>();
    ++begins[label.substr(0, label.find(' '))];
  }
  CHECK(begins == std::map<std::string, int>{{"m_new", 1}, {"rescale", 1}});
}

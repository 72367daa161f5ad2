#include "scenes/ui/code_editor.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using ui::CodeEditor;
using ui::EditorKey;

namespace {

const ImVec2 kEditor(640, 320);

std::string long_source() {
  std::string text;
  for (int line = 1; line <= 200; ++line) text += "  int line_" + std::to_string(line) + ";\n";
  return text;
}

/// An editor in a window of its own.
struct Desk {
  explicit Desk(std::string_view text) : editor(text) {}

  tests::Parts draw() {
    tests::Parts parts;
    for (int frame = 0; frame < 3; ++frame) {  // scrolling comes a frame later
      parts = stage.draw(kEditor, [&] { editor.draw("code", look); });
    }
    return parts;
  }
  tests::Parts click(const std::string& id) {
    stage.click(id, kEditor, [&] { editor.draw("code", look); });
    return draw();
  }
  void type(std::string_view text) {
    for (const char c : text) editor.type(static_cast<char32_t>(c));
  }
  void press(EditorKey key, bool shift = false, bool by_words = false) {
    editor.press({key, shift, by_words});
  }

  tests::SceneFrame stage;
  CodeEditor editor;
  ui::EditorLook look;
};

}  // namespace

TEST_CASE("an editor is found by name, takes the keys on a click and gives them back on Esc",
          "[ui_editor]") {
  Desk desk("int a;\nint b;\n");
  auto parts = desk.draw();
  CHECK(parts.at("editor").value.empty());
  CHECK(parts.count("editor_caret") == 0);
  CHECK(parts.at("editor_line_2").label == "int b;");
  parts = desk.click("editor_line_2");
  CHECK(desk.editor.has_keys());
  CHECK(parts.at("editor").value == "typing");
  CHECK(parts.at("editor_caret").value == "2:7");  // behind the line's end, where the click was
  desk.type("x");
  CHECK(desk.editor.text() == "int a;\nint b;x\n");
  desk.press(EditorKey::escape);
  CHECK_FALSE(desk.editor.has_keys());
  CHECK(desk.draw().count("editor_caret") == 0);
}

TEST_CASE("the caret stays in sight wherever it goes", "[ui_editor]") {
  Desk desk(long_source());
  desk.editor.take_keys();
  CHECK(desk.draw().count("editor_line_1") == 1);
  desk.press(EditorKey::end, false, true);
  auto parts = desk.draw();
  CHECK(parts.count("editor_line_1") == 0);
  CHECK(parts.at("editor_caret").value == "201:1");
  CHECK(tests::within(parts.at("editor_caret"), parts.at("editor")));
  desk.press(EditorKey::page_up);
  desk.press(EditorKey::page_up);
  parts = desk.draw();
  CHECK(parts.count("editor_line_200") == 0);
  CHECK(tests::within(parts.at("editor_caret"), parts.at("editor")));
  desk.press(EditorKey::home, false, true);
  for (int i = 0; i < 150; ++i) desk.type("x");
  parts = desk.draw();
  CHECK(parts.at("editor_caret").value == "1:151");
  CHECK(tests::within(parts.at("editor_caret"), parts.at("editor")));
  desk.press(EditorKey::home);
  desk.press(EditorKey::home);
  parts = desk.draw();
  CHECK(tests::within(parts.at("editor_caret"), parts.at("editor")));
  desk.editor.go_to_line(100);
  parts = desk.draw();
  CHECK(parts.at("editor_caret").value == "100:1");
  CHECK(tests::within(parts.at("editor_line_100"), parts.at("editor")));
}

TEST_CASE("the mouse selects, words by a double click and lines in the gutter", "[ui_editor]") {
  Desk desk("alpha beta\ngamma\n");
  const auto parts = desk.draw();
  const ui::MapEntry line = parts.at("editor_line_1");
  const auto draw = [&] { desk.editor.draw("code", desk.look); };
  ImGuiIO& io = ImGui::GetIO();
  const auto click_at = [&](float x, float y) {
    io.MousePos = {x, y};
    for (const bool down : {true, false}) {
      io.MouseDown[0] = down;
      desk.stage.draw(kEditor, draw);
    }
  };
  desk.editor.take_keys();
  const float caret = desk.draw().at("editor_caret").min.x, y = tests::center(line).y;
  click_at(caret + 10, y);
  click_at(caret + 10, y);
  CHECK(desk.editor.buffer().selected() == "alpha");
  click_at(line.min.x + 6, y + line.max.y - line.min.y);
  CHECK(desk.editor.buffer().selected() == "gamma\n");
  // From the start of the first line to somewhere behind its end.
  io.MousePos = {caret, y};
  io.MouseDown[0] = true;
  desk.stage.draw(kEditor, draw);
  io.MousePos = {caret + 400, y};
  desk.stage.draw(kEditor, draw);
  io.MouseDown[0] = false;
  desk.stage.draw(kEditor, draw);
  CHECK(desk.editor.buffer().selected() == "alpha beta");
}

TEST_CASE("finding goes from place to place and leaves the text alone", "[ui_editor]") {
  Desk desk(long_source());
  desk.editor.take_keys();
  desk.press(EditorKey::find);
  desk.type("line_19");
  auto parts = desk.draw();
  CHECK(parts.at("find_text").value == "line_19");
  CHECK(parts.at("find_count").value == "1 of 11");
  CHECK(parts.count("editor_line_19") == 1);
  desk.press(EditorKey::enter);
  parts = desk.draw();
  CHECK(parts.at("find_count").value == "2 of 11");
  CHECK(tests::within(parts.at("editor_line_190"), parts.at("editor")));
  desk.press(EditorKey::enter, true);
  desk.press(EditorKey::enter, true);
  CHECK(desk.draw().at("find_count").value == "11 of 11");
  desk.click("find_next");
  CHECK(desk.draw().at("find_count").value == "1 of 11");
  desk.type("x");
  CHECK(desk.draw().at("find_count").value == "not found");
  desk.press(EditorKey::escape);
  CHECK(desk.draw().count("find_text") == 0);
  CHECK(desk.editor.has_keys());
  CHECK(desk.editor.text() == long_source());
  desk.press(EditorKey::escape);
  CHECK_FALSE(desk.editor.has_keys());
}

TEST_CASE("what a compiler says stands at its line", "[ui_editor]") {
  Desk desk("int a = b;\nint c;\nint d;\n");
  desk.look.diagnostics = {{1, 9, lab::Severity::error, "'b' was not declared"},
                           {3, 0, lab::Severity::note, "declared here"},
                           {3, 5, lab::Severity::warning, "unused variable 'd'"},
                           {0, 0, lab::Severity::error, "about no line"},
                           {77, 1, lab::Severity::error, "behind the end"}};
  desk.look.step_lines = {2};
  desk.look.current = 2;
  desk.look.values = {{2, "c = 4"}};
  const auto parts = desk.draw();
  CHECK(parts.at("diagnostic_1").label == "Error: 'b' was not declared");
  CHECK(parts.at("diagnostic_1").value == "error");
  CHECK(parts.at("diagnostic_3").label == "Warning: unused variable 'd'  (and 1 more)");
  CHECK(parts.count("diagnostic_2") == 0);
  CHECK(parts.count("diagnostic_77") == 0);
  CHECK(parts.at("editor_line_2").value == "current");
  CHECK(parts.at("value_2").label == "c = 4");
  const float y = tests::center(parts.at("diagnostic_1")).y;
  CHECK(y == Approx(tests::center(parts.at("editor_line_1")).y).margin(2));
  CHECK(tests::within(parts.at("diagnostic_1"), parts.at("editor")));
}

TEST_CASE("copy, cut and paste go through the clipboard", "[ui_editor]") {
  Desk desk("one two\n");
  desk.draw();
  desk.editor.take_keys();
  desk.press(EditorKey::right, true, true);
  desk.press(EditorKey::cut);
  CHECK(desk.editor.text() == " two\n");
  CHECK(std::string(ImGui::GetClipboardText()) == "one");
  desk.press(EditorKey::end);
  desk.press(EditorKey::paste);
  CHECK(desk.editor.text() == " twoone\n");
  desk.press(EditorKey::undo);
  CHECK(desk.editor.text() == " two\n");
  desk.press(EditorKey::redo);
  desk.press(EditorKey::comment);
  CHECK(desk.editor.text() == " // twoone\n");
}

TEST_CASE("an editor draws in both themes at any size, empty and with long lines", "[ui_editor]") {
  tests::SceneFrame stage;
  for (const ui::ThemeKind theme : {ui::ThemeKind::dark, ui::ThemeKind::light}) {
    stage.look().theme = theme;
    for (const std::string& text : {std::string(), std::string(5000, 'x'), long_source()}) {
      for (const ImVec2 size : {ImVec2(40, 20), ImVec2(300, 90), ImVec2(1800, 900)}) {
        CodeEditor editor(text);
        editor.open_find();
        ui::EditorLook look;
        look.diagnostics = {{1, 1, lab::Severity::error, std::string(900, 'e')}};
        const auto parts = stage.draw(size, [&] { editor.draw("code", look); });
        if (size.y > 20) CHECK(parts.count("editor") == 1);
      }
    }
  }
}

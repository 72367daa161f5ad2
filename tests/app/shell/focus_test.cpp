// Everything that the mouse can press can be reached and pressed with the keyboard.
#include "scenes/ui/focus.hpp"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "kernels/catalog.hpp"
#include "scenes/ui/context.hpp"
#include "tests/app/shell/stage.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::app;
using tests::Stage;

namespace {

struct Walker {
  explicit Walker(ShellOptions options = {}, ImVec2 window = {1440, 900})
      : stage(std::move(options)), size(window) {
    stage.lab.answer();
    frame();
    frame();
  }

  void frame() {
    stage.draw(size);
    stage.draw(size);  // what is scrolled into sight has been laid out
    stage.draw(size);
  }
  void press(Key key, bool shift = false) {
    stage.shell.key(key, shift);
    frame();
  }
  /// The part that has the ring.
  const ui::MapEntry* ring() {
    const auto& map = stage.shell.context().map();
    const auto found =
        std::find_if(map.begin(), map.end(), [](const auto& part) { return part.id == "focus"; });
    return found == map.end() ? nullptr : &*found;
  }
  std::string on() {
    const ui::MapEntry* part = ring();
    return part != nullptr ? part->label : std::string();
  }
  /// Goes on with Tab until the ring is on `id`.
  void go_to(const std::string& id) {
    for (int i = 0; i < 400 && on() != id; ++i) press(Key::tab);
    REQUIRE(on() == id);
  }
  std::string value(const std::string& id) const { return stage.part(id)["value"]; }

  Stage stage;
  ImVec2 size;
};

/// A round of Tab, by the names of the controls; the ring must be in sight at each.
std::vector<std::string> round(Walker& walker, bool back = false) {
  std::vector<std::string> all;
  walker.press(Key::tab, back);
  const std::string first = walker.on();
  REQUIRE_FALSE(first.empty());
  do {
    INFO(fmt::format("{} stops, the last one: {}", all.size(), all.empty() ? "" : all.back()));
    REQUIRE(walker.ring());
    all.push_back(walker.on());
    const ui::MapEntry& ring = *walker.ring();
    INFO(all.back());
    CHECK(ring.min.x >= 0);
    CHECK(ring.min.y >= 0);
    CHECK(ring.max.x <= walker.size.x);
    CHECK(ring.max.y <= walker.size.y);
    CHECK(ring.max.x - ring.min.x >= 4);  // a symbol in a text
    CHECK(ring.max.y - ring.min.y >= 8);
    walker.press(Key::tab, back);
  } while (walker.on() != first && all.size() < 1000);
  return all;
}

/// The names of all that shows a hand or a caret when the mouse is on it, outside of the picture.
std::set<std::string> found_by_mouse(Walker& walker) {
  std::set<std::string> found;
  const auto picture = walker.stage.part("picture")["rect"].get<std::vector<float>>();
  const auto inside = [](const std::vector<float>& rect, ImVec2 at) {
    return at.x >= rect[0] && at.x < rect[0] + rect[2] && at.y >= rect[1] &&
           at.y < rect[1] + rect[3];
  };
  const auto parts = walker.stage.map()["parts"];
  const bool overlay = walker.stage.has("close_tabs");
  bool tabs = false;  // what comes after them lies over the picture
  for (const auto& part : parts) {
    tabs = tabs || part["id"] == "tab_predict";
    const auto rect = part["rect"].get<std::vector<float>>();
    const ImVec2 at(rect[0] + rect[2] / 2, rect[1] + rect[3] / 2);
    if (part["cut"] == true || (!(overlay && tabs) && inside(picture, at))) continue;
    // Of what lies on each other the smallest part is meant.
    const bool smallest = std::none_of(parts.begin(), parts.end(), [&](const auto& other) {
      const auto area = other["rect"].template get<std::vector<float>>();
      return inside(area, at) && area[2] * area[3] < rect[2] * rect[3];
    });
    if (!smallest) continue;
    ImGui::GetIO().MousePos = at;
    walker.stage.draw(walker.size);
    const int cursor = ImGui::GetMouseCursor();
    if (cursor == ImGuiMouseCursor_Hand || cursor == ImGuiMouseCursor_TextInput) {
      found.insert(part["id"]);
    }
  }
  ImGui::GetIO().MousePos = {-1000, -1000};
  walker.frame();
  return found;
}

/// Tab reaches once a round all that the mouse finds, and Shift+Tab goes the same way back.
void check_walk(Walker& walker) {
  const std::set<std::string> pressable = found_by_mouse(walker);
  REQUIRE(pressable.size() > 5);
  const std::vector<std::string> on = round(walker);
  const std::set<std::string> reached(on.begin(), on.end());
  for (const std::string& id : pressable) {
    if (id.starts_with("term_") && reached.count("terms") > 0) continue;  // ↑ and ↓ choose
    if (id.starts_with("word_")) continue;  // the palette has the sources that calls open
    INFO(id);
    CHECK(reached.count(id) == 1);
  }
  // The ring is on the first stop again.
  std::vector<std::string> back = round(walker, true);
  std::reverse(back.begin(), back.end());
  CHECK(back == on);
}

std::vector<std::string> swept_lessons() {
  std::vector<std::string> some;
  tests::Part part("focus", lessons().size());
  for (const lab::Lesson* lesson : lessons()) {
    if (!part.skips()) some.push_back(lesson->info().id);
  }
  return some;
}

}  // namespace

TEST_CASE("Tab reaches once a round all that the mouse can press", "[ui_focus]") {
  tests::Part looks("looks", 2);
  for (const std::string& lesson : swept_lessons()) {
    for (const auto& [look, tab] : {std::pair{"desk", Key::d},
                                    {"desk", Key::m},
                                    {"desk", Key::k},
                                    {"desk", Key::g},
                                    {"reader", Key::escape},
                                    {"presenter", Key::escape},
                                    {"presenter", Key::d},
                                    {"question", Key::escape}}) {
      if (looks.skips()) continue;
      CAPTURE(lesson, look, static_cast<int>(tab));
      ShellOptions options;
      options.lesson = lesson;
      options.presenter = std::string(look) == "presenter";
      options.reader = std::string(look) == "reader";
      options.asked = std::string(look) == "question";
      Walker walker(options, options.presenter ? ImVec2(1920, 1080) : ImVec2(1440, 900));
      if (tab != Key::escape) walker.press(tab);
      check_walk(walker);
    }
  }
}

TEST_CASE("what has to be scrolled to comes into sight with the focus", "[ui_focus]") {
  ShellOptions options;
  options.lesson = "moe-routing";
  options.text_scale = 2;
  Walker walker(options, {1024, 640});
  round(walker);
  options.reader = true;
  Walker reader(options, {1024, 640});
  round(reader);
}

TEST_CASE("what scrolls stays where it stands when the focus comes to it", "[ui_focus]") {
  ShellOptions options;
  options.lesson = "latency-hiding";
  Walker walker(options);
  walker.press(Key::k);
  REQUIRE(walker.stage.has("fold_32"));
  const auto before = walker.stage.part("fold_32");
  walker.go_to("source");
  REQUIRE(walker.stage.has("fold_32"));
  CHECK(walker.stage.part("fold_32") == before);
}

TEST_CASE("Enter and Space press what has the focus, and what has none plays", "[ui_focus]") {
  Walker walker;
  walker.press(Key::enter);
  CHECK(walker.stage.shell.step() == 0);
  walker.go_to("last");
  CHECK(walker.value("last").empty());
  walker.press(Key::enter);
  CHECK(walker.stage.shell.step() == 4);
  CHECK(walker.on().empty());  // it is disabled now, and has lost the focus
  walker.press(Key::tab, true);
  CHECK(walker.on() == "play");
  walker.go_to("first");
  walker.press(Key::space);
  CHECK(walker.stage.shell.step() == 0);
  walker.go_to("theme");
  walker.press(Key::space);
  CHECK(walker.stage.part("theme")["label"] == "Dark theme");
  CHECK(walker.on() == "theme");  // a redraw in other colours
  walker.press(Key::right);       // still a step of the window
  CHECK(walker.stage.shell.step() == 1);
  CHECK(walker.on() == "theme");
  walker.press(Key::escape);
  CHECK(walker.on().empty());
  CHECK(walker.stage.part("theme")["label"] == "Dark theme");
  walker.press(Key::enter);  // presses nothing without the ring
  CHECK(walker.stage.part("theme")["label"] == "Dark theme");
  walker.press(Key::space);
  CHECK(walker.stage.part("play")["label"] == "Pause");
}

TEST_CASE("the mouse takes the ring away, and Tab goes on from where it was pressed",
          "[ui_focus]") {
  Walker walker;
  walker.press(Key::tab);
  CHECK_FALSE(walker.on().empty());
  walker.stage.click("next");
  CHECK_FALSE(walker.stage.has("focus"));
  CHECK(walker.stage.shell.step() == 1);
  ImGui::GetIO().MousePos = {-1000, -1000};
  walker.press(Key::tab);
  CHECK(walker.on() == "last");
}

TEST_CASE("arrows turn the knob that has the focus", "[ui_focus]") {
  ShellOptions options;
  options.lesson = "coalescing";
  Walker walker(options);
  const auto turned = [&](const char* knob) {
    walker.stage.shell.update();
    return walker.stage.lab.requests.back().params.at(knob);
  };
  const std::size_t runs = walker.stage.lab.requests.size();
  walker.go_to("slider_stride");
  REQUIRE(walker.value("slider_stride") == "2");
  walker.press(Key::right);
  walker.press(Key::right);
  CHECK(walker.stage.shell.step() == 0);  // not for the transport
  CHECK(walker.value("slider_stride") == "4");
  walker.press(Key::left);
  CHECK(walker.value("slider_stride") == "3");
  CHECK(walker.on() == "slider_stride");
  for (int i = 0; i < 3; ++i) walker.press(Key::left);
  CHECK(walker.value("slider_stride") == "1");  // its end
  CHECK(walker.stage.lab.requests.size() >= runs);
  CHECK(std::holds_alternative<std::int64_t>(turned("stride")));
}

TEST_CASE("arrows go along choices that stand side by side", "[ui_focus]") {
  Walker walker;
  walker.go_to("speed_1");
  CHECK(walker.value("speed_1") == "selected");
  walker.press(Key::right);
  CHECK(walker.on() == "speed_2");
  CHECK(walker.value("speed_2") == "selected");
  walker.press(Key::left);
  walker.press(Key::left);
  walker.press(Key::left);
  CHECK(walker.on() == "speed_0");
  CHECK(walker.value("speed_0") == "selected");
  walker.press(Key::tab);
  walker.press(Key::tab);
  walker.press(Key::space);
  CHECK(walker.value("speed_2") == "selected");
}

TEST_CASE("a list opens by Enter, is walked by arrows, and Esc leaves it as it was", "[ui_focus]") {
  Walker walker;
  walker.go_to("knob_preset");
  const std::string before = walker.value("knob_preset");
  walker.press(Key::enter);
  REQUIRE(walker.stage.has("knob_preset_1"));
  CHECK(walker.on() == "knob_preset_0");
  walker.press(Key::down);
  walker.press(Key::down);
  CHECK(walker.on() == "knob_preset_2");
  walker.press(Key::t);  // keys of the window stay closed behind it
  walker.press(Key::right);
  CHECK(walker.stage.part("theme")["label"] == "Light theme");
  CHECK(walker.stage.shell.step() == 0);
  walker.press(Key::escape);
  CHECK_FALSE(walker.stage.has("knob_preset_1"));
  CHECK(walker.value("knob_preset") == before);
  CHECK(walker.on() == "knob_preset");
  walker.press(Key::enter);
  walker.press(Key::down);
  walker.press(Key::up);
  walker.press(Key::down);
  const std::string wanted = walker.stage.part("knob_preset_1")["label"];
  walker.press(Key::enter);
  CHECK_FALSE(walker.stage.has("knob_preset_1"));
  CHECK(walker.value("knob_preset") == wanted);
  CHECK(walker.value("knob_preset") != before);
  // One that the mouse has opened, too.
  walker.stage.click("knob_preset");
  REQUIRE(walker.stage.has("knob_preset_1"));
  walker.press(Key::escape);
  CHECK_FALSE(walker.stage.has("knob_preset_1"));
}

TEST_CASE("what lies over the window keeps keys and focus to itself", "[ui_focus]") {
  ShellOptions options;
  options.first_start = true;
  Walker walker(options);
  REQUIRE(walker.stage.has("home"));
  walker.go_to("coach_begin");
  walker.press(Key::enter);
  REQUIRE(walker.stage.has("coach"));  // lets everything through
  walker.press(Key::t);
  CHECK(walker.stage.part("theme")["label"] == "Dark theme");
  walker.press(Key::t);
  walker.go_to("coach_end");
  walker.press(Key::enter);
  CHECK_FALSE(walker.stage.has("coach"));

  walker.go_to("next");
  walker.press(Key::question);
  REQUIRE(walker.stage.has("key_list"));
  CHECK(walker.on().empty());
  walker.press(Key::tab);
  walker.press(Key::enter);
  walker.press(Key::t);
  CHECK(walker.stage.shell.step() == 0);
  CHECK(walker.stage.part("theme")["label"] == "Light theme");
  walker.press(Key::escape);
  CHECK_FALSE(walker.stage.has("key_list"));
  CHECK(walker.on() == "next");  // as before

  walker.press(Key::find);
  REQUIRE(walker.stage.has("palette"));
  std::set<std::string> lines;
  for (const auto& part : walker.stage.map()["parts"]) {
    const auto id = part["id"].get<std::string>();
    if (id.starts_with("find_")) lines.insert(id);
  }
  const std::vector<std::string> on = round(walker);
  CHECK(std::set<std::string>(on.begin(), on.end()).size() == on.size());
  CHECK(on.size() >= lines.size());
  for (const std::string& id : lines) {
    INFO(id);
    CHECK(std::count(on.begin(), on.end(), id) == 1);
  }
  for (const char letter : std::string("glossary"))
    ImGui::GetIO().AddInputCharacter(static_cast<unsigned>(letter));
  walker.press(Key::k);
  CHECK(walker.value("palette") == "glossary");
  walker.press(Key::escape);
  CHECK_FALSE(walker.stage.has("palette"));
  CHECK(walker.stage.part("tab_data")["value"] == "selected");
  CHECK(walker.on() == "next");
}

TEST_CASE("a field with the focus is typed into after Enter, and Tab leaves it", "[ui_focus]") {
  Walker walker;
  walker.go_to("knob_keys");
  CHECK_FALSE(ImGui::GetIO().WantTextInput);
  walker.press(Key::enter);
  CHECK(ImGui::GetIO().WantTextInput);
  ImGui::GetIO().AddInputCharactersUTF8("24");
  walker.press(Key::k);
  CHECK(walker.stage.part("tab_data")["value"] == "selected");
  walker.press(Key::tab);
  CHECK(walker.on() == "slider_keys");
  CHECK_FALSE(ImGui::GetIO().WantTextInput);
  CHECK(walker.value("knob_keys") == "24");

  walker.press(Key::g);
  walker.go_to("glossary_search");
  walker.press(Key::enter);
  ImGui::GetIO().AddInputCharactersUTF8("warp");
  walker.press(Key::d);
  CHECK(walker.value("glossary_search") == "warp");
  CHECK(walker.stage.part("tab_glossary")["value"] == "selected");
  walker.press(Key::tab);
  CHECK(walker.on() == "terms");
  const auto chosen = [&] {
    for (const auto& part : walker.stage.map()["parts"]) {
      const auto id = part["id"].get<std::string>();
      if (id.starts_with("term_") && part["value"] == "selected") return id;
    }
    return std::string();
  };
  const std::string first = chosen();
  walker.press(Key::down);
  CHECK(chosen() != first);
  walker.press(Key::up);
  CHECK(chosen() == first);
}

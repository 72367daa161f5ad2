// What every lesson's picture promises. A lesson comes here by its line in lessons.def.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "app/window/canvas.hpp"
#include "kernels/base/lab/assets.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/lessons.hpp"
#include "tests/app/shell/stage.hpp"
#include "tests/lesson_contract/knob_cases.hpp"
#include "tests/lesson_contract/layout.hpp"
#include "tests/lesson_contract/pictures.hpp"
#include "tests/part.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using contract::layout_faults;
using contract::some_cursors;
using contract::to_text;
using scenes::Cursor;
using scenes::Scene;
using tests::report_of;
using tests::SceneFrame;

namespace {

Cursor start_of(const Scene& scene) {
  return {0, scene.steps().phases - 1};
}

/// All cursors of the first steps, and of the last.
std::vector<Cursor> many_cursors(const Scene& scene) {
  constexpr int kFirst = 40;
  const scenes::StepAxis axis = scene.steps();
  std::vector<Cursor> cursors = {start_of(scene)};
  for (int tile = 1; tile <= axis.tiles; ++tile) {
    if (tile > kFirst && tile < axis.tiles - 2) continue;
    for (int phase = 0; phase < axis.phases_in(tile); ++phase) cursors.push_back({tile, phase});
  }
  return cursors;
}

// ---- the whole window --------------------------------------------------------------------------

const ImVec2 kWindows[] = {{1024, 640},  {1440, 900}, {1280, 720},
                           {3840, 2160}, {1366, 768}, {1920, 1080}};
const std::span<const ImVec2> kSweptWindows(kWindows, tests::kSweptSizes.size() < 3 ? 2 : 6);
constexpr app::Key kTabs[] = {app::Key::d, app::Key::m, app::Key::k, app::Key::l, app::Key::g};

/// Sizes, themes, text sizes, with and without presenter mode, first to last step, every tab; at the last
/// also beside a run that is kept.
void check_window(const lab::Lesson& lesson) {
  const int steps = [&] {
    const auto scene = tests::scene_of(lesson.info().id);
    scene->load(report_of(lesson.info().id));
    return scene->steps().tiles;
  }();
  int turn = 0;
  tests::Part part("windows of " + lesson.info().id, 3);
  for (const float text_scale : {1.0f, 1.5f, 2.0f}) {
    for (const bool presenter : {false, true}) {
      if (part.skips()) continue;
      app::ShellOptions options;
      options.lesson = lesson.info().id;
      options.presenter = presenter;
      options.text_scale = text_scale;
      tests::Stage stage(options);
      stage.lab.answer();
      for (const ImVec2 size : kSweptWindows) {
        const float scale =
            app::design_scale(static_cast<int>(size.x), static_cast<int>(size.y), 1);
        stage.shell.key(app::Key::home, false);
        for (const int until : {0, 1, (steps + 1) / 2, steps, steps + 1}) {
          const bool compared = until > steps;
          if (compared) stage.shell.key(app::Key::b, false);
          while (stage.shell.step() < std::min(until, steps))
            stage.shell.key(app::Key::right, false);
          stage.shell.key(kTabs[turn++ % std::size(kTabs)], false);
          stage.shell.key(app::Key::t, false);
          stage.shell.context().record_texts(true);
          stage.draw(size, scale);
          stage.draw(size, scale);  // what scrolls has learnt its length
          const std::string faults = layout_faults(stage.shell.context());
          INFO(fmt::format("{}x{}, text {}, {}, step {}, tab {}", size.x, size.y, text_scale,
                           presenter ? "presenter" : "desk", until, (turn - 1) % 5));
          INFO(faults);
          CHECK(faults.empty());
          if (compared) stage.shell.key(app::Key::b, false);
        }
      }
    }
  }
}

// ---- the picture -----------------------------------------------------------------------------------

/// A picture says which of its parts must keep a size; a sweep that is told of none sees no slivers.
void check_least_sizes(const lab::Lesson& lesson) {
  SceneFrame frame;
  scenes::ScenePlayer player = tests::player_of(lesson.info().id);
  player.load(report_of(lesson.info().id));
  const Scene& scene = player.scene();
  const auto parts =
      frame.draw(tests::kPictureSizes[0], [&] { player.draw_picture(some_cursors(scene).back()); });
  CHECK(std::any_of(parts.begin(), parts.end(),
                    [](const auto& part) { return part.second.least.y > 0; }));
}

/// The pointer on every part, one after another: tooltips and what lights up stay in the window. Of many
/// parts alike (the elements of a tile) some hundred are enough, and fewer under a sanitizer.
void check_hover(const lab::Lesson& lesson) {
  SceneFrame frame;
  scenes::ScenePlayer player = tests::player_of(lesson.info().id);
  player.load(report_of(lesson.info().id));
  const Scene& scene = player.scene();
  const ImVec2 size = tests::kPictureSizes[0];
  for (const Cursor cursor : some_cursors(scene)) {
    const auto draw = [&] { player.draw_picture(cursor); };
    const tests::Parts parts = frame.draw(size, draw);
    CHECK_FALSE(parts.empty());
    const std::size_t every = 1 + parts.size() / (tests::kSweptSizes.size() < 3 ? 30 : 150);
    std::size_t number = 0;
    for (const auto& [id, part] : parts) {
      if (number++ % every != 0) continue;
      CAPTURE(id, cursor.tile, cursor.phase);
      ImGui::GetIO().MousePos = tests::center(part);
      frame.show(size, draw);
      const tests::Parts hovered = frame.draw(size, draw);
      CHECK(hovered.count("sentence") == parts.count("sentence"));
    }
  }
}

// ---- steps, rows, lines ---------------------------------------------------------------------------

void check_rows(const lab::Lesson& lesson) {
  SceneFrame frame;
  scenes::ScenePlayer player = tests::player_of(lesson.info().id);
  const lab::Report& report = report_of(lesson.info().id);
  player.load(report);
  const Scene& scene = player.scene();
  bool any = false;
  for (const lab::Table& table : report.tables) {
    const int rows = static_cast<int>(table.rows.size());
    for (const Cursor cursor : many_cursors(scene)) {
      const int row = scene.table_row(table.id, {cursor});
      CAPTURE(table.id, cursor.tile, cursor.phase);
      CHECK(row >= -1);
      CHECK(row < rows);
      any = any || row >= 0;
    }
    for (const int row : {0, rows / 2, rows - 1, rows, -1}) {
      player.point_at(scene.subjects_of_row(table.id, row));
      frame.show(tests::kPictureSizes[0], [&] { player.draw_picture(some_cursors(scene).back()); });
    }
  }
  CHECK(any);  // a table that follows the steps
  CHECK(scene.table_row("no_such_table", {start_of(scene)}) == -1);
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_code(const std::string& line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first != std::string::npos && line.compare(first, 2, "//") != 0;
}

/// Whether a word stands in a source by itself, not in another.
bool has_word(std::string_view text, const std::string& word) {
  const auto is_part = [&](std::size_t at) {
    return at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    if (!is_part(at + word.size()) && (at == 0 || !is_part(at - 1))) return true;
  }
  return false;
}

/// What lines have computed stands at lines of the step, and the words for things are the kernel's.
void check_values(const Scene& scene, Cursor cursor, const scenes::SourceMark& mark) {
  for (const auto& [line, value] : mark.values) {
    CHECK(std::count(mark.step_lines.begin(), mark.step_lines.end(), line) >= 1);
    CHECK_FALSE(value.empty());
  }
  for (const picture::Symbol& symbol : scene.symbols({cursor})) {
    CHECK_FALSE(symbol.meaning.empty());
    for (const std::string& word : symbol.code) {
      CAPTURE(word);
      CHECK(has_word(lab::asset(mark.path), word));
    }
  }
}

/// Marked lines are code of a file that the program holds; the current one is among the step's.
void check_source(const lab::Lesson& lesson) {
  const auto scene = tests::scene_of(lesson.info().id);
  std::vector<lab::Settings> cases = contract::some_knob_ends(lesson);
  cases.push_back({});
  for (const lab::Settings& settings : cases) {
    scene->load(report_of(lesson.info().id, settings));
    CHECK(scene->source({start_of(*scene)}).current == 0);  // nothing has run
    CHECK(scene->source({start_of(*scene)}).values.empty());
    int marked = 0;
    std::set<std::string> values;
    for (const Cursor cursor : many_cursors(*scene)) {
      const scenes::SourceMark mark = scene->source({cursor});
      const std::vector<std::string> lines = lines_of(lab::asset(mark.path));
      INFO(to_text(settings) << mark.path << ", step " << cursor.tile << "." << cursor.phase);
      for (const int line : mark.step_lines) {
        REQUIRE(line >= 0);
        REQUIRE(line <= static_cast<int>(lines.size()));
        if (line > 0) CHECK(is_code(lines[static_cast<std::size_t>(line) - 1]));
      }
      check_values(*scene, cursor, mark);
      for (const auto& [line, value] : mark.values) values.insert(value);
      if (mark.current == 0) continue;
      ++marked;
      CHECK(std::count(mark.step_lines.begin(), mark.step_lines.end(), mark.current) >= 1);
    }
    if (settings.empty()) CHECK(marked > 0);
    if (settings.empty() && lab::recording(lesson.info().id) != nullptr) CHECK(values.size() > 2);
  }
}

}  // namespace

#define LESSON(chapter, id, title)                                                  \
  TEST_CASE(title ": the window at every size and look", "[" #id "_scene]") {       \
    check_window(id::lesson());                                                     \
  }                                                                                 \
  TEST_CASE(title ": the picture with every knob at its ends", "[" #id "_scene]") { \
    contract::check_pictures(id::lesson(), contract::some_knob_ends(id::lesson())); \
  }                                                                                 \
  TEST_CASE(title ": the picture says what must keep a size", "[" #id "_scene]") {  \
    check_least_sizes(id::lesson());                                                \
  }                                                                                 \
  TEST_CASE(title ": the pointer on every part", "[" #id "_scene]") {               \
    check_hover(id::lesson());                                                      \
  }                                                                                 \
  TEST_CASE(title ": rows of tables follow the steps", "[" #id "_scene]") {         \
    check_rows(id::lesson());                                                       \
  }                                                                                 \
  TEST_CASE(title ": marked lines are code", "[" #id "_scene]") {                   \
    check_source(id::lesson());                                                     \
  }
#include "kernels/lessons.def"

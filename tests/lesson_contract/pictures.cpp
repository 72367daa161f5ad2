#include "tests/lesson_contract/pictures.hpp"

#include <fmt/format.h>

#include "tests/lesson_contract/knob_cases.hpp"
#include "tests/lesson_contract/layout.hpp"
#include "tests/reports.hpp"
#include "tests/scenes/scene_frame.hpp"

namespace tilestep::contract {

using scenes::Cursor;
using scenes::Scene;
using scenes::ScenePlayer;
using tests::SceneFrame;

namespace {

void check_faults(SceneFrame& frame, const char* what) {
  const std::string faults = layout_faults(frame.context());
  INFO(what);
  INFO(faults);
  CHECK(faults.empty());
}

void check_looks(SceneFrame& frame, ScenePlayer& player, ImVec2 size) {
  for (const Cursor cursor : some_cursors(player.scene())) {
    frame.look().theme = cursor.tile % 2 == 0 ? ui::ThemeKind::dark : ui::ThemeKind::light;
    frame.show(size, [&] { player.draw_picture(cursor); });
    INFO(fmt::format("{}x{}, step {}.{}", size.x, size.y, cursor.tile, cursor.phase));
    check_faults(frame, "picture");
  }
}

}  // namespace

std::vector<Cursor> some_cursors(const Scene& scene) {
  const scenes::StepAxis axis = scene.steps();
  std::vector<Cursor> cursors = {{1, 0}};
  for (const int tile : {0, (axis.tiles + 1) / 2, axis.tiles}) {
    cursors.push_back({tile, axis.last_phase(tile)});
  }
  std::swap(cursors[0], cursors[1]);
  return cursors;
}

void check_pictures(const lab::Lesson& lesson, const std::vector<lab::Settings>& cases) {
  SceneFrame frame;
  frame.context().record_texts(true);
  ScenePlayer player = tests::player_of(lesson.info().id);
  for (const lab::Settings& settings : cases) {
    INFO(to_text(settings));
    const lab::Report& report = tests::report_of(lesson.info().id, settings);
    player.load(report);
    const Scene& scene = player.scene();
    REQUIRE(scene.steps().tiles >= 1);
    REQUIRE(scene.steps().phases >= 1);
    CHECK_FALSE(scene.steps().noun.empty());
    for (const ImVec2 size : tests::kSweptSizes) check_looks(frame, player, size);
    const Cursor end = some_cursors(scene).back();
    frame.draw_scrolling({300, 400}, [&] {
      for (const ui::Readout& one : player.readouts(end)) ui::readout(one);
    });
    check_faults(frame, "readouts");
    frame.draw_scrolling({700, 300}, [&] { player.draw_measured(report); });
  }
}

}  // namespace tilestep::contract

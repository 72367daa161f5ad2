// The Measured tab of every lesson, all of its views: nothing overprints, nothing stands on a roof.

#include <fmt/format.h>

#include "kernels/base/lab/recording.hpp"
#include "kernels/lessons.hpp"
#include "tests/lesson_contract/layout.hpp"
#include "tests/reports.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;

namespace {

/// What the tab has at 1440x900 and at 1280x720, and as an overlay.
const ImVec2 kSizes[] = {{1190, 300}, {1010, 170}, {1100, 560}};

bool touch(const ui::DrawnText& text, const ui::MapEntry& line) {
  return text.min.x < line.raw_max.x && text.max.x > line.raw_min.x &&
         text.min.y + 2 < line.raw_max.y && text.max.y - 2 > line.raw_min.y;
}

/// Texts that a line of a roof runs through, a line each.
std::string texts_on_roofs(ui::Context& context) {
  std::string faults;
  for (const ui::MapEntry& part : context.map()) {
    if (!part.id.ends_with("_roof")) continue;
    for (const ui::DrawnText& text : context.texts()) {
      if (text.seen && touch(text, part)) faults += fmt::format("{} on {}\n", text.text, part.id);
    }
  }
  return faults;
}

void check_measured(const lab::Lesson& lesson) {
  const lab::Recording* recording = lab::recording(lesson.info().id);
  if (recording == nullptr) return;
  const auto scene = tests::scene_of(lesson.info().id);
  CHECK(recording->bench.table(scene->measured_spec().needs) != nullptr);
  for (const auto& view : scene->measured_spec().views) {
    CAPTURE(view.name);
    if (!view.needs.empty() && !view.computed) CHECK(recording->bench.table(view.needs) != nullptr);
  }
  for (const float text_scale : {1.0f, 1.5f}) {
    for (const ImVec2 size : kSizes) {
      tests::SceneFrame frame;
      frame.look().text_scale = text_scale;
      scenes::ScenePlayer player = tests::player_of(lesson.info().id);
      player.load(tests::report_of(lesson.info().id));
      for (const auto& view : player.scene().measured_spec().views) {
        player.show_view(view.name);
        frame.context().record_texts(true);
        frame.draw_scrolling(size, [&] { player.draw_measured(recording->bench); });
        INFO(fmt::format("{}, {}x{}, text {}", view.name, size.x, size.y, text_scale));
        const std::string faults = contract::layout_faults(frame.context());
        INFO(faults);
        CHECK(faults.empty());
        const std::string on_roofs = texts_on_roofs(frame.context());
        INFO(on_roofs);
        CHECK(on_roofs.empty());
      }
    }
  }
}

}  // namespace

#define LESSON(chapter, id, title)                                                    \
  TEST_CASE(title ": every view of the Measured tab is legible", "[" #id "_scene]") { \
    check_measured(id::lesson());                                                     \
  }
#include "kernels/lessons.def"

TEST_CASE("a text on a roof is seen", "[scenes_shared]") {
  tests::SceneFrame frame;
  frame.context().record_texts(true);
  frame.draw({400, 200}, [] {
    ui::map("a_roof", "roof", "", {100, 0}, {101.5f, 200});
    ui::draw_text({90, 50}, "4273 GB/s", ui::Font::note);
  });
  CHECK(texts_on_roofs(frame.context()) == "4273 GB/s on a_roof\n");
}

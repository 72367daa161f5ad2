// What pictures that are data promise, whatever the lesson: they keep the vocabulary's rules, have room
// for all they say, and look the same however one came to them.

#include <fmt/format.h>

#include <cstring>
#include <random>

#include "kernels/lessons.hpp"
#include "tests/app/shell/stage.hpp"
#include "tests/lesson_contract/knob_cases.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;

namespace {

#if defined(TILESTEP_ASAN) || defined(TILESTEP_TSAN)
constexpr int kMoves = 100;
#else
constexpr int kMoves = 500;
#endif

/// Every phase of the first steps, of one in the middle and of the last.
std::vector<scenes::Cursor> phases_of(const scenes::StepAxis& axis) {
  std::vector<scenes::Cursor> cursors = {{0, axis.phases - 1}};
  for (const int tile : {1, 2, axis.tiles / 2, axis.tiles}) {
    for (int phase = 0; phase < axis.phases && tile > 0 && tile <= axis.tiles; ++phase) {
      cursors.push_back({tile, phase});
    }
  }
  return cursors;
}

void check_rules(const lab::Lesson& lesson) {
  std::vector<lab::Settings> cases = contract::knob_ends(lesson);
  cases.push_back({});
  const auto scene = tests::scene_of(lesson.info().id);
  for (const lab::Settings& settings : cases) {
    scene->load(tests::report_of(lesson.info().id, settings));
    const picture::Extent extent = scene->extent();
    for (const scenes::Cursor cursor : phases_of(scene->steps())) {
      INFO(contract::to_text(settings) << "step " << cursor.tile << "." << cursor.phase);
      const picture::Picture picture = scene->picture(extent, {cursor});
      CHECK(picture::problems(picture) == std::vector<std::string>{});
      CHECK_FALSE(picture.headline.full.empty());
    }
  }
}

std::string in_words(const picture::Area& a) {
  return fmt::format("{:.2f}–{:.2f}, {:.2f}–{:.2f}", a.x0, a.x1, a.y0, a.y1);
}

/// In a window of 1440x900 at 100 % nothing folds or is shortened, and boxes keep their place.
void check_room(const lab::Lesson& lesson) {
  const auto scene = tests::scene_of(lesson.info().id);
  scene->load(tests::report_of(lesson.info().id));
  tests::SceneFrame frame;
  const auto look = [&] {
    const picture::Extent extent = scene->extent();
    std::vector<picture::Room> rooms;
    for (const scenes::Cursor cursor : phases_of(scene->steps())) {
      CAPTURE(cursor.tile, cursor.phase);
      const picture::Placed placed =
          picture::place(scene->picture(extent, {cursor}), {0, 0, 832, 447}, ui::PictureMetrics());
      CHECK(placed.folded.empty());
      CHECK(placed.short_of == std::vector<std::string>{});
      for (const picture::Room& room : placed.rooms) {
        CAPTURE(picture::to_text(room.key));
        for (const picture::Room& before : rooms) {
          if (before.key == room.key) CHECK(in_words(before.area) == in_words(room.area));
        }
      }
      rooms.insert(rooms.end(), placed.rooms.begin(), placed.rooms.end());
    }
  };
  frame.draw({860, 480}, look);
}

// ---- moves ---------------------------------------------------------------------------------------

/// The picture's part of the frame drawn last.
std::string ink_of_picture() {
  std::string bytes;
  const ImDrawData& data = *ImGui::GetDrawData();
  for (int i = 0; i < data.CmdListsCount; ++i) {
    const ImDrawList& list = *data.CmdLists[i];
    if (list._OwnerName == nullptr || std::strstr(list._OwnerName, "/scene_") == nullptr) continue;
    bytes.append(reinterpret_cast<const char*>(list.VtxBuffer.Data),
                 static_cast<std::size_t>(list.VtxBuffer.size_in_bytes()));
  }
  return bytes;
}

/// However one moved, wherever one was interrupted: the picture is that of a window opened here.
void check_moves(const lab::Lesson& lesson) {
  app::ShellOptions options;
  options.lesson = lesson.info().id;
  constexpr app::Key kMovesOf[] = {app::Key::right,  app::Key::right,  app::Key::left,
                                   app::Key::period, app::Key::period, app::Key::comma,
                                   app::Key::home,   app::Key::end};
  const ImVec2 sizes[] = {{1440, 900}, {1280, 720}, {1920, 1080}};
  tests::Stage stage(options);
  stage.lab.answer();
  ImVec2 size = sizes[0];
  stage.draw(size);
  stage.shell.context().look().still = false;
  std::mt19937 random(7);
  for (int move = 1; move <= kMoves; ++move) {
    stage.shell.key(kMovesOf[random() % std::size(kMovesOf)], random() % 4 == 0);
    if (random() % 8 == 0) size = sizes[random() % std::size(sizes)];
    ImGui::GetIO().DeltaTime = 0.01f + 0.01f * static_cast<float>(random() % 40);
    ImGui::GetIO().MousePos = {-1, -1};
    stage.draw(size);
    if (move % (kMoves / 10) != 0) continue;
    stage.shell.key(app::Key::right, false);  // inside a step: to its end
    for (int frames = 0; frames < 40; ++frames) stage.draw(size);
    const std::string moved = ink_of_picture();
    REQUIRE_FALSE(moved.empty());
    options.step = stage.shell.step();
    tests::Stage fresh(options);
    fresh.lab.answer();
    fresh.draw(size);
    fresh.draw(size);
    CAPTURE(move, options.step, size.x);
    CHECK((ink_of_picture() == moved));
  }
}

}  // namespace

#define LESSON(chapter, id, title)                                                            \
  TEST_CASE(title ": the picture keeps the rules", "[" #id "_scene][sound]") {                \
    check_rules(id::lesson());                                                                \
  }                                                                                           \
  TEST_CASE(title ": the picture has room for all it says", "[" #id "_scene][sound]") {       \
    check_room(id::lesson());                                                                 \
  }                                                                                           \
  TEST_CASE(title ": however one moved, the picture is the same", "[" #id "_scene][sound]") { \
    check_moves(id::lesson());                                                                \
  }
#include "kernels/lessons.def"

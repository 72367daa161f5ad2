// What a scene says to the picture's layout keeps that vocabulary's rules, whatever the knobs are.

#include <fmt/format.h>

#include "scenes/matmul/tiling/scene.hpp"
#include "scenes/memory/coalescing/scene.hpp"
#include "tests/lesson_contract/knob_cases.hpp"
#include "tests/lesson_contract/pictures.hpp"
#include "tests/reports.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;

namespace {

/// Every phase of the first steps, and of the last.
std::vector<scenes::Cursor> phases_of(const scenes::StepAxis& axis) {
  std::vector<scenes::Cursor> cursors = {{0, axis.phases - 1}};
  for (const int tile : {1, 2, axis.tiles / 2, axis.tiles}) {
    for (int phase = 0; phase < axis.phases; ++phase) cursors.push_back({tile, phase});
  }
  return cursors;
}

template <class Scene>
void check_sound(const lab::Lesson& lesson) {
  std::vector<lab::Settings> cases = contract::knob_ends(lesson);
  cases.push_back({});
  for (const lab::Settings& settings : cases) {
    Scene scene;
    scene.load(tests::report_of(lesson.info().id, settings));
    const picture::Extent extent = scene.extent();
    for (const scenes::Cursor cursor : phases_of(scene.steps())) {
      INFO(contract::to_text(settings) << "step " << cursor.tile << "." << cursor.phase);
      const picture::Picture picture = scene.picture(extent, {cursor});
      CHECK(picture::problems(picture) == std::vector<std::string>{});
      CHECK_FALSE(picture.headline.full.empty());
    }
  }
}

}  // namespace

TEST_CASE("the picture of coalescing keeps the rules", "[coalescing_scene][sound]") {
  check_sound<scenes::CoalescingScene>(coalescing::lesson());
}
TEST_CASE("the picture of tiling keeps the rules", "[tiling_scene][sound]") {
  check_sound<scenes::TilingScene>(tiling::lesson());
}

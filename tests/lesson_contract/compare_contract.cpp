// What every lesson promises of two runs side by side, and of guesses drawn in its picture.

#include <fmt/format.h>

#include "kernels/lessons.hpp"
#include "scenes/picture/compare.hpp"
#include "scenes/picture/shot.hpp"
#include "scenes/shared/guide.hpp"
#include "scenes/shared/questions.hpp"
#include "tests/lesson_contract/knob_cases.hpp"
#include "tests/lesson_contract/layout.hpp"
#include "tests/lesson_contract/pictures.hpp"
#include "tests/reports.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using scenes::Cursor;
using scenes::Scene;

namespace {

std::vector<Cursor> all_places(const Scene& scene) {
  const scenes::StepAxis axis = scene.steps();
  std::vector<Cursor> places = {{0, axis.phases - 1}};
  for (int tile = 1; tile <= axis.tiles; ++tile) {
    for (int phase = 0; phase < axis.phases_in(tile); ++phase) places.push_back({tile, phase});
  }
  return places;
}

int differences(const Scene& scene, Cursor at, const Scene& other, Cursor there) {
  const picture::Picture mine = scene.picture(scene.extent(), {at}),
                         theirs = other.picture(other.extent(), {there});
  return picture::Differences(picture::marks_of(mine), picture::marks_of(theirs)).count();
}

/// Both runs are in the window at every size, walk from their first step to their last, and differ where
/// a knob does.
void check_compared(const lab::Lesson& lesson) {
  tests::SceneFrame frame;
  frame.context().record_texts(true);
  scenes::ScenePlayer player = tests::player_of(lesson.info().id);
  player.load(tests::report_of(lesson.info().id));
  player.pin();
  const lab::JsonValue before = tests::report_of(lesson.info().id).trace;
  int differ = 0;
  bool turned =
      false;  // by any knob of the day: some change nothing in the default settings, as a seed in fixed data
  const auto ends = contract::some_knob_ends(lesson);
  for (const lab::Settings& settings : ends) {
    player.load(tests::report_of(lesson.info().id, settings));
    turned = turned || !(tests::report_of(lesson.info().id, settings).trace == before);
    const Scene &run = player.scene(), &pinned = *player.pinned();
    const std::vector<Cursor> ours = all_places(run), theirs = all_places(pinned);
    INFO(contract::to_text(settings));
    CHECK(player.pinned_cursor(ours.front()) == theirs.front());
    CHECK(player.pinned_cursor(ours.back()) == theirs.back());
    for (const Cursor cursor : contract::some_cursors(run)) {
      CAPTURE(cursor.tile, cursor.phase);
      differ += differences(run, cursor, pinned, player.pinned_cursor(cursor));
      for (const ImVec2 size : tests::kSweptSizes) {
        const auto parts = frame.draw(size, [&] { player.draw_picture(cursor); });
        const std::string faults = contract::layout_faults(frame.context());
        INFO(fmt::format("{}x{}", size.x, size.y));
        INFO(faults);
        CHECK(faults.empty());
        const bool both = parts.count("run_a") == 1;
        CHECK(both == (parts.count("a.sentence") == 1));
        CHECK(both != player.lacks_room());
        if (size.x > 800) CHECK(both);
      }
    }
  }
  CHECK(turned == (differ > 0));
}

/// A run differs from itself in nothing, and its progress never falls.
void check_alike(const lab::Lesson& lesson) {
  scenes::ScenePlayer player = tests::player_of(lesson.info().id);
  player.load(tests::report_of(lesson.info().id));
  player.pin();
  double before = -1;
  for (const Cursor cursor : all_places(player.scene())) {
    CAPTURE(cursor.tile, cursor.phase);
    const double now = player.scene().progress(cursor);
    CHECK(now >= before);
    before = now;
    CHECK(player.pinned_cursor(cursor) == cursor);
    CHECK(differences(player.scene(), cursor, *player.pinned(), cursor) == 0);
  }
}

// ---- scales ---------------------------------------------------------------------------------------

/// Lessons that have said which of their axes are fixed.
constexpr std::string_view kDeclared[] = {"coalescing", "latency-hiding", "hopper-gemm"};

/// How many pixels a unit of each fixed axis has where it is on show.
std::map<std::string, double> units_of(const Scene& scene, const picture::Extent& extent,
                                       Cursor at) {
  const picture::Placed placed =
      picture::place(scene.picture(extent, {at}), {0, 0, 832, 447}, ui::PictureMetrics());
  std::map<std::string, double> units;
  for (const picture::Axis& axis : extent.axes) {
    for (const picture::Scale& scale : placed.scales) {
      if (!axis.fixed || scale.axis != axis.name) continue;
      units[std::string(axis.name.text())] =
          (scale.at_high - scale.at_low) / (scale.high - scale.low);
    }
  }
  return units;
}

/// A length means the same at a stop as at the one before, and on both sides of a comparison.
void check_scales(const lab::Lesson& lesson) {
  const std::string& id = lesson.info().id;
  const auto scene = tests::scene_of(id), other = tests::scene_of(id);
  tests::SceneFrame frame;
  int compared = 0;
  const auto same = [&](const auto& mine, const auto& theirs) {
    for (const auto& [axis, unit] : mine) {
      const auto found = theirs.find(axis);
      if (found == theirs.end()) continue;
      CAPTURE(axis, unit, found->second);
      CHECK(std::abs(unit - found->second) < 1e-3 * std::abs(unit));
      ++compared;
    }
  };
  frame.show({860, 480}, [&] {
    std::map<std::string, double> before;
    const scenes::Guide guide = scenes::parse_guide(scenes::lesson_text(id), lesson.knobs());
    for (const scenes::GuideStop& stop : guide.stops) {
      INFO("at the stop " << stop.title);
      scene->load(tests::report_of(id, stop.settings));
      const auto now = units_of(*scene, scene->extent(), cursor_at(stop, scene->steps()));
      same(now, before);
      before = now;
    }
    scene->load(tests::report_of(id));
    const Cursor end = all_places(*scene).back();
    for (const lab::Settings& settings : contract::some_knob_ends(lesson)) {
      INFO(contract::to_text(settings));
      other->load(tests::report_of(id, settings));
      const picture::Extent mine = scene->extent(), theirs = other->extent();
      const Cursor there = all_places(*other).back();
      same(units_of(*scene, mine, end), units_of(*other, theirs, there));
      same(units_of(*scene, picture::united(mine, theirs), end),
           units_of(*other, picture::united(theirs, mine), there));
    }
  });
  if (std::find(std::begin(kDeclared), std::end(kDeclared), id) != std::end(kDeclared)) {
    CHECK(compared > 0);
  }
}

/// The ends of each axis of numbers on show at a stop.
std::map<std::string, std::pair<double, double>> ends_of(const Scene& scene,
                                                         const scenes::GuideStop& stop) {
  constexpr picture::Area kArea{0, 0, 832, 447};
  const ui::PictureMetrics metrics;
  const picture::Picture whole = scene.picture(scene.extent(), {cursor_at(stop, scene.steps())});
  std::vector<picture::Key> off;
  for (const picture::Box* box : picture::beside(whole, stop.subject(), kArea, metrics)) {
    off.push_back(box->key);
  }
  const picture::Placed placed = picture::place(whole, kArea, metrics, off);
  std::map<std::string, std::pair<double, double>> ends;
  for (const picture::Axis& axis : whole.axes) {
    const bool shown =
        std::any_of(placed.words.begin(), placed.words.end(),
                    [&](const picture::Words& words) { return words.of.key.name == axis.name; });
    if (!axis.ticks || axis.kind == picture::Axis::band || !shown) continue;
    ends[std::string(axis.name.text())] = {axis.low, axis.high};
  }
  return ends;
}

/// From stop to stop a quantity keeps its scale, or the stop says that it does not (rescale=).
void check_rescales(const lab::Lesson& lesson) {
  const auto scene = tests::scene_of(lesson.info().id);
  tests::SceneFrame frame;
  std::string faults;
  frame.show({860, 480}, [&] {
    faults.clear();
    std::map<std::string, std::pair<double, double>> before;
    const scenes::Guide guide =
        scenes::parse_guide(scenes::lesson_text(lesson.info().id), lesson.knobs());
    for (const scenes::GuideStop& stop : guide.stops) {
      if (stop.tab == "measured") continue;
      scene->load(tests::report_of(lesson.info().id, stop.settings));
      const auto now = ends_of(*scene, stop);
      std::vector<std::string> changed;
      for (const auto& [axis, ends] : now) {
        const auto found = before.find(axis);
        if (found != before.end() && found->second != ends) changed.push_back(axis);
      }
      for (const auto& [axis, ends] : now) before[axis] = ends;  // what was seen last
      if (changed == stop.rescales) continue;
      faults += fmt::format("{}: rescale={}\n", stop.title, fmt::join(changed, ","));
    }
  });
  CHECK(faults == "");
}

/// Whatever is guessed is drawn, before the answer and beside it, and keeps the vocabulary's rules.
void check_guesses(const lab::Lesson& lesson) {
  const auto scene = tests::scene_of(lesson.info().id);
  scene->load(tests::report_of(lesson.info().id));
  tests::SceneFrame frame;
  int drawn = 0;
  const auto look = [&] {
    for (const Cursor cursor : all_places(*scene)) {
      const auto question = scene->question({cursor});
      if (!question) continue;
      const bool set = question->choices.empty();
      const int most = set ? 1 : static_cast<int>(std::ssize(question->choices));
      for (int choice = 0; choice < most; ++choice) {
        for (const Cursor at :
             {cursor, Cursor{cursor.tile + 1, scene->steps().last_phase(cursor.tile + 1)}}) {
          CAPTURE(question->text, choice, at.tile);
          picture::Picture picture = scene->picture(scene->extent(), {at});
          const double value = set ? question->values.at(0) : 0;
          scenes::add_guess(picture, *question, {cursor, set ? -1 : choice, value});
          CHECK(picture::problems(picture) == std::vector<std::string>{});
          const picture::Placed placed =
              picture::place(picture, {0, 0, 832, 447}, ui::PictureMetrics());
          const auto is_guess = [](const auto& each) {
            return each.of.key == picture::Key{"guess"} && each.state == picture::State::predicted;
          };
          const bool shown = std::any_of(placed.pieces.begin(), placed.pieces.end(), is_guess) ||
                             std::any_of(placed.strokes.begin(), placed.strokes.end(), is_guess);
          CHECK(shown);
          drawn += shown ? 1 : 0;
        }
      }
    }
  };
  frame.show({860, 480}, look);
  CHECK(drawn > 0);
}

}  // namespace

#define LESSON(chapter, id, title)                                                        \
  TEST_CASE(title ": two runs side by side", "[" #id "_scene][compare]") {                \
    check_compared(id::lesson());                                                         \
  }                                                                                       \
  TEST_CASE(title ": a run differs from itself in nothing", "[" #id "_scene][compare]") { \
    check_alike(id::lesson());                                                            \
  }                                                                                       \
  TEST_CASE(title ": a fixed scale never changes", "[" #id "_scene][compare]") {          \
    check_scales(id::lesson());                                                           \
  }                                                                                       \
  TEST_CASE(title ": a stop says whose scale is new", "[" #id "_scene][compare]") {       \
    check_rescales(id::lesson());                                                         \
  }                                                                                       \
  TEST_CASE(title ": guesses stand in the picture", "[" #id "_scene][compare]") {         \
    check_guesses(id::lesson());                                                          \
  }
#include "kernels/lessons.def"

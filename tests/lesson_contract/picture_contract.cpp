// What pictures that are data promise, whatever the lesson: they keep the vocabulary's rules, have room
// for all they say, and look the same however one came to them.

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <random>
#include <set>

#include "kernels/lessons.hpp"
#include "scenes/picture/mix.hpp"
#include "tests/app/shell/stage.hpp"
#include "tests/lesson_contract/knob_cases.hpp"
#include "tests/part.hpp"
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
    for (int phase = 0; phase < axis.phases_in(tile) && tile > 0 && tile <= axis.tiles; ++phase) {
      cursors.push_back({tile, phase});
    }
  }
  return cursors;
}

void check_rules(const lab::Lesson& lesson) {
  std::vector<lab::Settings> cases = contract::some_knob_ends(lesson);
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

// ---- places --------------------------------------------------------------------------------------

constexpr std::string_view kShowPlaces[] = {
    "coalescing",  "online-softmax", "flash-attention", "flash-attention-3", "attention-backward",
    "moe-routing", "hopper-gemm",    "tiling",          "paged-kv",          "low-bit"};

/// What stands nearer to the tensor cores than another place, and above it or at its left.
std::string misplaced(const picture::Placed& placed) {
  std::string faults;
  for (const picture::Room& far : placed.rooms) {
    for (const picture::Room& near : placed.rooms) {
      if (far.place == picture::Place::nowhere || near.place <= far.place) continue;
      const picture::Area &a = far.whole, &b = near.whole;
      if (a.y1 <= b.y0 || a.x1 <= b.x0 || picture::joined(a, b) == a) continue;
      faults += fmt::format("{} before {}, ", to_text(near.key), to_text(far.key));
    }
  }
  return faults;
}

/// From device memory to the tensor cores places stand from top to bottom, from left to right, or in one another.
void check_places(const lab::Lesson& lesson) {
  std::vector<lab::Settings> cases = contract::some_knob_ends(lesson);
  cases.push_back({});
  const auto scene = tests::scene_of(lesson.info().id);
  std::vector<std::pair<std::string, picture::Picture>> pictures;
  for (const lab::Settings& settings : cases) {
    scene->load(tests::report_of(lesson.info().id, settings));
    for (const scenes::Cursor at : phases_of(scene->steps())) {
      pictures.emplace_back(
          fmt::format("{}step {}.{}: ", contract::to_text(settings), at.tile, at.phase),
          scene->picture(scene->extent(), {at}));
    }
  }
  std::string faults;
  bool any = false;
  tests::SceneFrame().show({860, 480}, [&] {
    faults.clear();
    for (const auto& [name, picture] : pictures) {
      const auto placed = picture::place(picture, {0, 0, 832, 447}, ui::PictureMetrics());
      for (const picture::Room& room : placed.rooms) any = any || room.place > picture::Place();
      const std::string found = misplaced(placed);
      if (!found.empty()) faults += name + found + "\n";
    }
  });
  CHECK(faults == "");
  const bool due = std::count(std::begin(kShowPlaces), std::end(kShowPlaces), lesson.info().id) > 0;
  CHECK((any || !due));
}

std::string in_words(const picture::Area& a) {
  return fmt::format("{:.2f}–{:.2f}, {:.2f}–{:.2f}", a.x0, a.x1, a.y0, a.y1);
}

using PieceKey = std::pair<picture::Key, int>;

/// The pieces of a picture; of those with one name the first.
std::map<PieceKey, const picture::Piece*> pieces_of(const picture::Placed& placed) {
  std::map<PieceKey, const picture::Piece*> all;
  for (const picture::Piece& piece : placed.pieces) {
    all.try_emplace({piece.of.key, piece.of.part}, &piece);
  }
  return all;
}

/// How many pieces of `halfway` are on their way, of how many that stand elsewhere before than after; those
/// that are the same before and after must not be.
struct Motion {
  int moved = 0, apart = 0;
};
void look_at_motion(Motion& motion, const picture::Placed& before, const picture::Placed& after,
                    const picture::Placed& halfway) {
  const auto from = pieces_of(before), to = pieces_of(after);
  std::set<picture::Key> flying;
  for (const picture::Flight& flight : after.flights) flying.insert(flight.key);
  for (const auto& [key, piece] : pieces_of(halfway)) {
    const auto a = from.find(key), b = to.find(key);
    if (a == from.end() || b == to.end()) continue;
    const bool alike = a->second->area == b->second->area && a->second->state == b->second->state &&
                       a->second->tone == b->second->tone;
    if (!alike || flying.count(key.first) > 0) {
      motion.moved += piece->area == a->second->area || piece->area == b->second->area ? 0 : 1;
      motion.apart += a->second->area == b->second->area ? 0 : 1;
      continue;
    }
    CAPTURE(picture::to_text(key.first), key.second);
    CHECK(in_words(piece->area) == in_words(a->second->area));
  }
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
  frame.show({860, 480}, look);
}

// ---- colours ------------------------------------------------------------------------------------

/// Which tone each thing of a lesson has, at all cursors and knobs.
class Colours {
 public:
  void add(const picture::Picture& picture) {
    here_.clear();
    for (const picture::Mark* mark : picture::marks_of(picture)) {
      if (const picture::Items* items = picture::items_of(*mark)) add(*items);
      if (const auto* stacks = std::get_if<picture::Stacks>(mark)) add(stacks->held);
      if (const auto* curve = std::get_if<picture::Curve>(mark)) {
        std::vector<picture::Ref> about;
        if (!curve->about.kind.empty()) about.push_back(curve->about);
        note(picture::to_text(curve->key), about, curve->tone);
      }
    }
  }
  /// A thing has one colour; where numbered things (experts) have one each, no two of a picture have the same, and
  /// nothing else has these.
  void check() const {
    std::set<int> numbered, fixed;
    for (const auto& [kind, tones] : of_kind_) {
      if (clashes_.count(kind) > 0) continue;
      std::set<int> used;
      for (const auto& [index, tone] : tones) used.insert(tone);
      if (used.size() > 1) numbered.insert(used.begin(), used.end());
    }
    for (const auto& [thing, seen] : things_) {
      const bool by_number =
          std::any_of(seen.kinds.begin(), seen.kinds.end(),
                      [&](const auto& kind) { return clashes_.count(kind) == 0; });
      const bool apart = std::any_of(seen.kinds.begin(), seen.kinds.end(), [&](const auto& kind) {
        return clashes_.count(kind) + twice_.count(kind) == 0;
      });
      if (by_number && seen.tones.size() > 1) {
        CAPTURE(thing, seen.kinds, twice_);
        CHECK(apart);
        continue;
      }
      CAPTURE(thing, seen.tones, seen.kinds, clashes_);
      CHECK(seen.tones.size() == 1);
      if (!by_number) fixed.insert(seen.tones.begin(), seen.tones.end());
    }
    CAPTURE(numbered, fixed);
    for (const int tone : fixed) CHECK(numbered.count(tone) == 0);
  }

 private:
  struct Seen {
    std::set<int> tones;
    std::set<std::string> kinds;  ///< that it is about
  };

  void add(const picture::Items& items) {
    for (std::size_t k = 0; k < static_cast<std::size_t>(items.count); ++k) {
      std::vector<picture::Ref> about;
      for (const auto& [kind, column] : items.about) about.push_back({kind, column[k]});
      note(std::string(items.name.text()), about, items.tone[k]);
    }
  }
  void note(const std::string& thing, const std::vector<picture::Ref>& about, int tone) {
    if (tone == 0) return;
    Seen& seen = things_[thing];
    seen.tones.insert(tone);
    for (const picture::Ref& ref : about) {
      const std::string kind(ref.kind.text());
      seen.kinds.insert(kind);
      const auto [known, fresh] = of_kind_[kind].try_emplace(ref.index, tone);
      if (!fresh && known->second != tone) clashes_.insert(kind);
      const int first = here_[kind].try_emplace(tone, ref.index).first->second;
      if (first != ref.index) {
        twice_.try_emplace(kind, fmt::format("{} and {} have tone {}", first, ref.index, tone));
      }
    }
  }

  std::map<std::string, Seen> things_;
  std::map<std::string, std::map<int, int>> of_kind_;
  std::set<std::string> clashes_;                   ///< kinds whose numbers do not say the tone
  std::map<std::string, std::map<int, int>> here_;  ///< of one picture: by tone, who has it
  std::map<std::string, std::string> twice_;  ///< kinds of which two have one tone in one picture
};

void check_colours(const lab::Lesson& lesson) {
  std::vector<lab::Settings> cases = contract::some_knob_ends(lesson);
  cases.push_back({});
  const auto scene = tests::scene_of(lesson.info().id);
  Colours colours;
  for (const lab::Settings& settings : cases) {
    scene->load(tests::report_of(lesson.info().id, settings));
    const picture::Extent extent = scene->extent();
    for (const scenes::Cursor cursor : phases_of(scene->steps())) {
      colours.add(scene->picture(extent, {cursor}));
    }
  }
  colours.check();
}

// ---- halfway ------------------------------------------------------------------------------------

/// Halfway from one phase to the next nothing has moved that the two have alike, and what
/// stands elsewhere is on its way.
void check_halfway(const lab::Lesson& lesson) {
  const auto scene = tests::scene_of(lesson.info().id);
  scene->load(tests::report_of(lesson.info().id));
  tests::SceneFrame frame;
  Motion motion;
  const auto look = [&] {
    const picture::Extent extent = scene->extent();
    std::optional<picture::Placed> before;
    const scenes::StepAxis axis = scene->steps();
    for (int place = 0; place <= std::min(axis.places(), 12 * axis.phases); ++place) {
      const scenes::Cursor cursor = axis.at_place(place);
      CAPTURE(cursor.tile, cursor.phase);
      picture::Placed now =
          picture::place(scene->picture(extent, {cursor}), {0, 0, 832, 447}, ui::PictureMetrics());
      if (before) {
        const picture::Join join(*before, now);
        look_at_motion(motion, *before, now, mix(*before, now, join, 0.5f));
      }
      before = std::move(now);
    }
  };
  frame.show({860, 480}, look);
  CHECK((motion.moved > 0) == (motion.apart > 0));
}

// ---- moves ---------------------------------------------------------------------------------------

/// What a click in the lesson's pictures follows, and how many of it there are.
std::map<picture::Name, int> followed_in(const lab::Lesson& lesson) {
  const auto scene = tests::scene_of(lesson.info().id);
  scene->load(tests::report_of(lesson.info().id));
  std::map<picture::Name, int> followed;
  for (const scenes::Cursor cursor : phases_of(scene->steps())) {
    const picture::Picture picture = scene->picture(scene->extent(), {cursor});
    for (const picture::Mark* mark : picture::marks_of(picture)) {
      const picture::Items* items = picture::items_of(*mark);
      if (const auto* stacks = std::get_if<picture::Stacks>(mark)) items = &stacks->held;
      if (items == nullptr || items->count == 0 ||
          (items->act.kind != picture::Act::pick && items->act.kind != picture::Act::set)) {
        continue;
      }
      int& count = followed[items->act.what];
      count = std::max(count, items->count);
    }
  }
  return followed;
}

/// However one moved, wherever one was interrupted: the picture is that of a window opened here.
void check_moves(const lab::Lesson& lesson) {
  if (tests::Part("moves of " + lesson.info().id, 3).skips()) return;
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
  const std::map<picture::Name, int> followed = followed_in(lesson);
  std::map<picture::Name, int> picks;
  std::vector<lab::Settings> mixtures = {{}};
  for (const lab::Settings& settings : contract::knob_mixtures(lesson, 12)) {
    if (contract::takes(lesson, settings)) mixtures.push_back(settings);
  }
  for (int move = 1; move <= kMoves; ++move) {
    stage.shell.key(kMovesOf[random() % std::size(kMovesOf)], random() % 4 == 0);
    if (random() % 6 == 0 && !followed.empty()) {
      const auto& [what, count] =
          *std::next(followed.begin(), static_cast<std::ptrdiff_t>(random() % followed.size()));
      picks[what] = static_cast<int>(random() % static_cast<unsigned>(count));
      stage.shell.pick(what, picks[what]);
    }
    if (random() % 8 == 0) size = sizes[random() % std::size(sizes)];
    if (random() % 20 == 0) {  // a knob, perhaps before the run of the one before is there
      options.settings = mixtures[random() % mixtures.size()];
      stage.shell.set_knobs(lesson.knobs().completed(options.settings));
      stage.shell.update();
      if (random() % 2 == 0) stage.lab.answer();
    }
    ImGui::GetIO().DeltaTime = 0.01f + 0.01f * static_cast<float>(random() % 40);
    ImGui::GetIO().MousePos = {-1, -1};
    stage.draw(size);
    if (move % (kMoves / 10) != 0) continue;
    stage.lab.answer();
    stage.draw(size);
    const auto come_to_rest = [&] {
      for (int frames = 0; frames < 600 && (frames < 2 || stage.shell.animating()); ++frames) {
        stage.draw(size);
      }
      REQUIRE_FALSE(stage.shell.animating());
    };
    come_to_rest();
    stage.shell.key(app::Key::right, false);  // inside a step: to its end
    come_to_rest();
    const std::string moved = tests::ink_of_picture();
    REQUIRE_FALSE(moved.empty());
    options.step = stage.shell.step();
    tests::Stage fresh(options);
    fresh.lab.answer();
    for (const auto& [what, index] : picks) fresh.shell.pick(what, index);
    fresh.draw(size);
    fresh.draw(size);
    CAPTURE(move, options.step, size.x);
    CHECK((tests::ink_of_picture() == moved));
  }
}

}  // namespace

#define LESSON(chapter, id, title)                                                            \
  TEST_CASE(title ": the picture keeps the rules", "[" #id "_scene][sound]") {                \
    check_rules(id::lesson());                                                                \
  }                                                                                           \
  TEST_CASE(title ": places stand in one order", "[" #id "_scene][sound]") {                  \
    check_places(id::lesson());                                                               \
  }                                                                                           \
  TEST_CASE(title ": the picture has room for all it says", "[" #id "_scene][sound]") {       \
    check_room(id::lesson());                                                                 \
  }                                                                                           \
  TEST_CASE(title ": a colour says one thing", "[" #id "_scene][sound]") {                    \
    check_colours(id::lesson());                                                              \
  }                                                                                           \
  TEST_CASE(title ": halfway, only what changes has moved", "[" #id "_scene][sound]") {       \
    check_halfway(id::lesson());                                                              \
  }                                                                                           \
  TEST_CASE(title ": however one moved, the picture is the same", "[" #id "_scene][sound]") { \
    check_moves(id::lesson());                                                                \
  }
#include "kernels/lessons.def"

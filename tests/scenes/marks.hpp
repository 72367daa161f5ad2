#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "scenes/shared/questions.hpp"
#include "scenes/shared/scene.hpp"
#include "tests/scenes/shown.hpp"

/// What tests look for in a picture as data, and in what a scene asks about a bench.
namespace tilestep::tests {

inline picture::Picture picture_at(const scenes::Scene& scene, scenes::Cursor cursor) {
  return scene.picture(scene.extent(), {cursor});
}
inline picture::Picture picture_at(const scenes::Scene& scene, int step) {
  return picture_at(scene, scenes::Cursor{step, 0});
}
inline std::vector<scenes::Cursor> all_places(const scenes::Scene& scene) {
  std::vector<scenes::Cursor> places;
  for (int place = 0; place <= scene.steps().places(); ++place) {
    places.push_back(scene.steps().at_place(place));
  }
  return places;
}
inline scenes::Cursor end_of(const scenes::Scene& scene) {
  return all_places(scene).back();
}

/// The marks of a kind that are called so: by their key, "rows_point_2", or by the name of their items.
template <class Mark>
std::vector<const Mark*> marks_named(const picture::Picture& picture, std::string_view name) {
  std::vector<const Mark*> all;
  for (const picture::Mark* mark : picture::marks_of(picture)) {
    const auto* found = std::get_if<Mark>(mark);
    if (found == nullptr) continue;
    if constexpr (requires { found->key; }) {
      if (picture::to_text(found->key) == name) all.push_back(found);
    } else if (found->items.name.text() == name) {
      all.push_back(found);
    }
  }
  return all;
}
/// The first of them; null: there is none.
template <class Mark>
const Mark* mark_of(const picture::Picture& picture, std::string_view name) {
  const auto all = marks_named<Mark>(picture, name);
  return all.empty() ? nullptr : all.front();
}
/// There must be one.
template <class Mark>
const Mark& mark_named(const picture::Picture& picture, std::string_view name) {
  const Mark* found = mark_of<Mark>(picture, name);
  if (found == nullptr) throw Error("nothing is called " + std::string(name));
  return *found;
}
inline picture::Items items_named(const picture::Picture& picture, std::string_view name) {
  for (const picture::Mark* mark : picture::marks_of(picture)) {
    const picture::Items* items = picture::items_of(*mark);
    if (items != nullptr && items->name.text() == name) return *items;
  }
  throw Error("nothing is called " + std::string(name));
}
inline int count_of(const picture::Items& items, picture::State state) {
  int count = 0;
  for (int i = 0; i < items.count; ++i) {
    count += items.state[static_cast<std::size_t>(i)] == state ? 1 : 0;
  }
  return count;
}

/// The pictures of a view under Measured that are of the run itself.
inline std::vector<picture::Picture> pictures_in(const scenes::Scene& scene,
                                                 std::string_view view) {
  std::vector<picture::Picture> all;
  for (const auto& each : scene.measured_spec().views) {
    if (each.name != view) continue;
    for (const auto& plot : each.plots) {
      const auto* of = std::get_if<scenes::measured::Pictured>(&plot);
      if (of != nullptr) all.push_back(of->picture({}));
    }
  }
  return all;
}

/// How many are outlines: nothing is there yet, or no more.
inline int hollow(const picture::Items& cells) {
  const auto& glyphs = cells.glyph.each;
  return static_cast<int>(std::count(glyphs.begin(), glyphs.end(), picture::kHollow));
}
/// Where what a box shows lies, by the box itself.
inline picture::Place place_of(const picture::Box& box, std::string_view name) {
  picture::Place found = picture::to_text(box.key) == name ? box.place : picture::Place::nowhere;
  for (const picture::Box& inner : box.boxes) found = std::max(found, place_of(inner, name));
  return found;
}

/// Bytes of each tensor run up to what was traced, and never back: of a scene of the matrix of scores.
template <class Shown>
void check_bytes(Shown& shown) {
  for (const auto& row : shown.trace().ledger) {
    CAPTURE(name_of(row.tensor));
    double loaded = 0, stored = 0;
    for (const scenes::Cursor cursor : all_places(*shown)) {
      const auto now = shown->asked_by(shown->moment(cursor), row);
      if (cursor.tile == 0) CHECK(now.loaded + now.stored == 0);
      CHECK(now.loaded >= loaded);
      CHECK(now.stored >= stored);
      loaded = now.loaded, stored = now.stored;
    }
    CHECK(loaded == static_cast<double>(row.loaded));
    CHECK(stored == static_cast<double>(row.stored));
  }
}

/// A bench whose tables are made up, and what a scene asks about it: each question covers a view that there is.
template <class Scene>
class MadeUpBench {
 public:
  explicit MadeUpBench(const std::vector<lab::Table>& tables = {}) {
    scene_.load(report_of(scene_.lesson()));
    report.lesson = scene_.lesson();
    report.device.name = "GPU";
    report.tables = tables;
  }
  /// The question of a kind; without a text: not asked.
  scenes::Question asked(std::string_view kind) const {
    std::vector<std::string> views;
    for (const auto& view : scene_.measured_spec().views) views.push_back(view.name);
    scenes::Question found;
    for (const scenes::Question& question : scene_.measured_questions(report)) {
      CAPTURE(question.id);
      REQUIRE(question.masks.size() == 1);
      CHECK(std::count(views.begin(), views.end(), question.masks[0]) == 1);
      CHECK(contains(question.because, "GPU"));
      if (question.id == kind) found = question;
    }
    return found;
  }
  std::string answer(std::string_view kind) const {
    const scenes::Question question = asked(kind);
    return question.text.empty() ? "not asked" : scenes::answer_text(question);
  }

  lab::Report report;

 private:
  Scene scene_;
};

}  // namespace tilestep::tests

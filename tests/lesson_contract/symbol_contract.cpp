// Symbols are things: what a text, a readout or a column names lights up in the picture, in one colour.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kernels/base/lab/recording.hpp"
#include "kernels/lessons.hpp"
#include "scenes/ui/picture_view.hpp"
#include "tests/lesson_contract/knob_cases.hpp"
#include "tests/lesson_contract/pictures.hpp"
#include "tests/reports.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using scenes::Cursor, scenes::Scene;

namespace {

/// Whether something lights up that is about a subject.
bool lights(const picture::Placed& placed, const std::vector<const picture::Mark*>& marks,
            const picture::Subject& subject) {
  const picture::Lighting lit(marks, {subject}, {});
  const auto is_lit = [&](const auto& each) { return lit.lights(each.of); };
  return std::any_of(placed.pieces.begin(), placed.pieces.end(), is_lit) ||
         std::any_of(placed.strokes.begin(), placed.strokes.end(), is_lit) ||
         std::any_of(placed.words.begin(), placed.words.end(), is_lit);
}

/// What a symbol lights has its tone, if any.
void check_tones(const picture::Placed& placed, const std::vector<const picture::Mark*>& marks,
                 const picture::Symbol& symbol) {
  const picture::Lighting lit(marks, {picture::subject_of(symbol.about)}, {});
  for (const picture::Piece& piece : placed.pieces) {
    if (symbol.tone == 0 || piece.tone == 0 || !lit.lights(piece.of)) continue;
    CAPTURE(symbol.word, picture::to_text(piece.of.key));
    CHECK(piece.tone == symbol.tone);
  }
}

void check_symbols(const lab::Lesson& lesson) {
  const auto scene = tests::scene_of(lesson.info().id);
  tests::SceneFrame frame;
  std::map<std::string, std::set<int>> tones;  // of a symbol, wherever it is written
  int named = 0;
  const auto look_at = [&](const lab::Report& report) {
    scene->load(report);
    const Cursor end = contract::some_cursors(*scene).back();
    for (const Cursor cursor : contract::some_cursors(*scene)) {
      const picture::Picture picture = scene->picture(scene->extent(), {cursor});
      const auto marks = picture::marks_of(picture);
      const picture::Placed placed =
          picture::place(picture, {0, 0, 1200, 700}, ui::PictureMetrics());
      for (const picture::Symbol& symbol : scene->symbols({cursor})) {
        check_tones(placed, marks, symbol);
      }
      for (const picture::Words& words : placed.words) {
        if (words.about.kind.empty()) continue;
        CAPTURE(words.text, cursor.tile, cursor.phase);
        ++named;
        // Nothing may be drawn of a thing yet, but at the end all is there.
        if (cursor == end) CHECK(lights(placed, marks, picture::subject_of(words.about)));
        tones[words.text].insert(words.tone);
        const picture::Words* found = picture::symbol_at(placed, words.area.center());
        CHECK(found == &words);
      }
      if (cursor != end) continue;
      for (const scenes::Readout& readout : scene->readouts({cursor})) {
        if (readout.about.kind.empty()) continue;
        CAPTURE(readout.id);
        ++named;
        CHECK(lights(placed, marks, picture::subject_of(readout.about)));
      }
      for (const lab::Table& table : report.tables) {
        for (const lab::Column& column : table.columns) {
          const auto subject = scene->subject_of_column(table.id, column.id);
          CAPTURE(table.id, column.id);
          if (subject) CHECK(lights(placed, marks, *subject));
        }
      }
    }
  };
  // Where nothing of a default run has a name, a run with other knobs names it.
  std::vector<lab::Settings> cases = contract::some_knob_ends(lesson);
  cases.insert(cases.begin(), lab::Settings{});
  for (const lab::Settings& settings : cases) {
    const lab::Report& report = tests::report_of(lesson.info().id, settings);
    frame.show({1280, 800}, [&] { look_at(report); });
    if (named > 0) break;
  }
  for (const auto& [symbol, colours] : tones) {
    CAPTURE(symbol);
    CHECK(colours.size() == 1);
  }
  if (lab::recording(lesson.info().id) != nullptr) CHECK(named > 0);
}

}  // namespace

#define LESSON(chapter, id, title)                                            \
  TEST_CASE(title ": symbols light their things", "[" #id "_scene][sound]") { \
    check_symbols(id::lesson());                                              \
  }
#include "kernels/lessons.def"

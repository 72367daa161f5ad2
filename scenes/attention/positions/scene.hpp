#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/positions/lesson.hpp"
#include "scenes/picture/role.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// Positions: a query and a key as hands on wheels, a wheel per frequency, and the score against distance as it grows
/// from the frequencies' waves; then wavelengths beside the trained length and scores past it; then what one launch
/// moves beside four.
class PositionsScene final : public SceneOf<positions::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(positions)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  Cursor known(const lab::Table& table, int row, int column) const override;
  int table_row(std::string_view table_id, const View& view) const override;
  std::optional<lab::Settings> dragged(const View& view, const picture::Key& item,
                                       double value) const override;

  /// What happens at `view`, in one plain sentence.
  std::string sentence(const View& view) const;
  /// A pair of a head's numbers as a hand: its two coordinates.
  struct Hand {
    double x = 0, y = 0;
    double angle() const;  ///< in turns
    bool is_number() const;
  };
  /// The hand of the query, or of a key, before it is turned and after.
  Hand query_hand(int pair, bool turned) const;
  Hand key_hand(int key, int pair, bool turned) const;
  /// The score of the key at a distance from the pairs that the cursor has passed; nothing before the first.
  std::optional<double> score_at(int distance, Cursor cursor) const;

 private:
  // Where the cursor is.
  int pairs() const { return trace_.pairs_of_head(); }
  int pair(Cursor cursor) const { return cursor.tile - 1; }  ///< the step's; pairs or more: none
  bool in_pairs(Cursor cursor) const { return cursor.tile <= pairs(); }
  bool extends(Cursor cursor) const { return cursor.tile == trace_.extension(); }
  /// Which picture is on show: wheels, the extension, the launches.
  int part_of(Cursor cursor) const { return in_pairs(cursor) ? 0 : extends(cursor) ? 1 : 2; }
  bool scored(Cursor cursor) const {
    return cursor.phase == static_cast<int>(positions::Phase::score);
  }
  /// Pairs that have been turned, and those whose terms are in the score.
  int turned(Cursor cursor) const;
  int summed(Cursor cursor) const;
  /// The distance that the user follows.
  int distance(const View& view) const;
  double longest_hand() const;
  double largest_term(int pair) const;
  std::string wave_words(int pair) const;

  // The parts of the picture.
  picture::Box wheel(const View& view, int slot, int pair) const;
  picture::Box wheels(const View& view) const;
  picture::Box near(const View& view) const;
  picture::Box tokens(const View& view) const;
  picture::Box numbers(const View& view) const;
  picture::Box frequencies(Cursor cursor) const;
  picture::Box count() const;
  picture::Box far(Cursor cursor) const;
  picture::Box launches(Cursor cursor) const;

  // Questions and events, in questions.cpp.
  std::optional<Question> pair_question(int next) const;
  Question extension_question() const;
  Question launch_question() const;
  void find_events();
};

}  // namespace tilestep::scenes

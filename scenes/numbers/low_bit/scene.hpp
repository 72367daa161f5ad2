#pragma once

#include <optional>
#include <string>

#include "kernels/numbers/low_bit/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// The fine steps of a group.
enum class LowBitPhase { range, scale, codes };

/// Low bits, group by group: the group's weights as bars, the codes as lines at their values, the gap between a weight
/// and its code; below, the error of every weight of the row so far.
class LowBitScene final : public SceneOf<low_bit::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(low_bit)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  std::optional<Cursor> leads_to(const View& view, const picture::Key& item) const override;
  /// A weight moves along its axis: it is set by hand.
  std::optional<lab::Settings> dragged(const View& view, const picture::Key& item,
                                       double value) const override;
  Cursor known(const lab::Table& table, int row, int column) const override;
  /// The step at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;

  /// The group at the cursor; −1 before the first.
  int group(Cursor cursor) const { return cursor.tile - 1; }
  bool scaled(Cursor cursor) const { return cursor.tile > 0 && cursor.phase >= 1; }
  bool coded(Cursor cursor) const { return cursor.tile > 0 && cursor.phase >= 2; }
  /// The first weight shown, and how many: those of the group, or its first row.
  int first(Cursor cursor) const;
  int shown() const { return std::min(trace_.size(), low_bit::kMatrix.columns); }
  /// How many weights, of all rows, have codes.
  int known_codes(Cursor cursor) const {
    return std::max(0, cursor.tile - (coded(cursor) ? 0 : 1)) * trace_.size();
  }

 private:
  picture::Box group_box(Cursor cursor) const;
  picture::Box error_box(Cursor cursor) const;
  const low_bit::GroupTrace& at(int group) const {
    return trace_.groups[static_cast<std::size_t>(group)];
  }
  /// The place of the group's largest magnitude.
  int largest(int group) const;
  std::string scale_sentence(int group) const;
  std::string codes_sentence(int group) const;
  std::string weight_text(int weight) const;

  std::optional<Question> zeros_question(int next) const;
  std::optional<Question> scale_question(int next) const;
  std::optional<Question> bits_question() const;
  std::optional<Question> landing_question(int next) const;
  std::optional<Question> product_question() const;
  enum class Ask : std::uint8_t { nothing, zeros, scale, bits, landing, product };
  void plan_questions();
  std::vector<Ask> asked_;  ///< before each group
};

}  // namespace tilestep::scenes

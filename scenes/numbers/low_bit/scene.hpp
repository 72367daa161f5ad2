#pragma once

#include <optional>
#include <string>

#include "kernels/numbers/low_bit/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// The fine steps of a group.
enum class LowBitPhase { range, scale, codes };

/// Low bits, group by group: the group's weights as bars, the codes as lines at their values, the gap between a weight
/// and its code; below, the error of every weight of the row so far. After the last group W · x: how many bytes W takes
/// on its way to the FMAs, then each row's sum. With a recipe, its steps.
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
  int table_row(std::string_view table_id, const View& view) const override;
  /// The step at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;

  /// Steps are then those of the recipe.
  bool has_recipe() const { return trace_.recipe != low_bit::Recipe::none; }
  /// At the step after the groups; its second phase.
  bool multiplies(Cursor cursor) const { return cursor.tile > trace_.steps; }
  bool multiplied(Cursor cursor) const { return multiplies(cursor) && cursor.phase >= 1; }
  /// The group at the cursor, or the last; −1 before the first.
  int group(Cursor cursor) const { return std::min(cursor.tile, trace_.steps) - 1; }
  bool scaled(Cursor cursor) const {
    return multiplies(cursor) || (cursor.tile > 0 && cursor.phase >= 1);
  }
  bool coded(Cursor cursor) const {
    return multiplies(cursor) || (cursor.tile > 0 && cursor.phase >= 2);
  }
  /// The first weight shown, and how many: those of the group, or its first row.
  int first(Cursor cursor) const;
  int shown() const { return std::min(trace_.size(), low_bit::kMatrix.columns); }
  /// How many weights, of all rows, have codes.
  int known_codes(Cursor cursor) const {
    return std::max(0, group(cursor) + (coded(cursor) ? 1 : 0)) * trace_.size();
  }

 private:
  picture::Box group_box(Cursor cursor) const;
  picture::Box error_box(Cursor cursor) const;
  void add_code_lines(picture::Box& to, int group) const;
  const low_bit::RecipeStep& recipe_step(Cursor cursor) const;
  std::vector<picture::Axis> recipe_axes() const;
  picture::Bars channel_bars(Cursor cursor, bool second) const;
  std::vector<picture::Box> channel_boxes(Cursor cursor) const;
  picture::Box loss_box(Cursor cursor) const;
  picture::Picture recipe_picture(const picture::Extent& extent, const View& view) const;
  std::string recipe_sentence(Cursor cursor) const;
  std::vector<Readout> recipe_readouts(Cursor cursor) const;
  std::string explain_recipe(Cursor cursor, const picture::Key& key) const;
  picture::Box way_box() const;
  picture::Box moved_box(int number, const char* kind) const;
  picture::Box registers_box() const;
  picture::Box fmas_box() const;
  picture::Box outputs_box(Cursor cursor) const;
  /// Whether a row of W · x is not the sound kernel's.
  bool is_wrong_row(int row) const;
  const low_bit::GroupTrace& at(int group) const {
    return trace_.groups[static_cast<std::size_t>(group)];
  }
  const low_bit::Wronged& wronged(int group) const {
    return trace_.wronged[static_cast<std::size_t>(group)];
  }
  void add_results(std::vector<Readout>& all) const;
  /// The place of the group's largest magnitude.
  int largest(int group) const;
  /// Whether the kernel took the span of the group's own weights for its range.
  bool has_own_range(int group) const;
  std::string scale_sentence(int group) const;
  std::string codes_sentence(int group) const;
  std::string wronged_sentence(int group) const;
  std::string way_sentence() const;
  std::string product_sentence() const;
  std::string explain_way(Cursor cursor, const picture::Key& key) const;
  std::string weight_text(int weight) const;
  /// Of this run, in %: that of the sound one is in the trace's formats.
  double product_error() const { return low_bit::error_percent(trace_.y, trace_.exact); }

  std::optional<Question> zeros_question(int next) const;
  std::optional<Question> scale_question(int next) const;
  std::optional<Question> bits_question() const;
  std::optional<Question> landing_question(int next) const;
  std::optional<Question> product_question() const;
  enum class Ask : std::uint8_t { nothing, zeros, scale, bits, landing, product };
  void plan_questions();
  void find_strays();
  StepAxis recipe_steps();
  std::vector<bool>
      astray_;              ///< of each weight: it was multiplied as another number than its line's
  std::vector<Ask> asked_;  ///< before each group
};

}  // namespace tilestep::scenes

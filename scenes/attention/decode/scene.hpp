#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/decode/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// The margin for what lanes are called, in heights of a line.
inline constexpr float kLaneLeft = 4.5f;

/// Decoding: which query heads share a K/V head and where that stands on the roofline. Beside them before the first step
/// what a prompt's rows, a batch and a step cost, by formula; then the pool of pages, the block tables and the engine's
/// requests over its steps; then one launch, the sectors of its gather and its blocks over their tiles, whose parts are
/// merged; at the end when its blocks were at work.
class DecodeScene final : public SceneOf<decode::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(decode)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  int table_row(std::string_view table_id, const View& view) const override;
  Cursor known(const lab::Table& table, int row, int column) const override;

  /// What happens at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;

 private:
  // Where the cursor is.
  int engine_steps() const { return static_cast<int>(trace_.serving.size()); }
  /// The engine's step that is on show: its last one while the kernel runs; nullptr before the first.
  const decode::Served* moment(Cursor cursor) const;
  /// Rounds of tiles that are through, the current one among them; 0 in the engine's steps.
  int round(Cursor cursor) const;
  bool reading(Cursor cursor) const { return cursor.tile > engine_steps(); }
  bool merging(Cursor cursor) const {
    return trace_.merged && cursor.tile == trace_.answered() && cursor.tile > 0;
  }
  /// The answer is there.
  bool at_end(Cursor cursor) const { return cursor.tile >= trace_.answered(); }
  double most_m() const;
  bool misweighed(const decode::PartTrace& part) const;
  bool contradicted() const;
  bool looking_back(Cursor cursor) const { return cursor.tile >= trace_.length(); }
  /// Tiles of an item that are through.
  int tiles_of(const decode::ItemTrace& item, Cursor cursor) const;
  bool at_work(const decode::ItemTrace& item, Cursor cursor) const;
  bool has_chosen(const decode::ItemTrace& item) const;
  /// Whose pages an item has: "R3", or "R3 +2" of pages that two others have in common with it.
  std::string requests_of(const decode::ItemTrace& item) const;
  /// The chosen row's tile of this round; nullptr: none of its blocks has one.
  const decode::StepTrace* step_now(Cursor cursor) const;
  static bool is_of(const decode::ItemTrace& item, int row) {
    return row >= item.row && row < item.row + item.rows;
  }
  int request_number(int row) const {
    return trace_.requests[static_cast<std::size_t>(row)].request;
  }

  // The parts of the picture.
  picture::Box memory_and_below(Cursor cursor) const;
  picture::Box heads(Cursor cursor) const;
  picture::Box roofline() const;
  picture::Box formulas() const;
  picture::Box pool(Cursor cursor) const;
  picture::Box tables(Cursor cursor) const;
  picture::State page_state(int row, int place, Cursor cursor) const;
  picture::Box timeline(Cursor cursor) const;
  picture::Box waste(Cursor cursor) const;
  picture::Box lanes(Cursor cursor) const;
  picture::Box parts(Cursor cursor) const;
  std::string explain_entry(Cursor cursor, int row, int place) const;
  picture::Ledger part_table(Cursor cursor) const;
  std::vector<picture::Text> answer_lines(Cursor cursor) const;

  // Before the first step, in picture_costs.cpp.
  std::vector<picture::Axis> cost_axes() const;
  std::string cost_sentence() const;
  picture::Box costs(const View& view) const;
  picture::Box score_matrix(const View& view) const;
  picture::Box row_roofline(const View& view) const;
  picture::Box batch_chart() const;
  picture::Box mixed_steps(const View& view) const;
  std::string explain_cost(const picture::Key& key) const;
  std::optional<Question> crossing_question() const;

  // The launch in memory and in time, in picture_time.cpp.
  bool gathered(Cursor cursor) const;
  picture::Strip sectors() const;
  picture::Ledger page_sizes() const;
  picture::Box gather(Cursor cursor) const;
  std::vector<picture::Axis> time_axes() const;
  std::string time_sentence() const;
  picture::Box at_work_curve() const;
  picture::Box clocks() const;
  picture::Box look_back() const;
  std::string explain_time(const picture::Key& key) const;

  // Questions and events, in questions.cpp.
  std::optional<Question> question_before(int next) const;
  std::optional<Question> serving_question(int step) const;
  std::optional<Question> stored_question(int step) const;
  Question paging_question() const;
  std::optional<Question> batch_question() const;
  std::optional<Question> busy_question(int round) const;
  std::optional<Question> weight_question() const;
  Question at_work_question() const;
  void find_events();

  decode::Params params_;
};

/// Blocks that have a name and a frame each; more are a mass.
inline constexpr int kMostNamed = 12;

/// A request's tone. Six take turns: the number beside it tells requests apart.
constexpr std::uint8_t request_tone(int request) {
  constexpr std::uint8_t kTones[] = {1, 2, 3, 4, 5, 7};
  return kTones[static_cast<std::size_t>(request) % std::size(kTones)];
}

/// A box with a margin for an axis, its label above.
inline picture::Box labelled(picture::Key key, picture::Box inner, picture::Text label,
                             const picture::Layout& layout) {
  picture::Box made = picture::column(key, {std::move(inner)}, layout);
  made.label = std::move(label);
  return made;
}

}  // namespace tilestep::scenes

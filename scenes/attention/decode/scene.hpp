#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/decode/lesson.hpp"
#include "scenes/picture/parts.hpp"
#include "scenes/picture/role.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// Tokens of a cell of the cache. With mla a block takes several at a time.
inline constexpr int kCell = decode::kPageSize;
constexpr int cells_for(int tokens) {
  return (tokens + kCell - 1) / kCell;
}
/// The margin for the lanes' names, in heights of a line.
inline constexpr float kLaneLeft = 4.5f;
/// The most blocks that have a name and a frame each.
inline constexpr int kMostNamed = 12;
/// Parts of the chosen answer that have a row.
inline constexpr int kMostParts = 4;

/// A key as it is, and in four bits.
struct KeyRow {
  std::vector<float> value, by_token, by_channel;
  float step = 0;            ///< spacing with one scale per token
  std::vector<float> steps;  ///< spacing with a scale per channel
};

/// Decoding: the query heads that share a K/V head, the keys that they pass over, and their FLOP per byte. Beside them,
/// before the first step, the costs of a prompt's rows, a batch and a step, by formula; then one launch: each request's
/// cache, and the blocks over their tiles, whose parts are merged; at the end the chip with the blocks that it ran.
class DecodeScene final : public SceneOf<decode::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(decode)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  int table_row(std::string_view table_id, const View& view) const override;
  Cursor known(const lab::Table& table, int row, int column) const override;

  /// What happens at `cursor`, in one plain sentence.
  std::string sentence(Cursor cursor) const;

 private:
  // Where the cursor is, in launch.cpp.
  /// Rounds of tiles so far, including the current one.
  int round(Cursor cursor) const;
  bool reading(Cursor cursor) const { return cursor.tile > 0; }
  bool merging(Cursor cursor) const {
    return trace_.merged && cursor.tile == trace_.answered() && cursor.tile > 0;
  }
  /// The answer is complete.
  bool at_end(Cursor cursor) const { return cursor.tile >= trace_.answered(); }
  bool looking_back(Cursor cursor) const { return cursor.tile >= trace_.length(); }
  /// Tiles of an item so far.
  int tiles_of(const decode::ItemTrace& item, Cursor cursor) const;
  bool at_work(const decode::ItemTrace& item, Cursor cursor) const;
  bool has_chosen(const decode::ItemTrace& item) const;
  /// The chosen row's tile of this round; nullptr: none of its blocks has one.
  const decode::StepTrace* step_now(Cursor cursor) const;
  /// Whether the chosen O differs from the one in double by more than rounding.
  bool contradicted() const;

  // The launch, in launch.cpp.
  int requests() const { return static_cast<int>(trace_.tokens.size()); }
  std::uint8_t tone_of(int request) const { return picture::category_tone(request, requests()); }
  std::vector<std::string> block_names() const;
  std::vector<picture::Axis> launch_axes() const;
  /// A row per request: its tokens, a page per cell.
  picture::Box cache(Cursor cursor) const;
  picture::State tile_state(int request, int place, Cursor cursor) const;
  /// The blocks' items, in their requests' tones, as long as `bar_of` says; idle blocks until `now`.
  picture::SpanList block_spans(
      picture::Name name, picture::Name x, picture::Name lanes, double now,
      const std::function<std::optional<picture::SpanList::Bar>(const decode::ItemTrace&)>& bar_of)
      const;
  /// The blocks over the tiles that they have taken.
  picture::Box lanes(Cursor cursor) const;
  /// After the first round: when does the block with the chosen row's first keys end?
  std::optional<Question> end_question() const;
  /// Before a round in which some blocks have nothing left.
  std::optional<Question> busy_question(int round) const;

  double most_m() const;
  bool misweighed(const decode::PartTrace& part) const;

  // The parts of the picture.
  picture::Box launched(Cursor cursor) const;
  picture::Box heads(Cursor cursor) const;
  picture::Box sweep(Cursor cursor) const;
  picture::Box intensity() const;
  picture::Box formulas() const;
  picture::Box parts(Cursor cursor) const;
  picture::Ledger part_table(Cursor cursor) const;
  picture::Box weights() const;
  std::vector<picture::Axis> moved_axes() const;
  picture::Box moved(Cursor cursor) const;
  std::vector<picture::Text> answer_lines(Cursor cursor) const;

  // Before the first step, in picture_costs.cpp.
  std::vector<picture::Axis> cost_axes() const;
  std::string cost_sentence() const;
  picture::Box costs(const View& view) const;
  picture::Box score_matrix(const View& view) const;
  picture::Box batch_chart() const;
  picture::Box mixed_steps(const View& view) const;
  std::string explain_cost(const picture::Key& key) const;

  // The launch in time, in picture_time.cpp.
  std::vector<picture::Axis> time_axes() const;
  std::string time_sentence() const;
  picture::Box chip() const;
  picture::Box clocks() const;
  picture::Box look_back() const;
  std::string explain_time(const picture::Key& key) const;

  // A key in four bits, in channels.cpp.
  const KeyRow& key_row() const;
  picture::Picture key_in_few_bits() const;
  measured::View channels_view() const;

  // Questions and events, in questions.cpp.
  std::optional<Question> question_before(int next) const;
  Question batch_question() const;
  std::optional<Question> weight_question() const;
  Question at_work_question() const;
  void find_events();

  decode::Params params_;
  mutable std::optional<KeyRow> key_row_;  ///< once it is shown
};

}  // namespace tilestep::scenes

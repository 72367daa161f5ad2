#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenes/attention/decode/launch.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// A key as it is, and in four bits.
struct KeyRow {
  std::vector<float> value, by_token, by_channel;
  float step = 0;            ///< spacing with one scale per token
  std::vector<float> steps;  ///< spacing with a scale per channel
};

/// Decoding: the query heads that share a K/V head, the keys that they pass over, and their FLOP per byte. Beside them,
/// before the first step, the costs of a prompt's rows, a batch and a step, by formula; then one launch: each request's
/// cache, and the blocks over their tiles, whose parts are merged; at the end the chip with the blocks that it ran.
class DecodeScene final : public SceneOf<decode::Trace>, LaunchPicture {
 public:
  DecodeScene() : LaunchPicture(SceneOf::trace_, SceneOf::report_) {}
  TILESTEP_PICTURE_SCENE(decode)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  int table_row(std::string_view table_id, const View& view) const override;
  Cursor known(const lab::Table& table, int row, int column) const override;

  /// What happens at `cursor`, in one plain sentence.
  std::string sentence(Cursor cursor) const;

 private:
  using SceneOf::report_, SceneOf::trace_;

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

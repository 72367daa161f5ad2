#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention/linear_attention/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// Linear attention: softmax's weights beside those of features on one scale; then the state of a head as a map that
/// tokens write, and what it holds for each key; then chunks, each a masked product between two states; then what a
/// cache and a state cost at any length.
class LinearAttentionScene final : public SceneOf<linear_attention::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(linear_attention)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  Cursor known(const lab::Table& table, int row, int column) const override;
  int table_row(std::string_view table_id, const View& view) const override;

  /// What happens at `view`, in one plain sentence.
  std::string sentence(const View& view) const;

 private:
  enum class Part { weights, tokens, chunks, lengths };

  // Where the cursor is.
  Part part_of(Cursor cursor) const;
  int token_of(Cursor cursor) const { return cursor.tile - 2; }  ///< the step's, among tokens
  int chunk_of(Cursor cursor) const { return cursor.tile - trace_.tokens - 2; }
  bool is_second(Cursor cursor) const {
    return cursor.phase == static_cast<int>(linear_attention::Phase::after);
  }
  /// The last token that has been written; −1: none.
  int written(Cursor cursor) const;
  /// Whether a token's output of its chunk is known.
  bool is_out(Cursor cursor, int token) const;
  int first_of(int chunk) const { return chunk * trace_.chunk; }
  int end_of(int chunk) const { return std::min(first_of(chunk + 1), trace_.tokens); }
  int wrong_in(int chunk) const;
  std::string rule_words(int token) const;
  std::string chunk_words(Cursor cursor) const;

  // The parts of the picture.
  picture::Box inputs(bool keys) const;
  picture::Box weights(Cursor cursor) const;
  picture::Box answers(Cursor cursor) const;
  picture::Box state(Cursor cursor) const;
  picture::Box recall(Cursor cursor) const;
  picture::Box values(Cursor cursor) const;
  picture::Box handed(Cursor cursor, bool next) const;
  picture::Box product(Cursor cursor) const;
  picture::Box outputs(Cursor cursor) const;
  picture::Box growth(Cursor cursor, bool flops) const;
  std::pair<double, double> output_ends() const;
  double most_of(const std::vector<float>& values) const;

  // Questions and events, in questions.cpp.
  std::optional<Question> token_question(int token) const;
  std::optional<Question> chunk_question(int chunk) const;
  void find_events();
};

}  // namespace tilestep::scenes

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention/attention_backward/lesson.hpp"
#include "scenes/attention/shared/matrix_scene.hpp"

namespace tilestep::scenes {

/// The kernel's phase within a step, a tile of keys: its weights are recomputed, dS is made from them, and both are
/// multiplied into dQ, dK and dV.
enum class BackwardPhase : std::uint8_t { nothing, weights, gradients, sums };

using BackwardMoment = TileMoment<attention_backward::Step, BackwardPhase>;

/// The matrix of scores walked by columns: K and V above it, dK and dV below, Q and dO left, dQ right. Beside it the
/// chosen query's recomputed weights, and the bytes requested from memory.
class AttentionBackwardScene final
    : public MatrixScene<attention_backward::Trace, BackwardPhase, BackwardPhase::sums> {
 public:
  TILESTEP_PICTURE_SCENE(attention_backward)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  std::optional<picture::Subject> subject_of_column(std::string_view table_id,
                                                    std::string_view column_id) const override;
  int table_row(std::string_view table_id, const View& view) const override;
  Cursor known(const lab::Table& table, int row, int column) const override;

  TileFate fate(const BackwardMoment& now, int q_tile, int k_tile) const override;
  /// The state at `cursor` in one plain sentence.
  std::string sentence(const BackwardMoment& now) const;

 private:
  // The known state at a moment.
  Bytes shares_by(const BackwardMoment& now, attention::Tensor tensor) const override;
  bool column_begun(const BackwardMoment& now, int k_tile) const;
  bool column_through(const BackwardMoment& now, int k_tile) const;
  std::pair<double, double> sums_of_dq(const BackwardMoment& now) const;
  std::optional<int> heaviest_key(const BackwardMoment& now) const;
  double most_weight() const;
  bool key_known(const BackwardMoment& now, int key, bool weight) const;

  // The picture, in picture.cpp.
  picture::Box strips(const BackwardMoment& now) const;
  picture::Box scores(const BackwardMoment& now) const;
  picture::Box queries(const BackwardMoment& now, bool gradients) const;
  picture::Box query_gradients(const BackwardMoment& now) const;
  picture::Box of_keys(const BackwardMoment& now, attention::Tensor tensor) const;
  picture::Box bars(const BackwardMoment& now, bool weights) const;
  std::vector<std::string> formulas(const BackwardMoment& now) const;
  picture::Box row_box(const BackwardMoment& now) const;
  LedgerGroups ledger_groups() const;
  double bytes_of_weights() const;
  picture::Box passes(const BackwardMoment& now) const;
  std::string explain_strip(const BackwardMoment& now, const picture::Key& key) const;

  // Words, in words.cpp.
  std::string brief(const BackwardMoment& now) const;

  // Questions, in questions.cpp.
  Question kept_question() const;
  Question products_question() const;
  Question adders_question() const;
  Question keep_or_recompute_question() const;
  Question weight_question(int step) const;
};

}  // namespace tilestep::scenes

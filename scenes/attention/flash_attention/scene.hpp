#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention/flash_attention/lesson.hpp"
#include "scenes/attention/shared/matrix_scene.hpp"

namespace tilestep::scenes {

/// A kernel's phase within a step, a tile of keys. Kernels that keep no scores go through `scores`, `rescale` and
/// `values` at each tile. `naive` has one step per tile of scores, then the whole row together: `weights`, `values`.
enum class FlashPhase : std::uint8_t { nothing, scores, rescale, weights, values };

using FlashMoment = TileMoment<flash_attention::Step, FlashPhase>;

/// Attention in one picture: Q left, K above, O right and V below the matrix of scores, all on shared axes. Beside it
/// the chosen query's numbers, and the bytes that each kernel requests from memory, on one scale.
class FlashAttentionScene final
    : public MatrixScene<flash_attention::Trace, FlashPhase, FlashPhase::values> {
 public:
  TILESTEP_PICTURE_SCENE(flash_attention)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  std::optional<picture::Subject> subject_of_column(std::string_view table_id,
                                                    std::string_view column_id) const override;
  int table_row(std::string_view table_id, const View& view) const override;
  Cursor known(const lab::Table& table, int row, int column) const override;

  TileFate fate(const FlashMoment& now, int q_tile, int k_tile) const override;
  /// The state at `cursor` in one plain sentence.
  std::string sentence(const FlashMoment& now) const;

 private:
  // Words, in words.cpp.
  std::string brief(const FlashMoment& now) const;
  std::string sentence_of_rows() const;
  std::string sentence_of_flash(const FlashMoment& now) const;
  std::vector<std::string> note_lines() const;
  void find_events();

  // The known state at a moment, in progress.cpp.
  FlashPhase phase_at(Cursor cursor) const override;
  Bytes shares_by(const FlashMoment& now, attention::Tensor tensor) const override;
  bool row_through(const FlashMoment& now, int q_tile) const override;

  // The matrix and the strips, in picture.cpp.
  picture::Box strips(const FlashMoment& now, const View& view) const;
  picture::Box scores(const FlashMoment& now) const;
  bool worked_on(const FlashMoment& now, int q, int k) const;
  picture::Box queries(const FlashMoment& now) const;
  picture::Box keys(const FlashMoment& now, bool of_values) const;
  picture::Box outputs(const FlashMoment& now) const;
  picture::Box rescaled(const FlashMoment& now) const;
  picture::Box legend_box(const FlashMoment& now) const;
  std::string explain_scores(const FlashMoment& now, int q_tile, int k_tile) const;
  std::string explain_strip(const FlashMoment& now, const picture::Key& key) const;

  // Beside them, in picture_side.cpp.
  picture::Box chosen_row(const FlashMoment& now) const;
  picture::Box sums(const FlashMoment& now) const;
  std::vector<std::string> formula_rows(const FlashMoment& now) const;
  LedgerGroups ledger_groups() const;
  picture::Box traffic(const FlashMoment& now) const;
  picture::Box products(const FlashMoment& now) const;
  std::string explain_side(const FlashMoment& now, const picture::Key& key) const;

  // The cost of 8 bits, in picture_quantized.cpp.
  picture::Box quantized(const FlashMoment& now) const;
  std::string explain_quantized(const FlashMoment& now, const picture::Key& key) const;
  std::string quantized_sentence() const;
  Question quantized_question() const;
  double worst_error() const;

  // Questions, in questions.cpp.
  Question crossings_question() const;
  Question flops_question() const;
  Question o_traffic_question() const;
  Question busy_question() const;
  Question rescale_question(int step) const;
  int first_shrinking() const { return MatrixScene::first_shrinking(2, steps_in_all()); }

  using Variant = flash_attention::Variant;
  Variant variant() const { return trace_.runs; }
  bool is_naive() const { return variant() == Variant::naive; }
  /// Scores are written to memory: by design, or by a break.
  bool keeps_scores() const {
    return is_naive() || trace_.broken == flash_attention::Break::materialize;
  }
  /// Scores are products of 8-bit numbers.
  bool has_bytes() const { return flash_attention::is_quantized(trace_.dtype); }
  /// Rows whose maximum rose are counted at each visit.
  bool counts_rescaled() const { return trace_.counts_rescaled(); }

  /// Bytes each kernel requests by tensor, and its FLOPs, by formula: for the problem of the knobs.
  struct Costs {
    std::vector<std::pair<flash_attention::Tensor, double>> bytes;
    double total = 0, flops = 0;
  };
  std::array<Costs, count_of<flash_attention::Variant>()> costs_;
};

}  // namespace tilestep::scenes

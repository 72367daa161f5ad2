#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention/flash_attention/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// What a kernel is at with the tile of keys of a step. Those that keep no scores go through `scores`, `rescale` and
/// `values` at each tile. `naive` has one step a tile of scores, and then the whole row at once: `weights`, `values`.
///
/// Backward: `scores` is where weights are made again, `gradients` makes dS of them, and `values` multiplies what came of
/// it into dQ, dK and dV.
enum class FlashPhase : std::uint8_t { nothing, scores, rescale, weights, gradients, values };

/// What is on screen at one cursor.
struct FlashMoment {
  int step =
      0;  ///< the chosen query's step that is under way or through, from 1; 0: none has begun
  FlashPhase phase = FlashPhase::nothing;
  const flash_attention::Step* now = nullptr;     ///< null: none has begun
  const flash_attention::Step* before = nullptr;  ///< the step before; null: there is none
  bool through = false;                           ///< nothing is left to do
};

/// What has become of a tile of scores.
enum class TileFate : std::uint8_t {
  never,    ///< no block computes it: the mask hides all of it
  to_come,  ///< not yet computed
  now,      ///< it exists, in the registers of a block
  stored,   ///< it lies in memory
  gone      ///< it was used and left nowhere
};

/// Attention on one picture: Q at the left, K above, O at the right and V below of the matrix of scores, all on shared
/// axes. Beside it the chosen query's numbers, the bytes that were asked of memory, and flash-3's lanes. Of a backward
/// pass dO stands beside Q, V below K, dQ at the right and dK and dV below: the matrix is walked by columns.
class FlashAttentionScene final : public SceneOf<flash_attention::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(flash_attention)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  std::vector<picture::Subject> subjects_of_row(std::string_view table_id, int row) const override;
  std::optional<picture::Subject> subject_of_column(std::string_view table_id,
                                                    std::string_view column_id) const override;
  int table_row(std::string_view table_id, const View& view) const override;
  Cursor known(const lab::Table& table, int row, int column) const override;
  std::optional<Cursor> leads_to(const View& view, const picture::Key& item) const override;
  std::optional<lab::Settings> dropped(const View& view, const picture::Key& item,
                                       const picture::Key& onto) const override;
  /// In tiles of keys.
  double progress(Cursor cursor) const override;

  /// The state at `cursor`; public so that a test holds the picture to the trace.
  FlashMoment moment(Cursor cursor) const;
  TileFate fate(const FlashMoment& now, int q_tile, int k_tile) const;
  /// Bytes of a tensor that were asked for by now: of what the trace has in all, the share of the tiles that are
  /// through. At the end exactly what was traced.
  struct Bytes {
    double loaded = 0, stored = 0;
  };
  Bytes asked_by(const FlashMoment& now, const flash_attention::LedgerRow& row) const;
  /// flash-3: the clock of its chosen block up to which things are shown. Under emulation, where clocks say what came
  /// before what, it is the number of a clock among all of them.
  double clock_at(const FlashMoment& now) const;
  /// What happens at `cursor` in one plain sentence.
  std::string sentence(const FlashMoment& now) const;

 private:
  // Words, in words.cpp.
  std::string brief(const FlashMoment& now) const;
  std::string sentence_of_rows(const FlashMoment& now) const;
  std::string sentence_of_flash(const FlashMoment& now) const;
  std::string outcome() const;
  std::string result_sentence() const;
  std::vector<std::string> note_lines() const;
  std::string rows_of(int tile, bool of_queries) const;
  void find_events();

  // A backward pass, in backward.cpp.
  bool is_backward() const { return trace_.is_backward(); }
  bool column_begun(const FlashMoment& now, int k_tile) const;
  bool column_through(const FlashMoment& now, int k_tile) const;
  int step_of_tile(int k_tile) const;
  Bytes asked_backward(const FlashMoment& now, const flash_attention::LedgerRow& row) const;
  std::pair<double, double> sums_of_dq(const FlashMoment& now) const;
  std::optional<int> heaviest_key(const FlashMoment& now) const;
  bool key_known(const FlashMoment& now, int key, bool weight) const;
  std::vector<std::string> gradient_formulas(const FlashMoment& now) const;
  picture::Box gradient_row(const FlashMoment& now) const;
  picture::Box gradient_bars(const FlashMoment& now, bool weights) const;
  picture::Box output_gradients(const FlashMoment& now) const;
  picture::Box query_gradients(const FlashMoment& now) const;
  picture::Box of_keys(const FlashMoment& now, flash_attention::Tensor tensor) const;
  std::string explain_backward(const FlashMoment& now, const picture::Key& key) const;

  // And its words, in backward_words.cpp.
  std::string sentence_of_backward(const FlashMoment& now) const;
  std::vector<picture::Symbol> backward_symbols() const;
  std::vector<Readout> backward_readouts(const FlashMoment& now) const;
  SourceMark backward_source(const FlashMoment& now) const;
  void find_backward_events();
  std::optional<Question> backward_question(int next) const;
  Question kept_question() const;
  Question products_question() const;
  Question adders_question() const;
  Question keep_or_recompute_question() const;

  // What is known at a moment, in moment.cpp.
  bool seen(const FlashMoment& now, const flash_attention::TileVisit& visit) const;
  bool row_through(const FlashMoment& now, int q_tile) const;
  bool row_begun(const FlashMoment& now, int q_tile) const;
  double share_of_visits(const FlashMoment& now) const;
  double share_of_rows(const FlashMoment& now, bool begun) const;
  void clock_steps();
  double shown_clock(std::int64_t clock) const;
  double clocked_until() const;

  // The matrix and the strips, in picture.cpp.
  picture::Box strips(const FlashMoment& now, const View& view) const;
  picture::Box scores(const FlashMoment& now) const;
  bool worked_on(const FlashMoment& now, int q, int k) const;
  picture::Box queries(const FlashMoment& now) const;
  picture::Box keys(const FlashMoment& now, bool of_values) const;
  picture::Box outputs(const FlashMoment& now) const;
  picture::Box rescaled(const FlashMoment& now) const;
  picture::Box legend(const FlashMoment& now) const;
  void hatch_filled(picture::Cells& cells, bool upright) const;
  std::string explain_tile(const FlashMoment& now, int q_tile, int k_tile) const;
  std::string explain_strip(const FlashMoment& now, const picture::Key& key) const;

  // Beside them, in picture_side.cpp.
  picture::Box chosen_row(const FlashMoment& now) const;
  picture::Box sums(const FlashMoment& now) const;
  picture::Box row_bars(const FlashMoment& now) const;
  /// Formulas; where it is narrow what they come to, without the way there or the remark behind it.
  std::vector<picture::Text> formula_texts(const std::vector<std::string>& rows) const;
  std::vector<std::string> formula_rows(const FlashMoment& now) const;
  picture::Box ledger(const FlashMoment& now) const;
  std::vector<std::vector<const flash_attention::LedgerRow*>> ledger_groups() const;
  picture::Box lanes(const FlashMoment& now) const;
  picture::Box notes(const FlashMoment& now) const;
  std::string explain_bytes(const FlashMoment& now, const flash_attention::LedgerRow& row) const;
  std::string explain_side(const FlashMoment& now, const picture::Key& key) const;
  struct LaneSpan {
    flash_attention::Span span;
    double begin = 0, end = 0;
  };
  std::vector<LaneSpan> lane_spans() const;

  // What 8 bits cost, in picture_quantized.cpp.
  picture::Box quantized(const FlashMoment& now) const;
  std::string explain_quantized(const FlashMoment& now, const picture::Key& key) const;
  std::string quantized_sentence() const;
  Question quantized_question() const;
  double worst_error() const;

  // Of all that was asked for, in picture_mask.cpp.
  int mask_edge() const;
  picture::Box whole_mask() const;
  picture::Box padding() const;
  std::string explain_mask(const picture::Key& key) const;

  // Questions, in questions.cpp.
  Question visited_question() const;
  Question crossings_question() const;
  Question flops_question() const;
  Question o_traffic_question() const;
  Question busy_question() const;
  Question rescale_question(int step) const;
  Question shrunk_question(int step) const;
  Question outcome_question() const;
  int first_shrinking() const;
  double most_l() const;

  using Variant = flash_attention::Variant;
  Variant variant() const { return trace_.plan.runs; }
  bool is_naive() const { return variant() == Variant::naive; }
  bool is_flash_3() const { return flash_attention::is_flash_3(variant()); }
  /// Scores are products of 8-bit numbers.
  bool has_bytes() const { return flash_attention::is_quantized(trace_.dtype); }
  bool broken() const { return trace_.broken != flash_attention::Break::none; }
  bool judged(const FlashMoment& now) const { return broken() && now.through; }
  /// Rows whose maximum rose are counted at each visit.
  bool counts_rescaled() const { return trace_.counts_rescaled(); }
  int steps_in_all() const { return static_cast<int>(trace_.steps.size()); }
  int visited() const;
  bool emulated() const { return trace_.clock_unit == "words" || trace_.clock_unit == "tiles"; }
  bool has_lanes() const { return !trace_.events.empty(); }

  std::vector<double> clocks_;              ///< flash-3: of each phase of each step
  std::vector<std::int64_t> event_clocks_;  ///< flash-3: in order, each once
};

/// The tone of each tensor; 0: none. Orange is too near to what is current, vermillion to what is wrong.
constexpr std::uint8_t tone_of(flash_attention::Tensor tensor) {
  switch (tensor) {
    case flash_attention::Tensor::k:
    case flash_attention::Tensor::dk:
      return 1;
    case flash_attention::Tensor::v:
    case flash_attention::Tensor::dv:
      return 7;
    case flash_attention::Tensor::o:
    case flash_attention::Tensor::dq:
    case flash_attention::Tensor::dq_sums:
      return 3;
    default:
      return 0;
  }
}

/// "384 B", "16.4 KB", "1.07 GB": powers of ten.
std::string bytes_text(double bytes);

}  // namespace tilestep::scenes

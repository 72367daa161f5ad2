#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/flash_attention_3/lesson.hpp"
#include "scenes/attention/shared/matrix.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// What the chosen query's warpgroup is at with the tile of keys of a step.
enum class LanePhase : std::uint8_t { nothing, scores, softmax, values };

/// What is on screen at one cursor.
struct LaneMoment {
  int step =
      0;  ///< the chosen query's step that is under way or through, from 1; 0: none has begun
  LanePhase phase = LanePhase::nothing;
  const flash_attention_3::Step* now = nullptr;     ///< null: none has begun
  const flash_attention_3::Step* before = nullptr;  ///< the step before; null: there is none
  bool through = false;                             ///< nothing is left to do
};

/// Before the first step two warpgroups in step and in turn. Then who is busy when in one block: copies, and of each
/// warpgroup its products and its exponentials, on a common axis.
/// Below it the matrix of scores that the block goes through, the chosen query's numbers and the bytes that TMA was asked
/// for.
class FlashAttention3Scene final : public SceneOf<flash_attention_3::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(flash_attention_3)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  std::vector<picture::Subject> subjects_of_row(std::string_view table_id, int row) const override;
  std::optional<picture::Subject> subject_of_column(std::string_view table_id,
                                                    std::string_view column_id) const override;
  std::optional<Cursor> leads_to(const View& view, const picture::Key& item) const override;
  std::optional<lab::Settings> dropped(const View& view, const picture::Key& item,
                                       const picture::Key& onto) const override;
  /// In tiles of keys.
  double progress(Cursor cursor) const override;

  /// The state at `cursor`; public so that a test holds the picture to the trace.
  LaneMoment moment(Cursor cursor) const;
  TileFate fate(const LaneMoment& now, int q_tile, int k_tile) const;
  /// Bytes of a tensor that were asked for by now: of what the trace has in all, the share of the block's tiles that are
  /// through. At the end exactly what was traced.
  Bytes asked_by(const LaneMoment& now, const attention::LedgerRow& row) const;
  /// The clock of the chosen block up to which things are shown. Under emulation, where clocks say what came before
  /// what, it is the number of a clock among all of them.
  double clock_at(const LaneMoment& now) const;
  /// What happens at `cursor` in one plain sentence.
  std::string sentence(const LaneMoment& now) const;

 private:
  // What is known at a moment.
  bool seen(const LaneMoment& now, const attention::TileVisit& visit) const;
  bool row_begun(const LaneMoment& now, int q_tile) const;
  bool row_through(const LaneMoment& now, int q_tile) const;
  void clock_steps();
  double shown_clock(std::int64_t clock) const;
  double clocked_until() const;
  struct LaneSpan {
    flash_attention_3::Span span;
    double begin = 0, end = 0;
  };
  std::vector<LaneSpan> lane_spans() const;

  // The picture, in picture.cpp.
  picture::Box lanes(const LaneMoment& now) const;
  picture::Box strips(const LaneMoment& now) const;
  picture::Box scores(const LaneMoment& now) const;
  picture::Box of_queries(const LaneMoment& now, bool outputs) const;
  picture::Box of_keys(const LaneMoment& now, bool values) const;
  std::vector<std::string> formulas(const LaneMoment& now) const;
  picture::Box chosen_row(const LaneMoment& now) const;
  picture::Box sum_bar(const LaneMoment& now) const;
  LedgerGroups ledger_groups() const;
  std::string explain_span(const LaneMoment& now, int number) const;

  // Two warpgroups in step and in turn, in turns.cpp.
  std::optional<double> tile_cycles(bool in_turn) const;
  std::vector<picture::Axis> turn_axes() const;
  picture::Box turns(bool in_turn) const;

  // Words, in words.cpp.
  std::string brief(const LaneMoment& now) const;
  std::string outcome() const;
  std::string result_sentence() const;

  // Questions, in questions.cpp.
  Question copier_question() const;
  Question ahead_question() const;
  Question turns_question() const;
  Question roof_question() const;
  Question shrunk_question(int step) const;
  int first_shrinking() const;
  double most_l() const;
  Question outcome_question() const;

  bool broken() const { return trace_.broken != attention::Break::none; }
  bool judged(const LaneMoment& now) const { return broken() && now.through; }
  int steps_in_all() const { return static_cast<int>(trace_.steps.size()); }
  int consumers() const { return (trace_.plan.threads - 128) / 128; }
  bool emulated() const { return trace_.clock_unit == "words"; }

  std::vector<double> clocks_;              ///< of each phase of each step
  std::vector<std::int64_t> event_clocks_;  ///< in order, each once
};

}  // namespace tilestep::scenes

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/flash_attention_3/lesson.hpp"
#include "scenes/attention/shared/matrix_scene.hpp"
#include "scenes/picture/parts.hpp"

namespace tilestep::scenes {

/// The chosen query's warpgroup's phase within a step, a tile of keys.
enum class LanePhase : std::uint8_t { nothing, scores, softmax, values };

using LaneMoment = TileMoment<flash_attention_3::Step, LanePhase>;

/// Before the first step two warpgroups in step and in turn. Then the activity of one block over time: copies, and each
/// warpgroup's products and exponentials, on a common axis.
/// Below it the matrix of scores that the block walks through, the chosen query's numbers and the bytes requested from
/// TMA.
class FlashAttention3Scene final
    : public MatrixScene<flash_attention_3::Trace, LanePhase, LanePhase::values> {
 public:
  TILESTEP_PICTURE_SCENE(flash_attention_3)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  std::optional<picture::Subject> subject_of_column(std::string_view table_id,
                                                    std::string_view column_id) const override;

  TileFate fate(const LaneMoment& now, int q_tile, int k_tile) const override;
  /// The clock of the chosen block up to which things are shown; under emulation clocks only give an order.
  double clock_at(const LaneMoment& now) const;
  /// The state at `cursor` in one plain sentence.
  std::string sentence(const LaneMoment& now) const;

 private:
  Bytes shares_by(const LaneMoment& now, attention::Tensor tensor) const override;
  void clock_steps();
  void find_beats();
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

  // Questions, in questions.cpp.
  Question copier_question() const;
  Question ahead_question() const;
  Question turns_question() const;
  Question roof_question() const;

  int consumers() const { return (trace_.plan.threads - 128) / 128; }
  bool emulated() const { return trace_.clock_unit == "words"; }

  std::vector<double> clocks_;  ///< of each phase of each step
  picture::Beats beats_;        ///< under emulation
};

}  // namespace tilestep::scenes

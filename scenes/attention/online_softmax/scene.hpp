#pragma once

#include <optional>
#include <string>

#include "kernels/attention/online_softmax/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// The fine steps of a tile, in the order of the kernel's four statements.
enum class SoftmaxPhase { maximum, rescale, weights, accumulate };

/// The screen's content at one cursor, from the trace alone.
struct SoftmaxMoment {
  int tile = -1;  ///< the current tile; −1 before the first
  SoftmaxPhase phase = SoftmaxPhase::accumulate;
  double m_old = 0, m = 0;
  double tile_max = 0, tile_sum = 0;
  double rescale = 1;                   ///< 1 until the rescale phase is reached
  double l_old = 0, l_kept = 0, l = 0;  ///< before, after the rescale, now
  double o_old = 0, o_kept = 0, o = 0;
  double output = 0;  ///< O / l so far
};

/// Online softmax, tile by tile: scores with the running maximum over them, weights that shrink
/// at a rescale, the values and their mean, l and O as they grow, and the step's formula with its numbers.
class OnlineSoftmaxScene final : public SceneOf<online_softmax::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(online_softmax)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  std::optional<picture::Subject> subject_of_column(std::string_view table_id,
                                                    std::string_view column_id) const override;
  /// A score moves along its axis; the preset becomes custom.
  std::optional<lab::Settings> dragged(const View& view, const picture::Key& item,
                                       double value) const override;
  std::optional<Cursor> leads_to(const View& view, const picture::Key& item) const override;
  /// In keys.
  double progress(Cursor cursor) const override;
  /// The numbers shown at `cursor`; public so that a test can compare the picture with the trace.
  SoftmaxMoment moment(Cursor cursor) const;
  /// The weights of the keys so far at `cursor`: the kernel's weights times every rescale it has applied
  /// since.
  std::vector<float> weights(Cursor cursor) const;
  /// The step at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;

 private:
  picture::Box scores(const SoftmaxMoment& now) const;
  picture::Box weight_bars(Cursor cursor) const;
  picture::Box formulas(const SoftmaxMoment& now) const;
  picture::Box values(const SoftmaxMoment& now) const;
  std::vector<double> exact_sums(int tiles) const;
  picture::Box sums(const SoftmaxMoment& now) const;
  std::vector<std::string> formula_rows(const SoftmaxMoment& now) const;
  std::string rise(const SoftmaxMoment& now) const;

  // Questions and events, in questions.cpp.
  enum class Ask : std::uint8_t {
    nothing,
    weight_ratio,
    new_maximum,
    old_weight,
    fresh_weight,
    heaviest,
    masked,
    skipped,
    exact
  };
  void plan_questions();
  void find_events();
  int heaviest_key() const;
  std::optional<float> runner_up(int tile) const;
  Question weight_ratio_question(int tile) const;
  Question new_maximum_question(int tile) const;
  Question old_weight_question(int tile) const;
  Question fresh_weight_question(int tile) const;
  Question heaviest_question(int tile) const;
  Question masked_question(int tile) const;
  Question skipped_question(int tile) const;
  Question exact_question() const;

  int tiles() const { return static_cast<int>(trace_.steps.size()); }
  /// The exact output for the tiles that `now.output` covers; nothing before the first.
  std::optional<double> exact_at(const SoftmaxMoment& now) const;
  /// Whether the output is more than 1 % off the exact softmax of the keys so far, for whatever reason.
  bool wrong_at(const SoftmaxMoment& now) const;
  int tile_of(int key) const { return key / trace_.tile_width; }
  std::string score_text(double score) const;

  int score_decimals_ = 1;
  std::vector<Ask> asked_;  ///< before each tile
};

}  // namespace tilestep::scenes

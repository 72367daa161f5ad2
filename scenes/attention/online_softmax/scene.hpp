#pragma once

#include <map>
#include <optional>
#include <string>

#include "kernels/attention/online_softmax/lesson.hpp"
#include "scenes/shared/occasions.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// The fine steps of a tile, in the order of the kernel's four statements.
enum class SoftmaxPhase { maximum, rescale, weights, accumulate };

/// The screen's content at one cursor: the tile's record, in which rescale, l, o and output are as they are by then.
struct SoftmaxMoment : online_softmax::StepRecord {
  int tile = -1;  ///< the current tile; −1 before the first
  SoftmaxPhase phase = SoftmaxPhase::accumulate;
};

/// Online softmax, tile by tile: scores with the running maximum over them, weights that shrink
/// at a rescale, the values and their mean, l and O as they grow, and the step's formula with its numbers.
class OnlineSoftmaxScene final : public SceneOf<online_softmax::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(online_softmax)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override {
    return {"preset", "tile_width", "skip_rescale"};
  }
  std::optional<picture::Subject> subject_of_column(std::string_view table_id,
                                                    std::string_view column_id) const override;
  /// A score moves along its axis; the preset becomes custom.
  std::optional<lab::Settings> dragged(const View& view, const picture::Key& item,
                                       double value) const override;
  std::optional<Cursor> leads_to(const View& view, const picture::Key& item) const override;
  /// In keys.
  double progress(Cursor cursor) const override;
  /// The weights of the keys so far at `cursor`: the kernel's weights times every rescale it has applied
  /// since.
  std::vector<float> weights(Cursor cursor) const;
  /// The step at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;

 private:
  SoftmaxMoment moment(Cursor cursor) const;
  picture::Box scores(const SoftmaxMoment& now) const;
  picture::Box weight_bars(Cursor cursor) const;
  picture::Box formulas(const SoftmaxMoment& now) const;
  picture::Box values(const SoftmaxMoment& now) const;
  std::vector<double> exact_sums(int tiles) const;
  picture::Box meter(const SoftmaxMoment& now, bool of_output) const;
  picture::Box sums(const SoftmaxMoment& now) const;
  picture::Bars over_keys(picture::Name name, const std::vector<float>& values, int decimals,
                          picture::Name y, int now) const;
  /// Adds `y` over the keys of a tile.
  void add_level(picture::Curve& curve, int tile, double y) const;
  std::vector<std::string> formula_rows(const SoftmaxMoment& now) const;
  std::string rise(const SoftmaxMoment& now) const;

  // Questions and events, in questions.cpp.
  std::vector<Occasion> occasions() const;
  void find_events();

  int tiles() const { return trace_.tiles(); }
  /// The exact output for the tiles that `now.output` covers; nothing before the first.
  std::optional<double> exact_at(const SoftmaxMoment& now) const;
  /// Whether the output is more than 1 % off the exact softmax of the keys so far, for whatever reason.
  bool wrong_at(const SoftmaxMoment& now) const;
  std::string score_text(double score) const;

  int score_decimals_ = 1;
  std::map<int, Question> asked_;  ///< before each tile
};

}  // namespace tilestep::scenes

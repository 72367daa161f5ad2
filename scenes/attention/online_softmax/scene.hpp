#pragma once

#include <string>

#include "kernels/attention/online_softmax/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// The fine steps of a tile, in the order of the kernel's four statements.
enum class SoftmaxPhase { maximum, rescale, weights, accumulate };

/// What is on screen at one cursor, read off the trace alone.
struct SoftmaxMoment {
  int tile = -1;  ///< the tile worked on; −1 before the first
  SoftmaxPhase phase = SoftmaxPhase::accumulate;
  double m_old = 0, m = 0;
  double tile_max = 0, tile_sum = 0;
  double rescale = 1;                   ///< 1 until the rescale phase is reached
  double l_old = 0, l_kept = 0, l = 0;  ///< before, after the rescale, now
  double o_old = 0, o_kept = 0, o = 0;
  double output = 0;  ///< O / l so far
};

/// Online softmax, tile by tile: scores with the running maximum over them, weights that shrink
/// when a rescale comes, l and O as they grow, and the formula of the step with its numbers in it.
class OnlineSoftmaxScene final : public SceneOf<online_softmax::Trace> {
 public:
  StepAxis loaded(const online_softmax::Trace& before) override;
  void draw_picture(Cursor cursor) override;
  void draw_readouts(Cursor cursor) override;
  measured::Spec measured_spec() const override;
  SourceMark source(Cursor cursor) const override;
  std::optional<Question> question(Cursor cursor) const override;

  /// The numbers shown at `cursor`; public so that a test holds the picture to the trace.
  SoftmaxMoment moment(Cursor cursor) const;
  /// The weight of `key` as it stands at `cursor`: the weight the kernel computed, times every
  /// rescale the kernel applied since. 0 for a key that has none yet.
  double weight(int key, Cursor cursor) const;
  /// What happens at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;

 private:
  struct Layout;
  /// Where each visible key stands between the left and the right edge of the charts.
  struct KeyAxis;

  Layout layout() const;
  KeyAxis key_axis(const Layout& layout, Cursor cursor) const;
  void draw_overview(const Layout& layout, const KeyAxis& axis, Cursor cursor) const;
  void draw_tiles(const Layout& layout, const KeyAxis& axis, Cursor cursor);
  void draw_scores(const Layout& layout, const KeyAxis& axis, Cursor cursor) const;
  void draw_running_maximum(const Layout& layout, const KeyAxis& axis, Cursor cursor) const;
  void draw_weights(const Layout& layout, const KeyAxis& axis, Cursor cursor) const;
  void draw_formulas(const Layout& layout, Cursor cursor) const;
  void draw_sums(const Layout& layout, Cursor cursor) const;
  void draw_key_tooltip(const Layout& layout, const KeyAxis& axis, Cursor cursor) const;
  float progress(Cursor cursor);

  int tiles() const { return static_cast<int>(trace_.steps.size()); }
  /// True once the output differs from the exact softmax of the keys so far (rescale skipped).
  bool wrong_at(const SoftmaxMoment& now) const {
    const int first = trace_.first_wrong_tile;
    return first >= 0 &&
           (now.tile > first || (now.tile == first && now.phase == SoftmaxPhase::accumulate));
  }
  int tile_of(int key) const { return key / trace_.tile_width; }
  double score_y(const Layout& layout, double score) const;
  std::string score_text(double score) const;

  double score_low_ = 0, score_high_ = 1;  ///< range of the finite scores
  double l_most_ = 1, o_most_ = 1;         ///< the largest |l| and |O| of all steps
  int score_decimals_ = 1;
  bool skips_rescale_ = false;

  // The picture moves from the previous cursor to this one in a third of a second.
  Cursor shown_{-1, 0}, before_{-1, 0};
  float moved_ = 1.0f;
};

}  // namespace tilestep::scenes

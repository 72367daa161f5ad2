#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/numbers/accumulator_precision/lesson.hpp"
#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// What is on screen at one cursor, read off the trace alone.
struct AccumulatorMoment {
  int point = -1;        ///< index into the trace's points; −1 before the first term
  bool rounded = false;  ///< the exact sum was rounded into the accumulator
  /// The last point whose sums are known; −1: none.
  int known() const { return rounded || point < 0 ? point : point - 1; }
};

/// The accumulator that is followed, and what it did with each term.
struct RunningSum {
  const accumulator_precision::Trace& trace;
  const accumulator_precision::AccumulatorTrace& a;

  const accumulator_precision::Step& step(int point) const {
    return a.steps[static_cast<std::size_t>(point)];
  }
  accumulator_precision::StepView view(int point) const {
    return step_view(trace, a, static_cast<std::size_t>(point));
  }
  /// What rounding did with a term: the short form of `view`.
  struct Fate {
    accumulator_precision::Direction direction;
    bool lost;
    double spacing;
  };
  Fate fate(int point) const;
  bool frozen(int point) const {
    return point >= 0 && a.frozen_at >= 0 &&
           trace.points[static_cast<std::size_t>(point)] >= a.frozen_at;
  }
  /// A number with as many digits as tell those of the format apart.
  std::string say(double value) const;
  /// What happens at `now` in one plain sentence.
  std::string sentence(const AccumulatorMoment& now) const;
  std::string start_sentence() const;
  std::string add_sentence(int point) const;
  std::string round_sentence(int point) const;
  std::string last_sentence() const;
  /// What is said beside a number, in full and where room is short.
  struct Note {
    std::string full, brief;
  };
  Note term_note(int point) const;
  Note fate_note(int point) const;
  std::optional<Question> question(int next) const;
  Question landing_question(int point) const;
  Question spacing_question(int point) const;
  Question freeze_question() const;
};

/// Accumulator precision: the running sums against the number of terms, with the places where they
/// freeze; below, the addition of this step in the accumulator in focus: its bits before and after,
/// and the two neighbouring numbers that the exact sum falls between.
class AccumulatorPrecisionScene final : public SceneOf<accumulator_precision::Trace> {
 public:
  StepAxis loaded(const accumulator_precision::Trace& before) override;
  void draw_picture(Cursor cursor) override;
  void draw_readouts(Cursor cursor) override;
  measured::Spec measured_spec() const override;
  SourceMark source(Cursor cursor) const override;
  std::optional<Question> question(Cursor cursor) const override;
  int table_row(std::string_view table_id, Cursor cursor) const override;
  void hover_row(std::string_view table_id, int row) override;

  picture::Extent extent() const;
  picture::Picture picture(const picture::Extent& extent, const View& view) const;
  std::string explain(const View& view, const picture::Key& key) const;
  std::vector<Readout> readouts(const View& view) const;
  RunningSum followed(const View& view) const;

  AccumulatorMoment moment(Cursor cursor) const;
  /// What happens at `cursor` in one plain sentence.
  std::string sentence(Cursor cursor) const;
  /// The accumulator whose bits are shown, as an index into the trace's.
  int focus() const { return focus_; }
  /// Number of terms that the accumulator in focus has added after this point.
  int terms_added(int point) const { return trace_.points[static_cast<std::size_t>(point)] + 1; }

 private:
  using AccumulatorTrace = accumulator_precision::AccumulatorTrace;
  struct Layout;
  struct PlotSpace;
  struct EndLabel;
  struct Patch {
    ImVec2 min, max;
  };

  // The parts of the picture.
  picture::Curve curve(const AccumulatorTrace& a, int last, double first) const;
  picture::Curve exact(picture::Key key, int from, int to, double first) const;
  picture::Box plot(const RunningSum& sum, const AccumulatorMoment& now, double first) const;
  picture::Box rug(const RunningSum& sum, const AccumulatorMoment& now) const;
  picture::Box chips(const RunningSum& sum) const;
  picture::Box bits(const RunningSum& sum, const AccumulatorMoment& now) const;
  picture::Box number_line(const RunningSum& sum, const AccumulatorMoment& now,
                           std::vector<picture::Axis>& axes) const;
  picture::Box blocks(const AccumulatorMoment& now) const;
  std::string explain_sum(const AccumulatorTrace& a, int known) const;
  std::string explain_term(int point) const;

  // The picture, in accumulator_precision_picture.cpp.
  Layout layout() const;
  void draw_chips(const Layout& layout);
  bool chip(int accumulator, ImVec2 min, ImVec2 max);

  // The plot of the sums, in accumulator_precision_plot.cpp.
  PlotSpace plot_space(const Layout& layout) const;
  void draw_axes(const Layout& layout, const PlotSpace& plot) const;
  void draw_exact(const PlotSpace& plot, const AccumulatorMoment& now) const;
  void draw_sum(const PlotSpace& plot, int accumulator, const AccumulatorMoment& now) const;
  void draw_frozen(const Layout& layout, const PlotSpace& plot, const AccumulatorMoment& now,
                   const std::vector<Patch>& labels) const;
  void draw_frozen_note(const Layout& layout, const PlotSpace& plot, ImVec2 place,
                        const std::vector<Patch>& labels) const;
  std::vector<ImVec2> ink(const PlotSpace& plot) const;
  std::vector<Patch> draw_end_labels(const Layout& layout, const PlotSpace& plot,
                                     const AccumulatorMoment& now);
  void draw_cursor(const Layout& layout, const PlotSpace& plot, const AccumulatorMoment& now) const;
  void draw_rug(const Layout& layout, const PlotSpace& plot, const AccumulatorMoment& now) const;
  void draw_rug_key(const Layout& layout, const PlotSpace& plot) const;
  void draw_plot_tooltip(const PlotSpace& plot, const AccumulatorMoment& now) const;

  // The addition in bits, in accumulator_precision_bits.cpp.
  void draw_bits(const Layout& layout, const AccumulatorMoment& now) const;
  using Note = RunningSum::Note;
  Note term_note(int point) const;
  Note fate_note(int point) const;
  void draw_cells(const Layout& layout, float y, const std::string& bits, const std::string& other,
                  bool after) const;
  void draw_group_names(const Layout& layout) const;
  void draw_number_line(const Layout& layout, const AccumulatorMoment& now) const;
  void draw_blocks(const Layout& layout, const AccumulatorMoment& now) const;

  int points() const { return static_cast<int>(trace_.points.size()); }
  bool every_term() const { return trace_.terms <= accumulator_precision::kAllRows; }
  const AccumulatorTrace& accumulator(int number) const {
    return trace_.accumulators[static_cast<std::size_t>(number)];
  }
  const AccumulatorTrace& focused() const { return accumulator(focus_); }
  const accumulator_precision::Step& step(int point) const {
    return focused().steps[static_cast<std::size_t>(point)];
  }
  accumulator_precision::StepView view(int point) const {
    return RunningSum{trace_, focused()}.view(point);
  }
  using Fate = RunningSum::Fate;
  Fate fate(int point) const { return RunningSum{trace_, focused()}.fate(point); }
  int digits() const;

  int focus_ = 0;
  int lit_point_ = -1;        ///< hovered in the table of terms
  int lit_accumulator_ = -1;  ///< hovered in the table of accumulators
  int hovered_chip_ = -1;
  double low_ = 0, high_ = 1;  ///< of the sums
};

}  // namespace tilestep::scenes

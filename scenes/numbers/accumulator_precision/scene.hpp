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
  struct Box {
    ImVec2 min, max;
  };

  // Questions, in accumulator_precision_questions.cpp.
  Question landing_question(int point) const;
  Question spacing_question(int point) const;
  Question freeze_question() const;

  // Sentences and numbers, in accumulator_precision_text.cpp.
  std::string start_sentence() const;
  std::string add_sentence(int point) const;
  std::string round_sentence(int point) const;
  std::string last_sentence() const;

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
                   const std::vector<Box>& labels) const;
  void draw_frozen_note(const Layout& layout, const PlotSpace& plot, ImVec2 place,
                        const std::vector<Box>& labels) const;
  std::vector<ImVec2> ink(const PlotSpace& plot) const;
  std::vector<Box> draw_end_labels(const Layout& layout, const PlotSpace& plot,
                                   const AccumulatorMoment& now);
  void draw_cursor(const Layout& layout, const PlotSpace& plot, const AccumulatorMoment& now) const;
  void draw_rug(const Layout& layout, const PlotSpace& plot, const AccumulatorMoment& now) const;
  void draw_rug_key(const Layout& layout, const PlotSpace& plot) const;
  void draw_plot_tooltip(const PlotSpace& plot, const AccumulatorMoment& now) const;

  // The addition in bits, in accumulator_precision_bits.cpp.
  void draw_bits(const Layout& layout, const AccumulatorMoment& now) const;
  /// What is said beside a number, in full and where room is short.
  struct Note {
    std::string full, brief;
  };
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
    return step_view(trace_, focused(), static_cast<std::size_t>(point));
  }
  /// What rounding did with a term, in the accumulator in focus; the short form of `view`.
  struct Fate {
    accumulator_precision::Direction direction;
    bool lost;
    double spacing;
  };
  Fate fate(int point) const;
  /// Significant digits that tell the numbers of the format in focus apart.
  int digits() const;

  int focus_ = 0;
  int lit_point_ = -1;        ///< hovered in the table of terms
  int lit_accumulator_ = -1;  ///< hovered in the table of accumulators
  int hovered_chip_ = -1;
  double low_ = 0, high_ = 1;  ///< of the sums
};

}  // namespace tilestep::scenes

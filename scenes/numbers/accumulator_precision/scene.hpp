#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/numbers/accumulator_precision/lesson.hpp"
#include "scenes/shared/scene_of.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

/// The screen's content at one cursor, from the trace alone.
struct AccumulatorMoment {
  int point = -1;        ///< index into the trace's points; −1 before the first term
  bool rounded = false;  ///< the exact sum was rounded into the accumulator
  /// The last point whose sums are known; −1: none.
  int known() const { return rounded || point < 0 ? point : point - 1; }
};

/// The accumulator in focus, and what it did with each term.
struct RunningSum {
  const accumulator_precision::Trace& trace;
  const accumulator_precision::AccumulatorTrace& a;

  const accumulator_precision::Step& step(int point) const { return a.steps[point]; }
  /// What rounding did to a term.
  accumulator_precision::StepView view(int point) const {
    return step_view(trace, a, static_cast<std::size_t>(point));
  }
  bool frozen(int point) const {
    return point >= 0 && a.frozen_at >= 0 && trace.points[point] >= a.frozen_at;
  }
  /// A number with enough digits to tell the format's numbers apart.
  std::string say(double value) const;
  /// The step at `now` in one plain sentence.
  std::string sentence(const AccumulatorMoment& now) const;
  std::string start_sentence() const;
  std::string add_sentence(int point) const;
  std::string round_sentence(int point) const;
  std::string last_sentence() const;
  /// The note beside a number, in full and short.
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
/// freeze; below, this step's addition in the accumulator in focus: its bits before and after, and
/// the two neighbouring numbers that the exact sum falls between.
class AccumulatorPrecisionScene final : public SceneOf<accumulator_precision::Trace> {
 public:
  TILESTEP_PICTURE_SCENE(accumulator_precision)

  std::vector<Question> measured_questions(const lab::Report& bench) const override;
  std::vector<std::string> stage_knobs() const override;
  std::optional<picture::Subject> subject_of_column(std::string_view table_id,
                                                    std::string_view column_id) const override;
  std::optional<Cursor> leads_to(const View& view, const picture::Key& item) const override;
  /// In terms.
  double progress(Cursor cursor) const override;
  std::vector<picture::Subject> subjects_of_row(std::string_view table_id, int row) const override;
  int table_row(std::string_view table_id, const View& view) const override;
  Cursor known(const lab::Table& table, int row, int column) const override;

  AccumulatorMoment moment(Cursor cursor) const;
  /// The picked accumulator, by its method; otherwise the first.
  RunningSum followed(const View& view) const;
  /// Number of terms added after this point.
  int terms_added(int point) const { return trace_.points[point] + 1; }

 private:
  using AccumulatorTrace = accumulator_precision::AccumulatorTrace;

  picture::Curve curve(picture::Key key, int from, int to,
                       const std::function<double(int point)>& sum) const;
  float margin() const;
  picture::Box plot(const RunningSum& sum, const AccumulatorMoment& now) const;
  picture::Box rug(const RunningSum& sum, const AccumulatorMoment& now) const;
  picture::Box chips(const RunningSum& sum) const;
  picture::Box bits(const RunningSum& sum, const AccumulatorMoment& now) const;
  picture::Box all_numbers(const RunningSum& sum, const AccumulatorMoment& now) const;
  picture::Box neighbours(const RunningSum& sum, const AccumulatorMoment& now,
                          std::vector<picture::Axis>& axes) const;
  picture::Box blocks(const AccumulatorMoment& now) const;
  std::string explain_sum(const AccumulatorTrace& a, int known) const;
  std::string explain_term(int point) const;

  /// The bits that a tensor-core step cuts off.
  measured::View alignment_view() const;

  void find_events();
  /// After the term of this number was added, or the next one that is kept.
  Cursor after_term(int term) const;
  int points() const { return static_cast<int>(trace_.points.size()); }

  /// The axis omits zero if all sums are far from it, or they would look like one flat line.
  bool from_zero() const { return !by_powers() && (low_ <= 0 || low_ < 0.5 * high_); }
  /// Very long sums, where formats stop at very different lengths, get logarithmic axes.
  bool by_powers() const { return trace_.terms >= 1024 && low_ > 0 && high_ > 10 * low_; }

  double low_ = 0, high_ = 1;  ///< of the sums
};

/// The exact spacing: a power of two, written out if short.
std::string spacing_text(double spacing);

}  // namespace tilestep::scenes

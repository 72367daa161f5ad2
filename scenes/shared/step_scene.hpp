#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenes/scene.hpp"

namespace tilestep::scenes {

/// What a scene whose steps are the rows of one table says of itself.
struct StepNames {
  std::string_view lesson;          ///< kLessonId
  std::string noun;                 ///< what a step is called: "round"
  std::string table;                ///< id of the table with a row a step
  std::string source;               ///< asset path of the kernel
  std::vector<std::string> phases;  ///< of a step, in order: each names a mark `// [step: add]`
};

/// The row of the last step that `cursor` has completed as readouts, a column each, said to be traced.
/// Columns that count the steps, those called `names.noun`, are left out.
void draw_row_readouts(const StepNames& names, const lab::Report& report, Cursor cursor);
/// The marked lines of a step's phases.
SourceMark phase_lines(const StepNames& names, Cursor cursor);
/// Throws Error unless the report has the table, with `steps` rows.
void check_steps(const StepNames& names, const lab::Report& report, int steps);

/// A scene whose coarse steps are the rows of one of its report's tables. It wants the picture and the
/// questions; the rest follows from the report.
template <class Trace>
class StepScene : public Scene {
 public:
  /// `steps`: how many a trace has.
  StepScene(StepNames names, Trace (*read)(const nlohmann::json&), int Trace::*steps)
      : names_(std::move(names)), read_(read), steps_(steps) {}

  std::string_view lesson() const override { return names_.lesson; }
  void load(const lab::Report& report) override {
    Trace trace = read_(report.trace);
    check_steps(names_, report, trace.*steps_);
    trace_ = std::move(trace);
    report_ = report;
    lit_step_ = -1;
  }
  StepAxis steps() const override {
    const int phases = static_cast<int>(names_.phases.size());
    return {trace_.*steps_, phases, names_.noun, names_.phases, names_.table};
  }
  void draw_readouts(Cursor cursor) override { draw_row_readouts(names_, report_, cursor); }
  SourceMark source(Cursor cursor) const override { return phase_lines(names_, cursor); }

 protected:
  Trace trace_;
  lab::Report report_;

 private:
  StepNames names_;
  Trace (*read_)(const nlohmann::json&);
  int Trace::*steps_;
};

}  // namespace tilestep::scenes

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenes/shared/scene_of.hpp"

namespace tilestep::scenes {

/// Names in a scene whose steps are the rows of one table.
struct StepNames {
  std::string noun;                 ///< the word for a step: "round"
  std::string table;                ///< id of the table with one row per step
  std::string source;               ///< asset path of the kernel
  std::vector<std::string> phases;  ///< of a step, in order: each names a mark `// [step: add]`
};

/// The row of the last step completed at `cursor` as readouts, one per column, with the source "traced on
/// `device`". The column that counts the steps, called `names.noun`, is omitted.
std::vector<Readout> row_readouts(const StepNames& names, const lab::Table& rows,
                                  std::string_view device, Cursor cursor);
/// The marked lines of a step's phases.
SourceMark phase_lines(const StepNames& names, Cursor cursor);
/// The table of the steps. Throws Error unless the report has it, with `steps` rows.
const lab::Table& step_rows(const StepNames& names, const lab::Report& report, int steps);

/// A scene whose coarse steps are the rows of one of its report's tables. A lesson adds the picture and the
/// questions; the rest follows from the report.
template <class Trace>
class StepScene : public SceneOf<Trace> {
 public:
  /// `steps`: how many a trace has.
  StepScene(StepNames names, int Trace::*steps) : names_(std::move(names)), steps_(steps) {}

  std::vector<Readout> readouts(const View& view) const override {
    return row_readouts(names_, rows_, this->report_.device.name, view.cursor);
  }
  SourceMark source(const View& view) const override { return phase_lines(names_, view.cursor); }

 protected:
  StepAxis loaded(const Trace& before) override {
    const int steps = this->trace_.*steps_;
    try {
      rows_ = step_rows(names_, this->report_, steps);
    } catch (const Error&) {
      this->trace_ = before;  // goes with the steps that stay
      throw;
    }
    const int phases = static_cast<int>(names_.phases.size());
    return {steps, phases, names_.noun, names_.phases, names_.table};
  }

 private:
  StepNames names_;
  int Trace::*steps_;
  lab::Table rows_;
};

}  // namespace tilestep::scenes

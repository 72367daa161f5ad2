#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/report.hpp"
#include "scenes/shared/measured.hpp"
#include "scenes/ui/ui.hpp"

namespace tilestep::scenes {

// What every picture says all the time.
using ui::Align, ui::Font, ui::px, ui::Role;

/// Where the user stands in a trace. `tile` counts completed coarse steps: 0 is before anything is
/// known. `phase` is a finer step inside the coarse step `tile`: 0 … phases − 1; the last phase
/// completes it. At tile 0 the phase is the last one.
struct Cursor {
  int tile = 0;
  int phase = 0;
  bool operator==(const Cursor&) const = default;
};

/// The steps of a loaded trace.
struct StepAxis {
  int tiles = 0;                         ///< coarse steps: the cursor's tile goes from 0 to `tiles`
  int phases = 1;                        ///< fine steps in each coarse step
  std::string noun = "tile";             ///< what a coarse step is called: "tile", "warp", "term"
  std::vector<std::string> phase_names;  ///< `phases` of them
  /// The table whose rows are the coarse steps: those to come are hidden there. Empty: none.
  std::string table = {};
};

/// Lines of kernel source that belong to a step.
struct SourceMark {
  std::string path;             ///< asset path: "kernels/attention/online_softmax/one_pass.cu"
  int current = 0;              ///< 1-based line of the current phase; 0: none
  std::vector<int> step_lines;  ///< the lines of all phases of this coarse step, in order
};

/// A question asked before the next coarse step is shown.
struct Question {
  std::string text;
  std::vector<std::string> choices;  ///< two to four
  int answer = 0;
  std::string because;  ///< shown after the step, one or two sentences with the numbers
};

/// One lesson's picture. Turns a report and a cursor into panels; launches nothing, never blocks.
class Scene {
 public:
  virtual ~Scene() = default;

  virtual std::string_view lesson() const = 0;
  /// Takes a report of this lesson. Throws Error if its trace is not of the lesson's form.
  virtual void load(const lab::Report& report) = 0;
  virtual StepAxis steps() const = 0;

  /// The picture: fills the current ImGui window's content region.
  virtual void draw_picture(Cursor cursor) = 0;
  /// Numbers beside the picture, in the side panel, of the width available.
  virtual void draw_readouts(Cursor cursor) = 0;
  /// What the Measured tab shows of a bench.
  virtual measured::Spec measured_spec() const { return {}; }
  /// The Measured tab: throughput, from `report` (its measurements carry their provenance).
  virtual void draw_measured(const lab::Report& report) {
    measured_.draw(measured_spec(), report, lesson());
  }

  /// Which row of the Data table belongs to the cursor; −1: none. By default the step's.
  virtual int table_row(std::string_view table_id, Cursor cursor) const {
    const StepAxis axis = steps();
    return table_id == axis.table ? std::clamp(cursor.tile, 0, axis.tiles) - 1 : -1;
  }
  /// Called when the user hovers a row under Data (−1: none), so that the picture lights up too. By
  /// default it sets `lit_step_`.
  virtual void hover_row(std::string_view table_id, int row) {
    const StepAxis axis = steps();
    lit_step_ = table_id == axis.table && row < axis.tiles ? row : -1;
  }
  virtual SourceMark source(Cursor cursor) const = 0;
  /// The question before the step after `cursor`; nothing if there is none to ask.
  virtual std::optional<Question> question(Cursor cursor) const = 0;
  /// Knobs that the user changed in the picture itself since the last call; the shell sets them as
  /// if their controls had been used. Values are allowed ones.
  virtual std::optional<lab::Settings> take_request() { return std::nullopt; }

 protected:
  int lit_step_ = -1;  ///< the coarse step whose row is hovered; −1: none

 private:
  measured::Tab measured_;
};

/// All scenes, in teaching order (scenes/catalog.cpp, the one table).
std::vector<std::unique_ptr<Scene>> make_scenes();

}  // namespace tilestep::scenes

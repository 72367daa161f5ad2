#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/report.hpp"
#include "scenes/picture/view.hpp"
#include "scenes/shared/measured_tab.hpp"
#include "scenes/ui/ui.hpp"

namespace tilestep::scenes {

// What every picture says all the time.
using ui::Align, ui::Font, ui::px;

/// One lesson's picture. Turns a report and a cursor into panels; launches nothing, never blocks.
class Scene {
 public:
  virtual ~Scene() = default;

  virtual std::string_view lesson() const = 0;
  /// Takes a report of this lesson. Throws Error if its trace is not of the lesson's form.
  virtual void load(const lab::Report& report) = 0;
  virtual StepAxis steps() const = 0;
  /// The report that is shown; nullptr: none.
  virtual const lab::Report* report() const { return nullptr; }

  /// The picture: fills the current ImGui window's content region.
  virtual void draw_picture(Cursor cursor) = 0;
  /// The picture as it was drawn last, as SVG; empty where a scene has none.
  virtual std::string svg(Cursor) { return {}; }
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
  /// From which cursor on a cell under Data is known; before, it is not on show. By default what the
  /// first column names is known at once, a step's row when the step is through, all else at the end.
  virtual Cursor known(const lab::Table& table, int row, int column) const {
    if (column == 0 || table.id == "ladder") return {};
    const StepAxis axis = steps();
    return {table.id == axis.table ? row + 1 : axis.tiles, axis.phases - 1};
  }
  /// Called when the user hovers a row under Data (−1: none), so that the picture lights up too.
  virtual void hover_row(std::string_view /*table_id*/, int /*row*/) {}
  /// The row under Data that is lit because the pointer is on its thing in the picture; −1: none.
  virtual int lit_row(std::string_view /*table_id*/) const { return -1; }
  virtual SourceMark source(Cursor cursor) const = 0;
  /// The question before the step after `cursor`; nothing if there is none to ask.
  virtual std::optional<Question> question(Cursor cursor) const = 0;
  /// Knobs that the user changed in the picture itself since the last call; the shell sets them as
  /// if their controls had been used. Values are allowed ones.
  virtual std::optional<lab::Settings> take_request() { return std::nullopt; }
  /// Where the user went by a click in the picture since the last call.
  virtual std::optional<Cursor> take_step() { return std::nullopt; }

 protected:
  /// Called when a report was loaded.
  virtual void renewed() {}

 private:
  measured::Tab measured_;
};

/// All scenes, in teaching order (scenes/catalog.cpp, the one table).
std::vector<std::unique_ptr<Scene>> make_scenes();

}  // namespace tilestep::scenes

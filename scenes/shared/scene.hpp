#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/report.hpp"
#include "scenes/picture/look.hpp"
#include "scenes/picture/view.hpp"
#include "scenes/shared/measured.hpp"

namespace tilestep::scenes {

/// One lesson's picture, words and numbers: pure functions of the loaded report and the view.
/// Draws nothing, launches nothing, never blocks. Shows only data known at the view's cursor.
class Scene {
 public:
  virtual ~Scene() = default;

  virtual std::string_view lesson() const = 0;
  /// Another scene of this lesson, without a report.
  virtual std::unique_ptr<Scene> blank() const = 0;
  /// Loads a report of this lesson. Throws Error if its trace does not have the lesson's format.
  virtual void load(const lab::Report& report) = 0;
  /// The report shown; nullptr: none.
  virtual const lab::Report* report() const = 0;
  virtual StepAxis steps() const = 0;
  /// Work done at `cursor`, in a unit that runs with other knobs share (keys, terms); never decreases.
  /// Two runs side by side advance by the fraction of it. By default: steps and their phases.
  virtual double progress(Cursor cursor) const;

  /// Facts known before the first step: domains and counts, rounded.
  virtual picture::Extent extent() const { return {}; }
  virtual picture::Picture picture(const picture::Extent& extent, const View& view) const = 0;
  /// A sentence about a thing of the picture, shown while the pointer is on it; empty: none.
  virtual std::string explain(const View& /*view*/, const picture::Key& /*key*/) const {
    return {};
  }
  /// Words in texts, readouts and the kernel that name things, each in the tone of its thing.
  virtual std::vector<picture::Symbol> symbols(const View& /*view*/) const { return {}; }
  /// Numbers beside the picture.
  virtual std::vector<Readout> readouts(const View& view) const = 0;
  /// What the Measured tab shows for a bench.
  virtual measured::Spec measured_spec() const { return {}; }
  /// The kernel lines that the view is at.
  virtual SourceMark source(const View& view) const = 0;
  /// The question before the view's next step; nothing if there is none.
  virtual std::optional<Question> question(const View& view) const = 0;
  /// Questions asked before the Measured tab shows its views, answered by the rows that it then shows
  /// (`bench`: a bench of this lesson, measured or recorded).
  virtual std::vector<Question> measured_questions(const lab::Report& /*bench*/) const {
    return {};
  }
  /// The events of the trace, in order.
  virtual std::vector<Event> events() const { return {}; }
  /// Ids of the one to three knobs that a presenter needs at hand.
  virtual std::vector<std::string> stage_knobs() const { return {}; }

  /// The row of a table under Data for this view; −1: none. By default the step's row.
  virtual int table_row(std::string_view table_id, const View& view) const;
  /// The cursor from which a cell under Data is known; before that it is hidden. By default the first
  /// column is known from the start, a step's row once the step is complete, everything else at the end.
  virtual Cursor known(const lab::Table& table, int row, int column) const;
  /// The subjects of a row under Data: the number in its first column, and its step.
  virtual std::vector<picture::Subject> subjects_of_row(std::string_view table_id, int row) const;
  /// The subject of a column under Data: the symbol in its head lights up with it; none: no particular one.
  virtual std::optional<picture::Subject> subject_of_column(std::string_view /*table_id*/,
                                                            std::string_view /*column_id*/) const {
    return std::nullopt;
  }
  /// The knobs to change when an item with Act::set is dropped on another thing (clicked: on itself).
  virtual std::optional<lab::Settings> dropped(const View&, const picture::Key& /*item*/,
                                               const picture::Key& /*onto*/) const {
    return std::nullopt;
  }
  /// The target of a click on an item with Act::go, or of a drag with Act::drag that does not move; by default the
  /// step that the item is about.
  virtual std::optional<Cursor> leads_to(const View&, const picture::Key& /*item*/) const {
    return std::nullopt;
  }
  /// The knobs to change when an item with Act::drag is dragged to a value on its axis.
  virtual std::optional<lab::Settings> dragged(const View&, const picture::Key& /*item*/,
                                               double /*value*/) const {
    return std::nullopt;
  }
};

/// Whether the report has this check and it failed.
bool fails(const lab::Report& report, std::string_view check);
/// The numbers beside the picture: the scene's readouts, and at the end the run's failed checks, so that numbers of an
/// incorrect kernel are never shown as if they were right.
std::vector<Readout> readouts_of(const Scene& scene, const View& view);

/// All scenes, in teaching order (scenes/catalog.cpp, the one table).
std::vector<std::unique_ptr<Scene>> make_scenes();

}  // namespace tilestep::scenes

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

/// One lesson's picture, words and numbers: pure functions of the report that is loaded and of the view.
/// Draws nothing, launches nothing, never blocks. Shows only what is known at the view's cursor.
class Scene {
 public:
  virtual ~Scene() = default;

  virtual std::string_view lesson() const = 0;
  /// Another scene of this lesson, without a report.
  virtual std::unique_ptr<Scene> blank() const = 0;
  /// Takes a report of this lesson. Throws Error if its trace is not of the lesson's form.
  virtual void load(const lab::Report& report) = 0;
  /// The report that is shown; nullptr: none.
  virtual const lab::Report* report() const = 0;
  virtual StepAxis steps() const = 0;
  /// How much of its work is done at `cursor`, in a unit that runs with other knobs share (keys, terms);
  /// never falls. Two runs side by side walk by the share of it. By default: steps and their phases.
  virtual double progress(Cursor cursor) const;

  /// What is known before the first step: domains and counts, rounded.
  virtual picture::Extent extent() const { return {}; }
  virtual picture::Picture picture(const picture::Extent& extent, const View& view) const = 0;
  /// A sentence about a thing of the picture, shown while it is pointed at; empty: none.
  virtual std::string explain(const View& /*view*/, const picture::Key& /*key*/) const {
    return {};
  }
  /// Words of the texts, the readouts and the kernel that name things, each in the tone of its thing.
  virtual std::vector<picture::Symbol> symbols(const View& /*view*/) const { return {}; }
  /// Numbers beside the picture.
  virtual std::vector<Readout> readouts(const View& view) const = 0;
  /// What the Measured tab shows of a bench.
  virtual measured::Spec measured_spec() const { return {}; }
  /// The lines of the kernel that the view is at.
  virtual SourceMark source(const View& view) const = 0;
  /// The question before the step after the view's; nothing if there is none to ask.
  virtual std::optional<Question> question(const View& view) const = 0;
  /// What is asked before the Measured tab shows its views, answered from the rows that it then shows
  /// (`bench`: a bench of this lesson, measured or recorded).
  virtual std::vector<Question> measured_questions(const lab::Report& /*bench*/) const {
    return {};
  }
  /// What happens in the trace, in its order.
  virtual std::vector<Event> events() const { return {}; }
  /// Ids of the one to three knobs that a presenter needs at hand.
  virtual std::vector<std::string> stage_knobs() const { return {}; }

  /// Which row of a table under Data belongs to the view; −1: none. By default the step's.
  virtual int table_row(std::string_view table_id, const View& view) const;
  /// From which cursor on a cell under Data is known; before, it is not on show. By default what the
  /// first column names is known at once, a step's row when the step is through, all else at the end.
  virtual Cursor known(const lab::Table& table, int row, int column) const;
  /// What a row under Data is about: the number in its first column, and the step that it is.
  virtual std::vector<picture::Subject> subjects_of_row(std::string_view table_id, int row) const;
  /// What a column under Data is about: the symbol at its head lights up with it; none: of nothing in particular.
  virtual std::optional<picture::Subject> subject_of_column(std::string_view /*table_id*/,
                                                            std::string_view /*column_id*/) const {
    return std::nullopt;
  }
  /// The knobs that change where an item with Act::set is dropped on another thing (clicked: on itself).
  virtual std::optional<lab::Settings> dropped(const View&, const picture::Key& /*item*/,
                                               const picture::Key& /*onto*/) const {
    return std::nullopt;
  }
  /// Where a click on an item with Act::go leads, or on one with Act::drag that does not move; by default to the
  /// step that it is about.
  virtual std::optional<Cursor> leads_to(const View&, const picture::Key& /*item*/) const {
    return std::nullopt;
  }
  /// The knobs that change where an item with Act::drag is dragged to a value on its axis.
  virtual std::optional<lab::Settings> dragged(const View&, const picture::Key& /*item*/,
                                               double /*value*/) const {
    return std::nullopt;
  }
};

/// Whether the report has this check and it failed.
bool fails(const lab::Report& report, std::string_view check);
/// What stands beside the picture: the scene's readouts, and at the end what of the run failed its check, so that no
/// number of a kernel that computes something else stands there as if it were right.
std::vector<Readout> readouts_of(const Scene& scene, const View& view);

/// All scenes, in teaching order (scenes/catalog.cpp, the one table).
std::vector<std::unique_ptr<Scene>> make_scenes();

}  // namespace tilestep::scenes

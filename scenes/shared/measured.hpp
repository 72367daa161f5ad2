#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/base/lab/report.hpp"
#include "scenes/picture/picture.hpp"
#include "scenes/picture/role.hpp"

namespace tilestep::scenes {
using picture::Role;
}

/// The Measured tab as data. A lesson declares views of its bench; `Tab` draws them all alike: the
/// choice of view, filters, where the numbers come from, plots side by side or stacked, what to say
/// where something is missing. In titles, notes and `how`, {id} stands for the cell of that column
/// in the first row that is shown.
namespace tilestep::scenes::measured {

/// The rows that a plot draws: those of one of the bench's tables; or of a measurement, a row a
/// variant, with the columns variant, value, p10, p90, samples and, from `fraction`, fraction.
struct Rows {
  std::string table = {};
  std::string measurement = {};
  std::string fraction = {};         ///< id of the measurement that gives the column fraction
  std::string column = {}, is = {};  ///< only rows that read `is` in `column`
  lab::Table (*prepare)(lab::Table) = nullptr;  ///< adds what the table does not say in columns
};

/// The colour of a rung, scheme or variant; null: by their order in the table.
using Roles = Role (*)(std::string_view name);

/// A labelled line: what the device or the vendor's library does, the peer. Nothing is drawn if it was not
/// measured.
struct Roof {
  std::string measurement = {}, variant = {};
  std::string label = {};
};

// One look everywhere: what a kernel of ours reached is filled or a solid line in its colour, what a
// formula lets expect is dashed, a peer is solid and grey.

/// A bar a row. The row of the roof's own measurement is none, nor is one whose label begins with
/// "cuBLAS": the vendor library is a roof too.
struct Bars {
  std::string id, title = {}, unit = {};  ///< the unit may be a column's: "{unit}"
  Rows rows = {};
  std::string label = "variant";  ///< a column, or words: "{element_bytes|byte}"
  std::string value = "value", low = "p10", high = "p90", fraction = "fraction";
  std::string expected = {};  ///< what a formula lets expect; empty: nothing
  double times = 1;           ///< what the values are multiplied with: 100 shows a share in %
  std::string of = {};        ///< what `fraction` is of: "copy"; a column "" means of the roof
  std::string note = {};      ///< after a bar's value where there is no fraction: "{scales} scales"
  Roof roof = {};
  std::string each = {};  ///< a plot of its own for each value of this column
  Roles role = nullptr;
};

/// A curve a value of the column `series`, or a curve a column, as `curves` says.
struct Lines {
  struct Curve {
    std::string column, label;  ///< its band is in `column`_p10 and `column`_p90
    Role role = Role::sky;
    bool dashed = false;
  };
  std::string id, title = {}, x_label = {}, y_label = {};
  bool x_log = false, y_log = false;
  Rows rows = {};
  std::string x = {};  ///< a row without a number here is left out
  std::string series = {}, y = {}, low = "p10", high = "p90";
  std::vector<Curve> curves = {};
  Roof roof = {};
  std::optional<double> marked_x = {};  ///< where the knobs stand
  Roles role = nullptr;
};

/// A dot a label, the first row that has it; the roofs are measurements in GB/s or TFLOP/s.
struct Roofline {
  struct Roof {
    std::string measurement, label;
    bool datasheet = false;
  };
  std::string id;
  Rows rows = {};
  std::string label = "label", x = "flop_per_byte", y = "tflops";
  std::string provenance = "provenance", detail = "detail";
  std::vector<Roof> roofs = {};
  Roles role = nullptr;
};

/// A picture as the lesson's own is one. Its headline stands as the titles of the other plots do; its
/// keys are none of the lesson's picture, since both are on screen at once.
struct Pictured {
  std::string id;
  float least_height = 150;  ///< design pixels
  Rows rows = {};
  std::function<picture::Picture(const lab::Table& rows)> picture = {};
  /// A sentence about a thing that is pointed at; empty: none.
  std::function<std::string(const lab::Table& rows, const picture::Key& key)> explain = {};
};

using Plot = std::variant<Bars, Lines, Roofline, Pictured>;

/// A choice among the values of a column, for all plots whose rows have it; its first value, if
/// `first` does not name another, is chosen at the start. A control only where there are several.
struct Filter {
  std::string id, column;
  std::string words = "{}";  ///< of a choice: "{} experts"
  std::string first = {};
  std::string label = {};  ///< before the choices
};

/// What a view without counters says.
inline constexpr const char* kNoCounters =
    "Hardware counters need permission; tilestep doctor says how to allow them.";

/// A sentence from the bench; nothing where it is empty.
struct Sentence {
  std::string id;
  std::function<std::string(const lab::Report&)> text = {};
};

struct View {
  std::string name = {};  ///< on its button
  std::string how = {};   ///< after where it was measured; empty: the title of the first table
  std::vector<Filter> filters = {};
  std::vector<Plot> plots = {};
  std::string needs = {};    ///< a table without which there is nothing to show; empty: the tab's
  std::string missing = {};  ///< what to do then; empty: without it the view is left out
  bool computed = false;     ///< numbers that need no GPU: not "measured" but "computed"
  Sentence headline = {};    ///< above the plots
  Sentence footnote = {};    ///< below
};

/// A choice among the columns of the table `counters`, a bar a rung.
View counters_view(Roles role);

struct Spec {
  std::string needs;  ///< the table that every bench of the lesson has
  std::vector<View> views;
};

/// The bench to show: `report` itself if it is one and has the table, else what was recorded on a real GPU;
/// null if neither has it. A run, which has a trace, may have a table of that name too: it counts for what is `computed`
/// alone.
const lab::Report* bench_of(const lab::Report& report, std::string_view lesson,
                            std::string_view table, bool computed = false);
/// What was recorded of the same lesson, to be seen beside a bench that was measured; null where there is
/// nothing, or where the bench is that recording.
const lab::Report* reference_of(const lab::Report& bench);
/// "measured on NVIDIA H200" or "recorded on NVIDIA H200, 2026-01-02".
std::string where_measured(const lab::Report& bench);

}  // namespace tilestep::scenes::measured

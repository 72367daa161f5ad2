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

/// The Measured tab as data. A lesson declares views of its bench; `Tab` draws them all the same way:
/// view selection, filters, the source of the numbers, plots side by side or stacked, messages for
/// missing data. In titles, notes and `how`, {id} stands for the cell of that column in the first row
/// shown.
namespace tilestep::scenes::measured {

/// The rows of a plot: those of one of the bench's tables; or of a measurement, one row per variant,
/// with the columns variant, value, p10, p90, samples and, from `fraction`, fraction.
struct Rows {
  std::string table = {};
  std::string measurement = {};
  std::string fraction = {};         ///< id of the measurement that gives the column fraction
  std::string column = {}, is = {};  ///< only rows that read `is` in `column`
  lab::Table (*prepare)(lab::Table) = nullptr;  ///< adds columns that the table lacks
};

/// The colour of a rung, scheme or variant; null: by their order in the table.
using Roles = Role (*)(std::string_view name);

/// A labelled line: the peer, i.e. the speed of the device or the vendor's library. Not drawn if not
/// measured.
struct Roof {
  std::string measurement = {}, variant = {};
  std::string label = {};
};

// The same look everywhere: results of our kernels are filled or a solid line in their colour,
// predictions of a formula are dashed, a peer is solid and grey.

/// One bar per row, except the row of the roof's own measurement and rows whose label begins with
/// "cuBLAS": the vendor library is a roof too.
struct Bars {
  std::string id, title = {}, unit = {};  ///< the unit may be a column's: "{unit}"
  Rows rows = {};
  std::string label = "variant";  ///< a column, or words: "{element_bytes|byte}"
  std::string value = "value", low = "p10", high = "p90", fraction = "fraction";
  std::string expected = {};  ///< column predicted by a formula; empty: none
  double times = 1;           ///< factor for the values: 100 shows a share in %
  std::string of = {};        ///< the reference of `fraction`: "copy"; a column "" means the roof
  std::string note = {};      ///< after a bar's value if there is no fraction: "{scales} scales"
  Roof roof = {};
  std::string each = {};  ///< a separate plot for each value of this column
  Roles role = nullptr;
};

/// One curve per value of the column `series`, or one per column, as listed in `curves`.
struct Lines {
  struct Curve {
    std::string column, label;  ///< its band is in `column`_p10 and `column`_p90
    Role role = Role::sky;
    bool dashed = false;
  };
  std::string id, title = {}, x_label = {}, y_label = {};
  bool x_log = false, y_log = false;
  Rows rows = {};
  std::string x = {};  ///< rows without a number here are omitted
  std::string series = {}, y = {}, low = "p10", high = "p90";
  std::vector<Curve> curves = {};
  Roof roof = {};
  std::optional<double> marked_x = {};  ///< the current knob value
  Roles role = nullptr;
};

/// One dot per label, from the first row that has it; the roofs are measurements in GB/s or TFLOP/s.
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

/// A picture like the lesson's own. Its headline is placed like the titles of other plots; its keys
/// must differ from the lesson picture's, since both are on screen at the same time.
struct Pictured {
  std::string id;
  float least_height = 150;  ///< design pixels
  Rows rows = {};
  std::function<picture::Picture(const lab::Table& rows)> picture = {};
  /// A sentence about the thing under the pointer; empty: none.
  std::function<std::string(const lab::Table& rows, const picture::Key& key)> explain = {};
};

using Plot = std::variant<Bars, Lines, Roofline, Pictured>;

/// A choice among the values of a column, for all plots whose rows have it; initially its first value,
/// unless `first` names another. It has a control only if there are several values.
struct Filter {
  std::string id, column;
  std::string words = "{}";  ///< of a choice: "{} experts"
  std::string first = {};
  std::string label = {};  ///< before the choices
};

/// The message of a view without counters.
inline constexpr const char* kNoCounters =
    "Hardware counters need permission; tilestep doctor says how to allow them.";

/// A sentence from the bench; not shown if empty.
struct Sentence {
  std::string id;
  std::function<std::string(const lab::Report&)> text = {};
};

struct View {
  std::string name = {};  ///< on its button
  std::string how = {};   ///< text after the measuring device; empty: the title of the first table
  std::vector<Filter> filters = {};
  std::vector<Plot> plots = {};
  std::string needs = {};    ///< the table it requires; empty: the tab's
  std::string missing = {};  ///< advice if that is missing; empty: the view is omitted
  bool computed = false;     ///< numbers that need no GPU: not "measured" but "computed"
  Sentence headline = {};    ///< above the plots
  Sentence footnote = {};    ///< below
};

/// A choice among the columns of the table `counters`, one bar per rung.
View counters_view(Roles role);

struct Spec {
  std::string needs;  ///< the table that every bench of the lesson has
  std::vector<View> views;
};

/// The bench to show: `report` itself if it is one and has the table, otherwise the recording from a real
/// GPU; null if neither has it. A run, which has a trace, may have a table of that name too: it is used only for
/// `computed` numbers.
const lab::Report* bench_of(const lab::Report& report, std::string_view lesson,
                            std::string_view table, bool computed = false);
/// The recording of the same lesson, to show beside a measured bench; null if there is none, or if the
/// bench is that recording.
const lab::Report* reference_of(const lab::Report& bench);
/// "measured on NVIDIA H200" or "recorded on NVIDIA H200, 2026-01-02".
std::string where_measured(const lab::Report& bench);

}  // namespace tilestep::scenes::measured

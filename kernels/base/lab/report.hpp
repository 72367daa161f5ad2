#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/base/lab/edit.hpp"
#include "kernels/base/lab/json_value.hpp"
#include "kernels/base/lab/knob.hpp"
#include "kernels/base/lab/names.hpp"
#include "kernels/base/lab/turn.hpp"
#include "kernels/base/simt/device.hpp"

namespace tilestep::lab {

class Place;
template <class T>
class Fields;

/// A cell: number (may be inf or NaN), text, or nothing. Made of any number, text or named enum.
struct Cell : std::variant<std::monostate, double, std::string> {
  Cell() = default;
  template <class Number>
  requires(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>) Cell(Number number)
      : variant(static_cast<double>(number)) {}
  Cell(std::string text) : variant(std::move(text)) {}
  Cell(std::string_view text) : variant(std::string(text)) {}
  Cell(const char* text) : variant(std::string(text)) {}
  template <Named Enum>
  Cell(Enum value) : Cell(name_of(value)) {}
  template <class Value>
  Cell(const std::optional<Value>& value) : Cell(value ? Cell(*value) : Cell()) {}
};

/// A column of a table. Without decimals it is as usual for its id: rates and times have the unit and
/// decimals of their kind, others neither.
struct Column {
  std::string id;
  std::string label;
  std::string unit;   ///< empty if none
  int decimals = -1;  ///< digits after the point of a number shown; -1: as many as it needs

  Column() = default;
  Column(const char* its_id) : Column(its_id, its_id) {}
  Column(std::string_view id, std::string_view label, std::string_view unit = {});
  Column(std::string_view id, std::string_view label, std::string_view unit, int decimals);
};
/// A column as usual for its id.
inline Column column(std::string_view id, std::string_view label) {
  return {id, label};
}
/// A column of whole numbers. An empty label is the id, here and below.
Column whole(std::string_view id, std::string_view label = {}, std::string_view unit = {});
/// A column of numbers with so many decimals.
Column real(std::string_view id, std::string_view label, std::string_view unit, int decimals);

/// A table as the window shows it under Data and the command line prints it. Numbers are rounded to
/// the column's decimals when they are shown and in JSON; the full values are in the trace.
struct Table {
  std::string id;
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows = {};

  /// Adds a row of one cell a column: `table.add({request.block, request.kind, 0.5});`.
  void add(std::vector<Cell> row);
  /// The cell as shown: "0.135", "inf", "" for nothing.
  std::string text(std::size_t row, std::size_t column) const;
  std::string to_csv() const;
  std::string to_markdown() const;
};

/// Where a number comes from.
enum class Provenance {
  measured,  ///< timed on the device named, in this run
  counted,   ///< a hardware counter
  traced,    ///< recorded by the kernel itself
  derived,   ///< a formula, shown
  recorded,  ///< measured earlier, on a named GPU on a named day
};
constexpr auto names_of(Provenance) {
  return std::to_array<std::string_view>({"measured", "counted", "traced", "derived", "recorded"});
}
/// Throws Error naming the five words.
Provenance provenance_from(std::string_view text);

struct Measurement {
  std::string id;       ///< what was measured: "softmax_bandwidth"
  std::string variant;  ///< the kernel variant: "online-one-read"; empty if none
  Provenance provenance = Provenance::derived;
  double value = 0;
  std::string unit;           ///< "GB/s", "ms", "reads/element"; "" for a plain number
  std::optional<double> p10;  ///< timed numbers: the 10th and 90th percentile
  std::optional<double> p90;
  int samples = 0;          ///< 0: not a timed number
  std::string detail;       ///< shape, formula, or what else explains the number
  std::string device;       ///< where it was measured or counted; empty: the report's device
  std::string recorded_at;  ///< ISO date of a recorded number; empty otherwise

  /// A spread (p90 − p10)/median over 10 % withholds the headline number.
  bool stable() const;
};

/// The table `readouts`: what a run says, and how it came by it.
Table readout_table(const std::vector<Measurement>& measurements, int decimals);

/// A comparison with the reference. See check.hpp for ways to make one.
struct Check {
  std::string id;
  bool ok = false;
  double max_error = 0;
  double tolerance = 0;
  std::string detail;  ///< where the tolerance comes from, in one sentence
};

/// The answer of a lesson to a request: plain data, to and from JSON.
struct Report {
  std::string lesson;
  Settings params;
  std::string summary;  ///< one sentence in plain words
  simt::DeviceInfo device;
  std::string recorded_at;  ///< ISO date if this report is a recording, else empty
  /// Why the kernels ran under emulation beside a CUDA module that cannot be used; else empty.
  std::string cuda_refused;
  /// The kernel that was run, where a user changed it; nothing: the one that was built in.
  std::optional<EditedKernel> kernel;
  std::optional<TurnTimes> turn;  ///< when it had the GPU to itself; nothing: nothing was timed
  std::vector<Table> tables;
  std::vector<Measurement> measurements;
  std::vector<Check> checks;
  JsonValue trace;  ///< the lesson's own; its `from_json` is in the lesson's header
  /// What was run on purpose has cost this process its device: no later run of it can use that. Not written
  /// to JSON.
  bool device_lost = false;

  void add(Table table) { tables.push_back(std::move(table)); }
  void add(Measurement measurement) { measurements.push_back(std::move(measurement)); }
  void add(Check check) { checks.push_back(std::move(check)); }

  bool ok() const;
  const Table* table(std::string_view id) const;
  const Measurement* measurement(std::string_view id, std::string_view variant = {}) const;
};

nlohmann::json to_json(const KnobValue& value);
nlohmann::json to_json(const Settings& settings);
nlohmann::json to_json(const Knob& knob);
nlohmann::json to_json(const Report& report);
const Fields<Report>& report_fields();
/// Throws Error saying which member is missing or wrong.
Settings settings_from_json(const Place& place);
Report report_from_json(const nlohmann::json& json);

/// "Measured on NVIDIA H200, 30 samples.", and so on for each provenance.
std::string provenance_sentence(const Measurement& measurement, const Report& report);

}  // namespace tilestep::lab

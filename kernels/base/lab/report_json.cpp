#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/base/lab/fields.hpp"
#include "kernels/base/lab/number.hpp"
#include "kernels/base/lab/report.hpp"

namespace tilestep::lab {
namespace {

using nlohmann::json;

constexpr int kMostDecimals = 17;

/// JSON holds the number that the window shows: the cell rounded to its column's decimals.
json cell_to_json(const Table& table, std::size_t row, std::size_t column) {
  const Cell& cell = table.rows.at(row).at(column);
  if (const auto* number = std::get_if<double>(&cell)) {
    const int decimals = table.columns.at(column).decimals;
    if (decimals < 0 || !std::isfinite(*number)) return number_to_json(*number);
    return number_of<double>(table.text(row, column)).value();
  }
  if (const auto* words = std::get_if<std::string>(&cell)) return *words;
  return nullptr;
}

json rows_to_json(const Table& table) {
  json rows = json::array();
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    json row = json::array();
    for (std::size_t c = 0; c < table.columns.size(); ++c) row.push_back(cell_to_json(table, r, c));
    rows.push_back(std::move(row));
  }
  return rows;
}

Cell cell_from(const Place& at) {
  const json& cell = at.json();
  if (cell.is_null()) return {};
  if (cell.is_number() || cell == "inf" || cell == "-inf" || cell == "nan") {
    return at.real<double>();
  }
  if (!cell.is_string()) at.refuse("a number, a text or null");
  return at.text();
}

void read_rows(const Place& rows, Table& table) {
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Place row = rows.at(r);
    row.require_size(table.columns.size());
    std::vector<Cell>& cells = table.rows.emplace_back();
    for (std::size_t c = 0; c < row.size(); ++c) cells.push_back(cell_from(row.at(c)));
  }
}

Fields<Table> table_fields() {
  const auto columns = Fields<Column>()
                           .text(TILESTEP_MEMBERS(Column, id, label))
                           .text("unit", &Column::unit)
                           .null_for("")
                           .whole("decimals", &Column::decimals, -1, kMostDecimals)
                           .null_for(-1);
  return Fields<Table>()
      .text(TILESTEP_MEMBERS(Table, id, title))
      .list("columns", &Table::columns, columns)
      .custom("rows", rows_to_json, read_rows);
}

Fields<Measurement> measurement_fields() {
  return Fields<Measurement>()
      .text("id", &Measurement::id)
      .text("variant", &Measurement::variant)
      .optional()
      .name("provenance", &Measurement::provenance)
      .real("value", &Measurement::value)
      .text("unit", &Measurement::unit)
      .optional()
      .real("p10", &Measurement::p10)
      .optional()
      .real("p90", &Measurement::p90)
      .optional()
      .whole("samples", &Measurement::samples, 0)
      .optional()
      .text("detail", &Measurement::detail)
      .optional()
      .text("device", &Measurement::device)
      .null_for("")
      .text("recorded_at", &Measurement::recorded_at)
      .null_for("");
}

Fields<simt::DeviceInfo> device_fields() {
  using simt::DeviceInfo;
  return Fields<DeviceInfo>()
      .text(TILESTEP_MEMBERS(DeviceInfo, backend, name))
      .text("driver", &DeviceInfo::driver)
      .optional()
      .text("toolkit", &DeviceInfo::toolkit)
      .optional()
      .whole("compute_capability", &DeviceInfo::compute_capability, 0)
      .optional()
      .whole("multiprocessors", &DeviceInfo::multiprocessors, 0)
      .optional()
      .whole("memory_bytes", &DeviceInfo::memory_bytes, 0)
      .optional()
      .whole("l2_bytes", &DeviceInfo::l2_bytes, 0)
      .optional()
      .whole("shared_bytes_per_block", &DeviceInfo::shared_bytes_per_block, 0)
      .optional();
}

const Fields<TurnTimes>& turn_fields() {
  static const auto kFields = Fields<TurnTimes>()
                                  .real(TILESTEP_MEMBERS(TurnTimes, asked_ms, from_ms, to_ms))
                                  .text("refused", &TurnTimes::refused)
                                  .null_for("");
  return kFields;
}
json turn_to_json(const Report& report) {
  return report.turn ? turn_fields().to_json(*report.turn) : json();
}
void read_turn(const Place& at, Report& report) {
  turn_fields().read(at, report.turn.emplace());
}

json kernel_to_json(const Report& report) {
  return report.kernel ? edited_kernel_fields().to_json(*report.kernel) : json();
}
void read_kernel(const Place& at, Report& report) {
  edited_kernel_fields().read(at, report.kernel.emplace());
}

Fields<Check> check_fields() {
  return Fields<Check>()
      .text("id", &Check::id)
      .flag("ok", &Check::ok)
      .real(TILESTEP_MEMBERS(Check, max_error, tolerance))
      .text("detail", &Check::detail)
      .optional();
}

}  // namespace

const Fields<Report>& report_fields() {
  static const auto kFields =
      Fields<Report>()
          .text("lesson", &Report::lesson)
          .custom(
              "params", [](const Report& report) { return to_json(report.params); },
              [](const Place& at, Report& report) { report.params = settings_from_json(at); })
          .text("summary", &Report::summary)
          .group("device", Fields<Report>()
                               .inlined(&Report::device, device_fields())
                               .text("recorded_at", &Report::recorded_at)
                               .null_for("")
                               .text("cuda_refused", &Report::cuda_refused)
                               .null_for(""))
          .custom("turn", turn_to_json, read_turn)
          .optional()
          .custom("kernel", kernel_to_json, read_kernel)
          .left_out_for(nullptr)
          .list("tables", &Report::tables, table_fields())
          .optional()
          .list("measurements", &Report::measurements, measurement_fields())
          .optional()
          .list("checks", &Report::checks, check_fields())
          .optional()
          .custom(
              "trace", [](const Report& report) { return report.trace; },
              [](const Place& at, Report& report) { report.trace = at.json(); })
          .optional();
  return kFields;
}

json to_json(const KnobValue& value) {
  return std::visit([](const auto& v) { return json(v); }, value);
}

json to_json(const Settings& settings) {
  json to = json::object();
  for (const auto& [id, value] : settings) to[id] = to_json(value);
  return to;
}

json to_json(const Knob& knob) {
  static constexpr const char* kKinds[] = {"integer", "real", "toggle", "choice", "text"};
  json to = {{"id", knob.id},
             {"label", knob.label},
             {"unit", knob.unit.empty() ? json(nullptr) : json(knob.unit)},
             {"help", knob.help},
             {"kind", kKinds[static_cast<int>(knob.kind)]},
             {"default", to_json(knob.initial)},
             {"allowed", knob.allowed()},
             {"group", knob.group}};
  if (!knob.works_with.empty()) {
    json& with = to["works_with"] = json::array();
    for (const auto& [id, values] : knob.works_with)
      with.push_back({{"knob", id}, {"values", values}});
  }
  if (knob.kind == KnobKind::integer) {
    to["min"] = static_cast<std::int64_t>(knob.min);
    to["max"] = static_cast<std::int64_t>(knob.max);
  } else if (knob.kind == KnobKind::real) {
    to["min"] = knob.min;
    to["max"] = knob.max;
    if (!knob.zero_word.empty()) to["zero"] = knob.zero_word;
  } else if (knob.kind == KnobKind::choice) {
    to["choices"] = knob.choices;
  }
  return to;
}

Settings settings_from_json(const Place& from) {
  if (!from.json().is_object()) from.refuse("a JSON object of knob ids and values");
  Settings settings;
  for (const auto& [id, value] : from.json().items()) {
    const Place at = from.at(id);
    if (value.is_boolean()) {
      settings[id] = at.flag();
    } else if (value.is_number_integer()) {
      settings[id] = at.whole<std::int64_t>();
    } else if (value.is_number()) {
      settings[id] = at.real<double>();
    } else if (value.is_string()) {
      settings[id] = at.text();
    } else {
      at.refuse("a number, a text, true or false");
    }
  }
  return settings;
}

json to_json(const Report& report) {
  return report_fields().to_json(report);
}

Report report_from_json(const json& from) {
  return report_fields().from_json(from, "report");
}

}  // namespace tilestep::lab

#include <cmath>
#include <limits>

#include "kernels/base/lab/json.hpp"
#include "kernels/base/lab/number.hpp"
#include "kernels/base/lab/report.hpp"

namespace tilestep::lab {
namespace {

using nlohmann::json;

/// What the window shows is what JSON carries: the cell rounded to its column's decimals.
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

json table_to_json(const Table& table) {
  json columns = json::array();
  for (const Column& column : table.columns) {
    columns.push_back({{"id", column.id},
                       {"label", column.label},
                       {"unit", column.unit.empty() ? json(nullptr) : json(column.unit)},
                       {"decimals", column.decimals < 0 ? json(nullptr) : json(column.decimals)}});
  }
  json rows = json::array();
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    json row = json::array();
    for (std::size_t c = 0; c < table.columns.size(); ++c) row.push_back(cell_to_json(table, r, c));
    rows.push_back(std::move(row));
  }
  return {{"id", table.id},
          {"title", table.title},
          {"columns", std::move(columns)},
          {"rows", std::move(rows)}};
}

Table table_from_json(const json& from) {
  Table table;
  table.id = member<std::string>(from, "id", "table");
  table.title = member<std::string>(from, "title", "table");
  for (const json& column : array_of(from, "columns", "table")) {
    table.columns.push_back({member<std::string>(column, "id", "column"),
                             member<std::string>(column, "label", "column"),
                             member_or<std::string>(column, "unit", "column", ""),
                             member_or<int>(column, "decimals", "column", -1)});
  }
  for (const json& row : array_of(from, "rows", "table")) {
    if (!row.is_array() || row.size() != table.columns.size()) {
      throw Error(
          fmt::format("table '{}': a row must have {} cells", table.id, table.columns.size()));
    }
    std::vector<Cell> cells;
    for (const json& cell : row) {
      if (cell.is_null()) {
        cells.emplace_back();
      } else if (cell.is_number()) {
        cells.emplace_back(cell.get<double>());
      } else if (cell == "inf" || cell == "-inf" || cell == "nan") {
        cells.emplace_back(number_from_json(cell));
      } else if (cell.is_string()) {
        cells.emplace_back(cell.get<std::string>());
      } else {
        throw Error(fmt::format("table '{}': a cell must be a number, a text or null", table.id));
      }
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

json measurement_to_json(const Measurement& m) {
  return {{"id", m.id},
          {"variant", m.variant},
          {"provenance", to_text(m.provenance)},
          {"value", number_to_json(m.value)},
          {"unit", m.unit},
          {"p10", m.p10 ? number_to_json(*m.p10) : json(nullptr)},
          {"p90", m.p90 ? number_to_json(*m.p90) : json(nullptr)},
          {"samples", m.samples},
          {"detail", m.detail},
          {"device", m.device.empty() ? json(nullptr) : json(m.device)},
          {"recorded_at", m.recorded_at.empty() ? json(nullptr) : json(m.recorded_at)}};
}

std::optional<double> optional_number(const json& from, std::string_view name) {
  const auto found = from.find(name);
  if (found == from.end() || found->is_null()) return std::nullopt;
  return number_from_json(*found);
}

Measurement measurement_from_json(const json& from) {
  Measurement m;
  m.id = member<std::string>(from, "id", "measurement");
  m.variant = member_or<std::string>(from, "variant", "measurement", "");
  m.provenance = provenance_from(member<std::string>(from, "provenance", "measurement"));
  m.value = number_from_json(member<json>(from, "value", "measurement"));
  m.unit = member_or<std::string>(from, "unit", "measurement", "");
  m.p10 = optional_number(from, "p10");
  m.p90 = optional_number(from, "p90");
  m.samples = member_or<int>(from, "samples", "measurement", 0);
  m.detail = member_or<std::string>(from, "detail", "measurement", "");
  m.device = member_or<std::string>(from, "device", "measurement", "");
  m.recorded_at = member_or<std::string>(from, "recorded_at", "measurement", "");
  return m;
}

json device_to_json(const simt::DeviceInfo& device, const std::string& recorded_at) {
  return {{"backend", device.backend},
          {"name", device.name},
          {"recorded_at", recorded_at.empty() ? json(nullptr) : json(recorded_at)},
          {"driver", device.driver},
          {"toolkit", device.toolkit},
          {"compute_capability", device.compute_capability},
          {"multiprocessors", device.multiprocessors},
          {"memory_bytes", device.memory_bytes},
          {"l2_bytes", device.l2_bytes},
          {"shared_bytes_per_block", device.shared_bytes_per_block}};
}

simt::DeviceInfo device_from_json(const json& from) {
  simt::DeviceInfo device;
  device.backend = member<std::string>(from, "backend", "device");
  device.name = member<std::string>(from, "name", "device");
  device.driver = member_or<std::string>(from, "driver", "device", "");
  device.toolkit = member_or<std::string>(from, "toolkit", "device", "");
  device.compute_capability = member_or<int>(from, "compute_capability", "device", 0);
  device.multiprocessors = member_or<int>(from, "multiprocessors", "device", 0);
  device.memory_bytes = member_or<std::size_t>(from, "memory_bytes", "device", 0);
  device.l2_bytes = member_or<std::size_t>(from, "l2_bytes", "device", 0);
  device.shared_bytes_per_block =
      member_or<std::size_t>(from, "shared_bytes_per_block", "device", 0);
  return device;
}

}  // namespace

json number_to_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double number_from_json(const json& from) {
  if (from.is_number()) return from.get<double>();
  if (from == "inf") return std::numeric_limits<double>::infinity();
  if (from == "-inf") return -std::numeric_limits<double>::infinity();
  if (from == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw Error(fmt::format("expected a number, \"inf\", \"-inf\" or \"nan\", not {}", from.dump()));
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
             {"allowed", knob.allowed()}};
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

Settings settings_from_json(const json& from) {
  if (!from.is_object()) throw Error("params: expected a JSON object of knob ids and values");
  Settings settings;
  for (const auto& [id, value] : from.items()) {
    if (value.is_boolean()) {
      settings[id] = value.get<bool>();
    } else if (value.is_number_integer()) {
      settings[id] = value.get<std::int64_t>();
    } else if (value.is_number()) {
      settings[id] = value.get<double>();
    } else if (value.is_string()) {
      settings[id] = value.get<std::string>();
    } else {
      throw Error(fmt::format("params: '{}' must be a number, a text, true or false", id));
    }
  }
  return settings;
}

json to_json(const Report& report) {
  json to = {
      {"lesson", report.lesson},   {"params", to_json(report.params)},
      {"summary", report.summary}, {"device", device_to_json(report.device, report.recorded_at)},
      {"tables", json::array()},   {"measurements", json::array()},
      {"checks", json::array()},   {"trace", report.trace}};
  for (const Table& table : report.tables) to["tables"].push_back(table_to_json(table));
  for (const Measurement& m : report.measurements) {
    to["measurements"].push_back(measurement_to_json(m));
  }
  for (const Check& check : report.checks) {
    to["checks"].push_back({{"id", check.id},
                            {"ok", check.ok},
                            {"max_error", number_to_json(check.max_error)},
                            {"tolerance", number_to_json(check.tolerance)},
                            {"detail", check.detail}});
  }
  return to;
}

Report report_from_json(const json& from) {
  Report report;
  report.lesson = member<std::string>(from, "lesson", "report");
  report.params = settings_from_json(member<json>(from, "params", "report"));
  report.summary = member<std::string>(from, "summary", "report");
  const json device = member<json>(from, "device", "report");
  report.device = device_from_json(device);
  report.recorded_at = member_or<std::string>(device, "recorded_at", "device", "");
  for (const json& table : array_of(from, "tables", "report")) {
    report.tables.push_back(table_from_json(table));
  }
  for (const json& m : array_of(from, "measurements", "report")) {
    report.measurements.push_back(measurement_from_json(m));
  }
  for (const json& check : array_of(from, "checks", "report")) {
    report.checks.push_back({member<std::string>(check, "id", "check"),
                             member<bool>(check, "ok", "check"),
                             number_from_json(member<json>(check, "max_error", "check")),
                             number_from_json(member<json>(check, "tolerance", "check")),
                             member_or<std::string>(check, "detail", "check", "")});
  }
  if (const auto trace = from.find("trace"); trace != from.end()) report.trace = *trace;
  return report;
}

}  // namespace tilestep::lab

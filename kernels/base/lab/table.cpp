#include <fmt/format.h>

#include <cassert>
#include <cmath>

#include "kernels/base/lab/report.hpp"

namespace tilestep::lab {
namespace {

std::string number_text(double value, int decimals) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text;
  if (decimals >= 0 && std::abs(value) < 1e15) {
    text = fmt::format("{:.{}f}", value, decimals);
    // "-0.000" means no more than "0.000".
    if (text.front() == '-' && text.find_first_of("123456789") == std::string::npos) {
      text.erase(0, 1);
    }
  } else if (value == std::floor(value) && std::abs(value) < 1e15) {
    text = fmt::format("{:.0f}", value);
  } else {
    text = fmt::format("{:.6g}", value);
  }
  return text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string markdown_field(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

std::string heading(const Column& column) {
  return column.unit.empty() ? column.label : column.label + " (" + column.unit + ")";
}

bool is_numeric(const Table& table, std::size_t column) {
  for (const auto& row : table.rows) {
    if (std::holds_alternative<std::string>(row.at(column))) return false;
  }
  return true;
}

}  // namespace

Column::Column(std::string_view its_id, std::string_view its_label, std::string_view its_unit,
               int its_decimals)
    : id(its_id), label(its_label), unit(its_unit), decimals(its_decimals) {}

Column::Column(std::string_view its_id, std::string_view its_label, std::string_view its_unit)
    : Column(its_id, its_label, its_unit, -1) {
  struct Usual {
    std::string_view id, unit;
    int decimals;
  };
  static constexpr Usual kUsual[] = {{"time", "ms", 3},   {"bandwidth", "GB/s", 0},
                                     {"p10", "GB/s", 0},  {"p90", "GB/s", 0},
                                     {"fraction", "", 3}, {"tflops", "TFLOP/s", 2}};
  for (const Usual& usual : kUsual) {
    if (usual.id != id) continue;
    if (unit.empty()) unit = usual.unit;
    decimals = usual.decimals;
  }
}

Column whole(std::string_view id, std::string_view label, std::string_view unit) {
  return real(id, label, unit, 0);
}

Column real(std::string_view id, std::string_view label, std::string_view unit, int decimals) {
  return {id, label.empty() ? id : label, unit, decimals};
}

void Table::add(std::vector<Cell> row) {
  assert(row.size() == columns.size() && "a row has one cell per column");
  rows.push_back(std::move(row));
}

std::string Table::text(std::size_t row, std::size_t column) const {
  const Cell& cell = rows.at(row).at(column);
  if (const auto* number = std::get_if<double>(&cell)) {
    return number_text(*number, columns.at(column).decimals);
  }
  if (const auto* words = std::get_if<std::string>(&cell)) return *words;
  return "";
}

std::string Table::to_csv() const {
  std::string csv;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    csv += (c > 0 ? "," : "") + csv_field(columns[c].id);
  }
  csv += '\n';
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      csv += (c > 0 ? "," : "") + csv_field(text(r, c));
    }
    csv += '\n';
  }
  return csv;
}

std::string Table::to_markdown() const {
  std::string head = "|";
  std::string rule = "|";
  for (std::size_t c = 0; c < columns.size(); ++c) {
    head += " " + markdown_field(heading(columns[c])) + " |";
    rule += is_numeric(*this, c) ? "---:|" : "---|";
  }
  std::string markdown = head + "\n" + rule + "\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    markdown += "|";
    for (std::size_t c = 0; c < columns.size(); ++c) {
      markdown += " " + markdown_field(text(r, c)) + " |";
    }
    markdown += "\n";
  }
  return markdown;
}

}  // namespace tilestep::lab

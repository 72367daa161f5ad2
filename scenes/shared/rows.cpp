#include "scenes/shared/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/shared/words.hpp"

namespace tilestep::scenes {
namespace {

std::optional<std::size_t> place_of(const lab::Table& table, std::string_view id) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].id == id) return c;
  }
  return std::nullopt;
}

}  // namespace

bool has_column(const lab::Table& table, std::string_view id) {
  return place_of(table, id).has_value();
}

std::string text_in(const lab::Table& table, std::size_t row, std::string_view id) {
  const auto place = place_of(table, id);
  return place && row < table.rows.size() ? table.text(row, *place) : std::string();
}

std::optional<double> number_in(const lab::Table& table, std::size_t row, std::string_view id) {
  const auto place = place_of(table, id);
  if (!place || row >= table.rows.size()) return std::nullopt;
  const auto* value = std::get_if<double>(&table.rows[row].at(*place));
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::size_t> row_with(const lab::Table& table, CellTexts cells) {
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const bool fits = std::all_of(cells.begin(), cells.end(), [&](const auto& cell) {
      return text_in(table, row, cell.first) == cell.second;
    });
    if (fits) return row;
  }
  return std::nullopt;
}

std::optional<double> number_with(const lab::Report& report, std::string_view table,
                                  CellTexts cells, std::string_view column) {
  const lab::Table* found = report.table(table);
  const auto row = found == nullptr ? std::nullopt : row_with(*found, cells);
  return row ? number_in(*found, *row, column) : std::nullopt;
}

std::vector<std::string> distinct(const lab::Table& table, std::string_view id) {
  std::vector<std::string> texts;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    std::string text = text_in(table, row, id);
    if (text.empty() || std::find(texts.begin(), texts.end(), text) != texts.end()) continue;
    texts.push_back(std::move(text));
  }
  return texts;
}

lab::Table rows_where(const lab::Table& table, std::string_view id, std::string_view text) {
  if (!has_column(table, id)) return table;
  lab::Table kept{table.id, table.title, table.columns, {}};
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::string here = text_in(table, row, id);
    if (here.empty() || here == text) kept.rows.push_back(table.rows[row]);
  }
  return kept;
}

void add_column(lab::Table& table, std::string id,
                const std::function<lab::Cell(std::size_t row)>& cell) {
  std::vector<lab::Cell> cells;
  for (std::size_t row = 0; row < table.rows.size(); ++row) cells.push_back(cell(row));
  table.columns.push_back({id, id, "", -1});
  for (std::size_t row = 0; row < cells.size(); ++row) {
    table.rows[row].push_back(std::move(cells[row]));
  }
}

lab::Table with_kib(lab::Table table) {
  add_column(table, "kib", [&](std::size_t row) -> lab::Cell {
    const auto bytes = number_in(table, row, "shared");
    return bytes ? lab::Cell(fmt::format("{:.0f}", *bytes / 1024)) : lab::Cell();
  });
  return table;
}

std::string filled_in(std::string_view text, const lab::Table& table, std::size_t row) {
  std::string filled;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    const std::size_t close = text.find('}', open);
    filled += text.substr(0, open);
    if (close == std::string_view::npos) break;
    const std::string_view inside = text.substr(open + 1, close - open - 1);
    const std::size_t bar = inside.find('|');
    const auto count = number_in(table, row, inside.substr(0, bar));
    const bool counted = bar != std::string_view::npos && count;
    filled += counted ? words::counted(std::llround(*count), inside.substr(bar + 1))
                      : text_in(table, row, inside.substr(0, bar));
    text.remove_prefix(close + 1);
  }
  return filled;
}

}  // namespace tilestep::scenes

#include "app/keep/saves.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace tilestep::app {
namespace {

/// What a cell says, without what would end it.
std::string tsv_field(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  return text;
}

std::string tsv(const lab::Table& table) {
  std::string text;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const lab::Column& column = table.columns[c];
    const std::string unit = column.unit.empty() ? "" : " (" + column.unit + ")";
    text += (c > 0 ? "\t" : "") + tsv_field(column.label + unit);
  }
  text += '\n';
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      text += (c > 0 ? "\t" : "") + tsv_field(table.text(r, c));
    }
    text += '\n';
  }
  return text;
}

}  // namespace

std::string table_text(const lab::Table& table, const HiddenCell& hidden, TableForm form) {
  lab::Table shown = table;
  for (int row = 0; hidden && row < std::ssize(shown.rows); ++row) {
    std::vector<lab::Cell>& cells = shown.rows[static_cast<std::size_t>(row)];
    for (int column = 0; column < std::ssize(cells); ++column) {
      if (hidden(row, column)) cells[static_cast<std::size_t>(column)] = {};
    }
  }
  switch (form) {
    case TableForm::csv:
      return shown.to_csv();
    case TableForm::tsv:
      return tsv(shown);
    case TableForm::json:
      break;
  }
  lab::Report alone;  // a table is written as it stands in a report
  alone.add(std::move(shown));
  return lab::to_json(alone).at("tables").at(0).dump(1) + "\n";
}

}  // namespace tilestep::app

#include "app/shell/difference.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tilestep::app {
namespace {

/// Tables of what was measured, counted or recorded: not of the trace.
bool is_of_trace(const lab::Table& table) {
  return table.id != "ladder" && table.id != "readouts";
}

std::string shown(const lab::Table& table, std::size_t row, std::size_t column) {
  std::string text = table.text(row, column);
  return text.empty() ? "nothing" : text;
}

std::string what_differs(const lab::Table& mine, const lab::Table& theirs, std::size_t row,
                         std::size_t column) {
  const std::string name = mine.columns[column].label;
  if (row >= theirs.rows.size()) {
    return fmt::format("{} has {} rows, and had {}", mine.title, mine.rows.size(),
                       theirs.rows.size());
  }
  return fmt::format("{} is {}, and was {}", name, shown(mine, row, column),
                     shown(theirs, row, column));
}

/// Cells of a row that both have in the same place.
bool same_cell(const lab::Table& mine, const lab::Table& theirs, std::size_t row,
               std::size_t column) {
  return row < theirs.rows.size() && mine.text(row, column) == theirs.text(row, column);
}

}  // namespace

std::optional<FirstDifference> first_difference(const scenes::Scene& run,
                                                const lab::Report& other) {
  std::optional<FirstDifference> first;
  const lab::Report* report = run.report();
  if (report == nullptr) return first;
  for (const lab::Table& mine : report->tables) {
    const lab::Table* theirs = other.table(mine.id);
    if (theirs == nullptr || !is_of_trace(mine)) continue;
    const std::size_t columns = std::min(mine.columns.size(), theirs->columns.size());
    for (std::size_t row = 0; row < mine.rows.size(); ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        if (same_cell(mine, *theirs, row, column)) continue;
        const scenes::Cursor at = run.known(mine, static_cast<int>(row), static_cast<int>(column));
        if (first && !(at < first->at)) continue;
        first = FirstDifference{at, what_differs(mine, *theirs, row, column)};
      }
    }
    if (mine.rows.size() < theirs->rows.size() && !first) {
      const scenes::StepAxis axis = run.steps();
      first = FirstDifference{{axis.tiles, axis.last_phase(axis.tiles)},
                              fmt::format("{} has {} rows, and had {}", mine.title,
                                          mine.rows.size(), theirs->rows.size())};
    }
  }
  return first;
}

}  // namespace tilestep::app

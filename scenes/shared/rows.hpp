#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/lab/report.hpp"

/// Access to a report's tables by column id.
namespace tilestep::scenes {

/// One cell: as shown, empty if there is no such row or column; or as a number, nothing if it is
/// not one.
std::string text_in(const lab::Table& table, std::size_t row, std::string_view id);
std::optional<double> number_in(const lab::Table& table, std::size_t row, std::string_view id);
/// The first row with these cell texts, by column; nothing if there is none.
using CellTexts = std::initializer_list<std::pair<std::string_view, std::string_view>>;
std::optional<std::size_t> row_with(const lab::Table& table, CellTexts cells);
/// The number in `column` of that row of a report's table; nothing if any part is missing.
std::optional<double> number_with(const lab::Report& report, std::string_view table,
                                  CellTexts cells, std::string_view column);
bool has_column(const lab::Table& table, std::string_view id);

/// The distinct texts of a column, in row order, without empty cells.
std::vector<std::string> distinct(const lab::Table& table, std::string_view id);
/// The rows whose cell reads `text`, and those where it is empty, which belong to every choice. A
/// table without the column is returned whole.
lab::Table rows_where(const lab::Table& table, std::string_view id, std::string_view text);
/// Adds a column at the right; `cell` gives each row's.
void add_column(lab::Table& table, std::string id,
                const std::function<lab::Cell(std::size_t row)>& cell);
/// The table with a column "kib": its column "shared", bytes of shared memory, in KiB.
lab::Table with_kib(lab::Table table);

/// `text` with each {id} replaced by that row's cell, and each {id|noun} by the cell as a count: "1 read".
std::string filled_in(std::string_view text, const lab::Table& table, std::size_t row = 0);

}  // namespace tilestep::scenes

#pragma once

#include <string>
#include <vector>

#include "kernels/base/lab/report.hpp"

/// Tables as a terminal shows them.
namespace tilestep::app {

/// "rate (GB/s)".
std::string heading(const lab::Column& column);

/// All of a table with aligned columns, each line indented by two spaces.
std::string aligned(const lab::Table& table);

/// The part of a table that fits a space.
struct FittedTable {
  std::string text;
  int lines = 0;
  std::size_t rows_left_out = 0;
  std::vector<std::string> columns_left_out;  ///< headings
};
/// The first rows of `table` on at most `lines` lines (at least one row) of `width` columns. Words
/// wrap inside their column; columns that still find no room are left out, from the right.
FittedTable fitted(const lab::Table& table, std::size_t width, int lines);

}  // namespace tilestep::app

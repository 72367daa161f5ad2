#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "kernels/base/lab/report.hpp"

namespace tilestep::app {

enum class TableForm { csv, tsv, json };

/// True for a cell that is not on show yet.
using HiddenCell = std::function<bool(int row, int column)>;

/// A table as text that ends in a newline: CSV with the ids of its columns, TSV with their labels and units as
/// a spreadsheet takes it from the clipboard, or JSON as a report carries it. Hidden cells are left empty.
std::string table_text(const lab::Table& table, const HiddenCell& hidden, TableForm form);

}  // namespace tilestep::app

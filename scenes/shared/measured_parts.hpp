#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/lab/report.hpp"

/// What the Measured tabs of all lessons share.
namespace tilestep::scenes {

/// The bench to show: `report` itself if it is one (it has the table `table_id`), else the one that
/// was recorded on a real GPU; null if there is neither.
const lab::Report* bench_of(const lab::Report& report, std::string_view lesson,
                            std::string_view table_id);

/// "measured on NVIDIA H200" or "recorded on NVIDIA H200, 2026-01-02".
std::string where_measured(const lab::Report& bench);

/// The numbers of a column, 0 where a cell holds none; empty if there is no such column.
std::vector<double> column(const lab::Table& table, std::string_view id);

/// One cell by its column's id: as shown, empty if there is no such column; or as a number, nothing
/// if it holds none.
std::string text_in(const lab::Table& table, std::size_t row, std::string_view id);
std::optional<double> number_in(const lab::Table& table, std::size_t row, std::string_view id);

}  // namespace tilestep::scenes

#include "scenes/shared/measured_parts.hpp"

#include "kernels/base/lab/recording.hpp"

namespace tilestep::scenes {

const lab::Report* bench_of(const lab::Report& report, std::string_view lesson,
                            std::string_view table_id) {
  if (report.table(table_id) != nullptr) return &report;
  const lab::Recording* recording = lab::recording(lesson);
  if (recording == nullptr || recording->bench.table(table_id) == nullptr) return nullptr;
  return &recording->bench;
}

std::string where_measured(const lab::Report& bench) {
  if (bench.recorded_at.empty()) return "measured on " + bench.device.name;
  return "recorded on " + bench.device.name + ", " + bench.recorded_at;
}

std::vector<double> column(const lab::Table& table, std::string_view id) {
  std::vector<double> values;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].id != id) continue;
    for (const auto& row : table.rows) {
      const auto* number = std::get_if<double>(&row[c]);
      values.push_back(number == nullptr ? 0 : *number);
    }
  }
  return values;
}

std::string text_in(const lab::Table& table, std::size_t row, std::string_view id) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].id == id) return table.text(row, c);
  }
  return {};
}

std::optional<double> number_in(const lab::Table& table, std::size_t row, std::string_view id) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const auto* value = std::get_if<double>(&table.rows[row][c]);
    if (table.columns[c].id == id && value != nullptr) return *value;
  }
  return std::nullopt;
}

}  // namespace tilestep::scenes

#include "scenes/shared/step_scene.hpp"

#include <fmt/format.h>

#include "kernels/base/lab/source.hpp"

namespace tilestep::scenes {

const lab::Table& step_rows(const StepNames& names, const lab::Report& report, int steps) {
  const lab::Table* table = report.table(names.table);
  if (table != nullptr && table->rows.size() == static_cast<std::size_t>(steps)) return *table;
  throw Error(fmt::format("the report of '{}' has no table '{}' with a row for each of {} steps",
                          report.lesson, names.table, steps));
}

std::vector<Readout> row_readouts(const StepNames& names, const lab::Table& rows,
                                  std::string_view device, Cursor cursor) {
  std::vector<Readout> readouts;
  const bool whole = cursor.phase + 1 >= static_cast<int>(names.phases.size());
  const int row = cursor.tile - (whole ? 1 : 2);
  const std::string detail = fmt::format("recorded by the kernel while it ran on {}", device);
  for (std::size_t i = 0; i < rows.columns.size(); ++i) {
    const lab::Column& column = rows.columns[i];
    if (column.id == names.noun) continue;
    readouts.push_back({column.id, column.label,
                        row < 0 ? "–" : rows.text(static_cast<std::size_t>(row), i), column.unit,
                        lab::Provenance::traced, detail});
  }
  return readouts;
}

SourceMark phase_lines(const StepNames& names, Cursor cursor) {
  const lab::SourceMarks marks = lab::source_marks(names.source);
  SourceMark mark{names.source, 0, {}};
  for (const std::string& phase : names.phases) mark.step_lines.push_back(marks.line(phase));
  if (cursor.tile > 0) mark.current = mark.step_lines.at(static_cast<std::size_t>(cursor.phase));
  return mark;
}

}  // namespace tilestep::scenes

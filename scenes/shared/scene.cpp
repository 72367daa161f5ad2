#include "scenes/shared/scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/shared/words.hpp"

namespace tilestep::scenes {
namespace {

std::optional<int> whole_number(const lab::Table& table, std::size_t row) {
  if (row >= table.rows.size() || table.rows[row].empty()) return std::nullopt;
  const double* number = std::get_if<double>(&table.rows[row][0]);
  const bool whole = number != nullptr && *number == std::floor(*number) && std::abs(*number) < 1e9;
  return whole ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace

double Scene::progress(Cursor cursor) const {
  if (cursor.tile <= 0) return 0;
  return cursor.tile - 1 + (cursor.phase + 1.0) / steps().phases_in(cursor.tile);
}

int Scene::table_row(std::string_view table_id, const View& view) const {
  const StepAxis axis = steps();
  return table_id == axis.table ? std::clamp(view.cursor.tile, 0, axis.tiles) - 1 : -1;
}

Cursor Scene::known(const lab::Table& table, int row, int column) const {
  if (column == 0 || table.id == "ladder") return {};
  const StepAxis axis = steps();
  const int tile = table.id == axis.table ? row + 1 : axis.tiles;
  return {tile, axis.last_phase(tile)};
}

std::vector<picture::Subject> Scene::subjects_of_row(std::string_view table_id, int row) const {
  std::vector<picture::Subject> subjects;
  const StepAxis axis = steps();
  if (row < 0) return subjects;
  if (table_id == axis.table && row < axis.tiles) {
    subjects = {{axis.noun, row}, {"step", row}};
  }
  const lab::Table* table = report() != nullptr ? report()->table(table_id) : nullptr;
  if (table == nullptr || table->columns.empty()) return subjects;
  if (const auto number = whole_number(*table, static_cast<std::size_t>(row))) {
    const picture::Subject named{table->columns[0].id, *number};
    if (std::find(subjects.begin(), subjects.end(), named) == subjects.end()) {
      subjects.push_back(named);
    }
  }
  return subjects;
}

bool fails(const lab::Report& report, std::string_view check) {
  return std::any_of(report.checks.begin(), report.checks.end(),
                     [&](const lab::Check& one) { return !one.ok && one.id == check; });
}

std::vector<Readout> readouts_of(const Scene& scene, const View& view) {
  std::vector<Readout> all = scene.readouts(view);
  const StepAxis axis = scene.steps();
  if (scene.report() == nullptr || axis.place_of(view.cursor) < axis.places()) return all;
  for (const lab::Check& check : scene.report()->checks) {
    if (check.ok) continue;
    all.push_back({"check_" + check.id, "check " + check.id, "failed", "", lab::Provenance::derived,
                   fmt::format("off by {}, allowed {}. {}", words::significant(check.max_error, 3),
                               words::significant(check.tolerance, 3), check.detail),
                   Readout::wrong});
  }
  return all;
}

}  // namespace tilestep::scenes

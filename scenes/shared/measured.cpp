#include "scenes/shared/measured.hpp"

#include <nlohmann/json.hpp>

#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/recording.hpp"
#include "scenes/shared/rows.hpp"

namespace tilestep::scenes::measured {
namespace {

/// A row for each counter of a rung, so that one of them can be chosen.
lab::Table by_metric(lab::Table counters) {
  lab::Table all{counters.id,
                 counters.title,
                 {"rung", {"metric", "", "", -1}, {"unit", "", "", -1}, {"value", "", "", -1}},
                 {}};
  for (std::size_t column = 1; column < counters.columns.size(); ++column) {
    const lab::Column& metric = counters.columns[column];
    for (std::size_t row = 0; row < counters.rows.size(); ++row) {
      if (!number_in(counters, row, metric.id)) continue;
      all.add(
          {text_in(counters, row, "rung"), metric.label, metric.unit, counters.rows[row][column]});
    }
  }
  return all;
}

}  // namespace

View counters_view(Roles role) {
  return {.name = "Counters",
          .filters = {{"counter", "metric"}},
          .plots = {Bars{.id = "counter",
                         .title = "{metric}",
                         .unit = "{unit}",
                         .rows = {.table = "counters", .prepare = by_metric},
                         .label = "rung",
                         .role = role}},
          .needs = "counters",
          .missing = kNoCounters};
}

const lab::Report* bench_of(const lab::Report& report, std::string_view lesson,
                            std::string_view table, bool computed) {
  const bool is_run = !report.trace->is_null();
  if ((computed || !is_run) && report.table(table) != nullptr) return &report;
  const lab::Recording* recording = lab::recording(lesson);
  if (recording == nullptr || recording->bench.table(table) == nullptr) return nullptr;
  return &recording->bench;
}

const lab::Report* reference_of(const lab::Report& bench) {
  const lab::Recording* recording = lab::recording(bench.lesson);
  return recording == nullptr || !bench.recorded_at.empty() ? nullptr : &recording->bench;
}

std::string where_measured(const lab::Report& bench) {
  if (bench.recorded_at.empty()) {
    const char* quickly = lab::left_out(bench).empty() ? "" : ", quick: one short round";
    return "measured on " + bench.device.name + quickly;
  }
  return "recorded on " + bench.device.name + ", " + bench.recorded_at;
}

}  // namespace tilestep::scenes::measured

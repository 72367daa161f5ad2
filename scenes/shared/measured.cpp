#include "scenes/shared/measured.hpp"

#include <nlohmann/json.hpp>

#include "kernels/base/lab/recording.hpp"

namespace tilestep::scenes::measured {

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
  if (bench.recorded_at.empty()) return "measured on " + bench.device.name;
  return "recorded on " + bench.device.name + ", " + bench.recorded_at;
}

}  // namespace tilestep::scenes::measured

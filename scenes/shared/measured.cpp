#include "scenes/shared/measured.hpp"

#include <nlohmann/json.hpp>

#include "kernels/base/lab/quick.hpp"
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
  if (bench.recorded_at.empty()) {
    const char* quickly = lab::left_out(bench).empty() ? "" : ", quick: one short round";
    return "measured on " + bench.device.name + quickly;
  }
  return "recorded on " + bench.device.name + ", " + bench.recorded_at;
}

}  // namespace tilestep::scenes::measured

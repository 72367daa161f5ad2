// Clocks without a GPU: those of a recorded run, and for one warp's loads those that follow from the recorded bench.

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/compare.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/machine/latency_hiding/run/run.hpp"

namespace tilestep::latency_hiding {
namespace {

std::optional<Machine> recorded_machine(const Params& params) {
  const lab::Knobs knobs = knob_table().knobs();
  const lab::Settings wanted = lab::in_effect(knobs, knob_table().settings(params));
  const lab::Report* run = lab::recorded_run(kLessonId, [&](const lab::Report& one) {
    try {
      return lab::in_effect(knobs, knobs.completed(one.params)) == wanted;
    } catch (const Error&) {
      return false;  // with a knob that has gone, or a value that is no longer allowed
    }
  });
  if (run == nullptr) return std::nullopt;
  Machine machine = trace_from_json(run->trace).machine;
  machine.device = run->device.name;
  machine.recorded_at = run->recorded_at;
  return machine;
}

/// A column of the first row that has these numbers; NaN: there is none.
double number_of(const lab::Report& bench, const char* table_id, const char* id,
                 const std::vector<std::pair<std::string, lab::Cell>>& having) {
  const lab::Table* table = bench.table(table_id);
  if (table == nullptr) return NAN;
  for (const auto& row : table->rows) {
    std::size_t found = 0;
    const double* number = nullptr;
    for (std::size_t c = 0; c < row.size(); ++c) {
      for (const auto& [column, cell] : having)
        found += column == table->columns[c].id && cell == row[c] ? 1 : 0;
      if (table->columns[c].id == id) number = std::get_if<double>(&row[c]);
    }
    if (found == having.size() && number != nullptr) return *number;
  }
  return NAN;
}

/// One warp alone, by rates that the bench measured without probes. A round of its loads takes as long as their bytes
/// take at the rate of all such warps. The first arrives after the latency of a lone load; the last at the end of the
/// round, less the part of a lone load's round that is not latency; those between are evenly spaced. Probes would make
/// such short rounds a sixth longer, so the clocks that they read are not shown.
std::optional<Machine> derived_machine(const Params& params) {
  const lab::Recording* recording = lab::recording(kLessonId);
  const bool known = params.kernel == Kernel::copy && params.broken != Break::divergent_branch;
  if (recording == nullptr || !known || params.warps_per_sm != 1) return std::nullopt;
  const lab::Report& bench = recording->bench;
  const bool serialized = params.broken == Break::serialize_loads;
  const int loads = serialized ? 1 : count_of(params.loads_in_flight);
  const auto of_copy = [&](const char* id, int together) {
    return number_of(
        bench, "bytes_in_flight", id,
        {{"kind", name_of(params.bytes_per_load)}, {"loads", together}, {"warps_per_sm", 1}});
  };
  const auto of_memory = [&](const char* id) {
    return number_of(bench, "latencies", id, {{"level", "HBM"}});
  };
  const double cycles_a_ns = of_memory("cycles") / of_memory("ns");
  const auto round = [&](int together) {
    // A copy's rate counts bytes read and written by all multiprocessors.
    const int bytes = 2 * together * kLanes * bytes_of(params.bytes_per_load);
    return bytes * bench.device.multiprocessors / of_copy("bandwidth", together) * cycles_a_ns;
  };
  const double period = round(loads), latency = of_copy("latency", 1) * cycles_a_ns;
  const double last = period - std::max(round(1) - latency, 0.0);
  if (!std::isfinite(period) || !std::isfinite(last)) return std::nullopt;
  // How far apart a warp issues, by the clocks of the defaults' run.
  const Machine of_defaults = trace_from_json(recording->run.trace).machine;
  const double apart =
      static_cast<double>(of_defaults.moments.at(1).clock - of_defaults.moments[0].clock);
  Records records{{WarpRecord{}},
                  std::vector<ProbeRecord>(kMostProbes, {kUnwritten, kUnwritten, 0})};
  for (int number = 0; number < kProbes; ++number) {
    const int k = number % loads;
    const double begin = number / loads * period, share = loads == 1 ? 0 : k / (loads - 1.0);
    records.kept[static_cast<std::size_t>(number)] = {
        static_cast<std::uint32_t>(std::lround(begin + k * apart)),
        static_cast<std::uint32_t>(std::lround(begin + latency + share * (last - latency))), 0};
  }
  Machine machine;
  machine.unit = "cycles";
  machine.device = bench.device.name;
  machine.recorded_at = recording->recorded_at;
  machine.derived = true;
  machine.not_counted = "Derived from measured rates: nothing was counted.";
  fill_rows(machine, records, {1, kLanes, 0}, kProbes);
  return machine;
}

}  // namespace

std::optional<Machine> known_machine(const Params& params) {
  std::optional<Machine> recorded = recorded_machine(params);
  return recorded ? recorded : derived_machine(params);
}

}  // namespace tilestep::latency_hiding

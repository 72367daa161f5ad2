#include "kernels/machine/latency_hiding/run/counts.hpp"

#include <fmt/format.h>

#include <map>
#include <string>

#include "kernels/base/simt/counters.hpp"

namespace tilestep::latency_hiding {
namespace {

constexpr const char* kStalled = "smsp__warps_issue_stalled_long_scoreboard.sum";
constexpr const char* kGlobalLoads = "smsp__inst_executed_op_global_ld.sum";

struct Metric {
  std::string name, label, unit;
};
/// A reason for which a warp does not issue, in warps of a scheduler.
Metric stall(const char* reason, const char* label) {
  return {fmt::format("smsp__average_warps_issue_stalled_{}_per_issue_active.ratio", reason), label,
          "warps"};
}
/// Nsight Compute, "Metrics Reference": of a sub-partition's scheduler (smsp), on average.
std::vector<Metric> metrics() {
  return {
      {"smsp__warps_active.avg.per_cycle_active", "resident warps of a scheduler", "warps"},
      {"smsp__warps_eligible.avg.per_cycle_active", "eligible warps of a scheduler", "warps"},
      {"smsp__issue_active.avg.per_cycle_active", "instructions a cycle", ""},
      stall("long_scoreboard", "waits for a load from memory"),
      stall("short_scoreboard", "waits for shared memory"),
      stall("wait", "waits a fixed time for a result"),
      stall("math_pipe_throttle", "waits for the math pipe"),
      stall("lg_throttle", "waits for the load queue"),
      stall("barrier", "waits at a barrier"),
      stall("branch_resolving", "waits for a branch"),
      stall("no_instruction", "waits for instructions"),
      stall("drain", "waits for its last stores"),
      stall("not_selected", "could issue; another one did"),
      stall("selected", "issues"),
      {"smsp__inst_executed.sum", "instructions of all warps", ""},
      {"smsp__average_thread_inst_executed_per_inst_executed.ratio", "active lanes an instruction",
       "lanes"},
      {"smsp__inst_executed_op_local_ld.sum", "loads from local memory", "requests"},
      {"smsp__inst_executed_op_local_st.sum", "stores to local memory", "requests"},
  };
}

double per_load(const std::map<std::string, double>& counted) {
  const double loads = counted.at(kGlobalLoads);
  return loads > 0 ? counted.at(kStalled) / loads : 0;
}

}  // namespace

void count_stalls(simt::Device& device, const std::function<void()>& launch, bool loads,
                  Machine& to) {
  const simt::CounterStatus status = device.counters();
  to.not_counted = status.reason;
  if (!status.available) return;
  try {
    std::vector<std::string> names;
    for (const Metric& metric : metrics()) names.push_back(metric.name);
    names.insert(names.end(), {kStalled, kGlobalLoads});
    const auto counted = simt::count(device, names, launch);
    for (const Metric& metric : metrics()) {
      to.counted.push_back({metric.name, metric.label, counted.at(metric.name), metric.unit});
    }
    if (loads && counted.at(kGlobalLoads) > 0) {
      to.counted.push_back({std::string(kStalled) + " / " + kGlobalLoads, "waited for a load",
                            per_load(counted), "cycles"});
    }
  } catch (const Cancelled&) {
    throw;
  } catch (const Error& error) {
    to.not_counted = error.what();
  }
}

double stalled_cycles_per_load(simt::Device& device, const std::function<void()>& launch) {
  return per_load(simt::count(device, {kStalled, kGlobalLoads}, launch));
}

}  // namespace tilestep::latency_hiding

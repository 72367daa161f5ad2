#include "kernels/machine/latency_hiding/run/counts.hpp"

#include <map>
#include <string>

#include "kernels/base/simt/counters.hpp"

namespace tilestep::latency_hiding {
namespace {

constexpr const char* kStalled = "smsp__warps_issue_stalled_long_scoreboard.sum";
constexpr const char* kGlobalLoads = "smsp__inst_executed_op_global_ld.sum";

struct Metric {
  const char* name;
  const char* label;
  const char* unit;
};
// Nsight Compute, "Metrics Reference": of a sub-partition's scheduler (smsp), on average.
constexpr Metric kMetrics[] = {
    {"smsp__warps_active.avg.per_cycle_active", "resident warps of a scheduler", "warps"},
    {"smsp__warps_eligible.avg.per_cycle_active", "eligible warps of a scheduler", "warps"},
    {"smsp__issue_active.avg.per_cycle_active", "instructions a cycle", ""},
    {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
     "waits for a load from memory", "warps"},
    {"smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio",
     "waits for shared memory", "warps"},
    {"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio",
     "waits a fixed time for a result", "warps"},
    {"smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio",
     "waits for the math pipe", "warps"},
    {"smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio",
     "waits for the load queue", "warps"},
    {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "waits at a barrier",
     "warps"},
    {"smsp__average_warps_issue_stalled_branch_resolving_per_issue_active.ratio",
     "waits for a branch", "warps"},
    {"smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio",
     "waits for instructions", "warps"},
    {"smsp__average_warps_issue_stalled_drain_per_issue_active.ratio", "waits for its last stores",
     "warps"},
    {"smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio",
     "could issue; another one did", "warps"},
    {"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio", "issues", "warps"},
    {"smsp__inst_executed.sum", "instructions of all warps", ""},
    {"smsp__average_thread_inst_executed_per_inst_executed.ratio", "active lanes an instruction",
     "lanes"},
    {"smsp__inst_executed_op_local_ld.sum", "loads from local memory", "requests"},
    {"smsp__inst_executed_op_local_st.sum", "stores to local memory", "requests"},
};

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
    for (const Metric& metric : kMetrics) names.emplace_back(metric.name);
    names.emplace_back(kStalled);
    names.emplace_back(kGlobalLoads);
    const auto counted = simt::count(device, names, launch);
    for (const Metric& metric : kMetrics) {
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

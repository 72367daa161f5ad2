#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "kernels/base/lab/bench.hpp"
#include "kernels/machine/latency_hiding/params.hpp"

namespace tilestep::latency_hiding {

/// The ladder: the same streaming copy at 25 % occupancy (16 of 64 warps), and more and more bytes in flight.
enum class Rung { one_load, wide_load, copy, bulk_copy };
constexpr auto names_of(Rung) {
  return std::to_array<std::string_view>({"one-load", "wide-load", "copy", "bulk-copy"});
}
constexpr auto reasons_of(Rung) {
  return std::to_array<std::string_view>(
      {"A thread loads 4 bytes and waits for them before it asks for more.",
       "16 bytes a load: four times the bytes in flight for the same waiting.",
       "Several loads are issued before the first is used: the wait is paid once for all of them.",
       "TMA brings whole stages to shared memory: bytes in flight take no registers, and one "
       "thread "
       "asks for them."});
}

/// What the bench times; tests take smaller sizes.
struct BenchSizes {
  std::size_t copy_bytes = std::size_t{1}
                           << 30;  ///< of the ladder and the curve, read and as many written
  std::vector<int> warps = {1, 2, 4, 8, 12, 16, 24, 32, 48, 64};
  int occupancy_samples = 500;
  int rounds = 3;
  double settle_ms = 600, point_settle_ms = 30;
  std::size_t most_footprint = std::size_t{1} << 30;
  bool quick = false;  ///< the ladder alone

  static BenchSizes of_quick() {
    BenchSizes sizes;
    sizes.quick = true;
    return sizes;
  }
};

/// The bench with these sizes. The device can time. Tables, by id and columns:
///  - `ladder` and `ladder_configurations`: rung, configuration, bandwidth, p10, p90, fraction (of the device's copy), in
///    ladder also why. Measurements: copy_bandwidth and fraction_of_copy, variants as the rungs; copy_bandwidth "device"
///  - `bytes_in_flight`: kind ("4", "8", "16" bytes a load, or "bulk"), loads, warps_per_sm, in_flight (KiB of one
///    multiprocessor), bandwidth, p10, p90, latency (loaded: ns, mean of the probed loads; empty for bulk), predicted
///    (GB/s: bytes in flight over that latency)
///  - `knees`: kind, idle_latency (ns), loaded_latency (ns, at the knee), predicted_knee, measured_knee (KiB of one
///    multiprocessor), difference (%)
///  - `memory_ladder`: footprint (KiB), cycles, ns (of a hop)
///  - `latencies`: level, cycles, ns, spread (% over three runs), published (cycles or ns), published_unit, source
///  - `l2_distribution`: cycles (the least of a bin of 4), hops
///  - `flops`: ilp, warps_per_sm, tflops, p10, p90, fraction (of the most)
///  - `registers`: max_registers, registers, local_bytes (of a thread), local_loads, local_stores (counted, of a thread),
///    warps_per_sm, time, tflops
///  - `stalls`: warps_per_sm, loads, eligible (warps a cycle), issue_active (%), long_scoreboard (cycles a load,
///    counted), probed (latency in cycles, less the probe's cost), waited (long_scoreboard × loads: a warp waits once
///    for the loads that it has in flight together), round (from the first one's issue to the last one's use, less the
///    probe's cost), difference (%, of round and waited), slowdown (probed over plain time)
///  - `divergence`: ways, time, threads_per_instruction (counted), slowdown
///  - `tail`: blocks, waves, time, efficiency (% of the SMs' time used)
///  - `subpartitions`: distance (of two warps' slots), cycles, slowdown
///  - `occupancy_answers`: kernel, registers, static_shared, block, dynamic_shared, carveout, blocks (the runtime's answer)
///  - `kernels`: kernel, registers, static_shared, local_bytes
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::latency_hiding

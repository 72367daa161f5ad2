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
  int longer = 16;  ///< loops of what computes, so that launching it is less than 5 % of the time
  double settle_ms = 600, point_settle_ms = 30;
  std::size_t most_footprint = std::size_t{1} << 30;
  bool quick = false;  ///< the ladder alone
};

/// The bench with these sizes. The device can time. Of `stalls`, counted cycles a load and probed ones: a warp waits
/// once for the loads that it has in flight together, so that a round of them is as long as what was counted times
/// their number.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::latency_hiding

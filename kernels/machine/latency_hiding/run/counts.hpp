#pragma once

#include <functional>

#include "kernels/machine/latency_hiding/lesson.hpp"

namespace tilestep::latency_hiding {

/// Counts the schedulers' activity during `launch`, in a separate run: resident and eligible warps, instructions, and
/// stall reasons. With `loads` also the cycles waited per load. Metrics that the chip does not count are omitted, and
/// `not_counted` tells why if it counts nothing. Throws Cancelled.
void count_stalls(simt::Device& device, const std::function<void()>& launch, bool loads,
                  Machine& to);

/// Cycles that warps waited for the long scoreboard (loads from memory) during `launch`, for each of its global loads.
/// Throws Error as Device::count does.
double stalled_cycles_per_load(simt::Device& device, const std::function<void()>& launch);

}  // namespace tilestep::latency_hiding

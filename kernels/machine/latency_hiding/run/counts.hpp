#pragma once

#include <functional>

#include "kernels/machine/latency_hiding/lesson.hpp"

namespace tilestep::latency_hiding {

/// Counts what the schedulers did during `launch`, in a run of its own: resident and eligible warps, instructions, and
/// what warps waited for. With `loads` also the cycles that a load waited for. What the chip does not count is left
/// out, and `not_counted` says why where it counts nothing. Throws Cancelled.
void count_stalls(simt::Device& device, const std::function<void()>& launch, bool loads,
                  Machine& to);

/// Cycles that warps waited for the long scoreboard (loads from memory) during `launch`, for each of its global loads.
/// Throws Error as Device::count does.
double stalled_cycles_per_load(simt::Device& device, const std::function<void()>& launch);

}  // namespace tilestep::latency_hiding

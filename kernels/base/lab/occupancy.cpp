#include "kernels/base/lab/occupancy.hpp"

#include <algorithm>
#include <limits>

namespace tilestep::lab {
namespace {

constexpr int kWarp = 32;
constexpr int kThreadsOfBlock = 1024;
constexpr int kPlainShared =
    48 * 1024;  // of a block without the opt-in; what is more takes the opt-in
constexpr int kNone = std::numeric_limits<int>::max();
/// Sizes of shared memory that a multiprocessor of compute capability 9.0 can be set up with, in KB (CUDA C++
/// Programming Guide, "Compute Capability 9.x", shared memory).
constexpr int kCarveouts[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};

int rounded_up(int value, int to) {
  return (value + to - 1) / to * to;
}

/// The least carve-out of so many bytes.
int carveout_of(int bytes) {
  for (const int kilobytes : kCarveouts) {
    if (bytes <= kilobytes * 1024) return kilobytes * 1024;
  }
  return 0;
}

int by_threads(const Multiprocessor& sm, const Demand& demand, int warps) {
  return demand.threads <= kThreadsOfBlock ? sm.warps / warps : 0;
}

int by_registers(const Multiprocessor& sm, const Demand& demand, int warps, int of_warp) {
  if (demand.registers == 0) return kNone;
  // A block starts only if it would fit with its warps rounded up to all sub-partitions.
  const int assumed = of_warp * rounded_up(warps, sm.sub_partitions);
  if (assumed > sm.registers || demand.registers > sm.registers_per_thread) return 0;
  const int warps_of_partition = sm.registers / sm.sub_partitions / of_warp;
  return warps_of_partition * sm.sub_partitions / warps;
}

int by_shared_memory(const Multiprocessor& sm, const Demand& demand, Occupancy& to) {
  const int used = demand.static_shared_bytes + demand.dynamic_shared_bytes;
  to.shared_allocated = rounded_up(used + sm.reserved_bytes, sm.shared_unit);
  const int preferred = demand.carveout < 0 ? sm.shared_bytes
                                            : sm.shared_bytes / 100 * demand.carveout +
                                                  sm.shared_bytes % 100 * demand.carveout / 100;
  // A preference that one block does not fit in is passed over.
  to.shared_carveout = carveout_of(std::max(preferred, to.shared_allocated));
  const int most = used > kPlainShared ? sm.most_shared_of_block : kPlainShared;
  if (to.shared_allocated > most + sm.reserved_bytes) return 0;
  return to.shared_allocated == 0 ? kNone : to.shared_carveout / to.shared_allocated;
}

}  // namespace

Occupancy occupancy_of(const Demand& demand, const Multiprocessor& sm) {
  Occupancy to;
  if (demand.threads <= 0) return to;
  to.warps_allocated = (demand.threads + kWarp - 1) / kWarp;
  to.registers_allocated = rounded_up(demand.registers * kWarp, sm.register_unit);
  to.blocks = {by_threads(sm, demand, to.warps_allocated),
               by_registers(sm, demand, to.warps_allocated, to.registers_allocated),
               by_shared_memory(sm, demand, to), sm.blocks};
  const auto least = std::min_element(to.blocks.begin(), to.blocks.end());
  to.resident = *least;
  to.binding = static_cast<Limit>(least - to.blocks.begin());
  to.warps = to.resident * to.warps_allocated;
  return to;
}

}  // namespace tilestep::lab

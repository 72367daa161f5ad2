#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "kernels/base/lab/names.hpp"

/// \file
/// How many blocks of a kernel a multiprocessor holds at once. CUDA C++ Programming Guide, "Compute Capabilities";
/// the rules of allocation are those of the CUDA toolkit's occupancy calculator.
namespace tilestep::lab {

/// The limits that can bind, in the order of the bars.
enum class Limit { threads, registers, shared_memory, blocks };
constexpr auto names_of(Limit) {
  return std::to_array<std::string_view>({"threads", "registers", "shared memory", "blocks"});
}
inline constexpr std::size_t kLimits = 4;

/// A multiprocessor of compute capability 9.0, unless a test says otherwise.
struct Multiprocessor {
  int warps = 64;
  int blocks = 32;
  int registers = 65536;
  int sub_partitions = 4;   ///< among which registers and warps are divided
  int register_unit = 256;  ///< registers are allocated per warp in multiples of this
  int registers_per_thread = 255;
  int shared_bytes = 233472;          ///< 228 KB, the largest carve-out
  int reserved_bytes = 1024;          ///< of shared memory, reserved by the system per block
  int shared_unit = 128;              ///< shared memory is allocated per block in multiples of this
  int most_shared_of_block = 232448;  ///< 227 KB, with the opt-in
};

/// The demand of a launch.
struct Demand {
  int threads = 0;    ///< of a block
  int registers = 0;  ///< per thread, as compiled; 0: not known, treated as no limit
  int static_shared_bytes = 0;
  int dynamic_shared_bytes = 0;
  /// Of shared memory, in percent of the largest; −1: the driver's choice, which fits the blocks' need.
  int carveout = -1;
};

struct Occupancy {
  std::array<int, kLimits> blocks{};  ///< by each limit alone
  int resident = 0;                   ///< the least of them
  Limit binding = Limit::threads;     ///< the first with the smallest number
  int warps = 0;                      ///< of the resident blocks
  int warps_allocated = 0;            ///< of a block
  int registers_allocated = 0;        ///< of a warp
  int shared_allocated = 0;           ///< per block, including the reserved part
  int shared_carveout = 0;  ///< bytes of shared memory that the multiprocessor is configured with
  double share(const Multiprocessor& sm = {}) const {
    return static_cast<double>(warps) / sm.warps;
  }
  bool operator==(const Occupancy&) const = default;
};

/// 0 blocks for a launch that does not fit at all.
Occupancy occupancy_of(const Demand& demand, const Multiprocessor& sm = {});

}  // namespace tilestep::lab

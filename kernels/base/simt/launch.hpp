#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "kernels/base/simt/device.hpp"

// dim3 is CUDA's own in the CUDA backend, and the emulation's else.
#if !defined(__CUDACC__) && !defined(SIMT_CUDA_HOST)
#include "kernels/base/simt/emulator/emulated_types.hpp"
#endif

namespace tilestep::simt {

/// The shape of a launch, and its name for errors and profilers (a string literal).
struct Launch {
  const char* name = "kernel";
  dim3 grid = 1;                 ///< blocks
  dim3 block = 1;                ///< threads of a block
  std::size_t shared_bytes = 0;  ///< dynamic shared memory of a block
  /// Of the kernel's own __shared__ arrays, as resources_of says it where no compiler does.
  std::size_t static_shared_bytes = 0;
  unsigned cluster = 1;  ///< blocks of a cluster, neighbours along x: 1, 2, 4 or 8
  /// Whether its blocks may begin while the launch before it still runs ("programmatic dependent launch"; compute
  /// capability 9.0): its kernel then calls hopper::await_launch_before() ahead of all that the other one writes or reads.
  bool early = false;
};

/// The limits that every GPU since compute capability 3.0 has (CUDA C++ Programming Guide, "Compute
/// Capabilities").
inline constexpr unsigned kMaxThreadsPerBlock = 1024;
inline constexpr unsigned kMaxBlockZ = 64;
inline constexpr unsigned kMaxCluster = 8;
inline constexpr unsigned kMaxGridX = 2147483647;
inline constexpr unsigned kMaxGridYZ = 65535;

/// Throws Error that names the kernel and the limit if `launch` exceeds one.
inline void check_launch(const Launch& launch, const DeviceInfo& device) {
  const auto require = [&](bool good, const std::string& what, unsigned long long value,
                           const std::string& allowed) {
    if (!good) {
      throw Error(std::string(launch.name) + ": " + what + " is " + std::to_string(value) +
                  " (allowed: " + allowed + ")");
    }
  };
  const auto require_between = [&](const char* what, unsigned value, unsigned most) {
    require(value >= 1 && value <= most, what, value, "1–" + std::to_string(most));
  };
  require_between("grid.x", launch.grid.x, kMaxGridX);
  require_between("grid.y", launch.grid.y, kMaxGridYZ);
  require_between("grid.z", launch.grid.z, kMaxGridYZ);
  require_between("block.x", launch.block.x, kMaxThreadsPerBlock);
  require_between("block.y", launch.block.y, kMaxThreadsPerBlock);
  require_between("block.z", launch.block.z, kMaxBlockZ);
  const unsigned threads = launch.block.x * launch.block.y * launch.block.z;
  require(threads <= kMaxThreadsPerBlock, "the number of threads of a block", threads,
          "1–" + std::to_string(kMaxThreadsPerBlock));
  const unsigned cluster = launch.cluster;
  require(cluster == 1 || cluster == 2 || cluster == 4 || cluster == 8,
          "the number of blocks of a cluster", cluster, "1, 2, 4, 8");
  require(launch.grid.x % cluster == 0, "grid.x", launch.grid.x,
          "multiples of the cluster's " + std::to_string(cluster) + " blocks");
  require(launch.shared_bytes <= device.shared_bytes_per_block,
          "the dynamic shared memory of a block, in bytes,", launch.shared_bytes,
          "0–" + std::to_string(device.shared_bytes_per_block) + " on " + device.name);
}

/// The number of blocks of `block` threads for this many threads.
constexpr std::int64_t blocks_for(std::int64_t threads, int block) {
  return (threads + block - 1) / block;
}

/// `blocks` of `threads` threads each, all in one row. Throws Error for more than a grid can have.
inline Launch row_of_blocks(const char* name, std::int64_t blocks, int threads,
                            std::size_t shared_bytes = 0) {
  if (blocks > kMaxGridX) {
    throw Error(std::string(name) + ": a launch of more than 2147483647 blocks");
  }
  return {.name = name,
          .grid = dim3(static_cast<unsigned>(blocks)),
          .block = dim3(static_cast<unsigned>(threads)),
          .shared_bytes = shared_bytes};
}

/// Throws Error naming `what` unless `value` is in `least` … `most`:
/// `require_within("online_softmax: keys", shape.keys, 1, 1 << 30)`.
inline void require_within(const char* what, std::int64_t value, std::int64_t least,
                           std::int64_t most = std::numeric_limits<int>::max()) {
  if (value >= least && value <= most) return;
  throw Error(std::string(what) + " is " + std::to_string(value) +
              "; allowed: " + std::to_string(least) + "–" + std::to_string(most));
}
/// The same unless it is a multiple of `of`, and not 0.
inline void require_multiple(const char* what, int value, int of) {
  if (value >= of && value % of == 0) return;
  throw Error(std::string(what) + " is " + std::to_string(value) + "; allowed: multiples of " +
              std::to_string(of));
}

/// Throws the Error (unavailable) for a device that lacks what `what` needs.
[[noreturn]] inline void refuse_device(const DeviceInfo& device, const std::string& what,
                                       const std::string& needs) {
  const int capability = device.compute_capability;
  throw Error(what + " needs " + needs + ", and " + device.name +
                  (capability == 0 ? " runs the kernels under emulation"
                                   : " has compute capability " + std::to_string(capability / 10) +
                                         "." + std::to_string(capability % 10)),
              ExitCode::unavailable);
}

/// Throws Error (unavailable) for a GPU below compute capability `least` (80 for 8.0), which `what`
/// needs. The emulation supports all.
inline void require_capability(const DeviceInfo& device, const std::string& what, int least) {
  if (device.compute_capability == 0 || device.compute_capability >= least) return;
  refuse_device(device, what,
                "compute capability " + std::to_string(least / 10) + "." +
                    std::to_string(least % 10) + " or newer");
}

/// Calls `run` with `value` as a std::integral_constant, so that a number known at run time selects
/// among compiled kernels. Throws Error naming `what` if it is not in kAllowed.
template <int... kAllowed, class Run>
void with_constant(const char* what, int value, Run run) {
  const bool found =
      ((value == kAllowed && (run(std::integral_constant<int, kAllowed>{}), true)) || ...);
  if (found) return;
  std::string allowed;
  ((allowed += (allowed.empty() ? "" : ", ") + std::to_string(kAllowed)), ...);
  throw Error(std::string(what) + " is " + std::to_string(value) + "; allowed: " + allowed);
}

}  // namespace tilestep::simt

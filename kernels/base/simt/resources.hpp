#pragma once

#include <cstddef>
#include <string>

#include "kernels/base/simt/launch.hpp"

namespace tilestep::simt {

/// What a kernel takes of a multiprocessor.
struct Resources {
  int threads = 0;  ///< of a block
  std::size_t dynamic_shared_bytes = 0;
  std::size_t static_shared_bytes = 0;
  bool compiled = false;              ///< false under emulation: then what follows is not known
  int registers = 0;                  ///< of a thread
  std::size_t local_bytes = 0;        ///< of a thread; above 0, registers were spilled
  int blocks_per_multiprocessor = 0;  ///< that fit at once
  int warps_per_multiprocessor = 0;   ///< most that the device can hold

  double warps() const { return threads / 32.0; }  ///< of a block
  /// The share of those warps that the blocks that fit have; 0 where it is not known.
  double occupancy() const {
    return compiled ? blocks_per_multiprocessor * warps() / warps_per_multiprocessor : 0;
  }
};

/// What the compiled kernel takes of a multiprocessor with this launch. Throws Error (unavailable) if
/// the device does not say.
template <class... Params>
Resources resources_of(const simt::Launch& launch, [[maybe_unused]] void (*kernel)(Params...)) {
  Resources r;
  r.threads = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
  r.dynamic_shared_bytes = launch.shared_bytes;
  r.static_shared_bytes = launch.static_shared_bytes;
#if defined(__CUDACC__)
  const void* function = reinterpret_cast<const void*>(kernel);
  cudaFuncAttributes attributes{};
  const auto check = [&](cudaError_t result) {
    if (result == cudaSuccess) return;
    throw Error(std::string(launch.name) + ": the device does not say what the kernel takes: " +
                    cudaGetErrorString(result),
                ExitCode::unavailable);
  };
  check(cudaFuncGetAttributes(&attributes, function));
  check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(launch.shared_bytes)));
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&r.blocks_per_multiprocessor, function,
                                                      r.threads, launch.shared_bytes));
  int device = 0;
  int threads = 0;
  int warp = 32;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, device));
  check(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, device));
  r.compiled = true;
  r.static_shared_bytes = attributes.sharedSizeBytes;
  r.registers = attributes.numRegs;
  r.local_bytes = attributes.localSizeBytes;
  r.warps_per_multiprocessor = threads / warp;
#endif
  return r;
}

}  // namespace tilestep::simt

#pragma once

#include <cstdint>

#include "kernels/base/simt/resources.hpp"

namespace tilestep::simt {

/// How many clusters of this launch the device has room for at once, at least 1. Emulated, `emulated`.
template <class... Params>
std::int64_t clusters_at_once([[maybe_unused]] const Device& device,
                              [[maybe_unused]] const Launch& launch,
                              [[maybe_unused]] void (*kernel)(Params...),
                              [[maybe_unused]] std::int64_t emulated) {
#if defined(__CUDACC__)
  const int blocks =
      resources_of(launch, kernel).blocks_per_multiprocessor * device.info().multiprocessors;
  if (launch.cluster == 1) return blocks > 1 ? blocks : 1;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {launch.cluster, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = launch.grid;
  config.blockDim = launch.block;
  config.dynamicSmemBytes = launch.shared_bytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
  }
  return clusters > 1 ? clusters : 1;
#else
  return emulated;
#endif
}

}  // namespace tilestep::simt

#pragma once

#include <array>

#include "kernels/base/lab/lesson.hpp"

namespace tilestep::moe_routing {

/// What is timed: `tokens`, each for one expert of width × hidden. The headline is about the first
/// number of experts.
struct BenchSize {
  int tokens = 8192;
  int hidden = 4096;
  int width = 4096;
  std::array<int, 2> experts = {8, 64};
  bool quick = false;  ///< the headline alone
};

/// Times the grouped product, all schemes over all routings, beside cuBLAS called once for each
/// expert. Throws Error (unavailable) where the device has no BF16 tensor cores, and Error for sizes
/// that the kernels do not take.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSize& size);

}  // namespace tilestep::moe_routing

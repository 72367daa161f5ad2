#pragma once

#include <cstddef>
#include <vector>

#include "kernels/matmul/tiling/run/report.hpp"

namespace tilestep::tiling {

/// What is timed: C = A·B of square matrices of random numbers.
struct BenchSizes {
  std::vector<int> edges = {8192, 4096};  ///< M = N = K; the first is the headline's
  int counted_edge = 4096;                ///< one of them
  std::vector<GemmShape> checked = {{1, 1, 1},         {33, 7, 100},    {128, 128, 128},
                                    {257, 100, 129},   {512, 512, 512}, {1000, 1100, 1030},
                                    {2048, 2048, 2048}};
  std::size_t copy_bytes = std::size_t{1} << 30;
  bool quick = false;  ///< the ladder at the first edge, and the roofs

  static BenchSizes of_quick() { return {.edges = {4096}, .quick = true}; }
};

/// The bench with these sizes. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::tiling

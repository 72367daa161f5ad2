#pragma once

#include <vector>

#include "kernels/matmul/hopper_gemm/run/report.hpp"

namespace tilestep::hopper_gemm {

/// The timed work: C = A·B^T of random numbers, C in BF16.
struct BenchSizes {
  std::vector<int> edges = {4096, 8192, 16384};  ///< m = n = k
  int counted_edge = 4096;                       ///< one of them
  GemmShape thin = {64, 8192, 8192};             ///< few rows: B's bytes count
  int fp8_edge = 8192;
  /// For zeros beside random data; for the stages m and n are this, and k is four times as large.
  int swept_edge = 4096;
  std::vector<GemmShape> checked = {{64, 64, 64},    {136, 200, 128},   {200, 1000, 136},
                                    {256, 256, 256}, {1000, 136, 1000}, {1, 8, 16}};
  /// For tile after tile, by k; m and n are this.
  int wide_edge = 8192;
  std::vector<int> depths = {256, 512, 1024, 2048, 8192};
  int products = 4096;  ///< of the stage that stays
  int rounds = 5;
  double turn_ms = 2000;  ///< of a kernel in a round
  bool quick = false;     ///< the ladder of the edges alone

  /// Sizes that the emulation finishes in a moment.
  static BenchSizes tiny() {
    return {{64}, 64, {64, 64, 128}, 128, 64, {{136, 64, 72}}, 128, {64}, 8, 1, 0};
  }
  static BenchSizes of_quick() { return {.edges = {8192}, .quick = true}; }
};

/// The bench with these sizes. The device can time.
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::hopper_gemm

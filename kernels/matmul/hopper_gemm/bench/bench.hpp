#pragma once

#include <vector>

#include "kernels/matmul/hopper_gemm/run/report.hpp"

namespace tilestep::hopper_gemm {

/// What is timed: C = A·B^T of random numbers, C in BF16.
struct BenchSizes {
  std::vector<int> edges = {4096, 8192, 16384};  ///< m = n = k
  int counted_edge = 4096;                       ///< one of them
  GemmShape thin = {64, 8192, 8192};             ///< few rows: B's bytes count
  int fp8_edge = 8192;
  /// Of zeros beside random data; by stages m and n are this, and k is four times as much.
  int swept_edge = 4096;
  std::vector<GemmShape> checked = {{64, 64, 64},    {136, 200, 128},   {200, 1000, 136},
                                    {256, 256, 256}, {1000, 136, 1000}, {1, 8, 16}};
  int products = 4096;  ///< of the stage that stays
  int rounds = 5;
  double turn_ms = 2000;  ///< of a kernel in a round
  bool quick = false;     ///< the ladder of the edges alone

  static BenchSizes of_quick() { return {.edges = {8192}, .quick = true}; }
};

/// The bench with these sizes. The device can time. Tables:
///  - `ladder`: rung, what_changed
///  - `ladder_measured`: rung, size, configuration, tflops, p10, p90, fraction
///  - `configurations`: rung, configuration, size, tflops, fraction
///  - `counters`: rung, tensor_pipe, store_conflicts, dram_bytes, l2_bytes
///  - `store_conflicts`: layout, wavefronts, conflicts, matrices
///  - `raster_bytes`: raster, cluster, dram_bytes, l2_bytes
///  - `conflicts`: access, row_bytes, layout, derived, traced, counted
///  - `fp8`: rung, configuration, tflops, p10, p90, peer_name, fraction
///  - `fp8_error`: sums, mean_error, largest_error
///  - `stages_measured`: stages, tflops, cycles, predicted, p10, p90
///  - `instruction_roofs`: tile, cycles, fed, tensor_cycles, read_cycles, write_cycles,
///    delivered, share
///  - `data`: data, tflops, clock_mhz, pipe_share
///  - `resources`: configuration, threads, registers, spilled, shared, blocks
lab::Report bench_report(simt::Device& device, lab::Progress& progress, const BenchSizes& sizes);

}  // namespace tilestep::hopper_gemm

#pragma once

#include <vector>

#include "kernels/matmul/hopper_gemm/kernels.hpp"
#include "kernels/matmul/hopper_gemm/lesson.hpp"
#include "kernels/matmul/hopper_gemm/reference.hpp"

/// The building blocks of the lesson's report.
namespace tilestep::hopper_gemm {

/// A run's data.
struct Outcome {
  Params params;
  Matrices matrices;
  numeric::AllBounded reference;
  std::vector<float> c;  ///< by the unbroken kernel, row-major without gaps
  Trace trace;
  bool device_lost = false;  ///< the broken kernel made this process lose its GPU
};

/// Runs the kernel with `params`: run.cpp.
Outcome gather(const Params& params, simt::Device& device, lab::Progress& progress);

/// Runs the explained kernel once on `device`; C without gaps. Throws Error if it fails. `clocks` receives
/// kSites + 1 rows of `numbers`.
std::vector<float> run_explained(simt::Device& device, const Explanation& what,
                                 const Matrices& matrices, std::vector<long long>& clocks);

/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Outcome& outcome);

/// The rungs and the change in each.
lab::Table ladder_table();

/// A multiprocessor's tensor-core cycles for one wgmma of 64 × n × 32 bytes of k: 4096 floating-point
/// operations per cycle in 16 bits, 8192 in 8 (989 and 1979 TFLOP/s for 132 at 1.83 GHz).
constexpr int tensor_cycles(int columns) {
  return columns / 2;
}
/// Shared-memory cycles to read its operands, at 128 bytes per cycle.
constexpr int read_cycles(int columns) {
  return (64 + columns) * 32 / 128;
}
/// Shared-memory cycles to write its operands when they arrive; consumers share those of B.
constexpr int write_cycles(int columns, int consumers) {
  return (64 * consumers + columns) * 32 / 128 / consumers;
}

/// Passes for 16 bytes of each of 8 rows: consecutive rows of `row_bytes` hit the same banks; swizzled by as
/// many bytes, they fall into all banks.
constexpr int matrix_passes(int row_bytes, bool swizzled) {
  return swizzled ? 1 : row_bytes / 16;
}
/// The same from the addresses of 4 matrices' 32 rows: passes per matrix.
double traced_passes(const std::vector<int>& places);

}  // namespace tilestep::hopper_gemm

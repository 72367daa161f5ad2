#pragma once

#include <vector>

#include "kernels/matmul/hopper_gemm/kernels.hpp"
#include "kernels/matmul/hopper_gemm/lesson.hpp"
#include "kernels/matmul/hopper_gemm/reference.hpp"

/// The parts that the lesson's answers are put together from.
namespace tilestep::hopper_gemm {

/// What a run has gathered.
struct Outcome {
  Params params;
  Plan plan;
  GemmShape shape;
  Matrices matrices;
  numeric::AllBounded reference;
  std::vector<float> c;  ///< by the kernel with nothing left out, row-major without gaps
  Trace trace;
  bool device_lost = false;  ///< the broken kernel has cost this process its GPU
};

/// Runs the kernel with `params`: gather.cpp.
Outcome gather(const Params& params, simt::Device& device, lab::Progress& progress);

/// The explained kernel once on `device`, C without gaps. Throws Error for what goes wrong in it. `clocks`
/// takes kSites + 1 rows of `numbers`.
std::vector<float> run_explained(simt::Device& device, const Explanation& what,
                                 const Matrices& matrices, std::vector<long long>& clocks);

/// The report of a run: summary, tables, measurements, checks, trace.
lab::Report report_of(const Outcome& outcome);

/// The rungs with what changed in each.
lab::Table ladder_table();

/// Cycles that the tensor cores of a multiprocessor take for one wgmma of 64 × n × 32 bytes of k: 4096
/// floating-point operations a cycle in 16 bits, 8192 in 8 (989 and 1979 TFLOP/s of 132 at 1.83 GHz).
constexpr int tensor_cycles(int columns) {
  return columns / 2;
}
/// Cycles that shared memory takes to serve its operands, at 128 bytes a cycle.
constexpr int read_cycles(int columns) {
  return (64 + columns) * 32 / 128;
}
/// Cycles that it takes to write them when they come, of which several consumers share those of B.
constexpr int write_cycles(int columns, int consumers) {
  return (64 * consumers + columns) * 32 / 128 / consumers;
}

/// Passes that 16 bytes of each of 8 rows take: rows of `row_bytes` below each other meet in the same banks,
/// swizzled by as many bytes they lie in all.
constexpr int matrix_passes(int row_bytes, bool swizzled) {
  return swizzled ? 1 : row_bytes / 16;
}
/// The same from the addresses of 4 matrices' 32 rows: passes of a matrix.
double traced_passes(const std::vector<int>& places);

}  // namespace tilestep::hopper_gemm

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

}  // namespace tilestep::hopper_gemm

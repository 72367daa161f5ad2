#pragma once

#include <cstdint>

#include "kernels/base/lab/bench.hpp"
#include "kernels/matmul/tiling/reference.hpp"
#include "kernels/matmul/tiling/run/report.hpp"

/// What the bench multiplies, and how it compares results with double.
namespace tilestep::tiling {

/// Random matrices of one shape on host and device, in both formats.
class Problem {
 public:
  Problem(simt::Device& device, const GemmShape& wanted);

  const GemmShape shape;
  const Matrices fp32, bf16;
  const simt::Buffer<float> a, b;
  const simt::Buffer<std::uint16_t> a_bits, b_bits;
  simt::Buffer<float> c;
};

/// How many elements of C are compared with double where all would take too long.
inline constexpr int kProbes = 256;

/// A rung in one of its configurations (or kBestConfiguration), and the library. Verifying compares
/// all of C where that is cheap, else kProbes random elements, the corners among them, and none may
/// be NaN. The problem outlives what is returned.
lab::Runnable rung_on(Problem& problem, simt::Device& device, Variant variant, int configuration);
lab::Runnable library_on(Problem& problem, simt::Device& device, Precision precision);

}  // namespace tilestep::tiling

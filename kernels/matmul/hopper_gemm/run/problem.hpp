#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/base/lab/bench.hpp"
#include "kernels/matmul/hopper_gemm/reference.hpp"

namespace tilestep::hopper_gemm {

/// A product prepared on the device. A and B repeat a period, so that the host knows all their numbers; k is
/// a multiple of 16.
struct Problem {
  Problem(simt::Device& device, const GemmShape& wanted, DataType of, Data data, bool scaled);

  simt::Device& device;
  GemmShape shape;
  DataType type;
  lab::Repeated<std::uint16_t> a, b;
  std::vector<float> a_scales, b_scales;  ///< [k / 128][m], [n / 128][k / 128]; empty: none
  simt::Buffer<float> a_scales_there, b_scales_there;
  simt::Buffer<std::uint16_t> c;

  Operands operands() const { return {a.span(), b.span()}; }
  ScaleArrays scales() const { return {a_scales_there.span(), b_scales_there.span()}; }
  simt::LibraryArrays library_arrays();
  simt::LibraryProduct library_product(bool fast_accumulation = false) const;

  /// 2·m·n·k.
  double flops() const;
  /// A, B and C once.
  double bytes() const;
};

/// Elements compared with double if C is large.
inline constexpr int kProbes = 256;

/// C against double at kProbes elements; `slack` times the bound of one order of additions.
lab::Closest compare(const Problem& problem, double slack);
/// A compiled kernel on the problem; its result is compared with double at kProbes elements.
lab::Runnable kernel_on(Problem& problem, int configuration, int stages = 0,
                        Raster raster = Raster::grouped);
/// The same with one of the library's algorithms.
lab::Runnable library_on(Problem& problem, int algorithm, bool fast_accumulation);

}  // namespace tilestep::hopper_gemm

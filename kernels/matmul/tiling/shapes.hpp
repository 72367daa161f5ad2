#pragma once

#include <cassert>
#include <cstdint>
#include <string>

#include "kernels/base/simt/error.hpp"
#include "kernels/matmul/tiling/kernels.hpp"

/// Which shapes the kernels take; the same for both backends.
namespace tilestep::tiling {

/// Throws Error naming the size that is not allowed. Each matrix must have fewer than 2^31
/// elements, because the kernels number them with an int.
inline void check_gemm(const GemmShape& shape) {
  const auto within = [](const char* what, int value) {
    if (value >= 1) return;
    throw Error("tiling: " + std::string(what) + " is " + std::to_string(value) +
                "; it must be 1 or more");
  };
  within("m", shape.m);
  within("n", shape.n);
  within("k", shape.k);
  const auto fits = [](const char* matrix, std::int64_t rows, std::int64_t columns) {
    if (rows * columns < (std::int64_t{1} << 31)) return;
    throw Error("tiling: " + std::string(matrix) + " of " + std::to_string(rows) + " x " +
                std::to_string(columns) + " has more than 2147483647 elements");
  };
  fits("A", shape.m, shape.k);
  fits("B", shape.k, shape.n);
  fits("C", shape.m, shape.n);
}

/// Asserts that the arrays have the shape's sizes.
template <class Ops>
void check_operands(const GemmShape& shape, const Ops& operands) {
  check_gemm(shape);
  [[maybe_unused]] const auto at = [](int a, int b) {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
  };
  assert(operands.a.count == at(shape.m, shape.k));
  assert(operands.b.count == at(shape.k, shape.n));
  assert(operands.c.count == at(shape.m, shape.n));
  (void)operands;
}

inline void check_picture(const PictureRun& run) {
  if (run.tile < 1 || run.tile > 32) {
    throw Error("tiling: the picture's tile is " + std::to_string(run.tile) +
                "; a block of tile x tile threads allows 1–32");
  }
  assert(has_picture(run.variant));
}

}  // namespace tilestep::tiling

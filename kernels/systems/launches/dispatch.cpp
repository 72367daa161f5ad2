#include "kernels/systems/launches/dispatch.hpp"

#include <fmt/format.h>

namespace tilestep::launches {

Choice chosen_for(const Product& product) {
  const int numbers = 16 / bytes_of(product.dtype);
  if (product.offset % 16 != 0) {
    return {Kernel::single,
            fmt::format("W begins {} bytes past a multiple of 16", product.offset % 16)};
  }
  if (product.k % numbers != 0) {
    return {Kernel::single, fmt::format("k is no multiple of {}: rows are unaligned", numbers)};
  }
  if (product.m < kLeastRows) {
    return {Kernel::vectors,
            fmt::format("{} of {} rows of a tile would be empty", kTileM - product.m, kTileM)};
  }
  if (product.dtype == Dtype::fp32) {
    return {Kernel::vectors, "tensor cores have no FP32, only TF32, which rounds"};
  }
  return {Kernel::tensor, "aligned, and rows enough for a tile"};
}

double filled(int m, int n, const Tiling& tiling, int multiprocessors) {
  return static_cast<double>(m) * n /
         (static_cast<double>(tiling.waves) * multiprocessors * kTileM * kTileN);
}

}  // namespace tilestep::launches

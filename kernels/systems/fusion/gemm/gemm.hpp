#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/base/lab/names.hpp"
#include "kernels/base/simt/simt.hpp"

/// The host's side of products with an epilogue.
namespace tilestep::fusion {

/// What follows a product C = X · W^T, of BF16 with sums in FP32.
enum class Epilogue {
  none,      ///< C
  bias,      ///< C + bias, a number per column
  residual,  ///< C + residual, as large as C
  swiglu     ///< silu(gates) · values: half of C's columns each
};
constexpr auto names_of(Epilogue) {
  return std::to_array<std::string_view>({"none", "bias", "residual", "SwiGLU"});
}
constexpr int output_columns(Epilogue epilogue, int n) {
  return epilogue == Epilogue::swiglu ? n / 2 : n;
}

/// X [m × k], W [n × k]. k is a multiple of 8, n of 16.
struct ProductShape {
  int m = 0, n = 0, k = 0;
};
/// A block's tile. Large: 128 × 256, two blocks share columns of W. For few rows of X, small: 64 × 128, and narrow: 64 × 64,
/// which is not for SwiGLU.
enum class TileSize { large, small, narrow };
/// Bit patterns of BF16, row-major.
struct ProductArrays {
  simt::Span<const std::uint16_t> x, w;
  simt::Span<const std::uint16_t> second;  ///< bias [n], residual [m × n], or nothing
  simt::Span<std::uint16_t> out;           ///< m × output_columns
};

}  // namespace tilestep::fusion

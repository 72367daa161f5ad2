#pragma once

#include "kernels/systems/parallelism/kernels.hpp"

/// The host's side of a product that begins before its tokens are there.
namespace tilestep::parallelism {

/// C [m x n] = A [m x k] * B^T, B [n x k], of BF16 with sums in FP32. Rows of A come in chunks.
struct ComingShape {
  int m = 0, n = 0, k = 0;
  int rows = 0;  ///< of a chunk
  int call = 0;  ///< to be named if a chunk does not come
};
struct ComingArrays {
  simt::Span<const std::uint16_t> a, b;
  simt::Span<std::uint16_t> c;
  simt::Span<unsigned>
      flags;  ///< by chunk: not 0 once it is there. The first is there from the start.
};

}  // namespace tilestep::parallelism

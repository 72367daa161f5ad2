#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/numeric/running_sum.hpp"
#include "kernels/matmul/tiling/kernels.hpp"

/// The answers in double, by another order of the loops than the kernels', and how far a kernel may
/// be off.
namespace tilestep::tiling {

using numeric::Adding;

/// Two random matrices, uniform in (−1, 1), the same for the same seed on every machine. With
/// `bf16` every element is rounded to BF16.
struct Matrices {
  std::vector<float> a;  ///< m × k
  std::vector<float> b;  ///< k × n
};
Matrices make_matrices(const GemmShape& shape, std::int64_t seed, bool bf16);

/// The bit patterns of values that BF16 holds exactly.
std::vector<std::uint16_t> bf16_bits(std::span<const float> values);

/// C = A·B in double, m × n, of m·n·k products.
numeric::AllBounded reference_product(const GemmShape& shape, const Matrices& matrices,
                                      Adding adding);
/// One element of it.
numeric::Bounded reference_element(const GemmShape& shape, const Matrices& matrices, int row,
                                   int column, Adding adding);

/// How many elements of A and B a launch loads whose blocks compute tile_m × tile_n of C from tiles
/// of A and B that they load once: every block loads its rows of A and its columns of B.
std::int64_t tiled_loads(const GemmShape& shape, int tile_m, int tile_n);
/// Without tiles every product loads both factors: 2·m·n·k.
std::int64_t untiled_loads(const GemmShape& shape);

}  // namespace tilestep::tiling

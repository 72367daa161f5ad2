#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/matmul/tiling/kernels.hpp"

/// The answers in double, by another order of the loops than the kernels', and how far a kernel may
/// be off.
namespace tilestep::tiling {

/// Two random matrices, uniform in (−1, 1), the same for the same seed on every machine. With
/// `bf16` every element is rounded to BF16.
struct Matrices {
  std::vector<float> a;  ///< m × k
  std::vector<float> b;  ///< k × n
};
Matrices make_matrices(const GemmShape& shape, std::int64_t seed, bool bf16);

/// The bit patterns of values that BF16 holds exactly.
std::vector<std::uint16_t> bf16_bits(std::span<const float> values);

/// How a kernel adds its k products, and so how far it may be off. u = 2^−24 throughout.
enum class Adding {
  /// One after another along k, each product and sum rounded to FP32 (or the two together, by FMA):
  /// u · Σ (|product| + |partial sum|), the running bound of Higham, "Accuracy and Stability of
  /// Numerical Algorithms", 3.3. For data of both signs it is hundreds of times below `any_order`.
  in_order,
  /// mma.m16n8k16 along k: products exact, 16 of them and the accumulator aligned to the largest
  /// and cut off, each loses less than one spacing, 2u, of what the largest can be (truncation
  /// seen by Fasi, Higham, Mikaitis & Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021):
  /// 17 · 2u · Σ over groups of 16 of (|sum before| + Σ |product|).
  tensor_core,
  /// FP32 in an order that is not known, as in a library: k·u / (1 − k·u) · Σ|product| (the same
  /// book, 3.1).
  any_order,
  /// The same on tensor cores: 4 times that, for truncation and fewer bits kept while they add.
  any_order_tensor_core,
};

struct Product {
  std::vector<double> c;      ///< m × n
  std::vector<double> bound;  ///< m × n: largest error that rounding can explain
};
/// C = A·B in double, m·n·k products.
Product reference_product(const GemmShape& shape, const Matrices& matrices, Adding adding);

/// One element of it.
struct Element {
  double value = 0, bound = 0;
};
Element reference_element(const GemmShape& shape, const Matrices& matrices, int row, int column,
                          Adding adding);

/// How many elements of A and B a launch loads whose blocks compute tile_m × tile_n of C from tiles
/// of A and B that they load once: every block loads its rows of A and its columns of B.
std::int64_t tiled_loads(const GemmShape& shape, int tile_m, int tile_n);
/// Without tiles every product loads both factors: 2·m·n·k.
std::int64_t untiled_loads(const GemmShape& shape);

}  // namespace tilestep::tiling

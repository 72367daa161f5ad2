#include "tiling/tiling_reference.hpp"

#include <bit>
#include <cmath>
#include <random>

#include "numeric/float_format.hpp"

namespace tilestep::tiling {
namespace {

constexpr double kUnitRoundoff = numeric::Fp32::kUnitRoundoff;

/// Relative to the sum of the products' magnitudes.
double relative_bound(int k, bool tensor_core) {
  const double ku = static_cast<double>(k) * kUnitRoundoff;
  return ku / (1 - ku) * (tensor_core ? 4 : 1);
}

std::size_t index_of(int row, int column, int columns) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
         static_cast<std::size_t>(column);
}

std::vector<float> random_matrix(std::mt19937& generator, int rows, int columns, bool bf16) {
  std::vector<float> values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  for (float& value : values) {
    // 24 bits of the generator, so that every standard library gives the same number.
    const auto bits = static_cast<double>(generator() >> 8);
    value = static_cast<float>((2 * bits + 1) / 16777216.0 - 1);
    if (bf16) value = numeric::Bf16::round(value);
  }
  return values;
}

}  // namespace

Matrices make_matrices(const GemmShape& shape, std::int64_t seed, bool bf16) {
  std::mt19937 generator(static_cast<std::mt19937::result_type>(seed));
  Matrices matrices;
  matrices.a = random_matrix(generator, shape.m, shape.k, bf16);
  matrices.b = random_matrix(generator, shape.k, shape.n, bf16);
  return matrices;
}

std::vector<std::uint16_t> bf16_bits(std::span<const float> values) {
  std::vector<std::uint16_t> bits;
  bits.reserve(values.size());
  for (const float value : values) {
    bits.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
  }
  return bits;
}

// One outer product of a column of A and a row of B after another.
Product reference_product(const GemmShape& shape, const Matrices& matrices, bool tensor_core) {
  const std::size_t outputs = index_of(shape.m, 0, shape.n);
  Product product{std::vector<double>(outputs, 0.0), std::vector<double>(outputs, 0.0)};
  for (int kk = 0; kk < shape.k; ++kk) {
    const float* b_row = &matrices.b[index_of(kk, 0, shape.n)];
    for (int row = 0; row < shape.m; ++row) {
      const auto a = static_cast<double>(matrices.a[index_of(row, kk, shape.k)]);
      double* c = &product.c[index_of(row, 0, shape.n)];
      double* bound = &product.bound[index_of(row, 0, shape.n)];
      for (int column = 0; column < shape.n; ++column) {
        const double term = a * static_cast<double>(b_row[column]);
        c[column] += term;
        bound[column] += std::abs(term);
      }
    }
  }
  const double relative = relative_bound(shape.k, tensor_core);
  for (double& bound : product.bound) bound *= relative;
  return product;
}

Element reference_element(const GemmShape& shape, const Matrices& matrices, int row, int column,
                          bool tensor_core) {
  Element element;
  for (int kk = 0; kk < shape.k; ++kk) {
    const double term = static_cast<double>(matrices.a[index_of(row, kk, shape.k)]) *
                        static_cast<double>(matrices.b[index_of(kk, column, shape.n)]);
    element.value += term;
    element.bound += std::abs(term);
  }
  element.bound *= relative_bound(shape.k, tensor_core);
  return element;
}

std::int64_t tiled_loads(const GemmShape& shape, int tile_m, int tile_n) {
  const std::int64_t blocks_down = (shape.m + tile_m - 1) / tile_m;
  const std::int64_t blocks_across = (shape.n + tile_n - 1) / tile_n;
  const std::int64_t of_a = blocks_across * shape.m * shape.k;
  const std::int64_t of_b = blocks_down * shape.k * shape.n;
  return of_a + of_b;
}

std::int64_t untiled_loads(const GemmShape& shape) {
  return std::int64_t{2} * shape.m * shape.n * shape.k;
}

}  // namespace tilestep::tiling

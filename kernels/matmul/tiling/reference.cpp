#include "kernels/matmul/tiling/reference.hpp"

#include <algorithm>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::tiling {

using numeric::elements_of, numeric::index_of, numeric::RunningSum;

Matrices make_matrices(const GemmShape& shape, std::int64_t seed, bool bf16) {
  std::mt19937 generator = lab::generator_of(seed);
  const auto matrix = [&](int rows, int columns) {
    std::vector<float> values = lab::uniform_floats(generator, elements_of(rows, columns));
    if (bf16) std::transform(values.begin(), values.end(), values.begin(), numeric::Bf16::round);
    return values;
  };
  Matrices matrices;
  matrices.a = matrix(shape.m, shape.k);
  matrices.b = matrix(shape.k, shape.n);
  return matrices;
}

std::vector<std::uint16_t> bf16_bits(std::span<const float> values) {
  std::vector<std::uint16_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(), numeric::Bf16::bits);
  return bits;
}

// One outer product of a column of A and a row of B after another.
numeric::AllBounded reference_product(const GemmShape& shape, const Matrices& matrices,
                                      Adding adding) {
  std::vector<RunningSum> sums(elements_of(shape.m, shape.n), RunningSum(adding));
  for (int kk = 0; kk < shape.k; ++kk) {
    const float* b_row = &matrices.b[index_of(kk, 0, shape.n)];
    for (int row = 0; row < shape.m; ++row) {
      const auto a = static_cast<double>(matrices.a[index_of(row, kk, shape.k)]);
      RunningSum* c = &sums[index_of(row, 0, shape.n)];
      for (int column = 0; column < shape.n; ++column) {
        c[column].add(a * static_cast<double>(b_row[column]));
      }
    }
  }
  numeric::AllBounded product;
  for (RunningSum& sum : sums) product.push_back(sum.result());
  return product;
}

numeric::Bounded reference_element(const GemmShape& shape, const Matrices& matrices, int row,
                                   int column, Adding adding) {
  RunningSum sum(adding);
  for (int kk = 0; kk < shape.k; ++kk) {
    sum.add(static_cast<double>(matrices.a[index_of(row, kk, shape.k)]) *
            static_cast<double>(matrices.b[index_of(kk, column, shape.n)]));
  }
  return sum.result();
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

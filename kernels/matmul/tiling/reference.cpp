#include "kernels/matmul/tiling/reference.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"

namespace tilestep::tiling {
namespace {

constexpr double kUnitRoundoff = numeric::Fp32::kUnitRoundoff;

/// Products that mma.m16n8k16 adds at once.
constexpr int kMmaDepth = 16;
/// The bounds are made of the exact sums; a kernel's own differ from them by what is bounded.
constexpr double kSlack = 1.01;

/// The sum of one element of C and its error bound, product by product.
class RunningSum {
 public:
  explicit RunningSum(Adding adding) : adding_(adding) {}

  void add(double product) {
    if (adding_ == Adding::tensor_core && terms_ % kMmaDepth == 0) close_group();
    sum_ += product;
    magnitude_ += std::abs(product);
    if (adding_ == Adding::in_order) weight_ += std::abs(product) + std::abs(sum_);
    ++terms_;
  }
  double sum() const { return sum_; }
  double bound() {
    const double ku = static_cast<double>(terms_) * kUnitRoundoff;
    switch (adding_) {
      case Adding::in_order:
        return kSlack * kUnitRoundoff * weight_;
      case Adding::tensor_core:
        close_group();
        return kSlack * (kMmaDepth + 1) * 2 * kUnitRoundoff * weight_;
      case Adding::any_order:
        return ku / (1 - ku) * magnitude_;
      case Adding::any_order_tensor_core:
        break;
    }
    return 4 * ku / (1 - ku) * magnitude_;
  }

 private:
  void close_group() {
    if (terms_ > 0) weight_ += std::abs(before_) + magnitude_;
    before_ = sum_;
    magnitude_ = 0;
  }

  Adding adding_;
  int terms_ = 0;
  double sum_ = 0, before_ = 0;
  double magnitude_ = 0;  ///< of the products, of this group alone for the tensor cores
  double weight_ = 0;     ///< what the unit roundoff is multiplied with
};

std::size_t index_of(int row, int column, int columns) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
         static_cast<std::size_t>(column);
}

}  // namespace

Matrices make_matrices(const GemmShape& shape, std::int64_t seed, bool bf16) {
  std::mt19937 generator = lab::generator_of(seed);
  const auto matrix = [&](int rows, int columns) {
    std::vector<float> values = lab::uniform_floats(generator, index_of(rows, 0, columns));
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
Product reference_product(const GemmShape& shape, const Matrices& matrices, Adding adding) {
  std::vector<RunningSum> sums(index_of(shape.m, 0, shape.n), RunningSum(adding));
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
  Product product;
  for (RunningSum& sum : sums) {
    product.c.push_back(sum.sum());
    product.bound.push_back(sum.bound());
  }
  return product;
}

Element reference_element(const GemmShape& shape, const Matrices& matrices, int row, int column,
                          Adding adding) {
  RunningSum sum(adding);
  for (int kk = 0; kk < shape.k; ++kk) {
    sum.add(static_cast<double>(matrices.a[index_of(row, kk, shape.k)]) *
            static_cast<double>(matrices.b[index_of(kk, column, shape.n)]));
  }
  return {sum.sum(), sum.bound()};
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

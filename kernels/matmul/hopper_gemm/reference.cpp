#include "kernels/matmul/hopper_gemm/reference.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::hopper_gemm {

using numeric::index_of, numeric::elements_of;

namespace {

std::uint32_t bits_of(float value, DataType type) {
  if (type == DataType::bf16) return numeric::Bf16::bits(value);
  return numeric::encode(type == DataType::fp16 ? numeric::kFp16 : numeric::kE4m3, value);
}

}  // namespace

float rounded(float value, DataType type) {
  if (type == DataType::bf16) return numeric::Bf16::round(value);
  if (type == DataType::fp16) return numeric::Fp16::round(value);
  return static_cast<float>(
      numeric::decode(numeric::kE4m3, numeric::encode(numeric::kE4m3, value)));
}

std::vector<std::uint16_t> packed(const std::vector<float>& values, int rows, int columns,
                                  DataType type) {
  const int bytes = element_bytes(type);
  const int pitch = pitch_bytes(columns, bytes) / 2;  // in words
  std::vector<std::uint16_t> words(elements_of(rows, pitch));
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const std::uint32_t bits = bits_of(values[index_of(row, column, columns)], type);
      std::uint16_t& word = words[index_of(row, column * bytes / 2, pitch)];
      const int shift = bytes == 1 ? column % 2 * 8 : 0;
      word = static_cast<std::uint16_t>(word | bits << shift);
    }
  }
  return words;
}

Matrices make_matrices(const GemmShape& shape, DataType type, std::int64_t seed) {
  std::mt19937 generator = lab::generator_of(seed);
  const auto matrix = [&](int rows) {
    std::vector<float> values = lab::uniform_floats(generator, elements_of(rows, shape.k));
    for (float& value : values) value = rounded(value, type);
    return values;
  };
  Matrices matrices;
  matrices.a = matrix(shape.m);
  matrices.b = matrix(shape.n);
  matrices.a_words = packed(matrices.a, shape.m, shape.k, type);
  matrices.b_words = packed(matrices.b, shape.n, shape.k, type);
  return matrices;
}

double unit_of(DataType type) {
  return type == DataType::fp8_e4m3 ? 0x1p-13 : 0x1p-23;
}

numeric::Bounded reference_dot(std::span<const float> a, std::span<const float> b, DataType type) {
  const auto group = static_cast<std::size_t>(32 / element_bytes(type));  // added at once
  // The numbers of a group and the sum before, each cut, and the result once more.
  const double lost = 1.01 * static_cast<double>(group + 2) * unit_of(type);
  numeric::Bounded dot;
  for (std::size_t first = 0; first < a.size(); first += group) {
    double magnitude = std::abs(dot.value);
    for (std::size_t i = first; i < std::min(first + group, a.size()); ++i) {
      const double term = static_cast<double>(a[i]) * static_cast<double>(b[i]);
      dot.value += term;
      magnitude += std::abs(term);
    }
    dot.bound += lost * magnitude;
  }
  return dot;
}

numeric::AllBounded reference_product(const GemmShape& shape, const Matrices& matrices,
                                      DataType type) {
  const auto k = static_cast<std::size_t>(shape.k);
  const auto row_of = [k](const std::vector<float>& matrix, int row) {
    return std::span(matrix).subspan(static_cast<std::size_t>(row) * k, k);
  };
  numeric::AllBounded product;
  for (int row = 0; row < shape.m; ++row) {
    for (int column = 0; column < shape.n; ++column) {
      product.push_back(reference_dot(row_of(matrices.a, row), row_of(matrices.b, column), type));
    }
  }
  return product;
}

numeric::Bounded reference_scaled_dot(std::span<const float> a, std::span<const float> b,
                                      std::span<const float> a_scales,
                                      std::span<const float> b_scales) {
  constexpr std::size_t kBlock = 128;
  constexpr double kRoundings = 4;  // of the scales' product, of the part times it, of two sums
  numeric::Bounded dot;
  for (std::size_t block = 0; block * kBlock < a.size(); ++block) {
    const std::size_t count = std::min(kBlock, a.size() - block * kBlock);
    const numeric::Bounded part = reference_dot(
        a.subspan(block * kBlock, count), b.subspan(block * kBlock, count), DataType::fp8_e4m3);
    const double scale =
        static_cast<double>(a_scales[block]) * static_cast<double>(b_scales[block]);
    dot.value += part.value * scale;
    dot.bound += std::abs(scale) * part.bound +
                 kRoundings * numeric::Fp32::kUnitRoundoff *
                     (std::abs(scale) * (std::abs(part.value) + part.bound) + std::abs(dot.value));
  }
  return dot;
}

float number_of(std::span<const std::uint16_t> words, std::size_t at, DataType type) {
  if (type == DataType::bf16) return numeric::Bf16::value(words[at]);
  if (type == DataType::fp16) {
    return static_cast<float>(numeric::decode(numeric::kFp16, words[at]));
  }
  const auto byte = static_cast<std::uint32_t>(words[at / 2] >> (at % 2 * 8)) & 0xFFu;
  return static_cast<float>(numeric::decode(numeric::kE4m3, byte));
}

}  // namespace tilestep::hopper_gemm

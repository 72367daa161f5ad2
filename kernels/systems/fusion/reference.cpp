#include "kernels/systems/fusion/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/numeric/small_float.hpp"

// Two passes over a row, one for the sum and one for the numbers, all in double; nothing is merged along the way.

namespace tilestep::fusion {
namespace {

constexpr double kUnit = 0x1p-24;

numeric::FloatSpec spec_of(Dtype type) {
  return type == Dtype::bf16   ? numeric::kBf16
         : type == Dtype::fp16 ? numeric::kFp16
                               : numeric::kFp32;
}

}  // namespace

float rounded_to(Dtype type, float number) {
  if (type == Dtype::fp32) return number;
  return type == Dtype::bf16 ? numeric::Bf16::round(number) : numeric::Fp16::round(number);
}

double half_spacing(Dtype type, double magnitude) {
  return numeric::ulp(spec_of(type), magnitude) / 2;
}

std::vector<unsigned char> packed(Dtype type, std::span<const float> numbers) {
  const auto size = static_cast<std::size_t>(bytes_of(type));
  std::vector<unsigned char> bytes(numbers.size() * size);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::uint32_t bits =
        numeric::encode(spec_of(type), static_cast<double>(rounded_to(type, numbers[i])));
    std::memcpy(&bytes[i * size], &bits, size);
  }
  return bytes;
}

std::vector<float> unpacked(Dtype type, std::span<const unsigned char> bytes) {
  const auto size = static_cast<std::size_t>(bytes_of(type));
  std::vector<float> numbers(bytes.size() / size);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &bytes[i * size], size);
    numbers[i] = static_cast<float>(numeric::decode(spec_of(type), bits));
  }
  return numbers;
}

Inputs make_inputs(const RowShape& shape, std::int64_t seed) {
  std::mt19937 generator = lab::generator_of(seed);
  const std::size_t count = numeric::elements_of(shape.rows, shape.width);
  const auto width = static_cast<std::size_t>(shape.width);
  const std::vector<float> x = lab::normal_floats(generator, count);
  std::vector<float> residual = lab::normal_floats(generator, count);
  std::vector<float> gain = lab::uniform_floats(generator, width);
  for (std::size_t i = kOutlierAt % width; i < count; i += width) residual[i] = kOutlier;
  for (float& one : gain) one = 1.0f + 0.25f * one;
  return {packed(shape.type, x), packed(shape.type, residual), packed(shape.type, gain)};
}

Reference reference_chain(const RowShape& shape, const Inputs& inputs) {
  const std::vector<float> x = unpacked(shape.type, inputs.x);
  const std::vector<float> residual = unpacked(shape.type, inputs.residual);
  const std::vector<float> gain = unpacked(shape.type, inputs.gain);
  const auto width = static_cast<std::size_t>(shape.width);
  Reference reference;
  for (std::size_t row = 0; row < x.size() / width; ++row) {
    const std::size_t start = row * width;
    double squares = 0;
    for (std::size_t i = start; i < start + width; ++i) {
      const float h = rounded_to(shape.type, x[i] + residual[i]);
      reference.sum.push_back(static_cast<double>(h));
      squares += static_cast<double>(h) * static_cast<double>(h);
    }
    const double norm =
        std::sqrt(squares / static_cast<double>(width) + static_cast<double>(kEpsilon));
    // A square goes through at most 64 additions of its thread, 5 of its warp, 5 of its block and 8 of its cluster; the
    // root halves the error, which three more operations round.
    const double relative =
        (static_cast<double>(std::min<std::size_t>(width, 64)) + 18) / 2 * kUnit + 4 * kUnit;
    double largest = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const double n = reference.sum[start + i] * static_cast<double>(gain[i]) / norm;
      reference.normed.push_back({n, std::abs(n) * (relative + 2 * kUnit)});
      largest = std::max(largest, std::abs(n));
    }
    reference.scale.push_back(largest / static_cast<double>(kLargestCode));
  }
  return reference;
}

double decoded(std::uint8_t code, float scale) {
  return numeric::decode(numeric::kE4m3, code) * static_cast<double>(scale);
}

double code_bound(double number, double bound, double scale, Dtype type) {
  // Rounded to the format, then to a code: half its spacing, 2^-4 of the number or 2^-10 below the normal ones. The
  // scale itself is rounded as the largest number is.
  const double in_format = std::abs(number) * 0x1p-23 + half_spacing(type, std::abs(number));
  const double of_scale = half_spacing(type, static_cast<double>(kLargestCode) * scale) /
                          static_cast<double>(kLargestCode);
  const double code = std::max(std::abs(number) * 0x1p-4, (scale + of_scale) * 0x1p-10);
  const double relative = scale > 0 ? of_scale / scale + 0x1p-22 : 0;
  return 1.01 * (code + bound + in_format) + std::abs(number) * relative;
}

double reference_loss(std::span<const float> logits, int target) {
  double largest = -INFINITY, sum = 0;
  for (const float one : logits) largest = std::max(largest, static_cast<double>(one));
  for (const float one : logits) sum += std::exp(static_cast<double>(one) - largest);
  return largest + std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(target)]);
}

double loss_bound(std::span<const float> logits, int threads) {
  double largest = 0;
  for (const float one : logits) largest = std::max(largest, std::abs(static_cast<double>(one)));
  const double each = static_cast<double>(logits.size()) / threads + 2;
  // An argument is rounded relative to the largest logit, in units of log2; 2^x is within 2 ulp.
  return kUnit * (8 * largest + 6 * each + 64);
}

numeric::Bounded reference_swiglu(Dtype type, float gate, float value) {
  const auto g = static_cast<double>(gate);
  const double exact = g / (1 + std::exp(-g)) * static_cast<double>(value);
  return {exact, std::abs(exact) * (2 * std::abs(g) + 16) * kUnit +
                     half_spacing(type, std::abs(exact) * 1.001) + 0x1p-140};
}

}  // namespace tilestep::fusion

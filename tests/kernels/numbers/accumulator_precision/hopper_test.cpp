#include "kernels/numbers/accumulator_precision/bench/hopper.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "kernels/base/numeric/small_float.hpp"
#include "kernels/numbers/accumulator_precision/kernels.hpp"
#include "kernels/numbers/accumulator_precision/lesson.hpp"
#include "tests/catch.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::accumulator_precision;
using Bits = std::vector<std::uint8_t>;

namespace {

std::uint8_t e4m3(double value) {
  return static_cast<std::uint8_t>(numeric::encode(
      numeric::kE4m3,
      numeric::round_to(numeric::kE4m3, value, Rounding::nearest, numeric::Overflow::saturate)));
}
double decoded(std::uint8_t bits) {
  return numeric::decode(numeric::kE4m3, bits);
}

Bits random_bits_of(std::size_t count, std::mt19937& generator) {
  Bits bits;
  while (bits.size() < count) {
    const auto any = static_cast<std::uint8_t>(generator());
    if ((any & 0x7F) != 0x7F) bits.push_back(any);
  }
  return bits;
}

/// The default model in double, which holds all of it exactly: std::trunc and std::ldexp alone.
double in_double(const Bits& a, const Bits& b) {
  double accumulator = 0;
  for (std::size_t first = 0; first < a.size(); first += 32) {
    std::vector<double> numbers = {accumulator};
    int largest = accumulator == 0 ? -1000 : std::ilogb(accumulator);
    for (std::size_t i = first; i < std::min(first + 32, a.size()); ++i) {
      const double x = decoded(a[i]);
      const double y = decoded(b[i]);
      numbers.push_back(x * y);
      if (x * y == 0) continue;
      // A subnormal has the smallest normal exponent, -6.
      const auto exponent = [](double v) { return std::max(std::ilogb(v), -6); };
      largest = std::max(largest, exponent(x) + exponent(y));
    }
    if (largest == -1000) continue;
    double sum = 0;
    for (const double v : numbers) {
      sum += std::ldexp(std::trunc(std::ldexp(v, 13 - largest)), largest - 13);
    }
    if (sum != 0) {
      const int low = std::ilogb(sum) - 13;
      sum = std::ldexp(std::trunc(std::ldexp(sum, -low)), low);
    }
    accumulator = sum;
  }
  return accumulator;
}

}  // namespace

TEST_CASE("the model of Hopper's FP8 path is what its description says",
          "[accumulator_precision]") {
  std::mt19937 generator(21);
  for (const std::size_t k : {1, 31, 32, 33, 128, 1000}) {
    for (int i = 0; i < 200; ++i) {
      const Bits a = random_bits_of(k, generator);
      const Bits b = random_bits_of(k, generator);
      CHECK(static_cast<double>(hopper_fp8_dot(a, b)) == in_double(a, b));
    }
  }
  CHECK(hopper_fp8_dot(Bits{}, Bits{}) == 0);
  CHECK(hopper_fp8_dot(Bits(64, e4m3(0)), Bits(64, e4m3(3))) == 0);
}

TEST_CASE("a step of the model in its parts comes to what the model holds after it",
          "[accumulator_precision]") {
  std::mt19937 generator(22);
  for (const float start : {0.0f, 3.5f, -70.0f, 4090.0f}) {
    const Bits a = random_bits_of(32, generator), b = random_bits_of(32, generator);
    const HopperStep step = hopper_step(a, b, {}, start);
    REQUIRE(step.exact.size() == 33);
    CHECK(step.exact[0] == static_cast<double>(start));
    double sum = 0;
    for (std::size_t i = 0; i < step.kept.size(); ++i) {
      if (i > 0) CHECK(step.exact[i] == decoded(a[i - 1]) * decoded(b[i - 1]));
      CHECK(step.kept[i] ==
            std::ldexp(std::trunc(std::ldexp(step.exact[i], -step.unit)), step.unit));
      sum += step.kept[i];
    }
    const int low = std::ilogb(sum) - 13;
    CHECK(static_cast<double>(step.after) == std::ldexp(std::trunc(std::ldexp(sum, -low)), low));
  }
}

TEST_CASE("the model stays within its bound, and loses what was seen", "[accumulator_precision]") {
  std::mt19937 generator(4);
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  double straight = 0;
  double promoted = 0;
  constexpr int kDots = 20;
  constexpr std::size_t kDepth = 4096;
  for (int dot = 0; dot < kDots; ++dot) {
    Bits a, b;
    double exact = 0;
    for (std::size_t i = 0; i < kDepth; ++i) {
      a.push_back(e4m3(uniform(generator)));
      b.push_back(e4m3(uniform(generator)));
      exact += decoded(a.back()) * decoded(b.back());
    }
    float total = 0;
    for (std::size_t i = 0; i < kDepth; i += 128) {
      total += hopper_fp8_dot(std::span(a).subspan(i, 128), std::span(b).subspan(i, 128));
    }
    const double error = std::abs(static_cast<double>(hopper_fp8_dot(a, b)) - exact);
    CHECK(error <= hopper_error_bound({}, kDepth, exact));
    straight += error / exact / kDots;
    promoted += std::abs(static_cast<double>(total) - exact) / exact / kDots;
  }
  INFO("straight " << straight << ", promoted " << promoted);
  CHECK(straight > 0.01);
  CHECK(straight < 0.15);
  CHECK(promoted < 0.001);
}

TEST_CASE("more bits give a smaller error", "[accumulator_precision]") {
  std::mt19937 generator(6);
  const Bits a = random_bits_of(2048, generator);
  const Bits b = random_bits_of(2048, generator);
  double exact = 0;
  for (std::size_t i = 0; i < a.size(); ++i) exact += decoded(a[i]) * decoded(b[i]);
  const auto error = [&](int bits) {
    HopperModel model;
    model.fraction_bits = bits;
    model.mantissa_bits = std::min(bits, 23);
    return std::abs(static_cast<double>(hopper_fp8_dot(a, b, model)) - exact);
  };
  CHECK(error(24) < error(13));
  CHECK(error(13) < error(6));
  const auto candidates = hopper_candidates();
  CHECK(candidates.front() == HopperModel{});
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    CHECK(std::find(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(i),
                    candidates[i]) == candidates.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

TEST_CASE("matrix kernels: exact product, widening, scales", "[accumulator_precision]") {
  const auto device = tests::test_device(simt::ThreadOrder::shuffled, 3);
  const auto& kernels = accumulator_precision::kernels_of(*device);
  std::mt19937 generator(2);
  constexpr int kM = 17, kN = 5, kK = 300;
  const Bits a = random_bits_of(kM * kK, generator);
  const Bits b = random_bits_of(kN * kK, generator);
  const simt::Buffer<std::uint8_t> a_bits(*device, std::span<const std::uint8_t>(a));
  const simt::Buffer<std::uint8_t> b_bits(*device, std::span<const std::uint8_t>(b));
  simt::Buffer<double> c(*device, kM * kN);
  kernels.exact_gemm(*device, {kM, kN, kK}, a_bits.span(), b_bits.span(), c.span());
  simt::Buffer<std::uint16_t> fp16(*device, a.size()), bf16(*device, a.size());
  kernels.widen(*device, a_bits.span(), fp16.span(), bf16.span());
  device->synchronize();
  const auto product = c.download();
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < kN; ++column) {
      double sum = 0;
      for (int kk = kK; kk-- > 0;) {
        sum += decoded(a[row * kK + kk]) * decoded(b[column * kK + kk]);
      }
      CHECK(product[row * kN + column] == sum);
    }
  }
  const auto halves = fp16.download();
  const auto brains = bf16.download();
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(numeric::decode(numeric::kFp16, halves[i]) == decoded(a[i]));
    REQUIRE(numeric::decode(numeric::kBf16, brains[i]) == decoded(a[i]));
  }
  const std::string sentence = tests::error_of([&] {
    ScaledOperands operands;
    operands.a_block = {1, 100};
    kernels.scaled_gemm(*device, {kM, kN, kK}, operands);
  });
  CHECK(tests::contains(sentence, "multiple of 128"));
}

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/base/numeric/float_format.hpp"
#include "tests/catch.hpp"

using namespace tilestep::numeric;

namespace {

/// A small binary format with its non-negative finite numbers listed in order: the number with code
/// i has the bits i, so that even codes are the even mantissas. Rounding is a search in this list,
/// in exact double arithmetic: nothing in common with the bit tricks under test.
class ListedFormat {
 public:
  ListedFormat(int exponent_bits, int mantissa_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int codes = ((1 << exponent_bits) - 1) << mantissa_bits;
    for (int code = 0; code < codes; ++code) {
      const int exponent = code >> mantissa_bits;
      const int mantissa = code & ((1 << mantissa_bits) - 1);
      const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
      const int power = (exponent == 0 ? 1 : exponent) - bias - mantissa_bits;
      numbers_.push_back(std::ldexp(static_cast<double>(whole), power));
    }
    // Where the next number would be if the exponent went on: half-way to it rounds to infinity.
    past_largest_ = 2 * numbers_.back() - numbers_[numbers_.size() - 2];
  }

  const std::vector<double>& numbers() const { return numbers_; }
  double past_largest() const { return past_largest_; }

  float round(float value) const {
    const double size = std::abs(static_cast<double>(value));
    double nearest = 0;
    if (size >= past_largest_) {
      nearest = std::numeric_limits<double>::infinity();
    } else {
      const auto above = std::lower_bound(numbers_.begin(), numbers_.end(), size);
      const auto code = static_cast<std::size_t>(above - numbers_.begin());
      const double high = code < numbers_.size() ? numbers_[code] : past_largest_;
      const double low = high == size ? size : numbers_[code - 1];
      const double to_high = high - size;
      const double to_low = size - low;
      const bool up = to_high < to_low || (to_high == to_low && code % 2 == 0);
      nearest = high == size || up ? high : low;
      if (nearest == past_largest_) nearest = std::numeric_limits<double>::infinity();
    }
    return std::copysign(static_cast<float>(nearest), value);
  }

 private:
  std::vector<double> numbers_;
  double past_largest_ = 0;
};

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// Checks both signs; counts instead of asserting, since there are millions.
template <class Format>
struct Checker {
  const ListedFormat& listed;
  long failures = 0;
  float first_failure = 0;

  void check(float value) {
    for (const float v : {value, -value}) {
      if (same_bits(Format::round(v), listed.round(v))) continue;
      if (failures++ == 0) first_failure = v;
    }
  }
};

template <class Format>
void check_format(const ListedFormat& listed) {
  const float infinity = std::numeric_limits<float>::infinity();
  Checker<Format> checker{listed};
  for (std::size_t i = 0; i < listed.numbers().size(); ++i) {
    const double low = listed.numbers()[i];
    const double high =
        i + 1 < listed.numbers().size() ? listed.numbers()[i + 1] : listed.past_largest();
    const auto half_way = static_cast<float>(low + (high - low) / 2);
    checker.check(static_cast<float>(low));
    for (const float v :
         {half_way, std::nextafter(half_way, 0.0f), std::nextafter(half_way, infinity)}) {
      checker.check(v);
    }
  }
  std::mt19937 generator(7);
  for (int i = 0; i < 2000000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(generator()));
    if (!std::isnan(value)) checker.check(value);
  }
  for (const float value : {0.0f, infinity, std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::denorm_min()}) {
    checker.check(value);
  }
  INFO("first wrong for " << checker.first_failure);
  CHECK(checker.failures == 0);
  CHECK(std::isnan(Format::round(std::numeric_limits<float>::quiet_NaN())));
  CHECK(std::isnan(Format::round(std::bit_cast<float>(0x7F800001u))));
}

}  // namespace

TEST_CASE("FP16 rounds every neighbourhood to nearest even", "[numeric]") {
  const ListedFormat fp16(5, Fp16::kMantissaBits);
  REQUIRE(fp16.numbers().back() == 65504);
  check_format<Fp16>(fp16);
  CHECK(std::isinf(Fp16::round(65520.0f)));
  CHECK(Fp16::round(65519.0f) == 65504.0f);
}

TEST_CASE("BF16 rounds every neighbourhood to nearest even", "[numeric]") {
  const ListedFormat bf16(8, Bf16::kMantissaBits);
  check_format<Bf16>(bf16);
  CHECK(Bf16::round(256.0f + 1.0f) == 256.0f);
}

TEST_CASE("FP32 is left as it is", "[numeric]") {
  CHECK(same_bits(Fp32::round(0.1f), 0.1f));
  CHECK(same_bits(Fp32::round(-0.0f), -0.0f));
}

TEST_CASE("the unit roundoff is half the step at 1", "[numeric]") {
  const auto half_step = [](int mantissa_bits) { return std::ldexp(0.5, -mantissa_bits); };
  CHECK(Fp16::kUnitRoundoff == half_step(Fp16::kMantissaBits));
  CHECK(Bf16::kUnitRoundoff == half_step(Bf16::kMantissaBits));
  CHECK(Fp32::kUnitRoundoff == half_step(Fp32::kMantissaBits));
}

TEST_CASE("sums and products of FP16 values are rounded once in effect", "[numeric]") {
  // F::round(float(a op b)) must be the exact result rounded once, for the header's claim to hold.
  const ListedFormat fp16(5, Fp16::kMantissaBits);
  std::mt19937 generator(3);
  long wrong = 0;
  for (int i = 0; i < 200000; ++i) {
    const auto pick = [&] {
      return static_cast<float>(fp16.numbers()[generator() % fp16.numbers().size()]);
    };
    const float a = pick();
    const float b = (generator() & 1) != 0 ? pick() : -pick();
    // A double holds the exact sum and the exact product of two FP16 numbers. Rounding it to a
    // float that keeps a sticky last bit leaves the side of every half-way point as it was.
    for (const double exact : {static_cast<double>(a) + static_cast<double>(b),
                               static_cast<double>(a) * static_cast<double>(b)}) {
      auto toward_zero = static_cast<float>(exact);
      if (std::abs(static_cast<double>(toward_zero)) > std::abs(exact)) {
        toward_zero = std::nextafter(toward_zero, 0.0f);
      }
      const bool inexact = static_cast<double>(toward_zero) != exact;
      const float sticky =
          inexact ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(toward_zero) | 1u)
                  : toward_zero;
      const float once = fp16.round(sticky);
      const float twice = Fp16::round(static_cast<float>(exact));
      if (once != twice) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

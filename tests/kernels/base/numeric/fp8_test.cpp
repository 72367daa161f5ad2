#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/base/numeric/small_float.hpp"
#include "tests/catch.hpp"

#if __has_include(<cuda_fp8.h>) && __has_include(<cuda_fp16.h>) && __has_include(<cuda_bf16.h>)
#define TILESTEP_HAS_CUDA_HEADERS 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wfloat-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#pragma GCC diagnostic pop
#endif

using namespace tilestep::numeric;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The finite numbers of a format from the definition, by magnitude, each with its bits; the one
/// that would follow the largest is there too.
class Listed {
 public:
  explicit Listed(FloatSpec spec) : spec_(spec) {
    const int codes = static_cast<int>(spec.max_finite_bits()) + 1;
    for (int code = 0; code <= codes; ++code) {
      const int exponent = code >> spec.mantissa_bits;
      const int mantissa = code & ((1 << spec.mantissa_bits) - 1);
      const double fraction = std::ldexp(static_cast<double>(mantissa), -spec.mantissa_bits);
      numbers_.push_back(exponent == 0 ? std::ldexp(fraction, 1 - spec.bias())
                                       : std::ldexp(1 + fraction, exponent - spec.bias()));
    }
  }
  const std::vector<double>& numbers() const { return numbers_; }
  double largest() const { return numbers_[numbers_.size() - 2]; }

  /// By the distance to the neighbours in the list.
  double round(double value, Rounding rounding, Overflow overflow, std::uint32_t random) const {
    const double size = std::abs(value);
    const auto above = std::upper_bound(numbers_.begin(), numbers_.end(), size);
    double result = kInfinity;
    if (above != numbers_.end()) {
      const auto low_code = static_cast<std::size_t>(above - numbers_.begin()) - 1;
      const double low = numbers_[low_code];
      const double high = *above;
      const double part = (size - low) / (high - low);  // a division by a power of two: exact
      bool up = part > 0.5 || (part == 0.5 && low_code % 2 == 1);
      if (rounding == Rounding::truncate) up = false;
      if (rounding == Rounding::stochastic) {
        up = std::floor(part * 4294967296.0) > static_cast<double>(random);
      }
      result = up ? high : low;
    }
    if (result > largest()) {
      const bool cut = rounding == Rounding::truncate && size < kInfinity;
      const bool infinite = spec_.specials == Specials::ieee;
      result = overflow == Overflow::saturate || cut ? largest()
               : infinite                            ? kInfinity
                                                     : std::nan("");
    }
    return std::copysign(result, value);
  }

 private:
  FloatSpec spec_;
  std::vector<double> numbers_;
};

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Every number, every half-way point and its neighbours, past the end, and random ones.
std::vector<double> probes(const Listed& listed, int random_count) {
  std::vector<double> values = {0.0,
                                kInfinity,
                                std::numeric_limits<double>::max(),
                                std::numeric_limits<double>::denorm_min(),
                                1e-310,
                                3e38};
  const auto& numbers = listed.numbers();
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
    const double half = (numbers[i] + numbers[i + 1]) / 2;
    for (const double v : {numbers[i], half, std::nextafter(half, 0), std::nextafter(half, 1e300),
                           std::nextafter(numbers[i], 0), std::nextafter(numbers[i], 1e300)}) {
      values.push_back(v);
    }
  }
  std::mt19937_64 generator(11);
  for (int i = 0; i < random_count; ++i) {
    values.push_back(std::ldexp(static_cast<double>(generator() >> 11) * 0x1p-53,
                                static_cast<int>(generator() % 60) - 30));
    const double any = std::bit_cast<double>(static_cast<std::uint64_t>(generator()));
    if (std::isfinite(any)) values.push_back(any);
  }
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  return values;
}

struct NamedSpec {
  const char* name;
  FloatSpec spec;
};
constexpr NamedSpec kSmall[] = {{"E4M3", kE4m3}, {"E5M2", kE5m2}, {"FP16", kFp16}, {"BF16", kBf16}};

}  // namespace

TEST_CASE("the formats' ends are where the definitions put them", "[numeric]") {
  CHECK(max_finite(kE4m3) == 448);
  CHECK(max_finite(kE5m2) == 57344);
  CHECK(max_finite(kFp16) == 65504);
  CHECK(max_finite(kFp32) == static_cast<double>(std::numeric_limits<float>::max()));
  CHECK(decode(kE4m3, 0x01) == 0x1p-9);
  CHECK(decode(kE5m2, 0x01) == 0x1p-16);
  CHECK(std::isnan(decode(kE4m3, 0x7F)));
  CHECK(std::isnan(decode(kE4m3, 0xFF)));
  CHECK(std::isinf(decode(kE5m2, 0x7C)));
  CHECK(kTf32.bits() == 19);
}

TEST_CASE("decoding and encoding every bit pattern", "[numeric]") {
  for (const NamedSpec& format : kSmall) {
    INFO(format.name);
    long wrong = 0;
    for (std::uint32_t bits = 0; bits < 1u << format.spec.bits(); ++bits) {
      const double value = decode(format.spec, bits);
      if (std::isnan(value)) continue;
      wrong += encode(format.spec, value) != bits ? 1 : 0;
      wrong += same(round_to(format.spec, value), value) ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("rounding agrees with a search in the list of numbers", "[numeric]") {
  std::mt19937 generator(5);
  for (const NamedSpec& format : kSmall) {
    const Listed listed(format.spec);
    for (const Rounding rounding : {Rounding::nearest, Rounding::truncate, Rounding::stochastic}) {
      for (const Overflow overflow : {Overflow::to_infinity, Overflow::saturate}) {
        long wrong = 0;
        double first_wrong = 0;
        for (const double value : probes(listed, 20000)) {
          const auto random = static_cast<std::uint32_t>(generator());
          const double got = round_to(format.spec, value, rounding, overflow, random);
          if (same(got, listed.round(value, rounding, overflow, random))) continue;
          if (wrong++ == 0) first_wrong = value;
        }
        INFO(format.name << ", rounding " << static_cast<int>(rounding) << ", overflow "
                         << static_cast<int>(overflow) << ": first wrong for " << first_wrong);
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("the structs round as the specs do, and FP32 as a conversion does", "[numeric]") {
  std::mt19937 generator(3);
  long wrong = 0;
  for (int i = 0; i < 500000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(generator()));
    const auto wide = static_cast<double>(value);
    const auto check = [&](float got, FloatSpec spec, Overflow overflow) {
      wrong +=
          same(static_cast<double>(got), round_to(spec, wide, Rounding::nearest, overflow)) ? 0 : 1;
    };
    check(E4m3::round(value), kE4m3, Overflow::saturate);
    check(E5m2::round(value), kE5m2, Overflow::saturate);
    check(Fp16::round(value), kFp16, Overflow::to_infinity);
    check(Bf16::round(value), kBf16, Overflow::to_infinity);
    check(Tf32::round(value), kTf32, Overflow::to_infinity);
    const double any = wide * (1 + static_cast<double>(generator()) * 0x1p-40);
    wrong += same(round_to(kFp32, any), static_cast<double>(static_cast<float>(any))) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("the spacing is the distance to the next number", "[numeric]") {
  for (const NamedSpec& format : kSmall) {
    const Listed listed(format.spec);
    long wrong = 0;
    for (std::size_t i = 0; i + 1 < listed.numbers().size(); ++i) {
      const double step = listed.numbers()[i + 1] - listed.numbers()[i];
      wrong += ulp(format.spec, -listed.numbers()[i]) != step ? 1 : 0;
    }
    INFO(format.name);
    CHECK(wrong == 0);
  }
  CHECK(ulp(kE4m3, 32) == 4);
  CHECK(std::isnan(ulp(kE4m3, kInfinity)));
}

TEST_CASE("stochastic rounding goes up as often as it should", "[numeric]") {
  std::mt19937 generator(9);
  int up = 0;
  constexpr int kTries = 100000;
  for (int i = 0; i < kTries; ++i) {
    const auto random = static_cast<std::uint32_t>(generator());
    up += round_to(kE4m3, 33, Rounding::stochastic, Overflow::saturate, random) == 36 ? 1 : 0;
  }
  CHECK(std::abs(up - kTries / 4) < 800);  // 5.8 standard deviations
}

TEST_CASE("a sum rounded to odd and then to a format is rounded once", "[numeric]") {
  // 1 + 2^-4 is half-way between two E4M3 numbers; the smallest part past it decides.
  for (const double tiny : {0x1p-70, -0x1p-70}) {
    CHECK(round_to(kE4m3, add_to_odd(1.0625, tiny)) == (tiny > 0 ? 1.125 : 1.0));
    CHECK(round_to(kE4m3, add_to_odd(-1.0625, tiny)) == (tiny > 0 ? -1.0 : -1.125));
  }
  CHECK(add_to_odd(1, 2) == 3);
  CHECK(std::isinf(add_to_odd(kInfinity, 1)));
  CHECK(std::isnan(add_to_odd(kInfinity, -kInfinity)));
}

#ifdef TILESTEP_HAS_CUDA_HEADERS

namespace {

std::vector<float> cuda_probes(const Listed& listed) {
  std::vector<float> values = {std::numeric_limits<float>::quiet_NaN(),
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity()};
  for (const double v : probes(listed, 200000)) values.push_back(static_cast<float>(v));
  return values;
}

}  // namespace

TEST_CASE("FP8 agrees with cuda_fp8.h bit for bit", "[numeric]") {
  struct Interpretation {
    FloatSpec spec;
    __nv_fp8_interpretation_t theirs;
  };
  for (const auto& [spec, theirs] :
       {Interpretation{kE4m3, __NV_E4M3}, Interpretation{kE5m2, __NV_E5M2}}) {
    long wrong = 0;
    for (std::uint32_t bits = 0; bits < 256; ++bits) {
      const __half_raw wide =
          __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(bits), theirs);
      wrong += same(decode(spec, bits), decode(kFp16, wide.x)) ? 0 : 1;
    }
    CHECK(wrong == 0);
    for (const float value : cuda_probes(Listed(spec))) {
      for (const bool saturate : {true, false}) {
        const auto got = static_cast<__nv_fp8_storage_t>(
            encode(spec, round_to(spec, static_cast<double>(value), Rounding::nearest,
                                  saturate ? Overflow::saturate : Overflow::to_infinity)));
        // The sign of a NaN that stands for an overflow is the number's own in cuda_fp8.h.
        const __nv_fp8_storage_t right =
            __nv_cvt_float_to_fp8(value, saturate ? __NV_SATFINITE : __NV_NOSAT, theirs);
        const bool both_nan = std::isnan(decode(spec, got)) && std::isnan(decode(spec, right));
        wrong += got == right || both_nan ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("FP16 and BF16 agree with CUDA's headers bit for bit", "[numeric]") {
  long wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const __half fp16(__half_raw{static_cast<unsigned short>(bits)});
    const __nv_bfloat16 bf16(__nv_bfloat16_raw{static_cast<unsigned short>(bits)});
    wrong += same(decode(kFp16, bits), static_cast<double>(__half2float(fp16))) ? 0 : 1;
    wrong += same(decode(kBf16, bits), static_cast<double>(__bfloat162float(bf16))) ? 0 : 1;
  }
  CHECK(wrong == 0);
  for (const FloatSpec spec : {kFp16, kBf16}) {
    for (const float value : cuda_probes(Listed(spec))) {
      const auto wide = static_cast<double>(value);
      wrong +=
          encode(kFp16, round_to(kFp16, wide)) != static_cast<__half_raw>(__float2half_rn(value)).x
              ? 1
              : 0;
      wrong += encode(kBf16, round_to(kBf16, wide)) !=
                       static_cast<__nv_bfloat16_raw>(__float2bfloat16_rn(value)).x
                   ? 1
                   : 0;
      wrong += encode(kFp16, round_to(kFp16, wide, Rounding::truncate)) !=
                       static_cast<__half_raw>(__float2half_rz(value)).x
                   ? 1
                   : 0;
    }
  }
  CHECK(wrong == 0);
}

#endif

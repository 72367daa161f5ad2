// The kernels against fractions: which code is nearest to a weight is decided without rounding, and each group's scale
// likewise where it is a quotient; Q4_K's bytes are taken apart as its layout is published.
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <random>

#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/small_float.hpp"
#include "kernels/catalog.hpp"
#include "kernels/numbers/low_bit/lesson.hpp"
#include "kernels/numbers/low_bit/reference.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/device.hpp"
#include "tests/kernels/numbers/fraction.hpp"
#include "tests/part.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::low_bit;
using namespace tilestep::tests;
using boost::multiprecision::cpp_int, boost::multiprecision::cpp_rational;

namespace {

std::uint16_t bf16(double value) {
  return static_cast<std::uint16_t>(
      numeric::encode(numeric::kBf16, numeric::round_to(numeric::kBf16, value)));
}
std::vector<double> doubles(const std::vector<std::uint16_t>& bits) {
  std::vector<double> all;
  for (const std::uint16_t each : bits) all.push_back(numeric::decode(numeric::kBf16, each));
  return all;
}

/// W in few bits, as the kernels leave it.
struct Written {
  std::vector<std::uint8_t> bytes, scales, zeros;
  std::vector<std::uint8_t> wide, wide_scales;  ///< by quantize_wide
  std::vector<GroupNote> notes;
  std::vector<float> values;
};

Written written(simt::Device& device, Format format, Group chosen, const Matrix& matrix,
                const std::vector<std::uint16_t>& weights) {
  const auto& kernels = kernels_of(device);
  const Group group = group_of(format, chosen);
  const auto groups =
      weights.size() / static_cast<std::size_t>(group_size(group, matrix.rows, matrix.columns));
  const simt::Buffer<std::uint16_t> w(device, weights);
  simt::Buffer<Range> ranges(device, static_cast<std::size_t>(matrix.rows) + 1);
  kernels.ranges(device, matrix, w.span(), ranges.span());
  auto codes =
      lab::unwritten<std::uint8_t>(device, code_bytes(format, matrix.rows, matrix.columns));
  auto scales =
      lab::unwritten<std::uint8_t>(device, groups * static_cast<std::size_t>(scale_bytes(format)));
  auto zeros = lab::unwritten<std::uint8_t>(device, format == Format::int4_zero ? groups : 0);
  const Quantized q{format, group, codes.span(), scales.span(), zeros.span(), ranges.span()};
  simt::Trace tape(device, groups * simt::kNoteEntries<GroupNote>);
  kernels.quantize(device, matrix, w.span(), q, tape.tape());
  Written out;
  // The fast kernel's bytes, in arrays of its own.
  auto wide_codes = lab::unwritten<std::uint8_t>(device, codes.span().count);
  auto wide_scales = lab::unwritten<std::uint8_t>(device, scales.span().count);
  auto wide_zeros = lab::unwritten<std::uint8_t>(device, zeros.span().count);
  kernels.quantize_wide(
      device, matrix, w.span(),
      {format, group, wide_codes.span(), wide_scales.span(), wide_zeros.span(), ranges.span()});
  out.wide = wide_codes.download();
  out.wide_scales = wide_scales.download();
  CHECK(wide_zeros.download() == zeros.download());
  out.notes = tape.download().all_notes<GroupNote>(kGroupSite, groups, "the groups");
  out.bytes = codes.download();
  out.scales = scales.download();
  out.zeros = zeros.download();
  simt::Buffer<float> values(device, weights.size());
  simt::Trace accesses(device, weights.size() / 8 * 10);
  out.values = lab::result_of(device, values, [&] {
    kernels.dequantize(device, matrix, q, values.span(), accesses.tape());
  });
  return out;
}

/// No code is nearer to the weight, and of two as near it is the even one.
void require_nearest(Format format, const Scale& scale, double weight, int code) {
  const std::vector<double> numbers = numbers_of(format);
  const cpp_rational step = fraction(static_cast<double>(scale.step)),
                     offset = fraction(static_cast<double>(scale.offset)), w = fraction(weight);
  REQUIRE_FALSE(std::isnan(numbers[static_cast<std::size_t>(code)]));
  const auto distance = [&](double number) {
    return cpp_rational(abs(fraction(number) * step + offset - w));
  };
  const double number = numbers[static_cast<std::size_t>(code)];
  const cpp_rational own = distance(number);
  const ExpectedScale noted{0, static_cast<double>(scale.step), 0, 0};
  const cpp_rational unsure = fraction(fp32_rounding(format, noted, weight));
  // Values rise with numbers: the next ones on both sides are the only ones that could be nearer.
  double below = -INFINITY, above = INFINITY;
  for (const double other : numbers) {
    if (other < number) below = std::fmax(below, other);
    if (other > number) above = std::fmin(above, other);
  }
  for (const double other : {below, above}) {
    if (std::isinf(other)) continue;
    INFO(name_of(format) << ": " << weight << " is " << number << ", not " << other);
    const cpp_rational its = distance(other);
    REQUIRE(own <= its + unsure);
    if (own == its && step > 0 && unsure == 0) REQUIRE((code - scale.zero) % 2 == 0);
  }
}

/// 8 rows of blocks of every kind: ordinary, tiny, huge, of one sign, zeros, ties, one outlier.
std::vector<std::uint16_t> awkward(std::mt19937& random, const Matrix& matrix) {
  std::normal_distribution<double> normal;
  std::vector<std::uint16_t> weights;
  for (int i = 0; i < matrix.rows * matrix.columns; ++i) {
    const int kind = i / 32 % 7;
    double x = normal(random);
    if (kind == 1) x *= 1e-3;
    if (kind == 2) x *= 300;
    if (kind == 3) x = std::abs(x) + 2;
    if (kind == 4) x = 0;
    if (kind == 5)
      x = static_cast<int>(random() % 29 - 14) / 2.0 * (i % 32 == 0 ? 0 : 1) +
          (i % 32 == 0 ? 7 : 0);
    if (kind == 6 && i % 32 == 17) x = -40;
    weights.push_back(bf16(x));
  }
  return weights;
}

void check(simt::Device& device, Format format, Group group, const Matrix& matrix,
           const std::vector<std::uint16_t>& bits) {
  INFO(name_of(format) << " by " << name_of(group) << ", " << matrix.rows << " × "
                       << matrix.columns);
  const Written got = written(device, format, group, matrix, bits);
  const std::vector<double> weights = doubles(bits);
  const std::vector<int> codes = unpacked(format, got.bytes);
  REQUIRE(codes.size() == weights.size());
  const std::vector<int> wide = unpacked(format, got.wide);
  CHECK(got.wide_scales == got.scales);
  const auto scales = expected_scales(format, group_of(format, group), matrix, weights);
  REQUIRE(scales.size() == got.notes.size());
  const std::size_t size = weights.size() / scales.size();
  for (std::size_t g = 0; g < scales.size(); ++g) {
    const Scale& scale = got.notes[g].scale;
    INFO("group " << g);
    const double near = format == Format::ternary ? 1e-5 * scales[g].step : 0;
    CHECK(std::abs(static_cast<double>(scale.step) - scales[g].step) <= near);
    CHECK(scale.zero == scales[g].zero);
    CHECK(static_cast<double>(scale.offset) == scales[g].offset);
    if (format == Format::int4_zero) CHECK(got.zeros[g] == scale.zero);
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Scale& scale = got.notes[i / size].scale;
    require_nearest(format, scale, weights[i], codes[i]);
    require_nearest(format, scale, weights[i], wide[i]);
    const ExpectedScale as_noted{0, static_cast<double>(scale.step),
                                 static_cast<double>(scale.offset), scale.zero};
    REQUIRE(static_cast<double>(got.values[i]) ==
            Approx(value_of(format, as_noted, codes[i]))
                .epsilon(1e-6)
                .margin(1e-6 * std::abs(static_cast<double>(scale.offset))));
    // Half a spacing at most, unless the weight is past the last code.
    if (format == Format::int8 || format == Format::int4) {
      const double most = format == Format::int8 ? 127 : 7;
      const double reach = most * static_cast<double>(scale.step);
      if (std::abs(weights[i]) <= reach) {
        CHECK(std::abs(static_cast<double>(got.values[i]) - weights[i]) <=
              0.5001 * static_cast<double>(scale.step));
      }
    }
  }
}

}  // namespace

TEST_CASE("each weight gets the nearest code, the even one of a tie, by exact arithmetic",
          "[low_bit]") {
  Part part("formats of low bits", 5);
  std::mt19937 random(4);
  for (const Format format : all_of<Format>()) {
    for (const Group group : all_of<Group>()) {
      if (has_own_group(format) && group != Group::g32) continue;
      if (part.skips()) continue;
      const auto device = device_under_test(emulated_kernels());
      const Matrix matrix{3, 512};
      check(*device, format, group, matrix, awkward(random, matrix));
    }
  }
}

TEST_CASE("ten thousand groups keep their error's bound", "[low_bit]") {
  // Half a spacing where codes are evenly spaced; a 2^(m + 1)th of the value in floating point, half a step of the
  // subnormal ones near 0, and what MXFP4 cuts off above 6.
  const auto device = device_under_test(emulated_kernels());
  std::mt19937 random(9);
  std::normal_distribution<double> normal;
  const Matrix matrix{160, 1024};  // 10,240 groups of 16
  std::vector<std::uint16_t> bits;
  for (int i = 0; i < matrix.rows * matrix.columns; ++i) bits.push_back(bf16(normal(random)));
  const std::vector<double> weights = doubles(bits);
  const Format formats[] = {Format::nvfp4, Format::mxfp4, Format::int4, Format::fp8_e4m3};
  Part part("bounds of low bits", 2);
  for (const Format format : formats) {
    if (part.skips()) continue;
    const Written got = written(*device, format, Group::g16, matrix, bits);
    const std::size_t size = weights.size() / got.notes.size();
    std::size_t over = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto step = static_cast<double>(got.notes[i / size].scale.step);
      const double error = std::abs(static_cast<double>(got.values[i]) - weights[i]);
      const double x = std::abs(weights[i]) / step;
      double bound = 0.5 * step;
      if (format == Format::nvfp4 || format == Format::mxfp4) {
        bound = step * (x <= 2 ? 0.25 : x <= 4 ? 0.5 : x <= 6 ? 1 : x - 6);
      } else if (format == Format::fp8_e4m3) {
        bound = step * std::max(std::ldexp(1.0, -10), x / 16);
      }
      over += error > bound + 1e-6 * step ? 1 : 0;
    }
    INFO(name_of(format));
    CHECK(over == 0);
  }
}

TEST_CASE("Q4_K's super-block has the published layout", "[low_bit]") {
  // d, dmin, 12 bytes of 6-bit scales and minima, 128 bytes of codes: by hand for one block of known scales.
  const auto device = device_under_test(emulated_kernels());
  std::vector<std::uint16_t> bits;
  for (int i = 0; i < kSuperBlock; ++i) {
    const int group = i / 32;
    bits.push_back(bf16((i % 16) * (group + 1) * 0.25 - (group % 2 == 0 ? 0 : 8)));
  }
  const Written got = written(*device, Format::q4_k, Group::g32, {1, kSuperBlock}, bits);
  REQUIRE(got.bytes.size() == kSuperBlockBytes);
  const auto half = [&](std::size_t at) {
    return numeric::decode(numeric::kFp16,
                           static_cast<std::uint32_t>(got.bytes[at] | got.bytes[at + 1] << 8));
  };
  const double d = half(0), dmin = half(2);
  for (std::size_t j = 0; j < 8; ++j) {
    const std::uint8_t* p = got.bytes.data() + 4;
    const int scale = j < 4 ? p[j] & 63 : (p[j + 4] & 15) | p[j - 4] >> 6 << 4;
    const int minimum = j < 4 ? p[j + 4] & 63 : p[j + 4] >> 4 | p[j] >> 6 << 4;
    INFO("group " << j);
    CHECK(d * scale == static_cast<double>(got.notes[j].scale.step));
    CHECK(-dmin * minimum == static_cast<double>(got.notes[j].scale.offset));
    for (std::size_t i = 0; i < 32; ++i) {
      const int byte = got.bytes[16 + j / 2 * 32 + i];
      const int code = j % 2 == 0 ? byte & 15 : byte >> 4;
      CHECK(d * scale * code - dmin * minimum ==
            Approx(static_cast<double>(got.values[32 * j + i])));
    }
  }
}

TEST_CASE("bits a weight count the scales", "[low_bit]") {
  const auto bits = [](Format format, Group group) {
    return bits_per_weight(format, group, 4096, 4096);
  };
  CHECK(bits(Format::int4, Group::g128) == 4.125);
  CHECK(bits(Format::mxfp4, Group::g32) == 4.25);
  CHECK(bits(Format::nvfp4, Group::g16) == Approx(4.5).margin(1e-5));
  CHECK(bits(Format::q4_k, Group::g32) == 4.5);
  CHECK(bits(Format::ternary, Group::tensor) == Approx(2).margin(1e-5));
}

TEST_CASE("a matrix that is no whole number of super-blocks wide is refused", "[low_bit]") {
  const auto device = device_under_test(emulated_kernels());
  simt::Buffer<std::uint16_t> w(*device, 300);
  simt::Buffer<std::uint8_t> codes(*device, 150), scales(*device, 64);
  simt::Buffer<Range> ranges(*device, 2);
  const Quantized q{Format::int4, Group::g32, codes.span(), scales.span(), {}, ranges.span()};
  REQUIRE_THROWS_WITH(kernels_of(*device).quantize(*device, {1, 300}, w.span(), q),
                      Catch::Contains("256"));
}

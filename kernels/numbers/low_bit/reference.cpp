#include "kernels/numbers/low_bit/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::low_bit {
namespace {

using numeric::Overflow, numeric::Rounding, numeric::round_to;

double fp16(double x) {
  return round_to(numeric::kFp16, x);
}
double fp32(double x) {
  return static_cast<double>(static_cast<float>(x));
}
double e4m3(double x) {
  return round_to(numeric::kE4m3, x, Rounding::nearest, Overflow::saturate);
}

struct Span {
  double low = std::numeric_limits<double>::infinity(), high = -low, magnitudes = 0;
  int count = 0;
  void add(double x) {
    low = std::min(low, x);
    high = std::max(high, x);
    magnitudes += std::abs(x);
    ++count;
  }
  double largest() const { return std::max(-low, high); }
};

/// Of `count` weights from `first` on.
Span span_of(const std::vector<double>& weights, std::size_t first, std::size_t count) {
  Span span;
  for (std::size_t i = first; i < first + count; ++i) span.add(weights[i]);
  return span;
}

ExpectedScale scale_of(Format format, const Span& span, double tensor_scale) {
  ExpectedScale scale;
  const double low = std::min(span.low, 0.0), high = std::max(span.high, 0.0);
  switch (format) {
    case Format::int8:
    case Format::int4:
      scale.wanted = span.largest() / (format == Format::int8 ? 127 : 7);
      scale.step = fp16(fp32(scale.wanted));
      break;
    case Format::int4_zero:
      scale.wanted = (high - low) / 15;
      scale.step = fp16(fp32(fp32(high - low) / 15));
      if (scale.step > 0) {
        scale.zero = std::clamp(static_cast<int>(std::nearbyint(-low / scale.step)), 0, 15);
      }
      scale.offset = -scale.zero * scale.step;
      break;
    case Format::fp8_e4m3:
    case Format::fp8_e5m2:
      scale.wanted = span.largest() / (format == Format::fp8_e4m3 ? 448 : 57344);
      scale.step = fp32(scale.wanted);
      break;
    case Format::mxfp4:
      scale.wanted = span.largest() / 6;
      scale.step = std::exp2(
          span.largest() > 0 ? std::max(std::floor(std::log2(span.largest())) - 2, -127.0) : -127);
      break;
    case Format::nvfp4:
      scale.wanted = span.largest() / 6;
      scale.step = fp32(e4m3(fp32(fp32(scale.wanted) / tensor_scale)) * tensor_scale);
      break;
    case Format::ternary:
      scale.wanted = scale.step = span.magnitudes / span.count;
      break;
    case Format::q4_k:
      break;
  }
  return scale;
}

/// Of a super-block: eight groups from `first` on.
void add_super_block(const std::vector<double>& weights, std::size_t first,
                     std::vector<ExpectedScale>& scales) {
  double wanted[8], minimum[8];
  for (std::size_t i = 0; i < 8; ++i) {
    const Span span = span_of(weights, first + 32 * i, 32);
    minimum[i] = -std::min(span.low, 0.0);
    wanted[i] = fp32(fp32(std::max(span.high, 0.0) + minimum[i]) / 15);
  }
  const double d = fp16(fp32(*std::max_element(wanted, wanted + 8) / 63));
  const double dmin = fp16(fp32(*std::max_element(minimum, minimum + 8) / 63));
  const auto six_bits = [](double x, double unit) {
    return unit > 0 ? std::clamp(std::nearbyint(fp32(x / unit)), 0.0, 63.0) : 0.0;
  };
  for (int i = 0; i < 8; ++i) {
    scales.push_back(
        {wanted[i], d * six_bits(wanted[i], d), -dmin * six_bits(minimum[i], dmin), 0});
  }
}

}  // namespace

std::vector<double> numbers_of(Format format) {
  constexpr double kE2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const double none = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> numbers;
  for (int code = 0; code < 1 << code_bits(format); ++code) {
    const int half = 1 << (code_bits(format) - 1);
    const int number = code < half ? code : code - 2 * half;  // in two's complement
    switch (format) {
      case Format::int8:
      case Format::int4:
      case Format::ternary:
        numbers.push_back(number == -half ? none : static_cast<double>(number));
        break;
      case Format::int4_zero:
      case Format::q4_k:
        numbers.push_back(code);
        break;
      case Format::mxfp4:
      case Format::nvfp4:
        numbers.push_back(code < 8 ? kE2m1[code] : -kE2m1[code - 8]);
        break;
      case Format::fp8_e4m3:
      case Format::fp8_e5m2: {
        const double value =
            numeric::decode(format == Format::fp8_e4m3 ? numeric::kE4m3 : numeric::kE5m2,
                            static_cast<std::uint32_t>(code));
        numbers.push_back(std::isfinite(value) ? value : none);
        break;
      }
    }
  }
  return numbers;
}

std::vector<ExpectedScale> expected_scales(Format format, Group group, const Matrix& matrix,
                                           const std::vector<double>& weights) {
  std::vector<ExpectedScale> scales;
  if (format == Format::q4_k) {
    for (std::size_t first = 0; first < weights.size(); first += kSuperBlock) {
      add_super_block(weights, first, scales);
    }
    return scales;
  }
  const Span all = span_of(weights, 0, weights.size());
  const auto size = static_cast<std::size_t>(group_size(group, matrix.rows, matrix.columns));
  const double tensor_scale = fp32(all.largest() / (448 * 6));
  for (std::size_t first = 0; first < weights.size(); first += size) {
    scales.push_back(scale_of(format, span_of(weights, first, size), tensor_scale));
  }
  return scales;
}

double value_of(Format format, const ExpectedScale& scale, int code) {
  return numbers_of(format).at(static_cast<std::size_t>(code)) * scale.step + scale.offset;
}

double fp32_rounding(Format format, const ExpectedScale& scale, double weight) {
  switch (format) {
    case Format::q4_k:  // subtracts a minimum before it divides
      return 1e-5 * scale.step;
    case Format::nvfp4:  // a reciprocal is rounded, and a product with it
      return 0x1p-22 * std::abs(weight);
    case Format::fp8_e4m3:
    case Format::fp8_e5m2:
    case Format::ternary:
      return 0x1p-23 * std::abs(weight);
    default:
      return 0;
  }
}

std::vector<int> nearest_codes(Format format, const ExpectedScale& scale, double weight) {
  static const auto all = [] {
    std::vector<std::vector<double>> numbers;
    for (const Format each : all_of<Format>()) numbers.push_back(numbers_of(each));
    return numbers;
  }();
  const std::vector<double>& numbers = all[static_cast<std::size_t>(format)];
  const auto distance = [&](int code) {
    return std::abs(numbers[static_cast<std::size_t>(code)] * scale.step + scale.offset - weight);
  };
  double least = std::numeric_limits<double>::infinity();
  for (int code = 0; code < std::ssize(numbers); ++code) {
    if (!std::isnan(numbers[static_cast<std::size_t>(code)])) {
      least = std::min(least, distance(code));
    }
  }
  const double unsure = fp32_rounding(format, scale, weight);
  std::vector<int> nearest;
  for (int code = 0; code < std::ssize(numbers); ++code) {
    if (!std::isnan(numbers[static_cast<std::size_t>(code)]) && distance(code) <= least + unsure) {
      nearest.push_back(code);
    }
  }
  if (scale.step <= 0x1p-127) return {0};
  if (nearest.size() == 1 || unsure > 0) return nearest;
  // A tie, or the two zeros of a floating-point format, of which a weight keeps its sign.
  const auto is_wanted = [&](int code) {
    const double number = numbers[static_cast<std::size_t>(code)];
    const bool signed_zero = format == Format::mxfp4 && number == 0;
    return signed_zero ? std::signbit(number) == std::signbit(weight)
                       : (code - scale.zero) % 2 == 0;
  };
  return {*std::find_if(nearest.begin(), nearest.end(), is_wanted)};
}

std::vector<double> stored_values(Format format, int group_size,
                                  const std::vector<std::uint8_t>& bytes,
                                  const std::vector<std::uint8_t>& scales, float tensor_scale) {
  const std::vector<int> codes = unpacked(format, bytes);
  const std::vector<double> numbers = numbers_of(format);
  const auto stored = [](const std::vector<std::uint8_t>& from, numeric::FloatSpec as,
                         std::size_t at, std::size_t width) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < width; ++i) bits |= std::uint32_t{from[at + i]} << 8 * i;
    return numeric::decode(as, bits);
  };
  const auto width = static_cast<std::size_t>(scale_bytes(format));
  const numeric::FloatSpec as = width == 1   ? numeric::kE4m3
                                : width == 2 ? numeric::kFp16
                                             : numeric::kFp32;
  std::vector<double> values;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const double number = numbers[static_cast<std::size_t>(codes[i])];
    if (format == Format::q4_k) {
      const std::size_t block = i / kSuperBlock * kSuperBlockBytes, j = i / 32 % 8;
      const std::uint8_t* p = bytes.data() + block + 4;
      const int scale = j < 4 ? p[j] & 63 : (p[j + 4] & 15) | p[j - 4] >> 6 << 4;
      const int minimum = j < 4 ? p[j + 4] & 63 : p[j + 4] >> 4 | p[j] >> 6 << 4;
      values.push_back(stored(bytes, numeric::kFp16, block, 2) * scale * number -
                       stored(bytes, numeric::kFp16, block + 2, 2) * minimum);
    } else {
      const double step =
          stored(scales, as, i / static_cast<std::size_t>(group_size) * width, width);
      values.push_back(number *
                       (width == 1 ? fp32(step * static_cast<double>(tensor_scale)) : step));
    }
  }
  return values;
}

std::vector<int> unpacked(Format format, const std::vector<std::uint8_t>& bytes) {
  std::vector<int> codes;
  if (format == Format::q4_k) {
    for (std::size_t first = 0; first < bytes.size(); first += kSuperBlockBytes) {
      for (std::size_t i = 0; i < kSuperBlock; ++i) {
        const int byte = bytes[first + 16 + i / 64 * 32 + i % 32];
        codes.push_back(i % 64 < 32 ? byte & 15 : byte >> 4);
      }
    }
    return codes;
  }
  const int bits = code_bits(format);
  for (const std::uint8_t byte : bytes) {
    for (int at = 0; at < 8; at += bits) codes.push_back(byte >> at & ((1 << bits) - 1));
  }
  return codes;
}

double row_scale(Format format, const std::vector<std::uint8_t>& scales, std::size_t row) {
  const auto bytes = static_cast<std::size_t>(scale_bytes(format));
  std::uint32_t bits = 0;
  for (std::size_t i = bytes; i-- > 0;) bits = bits << 8 | scales.at(row * bytes + i);
  return numeric::decode(bytes == 2 ? numeric::kFp16 : numeric::kFp32, bits);
}

numeric::Bounded expected_product(Format format, const std::vector<std::uint8_t>& w,
                                  const std::vector<std::uint8_t>& x, double scale, double unit) {
  constexpr std::size_t kStep = 32;  // products that one wgmma adds
  const auto number = [&](std::uint8_t code) {
    return format == Format::int8 ? static_cast<double>(static_cast<std::int8_t>(code))
                                  : numeric::decode(numeric::kE4m3, code);
  };
  double sum = 0, cut = 0;
  for (std::size_t first = 0; first < w.size(); first += kStep) {
    double magnitude = std::abs(sum);
    for (std::size_t i = first; i < first + kStep; ++i) {
      const double product = number(w[i]) * number(x[i]);
      sum += product;
      magnitude += std::abs(product);
    }
    // Each product is cut, the sum before, and the result.
    if (format != Format::int8) cut += (kStep + 2) * unit * magnitude;
  }
  const double value = sum * scale, off = cut * std::abs(scale) + std::ldexp(std::abs(value), -22);
  return {value, off + numeric::Bf16::kUnitRoundoff * (std::abs(value) + off)};
}

}  // namespace tilestep::low_bit

#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "kernels/base/numeric/float_format.hpp"

/// Small binary floating-point formats as data, and exact rounding into them. Plain integer
/// arithmetic on the bits of a double, the same on host and device.
namespace tilestep::numeric {

/// What the largest exponent is used for.
enum class Specials {
  ieee,     ///< infinities and NaN, as in IEEE 754
  nan_only  ///< numbers, save for one NaN where all bits are set (OCP E4M3, no infinity)
};

/// A format: 1 sign bit, then the exponent's bits, then the mantissa's. Subnormals included.
struct FloatSpec {
  int exponent_bits = 8;
  int mantissa_bits = 23;
  Specials specials = Specials::ieee;

  TILESTEP_INLINED constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  TILESTEP_INLINED constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  /// Exponent of the smallest normal number, 2^min_exponent.
  TILESTEP_INLINED constexpr int min_exponent() const { return 1 - bias(); }
  /// The largest finite number's bits, sign left out.
  TILESTEP_INLINED constexpr std::uint32_t max_finite_bits() const {
    const std::uint32_t mantissa_mask = (1u << mantissa_bits) - 1;
    const std::uint32_t top = (1u << exponent_bits) - 1;
    return specials == Specials::ieee ? ((top - 1) << mantissa_bits) | mantissa_mask
                                      : (top << mantissa_bits) | (mantissa_mask - 1);
  }
  bool operator==(const FloatSpec&) const = default;
};

/// OCP 8-bit floating point (OFP8, 2023): what `__NV_E4M3` and `__NV_E5M2` are in cuda_fp8.h.
inline constexpr FloatSpec kE4m3{4, 3, Specials::nan_only};
inline constexpr FloatSpec kE5m2{5, 2, Specials::ieee};
inline constexpr FloatSpec kFp16{5, 10, Specials::ieee};
inline constexpr FloatSpec kBf16{8, 7, Specials::ieee};
/// TF32 has FP32's exponent and FP16's mantissa: 19 bits, kept in 32 on the device.
inline constexpr FloatSpec kTf32{8, 10, Specials::ieee};
inline constexpr FloatSpec kFp32{8, 23, Specials::ieee};

enum class Rounding {
  nearest,    ///< to nearest, ties to the even mantissa
  truncate,   ///< toward zero
  stochastic  ///< away from zero with the probability that the cut part has of a spacing
};
constexpr auto names_of(Rounding) {
  return std::to_array<std::string_view>({"nearest", "truncate", "stochastic"});
}

/// What becomes of a number past the largest finite one.
enum class Overflow {
  to_infinity,  ///< infinity; NaN in a format that has none (cuda_fp8.h: __NV_NOSAT)
  saturate      ///< the largest finite number, for infinity too (cuda_fp8.h: __NV_SATFINITE)
};

/// The parts of a bit pattern.
struct FloatFields {
  std::uint32_t sign = 0, exponent = 0, mantissa = 0;
};

TILESTEP_INLINED constexpr FloatFields fields(FloatSpec spec, std::uint32_t bits) {
  const std::uint32_t mantissa_mask = (1u << spec.mantissa_bits) - 1;
  const std::uint32_t exponent_mask = (1u << spec.exponent_bits) - 1;
  return {(bits >> (spec.bits() - 1)) & 1u, (bits >> spec.mantissa_bits) & exponent_mask,
          bits & mantissa_mask};
}

namespace detail {

inline constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kInfinityBits = std::uint64_t{0x7FF} << 52;
inline constexpr std::uint64_t kMantissaMask = (std::uint64_t{1} << 52) - 1;

/// 2^power, for powers of normal doubles.
TILESTEP_INLINED constexpr double power_of_two(int power) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(power + 1023) << 52);
}
TILESTEP_INLINED constexpr double with_sign(double magnitude, std::uint64_t sign) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude) | sign);
}
/// Exponent of a normal double's bits.
TILESTEP_INLINED constexpr int exponent_of(std::uint64_t magnitude) {
  return static_cast<int>(magnitude >> 52) - 1023;
}
/// Exponent of the spacing of the format's numbers around 2^exponent.
TILESTEP_INLINED constexpr int spacing_exponent(FloatSpec spec, int exponent) {
  const int normal = exponent > spec.min_exponent() ? exponent : spec.min_exponent();
  return normal - spec.mantissa_bits;
}

}  // namespace detail

TILESTEP_HOST_DEVICE constexpr bool is_nan(double value) {
  return (std::bit_cast<std::uint64_t>(value) & ~detail::kSignBit) > detail::kInfinityBits;
}
TILESTEP_HOST_DEVICE constexpr bool is_infinite(double value) {
  return (std::bit_cast<std::uint64_t>(value) & ~detail::kSignBit) == detail::kInfinityBits;
}

/// The number that the low bits() bits of `bits` stand for.
TILESTEP_INLINED constexpr double decode(FloatSpec spec, std::uint32_t bits) {
  const FloatFields f = fields(spec, bits);
  const std::uint64_t sign = static_cast<std::uint64_t>(f.sign) << 63;
  const std::uint32_t magnitude = (f.exponent << spec.mantissa_bits) | f.mantissa;
  if (magnitude > spec.max_finite_bits()) {
    const bool infinite = spec.specials == Specials::ieee && f.mantissa == 0;
    const std::uint64_t quiet = std::uint64_t{1} << 51;
    return std::bit_cast<double>(sign | detail::kInfinityBits | (infinite ? 0 : quiet));
  }
  const std::uint32_t hidden = f.exponent == 0 ? 0 : 1u << spec.mantissa_bits;
  const int exponent = (f.exponent == 0 ? 1 : static_cast<int>(f.exponent)) - spec.bias();
  const double unit = detail::power_of_two(exponent - spec.mantissa_bits);
  return detail::with_sign(static_cast<double>(hidden | f.mantissa) * unit, sign);
}

TILESTEP_INLINED constexpr double max_finite(FloatSpec spec) {
  return decode(spec, spec.max_finite_bits());
}

/// The spacing (ulp) of the format's numbers at `value`: from its magnitude to the next larger one
/// if the exponent went on for ever. NaN for NaN and infinity.
TILESTEP_HOST_DEVICE constexpr double ulp(FloatSpec spec, double value) {
  const std::uint64_t magnitude = std::bit_cast<std::uint64_t>(value) & ~detail::kSignBit;
  if (magnitude >= detail::kInfinityBits) return value - value;
  return detail::power_of_two(detail::spacing_exponent(spec, detail::exponent_of(magnitude)));
}

/// `value` as a number of the format. With `stochastic`, `random` is 32 uniform bits: the number is
/// rounded up if the cut part, in 2^-32 of a spacing and truncated to a whole number, is larger.
TILESTEP_HOST_DEVICE constexpr double round_to(FloatSpec spec, double value,
                                               Rounding rounding = Rounding::nearest,
                                               Overflow overflow = Overflow::to_infinity,
                                               std::uint32_t random = 0) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t sign = bits & detail::kSignBit;
  const std::uint64_t magnitude = bits & ~detail::kSignBit;
  if (magnitude > detail::kInfinityBits) return value;
  double rounded = std::bit_cast<double>(magnitude);
  if (magnitude < detail::kInfinityBits) {
    // value = whole · 2^(exponent − 52). A double's subnormals are far below every format here:
    // they take part as zero.
    const int exponent = detail::exponent_of(magnitude);
    const std::uint64_t whole =
        exponent < -1022 ? 0 : (magnitude & detail::kMantissaMask) | (std::uint64_t{1} << 52);
    const int spacing = detail::spacing_exponent(spec, exponent);
    const int cut_bits = spacing - (exponent - 52);  // at least 29
    std::uint64_t kept = cut_bits > 63 ? 0 : whole >> cut_bits;
    const std::uint64_t cut = cut_bits > 63 ? whole : whole & ((std::uint64_t{1} << cut_bits) - 1);
    bool up = false;
    if (rounding == Rounding::nearest && cut_bits <= 53) {
      const std::uint64_t half = std::uint64_t{1} << (cut_bits - 1);
      up = cut > half || (cut == half && (kept & 1) != 0);
    } else if (rounding == Rounding::stochastic && cut_bits < 32) {
      up = (cut << (32 - cut_bits)) > random;
    } else if (rounding == Rounding::stochastic && cut_bits < 96) {
      up = (cut >> (cut_bits - 32)) > random;
    }
    kept += up ? 1 : 0;
    rounded = static_cast<double>(kept) * detail::power_of_two(spacing);
  }
  const double largest = max_finite(spec);
  if (rounded > largest) {
    if (overflow == Overflow::saturate ||
        (rounding == Rounding::truncate && magnitude < detail::kInfinityBits)) {
      rounded = largest;
    } else {
      const bool infinite = spec.specials == Specials::ieee;
      rounded =
          std::bit_cast<double>(detail::kInfinityBits | (infinite ? 0 : std::uint64_t{1} << 51));
    }
  }
  return detail::with_sign(rounded, sign);
}

/// The bits of `value`, which must be a number of the format, an infinity or NaN. NaN has the
/// pattern that cuda_fp8.h, cuda_fp16.h and cuda_bf16.h give a float's NaN: all bits below the sign
/// set, and the sign cleared.
TILESTEP_HOST_DEVICE constexpr std::uint32_t encode(FloatSpec spec, double value) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t magnitude = bits & ~detail::kSignBit;
  const std::uint32_t all = (1u << (spec.bits() - 1)) - 1;
  if (magnitude > detail::kInfinityBits) return all;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 63) << (spec.bits() - 1);
  if (magnitude == detail::kInfinityBits) return sign | (spec.max_finite_bits() + 1);
  if (magnitude == 0) return sign;
  const int exponent = detail::exponent_of(magnitude);
  const int spacing = detail::spacing_exponent(spec, exponent);
  const auto whole =
      static_cast<std::uint32_t>(std::bit_cast<double>(magnitude) * detail::power_of_two(-spacing));
  if (exponent < spec.min_exponent()) return sign | whole;
  const auto biased = static_cast<std::uint32_t>(exponent + spec.bias());
  return sign | (biased << spec.mantissa_bits) | (whole & ((1u << spec.mantissa_bits) - 1));
}

/// a + b rounded to odd in double: rounding it once more, to a format of at most 51 bits, gives the
/// exact sum rounded once (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums:
/// proved algorithms using rounding to odd", 2008).
TILESTEP_HOST_DEVICE constexpr double add_to_odd(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  const double lost = (a - (sum - b_part)) + (b - b_part);  // exact: Knuth's TwoSum
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(sum);
  if (!(lost != 0) || is_nan(lost) || (bits & 1) != 0) return sum;
  // Even and inexact: step to the odd neighbour on the side of the exact sum.
  const bool away = (lost > 0) == (sum > 0);
  return std::bit_cast<double>(away ? bits + 1 : bits - 1);
}

/// E4M3, E5M2 and TF32 with the interface of Fp16, Bf16 and Fp32; E4M3 and E5M2 saturate.
struct E4m3 {
  static constexpr int kMantissaBits = 3;
  static constexpr double kUnitRoundoff = 1.0 / 16;
  TILESTEP_HOST_DEVICE static float round(float value) {
    return static_cast<float>(
        round_to(kE4m3, static_cast<double>(value), Rounding::nearest, Overflow::saturate));
  }
};
struct E5m2 {
  static constexpr int kMantissaBits = 2;
  static constexpr double kUnitRoundoff = 1.0 / 8;
  TILESTEP_HOST_DEVICE static float round(float value) {
    return static_cast<float>(
        round_to(kE5m2, static_cast<double>(value), Rounding::nearest, Overflow::saturate));
  }
};
struct Tf32 {
  static constexpr int kMantissaBits = 10;
  static constexpr double kUnitRoundoff = 1.0 / 2048;
  TILESTEP_HOST_DEVICE static float round(float value) {
    return static_cast<float>(round_to(kTf32, static_cast<double>(value)));
  }
};

}  // namespace tilestep::numeric

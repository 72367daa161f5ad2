// Low bits: one weight, one code. A format is a list of numbers, its codes, and a scale that somebody chooses:
//
//   code  = round(weight / scale)      to the nearest code, ties to the even one, saturating
//   value = code · scale
//
// Integers stand evenly apart. Floating point halves its spacing towards zero: an exponent, then a mantissa.

#pragma once

#include "kernels/base/simt/packed.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/numbers/low_bit/formats.hpp"
#include "kernels/numbers/low_bit/kernels.hpp"

namespace tilestep::low_bit::SIMT_BACKEND {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr int kWeights = 8;     // of a thread: neighbours, 16 bytes of BF16
constexpr int kGroupLanes = 4;  // of Q4_K: 32 weights

using Weights = simt::Global<const std::uint16_t>;

/// What is left out on purpose; of a timed kernel nothing, which the compiler knows.
template <class Tape>
__device__ constexpr bool breaks(const Tape& tape, Break broken) {
  if constexpr (Tape::kRecords) {
    return tape.broken == broken;
  } else {
    return false;
  }
}

// ---- floating point in few bits -----------------------------------------------------------------

/// For exponents from −126 to 127.
__device__ inline float power_of_two(int exponent) {
  return __uint_as_float(static_cast<unsigned>(exponent + 127) << 23);
}

/// A sign, then an exponent, then a mantissa. `kMost`: the largest number's code without its sign.
template <int kExponentBits, int kMantissaBits, unsigned kMost>
struct SmallFloat {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kCut = 23 - kMantissaBits;  // of FP32's mantissa
  static constexpr unsigned kSign = 1u << (kExponentBits + kMantissaBits);
  static constexpr int kSignShift = 31 - kExponentBits - kMantissaBits;

  /// To nearest, ties to even; saturates. Times 2^(bias − 127) a number's exponent in FP32 is the one that the code has,
  /// and FP32's subnormal numbers are the format's: its bits are the code's, and what is cut off decides.
  __device__ static unsigned code(float x) {
    unsigned bits = __float_as_uint(fabsf(x) * power_of_two(kBias - 127));
    bits += (1u << (kCut - 1)) - 1 + (bits >> kCut & 1u);  // half, less where the tie is even
    return min(bits >> kCut, kMost) | (__float_as_uint(x) >> kSignShift & kSign);
  }

  __device__ static float value(unsigned code) {
    const float x = __uint_as_float((code & (kSign - 1)) << kCut) * power_of_two(127 - kBias);
    return (code & kSign) != 0 ? -x : x;
  }

  __device__ static float largest() { return value(kMost); }
};

using E2m1 = SmallFloat<2, 1, 0x7u>;   // 0, 0.5, 1, 1.5, 2, 3, 4, 6
using E4m3 = SmallFloat<4, 3, 0x7Eu>;  // up to 448
using E5m2 = SmallFloat<5, 2, 0x7Bu>;  // up to 57344

/// E8M0, a power of two from 2^-127 to 2^127, with its exponent in FP32's place.
__device__ inline float e8m0(unsigned code) {
  return __uint_as_float(code == 0 ? 0x00400000u : code << 23);
}

// ---- a group's scale ----------------------------------------------------------------------------

/// 0 for a group of zeros, and for a step so small that there is no reciprocal: all codes are 0 then.
__device__ inline float inverse_of(float step) {
  return step > power_of_two(-126) / 2 ? 1.0f / step : 0.0f;
}

/// Chosen so that the group's largest weight gets the largest code; then rounded to the scale's own format.
template <Format kFormat>
__device__ inline Scale choose_scale(Range range, float tensor_scale) {
  const float largest = fabsf(fmaxf(-range.low, range.high));  // not −0, whose sign is a bit too
  Scale scale;
  if constexpr (kFormat == Format::int8 || kFormat == Format::int4) {
    scale.wanted = largest / (kFormat == Format::int8 ? 127.0f : 7.0f);
    scale.bits = simt::pack_fp16(scale.wanted, 0.0f);
    scale.step = simt::unpack_fp16(scale.bits, 0);
  } else if constexpr (kFormat == Format::int4_zero) {
    // Sixteen codes from the lowest weight to the highest; zero has a code of its own.
    const float low = fminf(range.low, 0.0f), high = fmaxf(range.high, 0.0f);
    scale.wanted = (high - low) / 15.0f;
    scale.bits = simt::pack_fp16(scale.wanted, 0.0f);
    scale.step = simt::unpack_fp16(scale.bits, 0);
    if (scale.step > 0) scale.zero = min(max(static_cast<int>(rintf(-low / scale.step)), 0), 15);
    scale.offset = static_cast<float>(-scale.zero) * scale.step;
  } else if constexpr (kFormat == Format::fp8_e4m3 || kFormat == Format::fp8_e5m2) {
    scale.wanted = largest / (kFormat == Format::fp8_e4m3 ? E4m3::largest() : E5m2::largest());
    scale.bits = __float_as_uint(scale.wanted);
    scale.step = scale.wanted;
  } else if constexpr (kFormat == Format::mxfp4) {
    // E2M1's largest power of two is 4: the weights' own goes there, and up to a third more is cut off at 6.
    scale.wanted = largest / E2m1::largest();
    scale.bits = max(static_cast<int>(__float_as_uint(largest) >> 23) - 2, 0);
    scale.step = e8m0(scale.bits);
  } else if constexpr (kFormat == Format::nvfp4) {
    scale.wanted = largest / E2m1::largest();
    scale.bits = tensor_scale > 0 ? E4m3::code(scale.wanted / tensor_scale) : 0u;
    scale.step = E4m3::value(scale.bits) * tensor_scale;
  } else if constexpr (kFormat == Format::ternary) {
    scale.wanted = range.mean;  // of the magnitudes: half of it is where a weight becomes 0
    scale.bits = __float_as_uint(scale.wanted);
    scale.step = scale.wanted;
  }
  scale.inverse = inverse_of(scale.step);
  return scale;
}

/// Q4_K's scales and minima are 6-bit codes of a unit that a super-block shares.
__device__ inline int six_bits(float wanted, float unit) {
  return unit > 0 ? min(max(static_cast<int>(rintf(wanted / unit)), 0), 63) : 0;
}
/// From the two units, d and dmin in FP16, and the codes.
__device__ inline Scale q4_k_scale(unsigned both, unsigned s, unsigned m) {
  Scale scale;
  scale.step = simt::unpack_fp16(both, 0) * static_cast<float>(s);
  scale.offset = -simt::unpack_fp16(both, 1) * static_cast<float>(m);
  scale.inverse = inverse_of(scale.step);
  scale.bits = s | m << 6;
  return scale;
}

// ---- a weight's code ----------------------------------------------------------------------------

/// a / b, rounded once, from b's rounded reciprocal: the quotient by it, and its remainder's (Markstein, "Computation of
/// elementary functions on the IBM RISC System/6000 processor", 1990). Three instructions, where a division takes ten.
__device__ inline float quotient(float a, float b, float inverse) {
  const float q = a * inverse;
  return fmaf(fmaf(-q, b, a), inverse, q);
}

/// The nearest whole number from `least` to `most`, the even one of a tie, in two's complement: at 1.5 · 2^23 FP32's numbers
/// are 1 apart, so that adding it rounds, and the sum ends in the whole number. One instruction, where converting takes
/// two of a slow unit.
__device__ inline unsigned whole(float x, float least, float most) {
  return __float_as_uint(fminf(fmaxf(x, least), most) + 12582912.0f) - 0x4B400000u;
}

/// The code, in its low bits.
template <Format kFormat>
__device__ inline unsigned code_of(float weight, const Scale& scale) {
  // By a power of two nothing is rounded.
  const float x = kFormat == Format::mxfp4 ? weight * scale.inverse
                                           : quotient(weight, scale.step, scale.inverse);
  if constexpr (kFormat == Format::int8) return whole(x, -127.0f, 127.0f) & 0xFFu;
  if constexpr (kFormat == Format::int4) return whole(x, -7.0f, 7.0f) & 0xFu;
  if constexpr (kFormat == Format::int4_zero) {
    const auto zero = static_cast<float>(scale.zero);
    return whole(x, -zero, 15.0f - zero) + static_cast<unsigned>(scale.zero);
  }
  if constexpr (kFormat == Format::fp8_e4m3) return E4m3::code(x);
  if constexpr (kFormat == Format::fp8_e5m2) return E5m2::code(x);
  if constexpr (kFormat == Format::mxfp4 || kFormat == Format::nvfp4) return E2m1::code(x);
  if constexpr (kFormat == Format::ternary) return whole(x, -1.0f, 1.0f) & 0x3u;
  return 0;
}

/// Two's complement in `bits` bits.
__device__ inline float signed_number(unsigned code, int bits) {
  return static_cast<float>(static_cast<int>(code << (32 - bits)) >> (32 - bits));
}

/// What a code stands for, in units of the scale.
template <Format kFormat>
__device__ inline float number_of(unsigned code) {
  if constexpr (kFormat == Format::fp8_e4m3) return E4m3::value(code);
  if constexpr (kFormat == Format::fp8_e5m2) return E5m2::value(code);
  if constexpr (kFormat == Format::mxfp4 || kFormat == Format::nvfp4) return E2m1::value(code);
  if constexpr (kFormat == Format::int4_zero || kFormat == Format::q4_k) {
    return static_cast<float>(code);
  }
  return signed_number(code, code_bits(kFormat));
}

/// The weight that a code gives back.
template <Format kFormat>
__device__ inline float value_of(unsigned code, const Scale& scale) {
  return number_of<kFormat>(code) * scale.step + scale.offset;
}

// ---- a scale in memory --------------------------------------------------------------------------

template <class Byte>
struct Scales {
  simt::Global<Byte> scales, zeros;
};

/// Number `group`'s scale, in as many bytes as it has.
template <Format kFormat>
__device__ inline void write_scale(const Scales<std::uint8_t>& scales, int group,
                                   const Scale& scale) {
  if constexpr (scale_bits(kFormat) == 8) {
    scales.scales[group] = static_cast<std::uint8_t>(scale.bits);
  } else if constexpr (scale_bits(kFormat) == 32) {
    simt::as<unsigned>(scales.scales)[group] = scale.bits;
  } else {
    simt::as<std::uint16_t>(scales.scales)[group] = static_cast<std::uint16_t>(scale.bits);
  }
  if constexpr (kFormat == Format::int4_zero) {
    scales.zeros[group] = static_cast<std::uint8_t>(scale.zero);
  }
}

/// 6 bits each of a super-block's eight scales and eight minima, in 12 bytes: those of the last four are split. Of groups
/// i and i + 4, bytes i, i + 4 and i + 8 of them.
__device__ inline unsigned six_bits_of(unsigned early, unsigned late) {
  const unsigned s0 = early & 63, m0 = early >> 6, s1 = late & 63, m1 = late >> 6;
  return s0 | s1 >> 4 << 6 | m0 << 8 | m1 >> 4 << 14 | (s1 & 15) << 16 | (m1 & 15) << 20;
}
/// By four threads, number `i` of them.
__device__ inline void write_six_bits(simt::Global<std::uint8_t> block, int i, unsigned early,
                                      unsigned late) {
  const unsigned bytes = six_bits_of(early, late);
  for (int j = 0; j < 3; ++j) {
    block[4 + 4 * j + i] = static_cast<std::uint8_t>(bytes >> 8 * j & 0xFFu);
  }
}

// ---- a thread's eight weights -------------------------------------------------------------------

__device__ inline void load_weights(Weights weights, int chunk, float (&w)[kWeights]) {
  const uint4 loaded = simt::as<const uint4>(weights)[chunk];
  const unsigned pairs[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
  for (int i = 0; i < kWeights; ++i) w[i] = simt::unpack_bf16(pairs[i / 2], i % 2);
}

/// The number of weights of a group; of a whole row or all of W too.
__device__ inline int weights_of(Group group, const Matrix& matrix) {
  if (group == Group::row) return matrix.columns;
  if (group == Group::tensor) return matrix.rows * matrix.columns;
  return 16 << static_cast<int>(group);
}

/// NVFP4's one number for all of W: the largest weight of all gets the largest scale and the largest code.
__device__ inline float tensor_scale_of(const Range& all) {
  return fmaxf(-all.low, all.high) / (E4m3::largest() * E2m1::largest());
}

}  // namespace tilestep::low_bit::SIMT_BACKEND

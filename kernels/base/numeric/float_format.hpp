#pragma once

#include <bit>
#include <cstdint>

// Plain C++ that both the host compiler and nvcc take; on the device it is the same arithmetic, so
// that emulated and CUDA runs agree bit for bit.
#if defined(__CUDACC__)
#define TILESTEP_HOST_DEVICE __host__ __device__
#else
#define TILESTEP_HOST_DEVICE
#endif
/// For what the loops over a product call: builds that do not optimize most files would have the linker take an
/// unoptimized one of those for the optimized files too.
#define TILESTEP_INLINED TILESTEP_HOST_DEVICE __attribute__((always_inline))

namespace tilestep::numeric {

/// FP16 (IEEE 754 binary16): 1 sign, 5 exponent, 10 mantissa bits. `round` gives the nearest FP16
/// value (ties to even) of a float, as a float; overflow gives infinity, NaN stays NaN.
struct Fp16 {
  static constexpr int kMantissaBits = 10;
  static constexpr double kUnitRoundoff = 1.0 / 2048;  ///< 2^-11, half an ulp at 1
  TILESTEP_HOST_DEVICE static float round(float value);
};

/// BF16 (bfloat16): 1 sign, 8 exponent, 7 mantissa bits. `round` as for Fp16; `bits` is the pattern
/// of the rounded number, the upper half of its FP32 pattern, and `value` takes it back.
struct Bf16 {
  static constexpr int kMantissaBits = 7;
  static constexpr double kUnitRoundoff = 1.0 / 256;  ///< 2^-8
  TILESTEP_HOST_DEVICE static float round(float value);
  TILESTEP_HOST_DEVICE static std::uint16_t bits(float value) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(round(value)) >> 16);
  }
  TILESTEP_HOST_DEVICE static float value(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// FP32 (IEEE 754 binary32). `round` gives its argument.
struct Fp32 {
  static constexpr int kMantissaBits = 23;
  static constexpr double kUnitRoundoff = 1.0 / 16777216;  ///< 2^-24
  TILESTEP_HOST_DEVICE static float round(float value) { return value; }
};

// A sum or product of two FP16 (or BF16) values computed in FP32 and then rounded equals the one
// rounded once: FP32 has more than 2p + 2 bits for p = 11 and p = 8 (Figueroa, "When is double
// rounding innocuous?", 1995). So `F::round(a + b)` is the format's own addition.

TILESTEP_HOST_DEVICE inline float Bf16::round(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return value;  // NaN
  bits += 0x7FFFu + ((bits >> 16) & 1u);                 // nearest, ties to even
  return std::bit_cast<float>(bits & 0xFFFF0000u);
}

TILESTEP_HOST_DEVICE inline float Fp16::round(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & 0x80000000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return value;  // NaN
  // 65520 lies halfway between the largest FP16 (65504) and 2^16; from there on it is infinity.
  if (magnitude >= 0x477FF000u) return std::bit_cast<float>(sign | 0x7F800000u);
  if (magnitude < 0x38800000u) {
    // Below 2^-14 FP16 is a fixed-point format with steps of 2^-24: adding 0.5 (whose FP32 ulp is
    // 2^-24) makes the FP32 adder round to exactly that step.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(shifted - 0.5f));
  }
  const std::uint32_t rounded = (magnitude + 0x0FFFu + ((magnitude >> 13) & 1u)) & 0xFFFFE000u;
  return std::bit_cast<float>(sign | rounded);
}

}  // namespace tilestep::numeric

#pragma once

// An angle from a position, to the last bits at any position.
//
// A pair turns by the same part of a turn at each token. Whole turns change nothing, so all that counts is what is left
// of position · rate once they are gone. With the rate in units of 2^-64 of a turn they go by themselves: the product
// overflows. In FP32 the product itself is rounded, and at position 1,000,000 its last bit is worth 1/16 of a radian.

#include <cstdint>

#include "kernels/attention/positions/kernels.hpp"
#include "kernels/base/numeric/float_format.hpp"

namespace tilestep::positions::SIMT_BACKEND {

/// Cosine and sine of an angle, times the size of what is turned.
struct Turn {
  float cos, sin;
};

constexpr float kRadians = 6.28318530717958648f;

__device__ inline Turn turn_at(std::uint64_t rate, int position, float size) {
  const auto phase =
      static_cast<std::uint32_t>((rate * static_cast<std::uint64_t>(position)) >> 32);
  const float angle =
      static_cast<float>(static_cast<int>(phase)) * (kRadians * 0x1p-32f);  // [step: rotate]
  return {size * __cosf(angle), size * __sinf(angle)};
}

/// The same as it goes wrong: FP16 has whole numbers up to 2048, and none above 65504.
__device__ inline Turn turn_in_fp16(std::uint64_t rate, int position, float size) {
  using numeric::Fp16;
  const float each = Fp16::round(static_cast<float>(rate) * (kRadians * 0x1p-64f));
  const float angle = Fp16::round(Fp16::round(static_cast<float>(position)) * each);
  return {size * cosf(angle), size * sinf(angle)};
}

}  // namespace tilestep::positions::SIMT_BACKEND

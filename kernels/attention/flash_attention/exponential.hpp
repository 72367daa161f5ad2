#pragma once

/// \file
/// 2^x without the unit for exponentials, which makes 16 of them a cycle and multiprocessor: on those that multiply
/// and add (FlashAttention 4's idea).

#include "kernels/base/simt/simt.hpp"

namespace tilestep::flash_attention::exponentials::SIMT_BACKEND {

/// 2^x for x ≤ 16: the integer part goes to the exponent's bits, the rest, −1/2 … 1/2, through a polynomial
/// (`kPolynomialError`, params.hpp). What is below the normal numbers is the smallest of them.
__device__ __forceinline__ float exp2_polynomial(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 · 2^23: what is added to it is rounded to an integer
  const float bounded = fmaxf(x, -126.0f);
  const float shifted = bounded + kRound;
  const float rest = bounded - (shifted - kRound);
  float power = fmaf(rest, 0.0551716691f, 0.242611122f);
  power = fmaf(power, rest, 0.693260985f);
  power = fmaf(power, rest, 0.999928074f);
  return __int_as_float(__float_as_int(power) + (__float_as_int(shifted) << 23));
}

/// Whether the polynomial makes the weights of the j-th 8 keys of a tile: of 16 such groups `of_16`, far from each
/// other.
__device__ __forceinline__ constexpr bool by_polynomial(int j, int of_16) {
  return j * of_16 % 16 < of_16;
}

}  // namespace tilestep::flash_attention::exponentials::SIMT_BACKEND

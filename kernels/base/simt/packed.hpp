#pragma once

/// \file
/// Operations on numbers that share a register, one or two instructions each on a GPU:
///
///     simt::add_fp16x2(a, b), simt::fma_fp16x2(a, b, c)   both FP16 of a register, each rounded once
///     simt::fma_bf16x2(a, b, c), simt::max_bf16x2(a, b)   the same of BF16; compute capability 8.0
///     simt::min_bf16x2(a, b)          the smaller ones; compute capability 8.0
///     simt::max_magnitude_bf16x2(a, b)   the larger magnitudes, with the signs multiplied; compute capability 8.6
///     simt::max_or_nan_bf16x2(a, b)   not a number where one of the two is none, which max_bf16x2 passes over
///     simt::greater_bf16x2(a, b)      all bits of each half in which a > b; compute capability 9.0
///     simt::pack_e5m2(a, b, c, d)     four numbers in E5M2, a in the lowest byte, saturated; compute capability 8.9
///     simt::nearest_int(x)            the nearest whole number, the even one of a tie; saturates
///     simt::near_reciprocal(x)        1 / x to the last bit or the one before, of a normal x; one instruction
///     simt::saturated(x)              x, but at least 0 and at most 1: free where x is a product or a sum
///     simt::unpack_e4m3x2(pair)       two E4M3 (OCP 8-bit floating point), in the low half of a register, as two
///                                     FP16: exact
///     simt::permute_bytes(a, b, how)  byte i of the result is byte (how >> 4i & 7) of b:a, a's being 0 … 3
///     simt::mask_and_turn(a, mask, turned)   (a & mask) ^ turned, in one instruction
///     simt::multiprocessor()          index of the calling thread's multiprocessor; emulated: its block's
///     simt::device_clock()            nanoseconds since a moment common to all multiprocessors

#include "kernels/base/simt/mma.hpp"

#if defined(__CUDACC__)

namespace tilestep::simt {

__device__ __forceinline__ unsigned add_fp16x2(unsigned a, unsigned b) {
  unsigned sum;
  asm("add.rn.f16x2 %0, %1, %2;\n" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
}
__device__ __forceinline__ unsigned fma_fp16x2(unsigned a, unsigned b, unsigned c) {
  unsigned sum;
  asm("fma.rn.f16x2 %0, %1, %2, %3;\n" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}
#if !defined(SIMT_ANY_GPU)  // see mma_cuda.hpp
__device__ __forceinline__ unsigned fma_bf16x2(unsigned a, unsigned b, unsigned c) {
  unsigned sum = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm("fma.rn.bf16x2 %0, %1, %2, %3;\n" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
#else
  asm volatile("trap;");
#endif
  return sum;
}
__device__ __forceinline__ unsigned max_bf16x2(unsigned a, unsigned b) {
  unsigned most = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm("max.bf16x2 %0, %1, %2;\n" : "=r"(most) : "r"(a), "r"(b));
#else
  asm volatile("trap;");
#endif
  return most;
}
__device__ __forceinline__ unsigned min_bf16x2(unsigned a, unsigned b) {
  unsigned least = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm("min.bf16x2 %0, %1, %2;\n" : "=r"(least) : "r"(a), "r"(b));
#else
  asm volatile("trap;");
#endif
  return least;
}
__device__ __forceinline__ unsigned max_magnitude_bf16x2(unsigned a, unsigned b) {
  unsigned most = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 860
  asm("max.xorsign.abs.bf16x2 %0, %1, %2;\n" : "=r"(most) : "r"(a), "r"(b));
#else
  asm volatile("trap;");
#endif
  return most;
}
__device__ __forceinline__ unsigned max_or_nan_bf16x2(unsigned a, unsigned b) {
  unsigned most = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm("max.NaN.bf16x2 %0, %1, %2;\n" : "=r"(most) : "r"(a), "r"(b));
#else
  asm volatile("trap;");
#endif
  return most;
}
__device__ __forceinline__ unsigned greater_bf16x2(unsigned a, unsigned b) {
  unsigned mask = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm("set.gt.u32.bf16x2 %0, %1, %2;\n" : "=r"(mask) : "r"(a), "r"(b));
#else
  asm volatile("trap;");
#endif
  return mask;
}
__device__ __forceinline__ unsigned pack_e5m2(float a, float b, float c, float d) {
  unsigned four = 0;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
  asm("{\n.reg .b16 low, high;\ncvt.rn.satfinite.e5m2x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e5m2x2.f32 high, %4, %3;\nmov.b32 %0, {low, high};\n}\n"
      : "=r"(four)
      : "f"(a), "f"(b), "f"(c), "f"(d));
#else
  asm volatile("trap;");
#endif
  return four;
}
#endif
__device__ __forceinline__ int nearest_int(float x) {
  return __float2int_rn(x);
}
__device__ __forceinline__ float near_reciprocal(float x) {
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;\n" : "=f"(inverse) : "f"(x));
  return inverse;
}
__device__ __forceinline__ float saturated(float x) {
  return __saturatef(x);
}
__device__ __forceinline__ unsigned permute_bytes(unsigned a, unsigned b, unsigned how) {
  return __byte_perm(a, b, how);
}
/// The compiler would take two, each with a constant of its own.
__device__ __forceinline__ unsigned mask_and_turn(unsigned a, unsigned mask, unsigned turned) {
  unsigned result;
  asm("lop3.b32 %0, %1, %2, %3, 0x6A;\n" : "=r"(result) : "r"(a), "r"(mask), "r"(turned));
  return result;
}
__device__ __forceinline__ unsigned unpack_e4m3x2(unsigned pair) {
  unsigned both;
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;\n" : "=r"(both) : "h"(static_cast<unsigned short>(pair)));
#else
  // The bits in the place of an FP16's are the number times 2^-8, subnormal ones too. E4M3's NaN has all of them set.
  const unsigned spread = __byte_perm(pair, 0, 0x1404);  // each number in the high byte of its half
  const unsigned scaled = (spread & 0x80008000u) | (spread >> 1 & 0x3F803F80u);
  both = fma_fp16x2(scaled, 0x5C005C00u, 0u);
  if ((spread & 0x7F00u) == 0x7F00u) both |= 0x7E00u;
  if ((spread & 0x7F000000u) == 0x7F000000u) both |= 0x7E000000u;
#endif
  return both;
}
__device__ __forceinline__ int multiprocessor() {
  int number;
  asm volatile("mov.u32 %0, %%smid;\n" : "=r"(number));
  return number;
}
__device__ __forceinline__ long long device_clock() {
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;\n" : "=l"(now)::"memory");
  return now;
}

}  // namespace tilestep::simt

#else

#include <chrono>

namespace tilestep::simt {

inline unsigned fma_fp16x2(unsigned a, unsigned b, unsigned c) {
  unsigned both = 0;
  for (int half = 0; half < 2; ++half) {
    // A double holds the product, and FP32 enough of the sum that rounding twice is rounding once, but for ties
    // that the kernels' whole numbers do not come to.
    const double exact =
        static_cast<double>(unpack_fp16(a, half)) * static_cast<double>(unpack_fp16(b, half)) +
        static_cast<double>(unpack_fp16(c, half));
    const float rounded = numeric::Fp16::round(static_cast<float>(exact));
    both |= numeric::encode(numeric::kFp16, static_cast<double>(rounded)) << (16 * half);
  }
  return both;
}
/// Exact sums in FP32 alone: of products of BF16's 8 bits whose sum needs no more than FP32's 24.
inline unsigned fma_bf16x2(unsigned a, unsigned b, unsigned c) {
  const auto one = [&](int half) {
    return unpack_bf16(a, half) * unpack_bf16(b, half) + unpack_bf16(c, half);
  };
  return pack_bf16(one(0), one(1));
}
inline unsigned max_bf16x2(unsigned a, unsigned b) {
  const auto one = [&](int half) { return fmaxf(unpack_bf16(a, half), unpack_bf16(b, half)); };
  return pack_bf16(one(0), one(1));
}
inline unsigned min_bf16x2(unsigned a, unsigned b) {
  const auto one = [&](int half) { return fminf(unpack_bf16(a, half), unpack_bf16(b, half)); };
  return pack_bf16(one(0), one(1));
}
inline unsigned max_magnitude_bf16x2(unsigned a, unsigned b) {
  return max_bf16x2(a & 0x7FFF7FFFu, b & 0x7FFF7FFFu) | ((a ^ b) & 0x80008000u);
}
inline unsigned max_or_nan_bf16x2(unsigned a, unsigned b) {
  unsigned most = max_bf16x2(a, b);
  for (const unsigned half : {0xFFFFu, 0xFFFF0000u}) {
    const bool number = (a & 0x7FFF7FFFu & half) <= (0x7F807F80u & half) &&
                        (b & 0x7FFF7FFFu & half) <= (0x7F807F80u & half);
    if (!number) most = (most & ~half) | (0x7FFF7FFFu & half);
  }
  return most;
}
inline unsigned greater_bf16x2(unsigned a, unsigned b) {
  const auto one = [&](int half) { return unpack_bf16(a, half) > unpack_bf16(b, half); };
  return (one(0) ? 0xFFFFu : 0u) | (one(1) ? 0xFFFF0000u : 0u);
}
inline unsigned pack_e5m2(float a, float b, float c, float d) {
  unsigned four = 0;
  int shift = 0;
  for (const float one : {a, b, c, d}) {
    const double rounded =
        numeric::round_to(numeric::kE5m2, static_cast<double>(one), numeric::Rounding::nearest,
                          numeric::Overflow::saturate);
    four |= numeric::encode(numeric::kE5m2, rounded) << shift;
    shift += 8;
  }
  return four;
}
inline int nearest_int(float x) {
  if (!(x == x)) return 0;
  if (x >= 2147483648.0f) return 2147483647;
  if (x < -2147483648.0f) return -2147483647 - 1;
  return static_cast<int>(std::lrintf(x));
}
inline float near_reciprocal(float x) {
  return 1.0f / x;
}
inline float saturated(float x) {
  return fminf(fmaxf(x, 0.0f), 1.0f);
}
inline unsigned add_fp16x2(unsigned a, unsigned b) {
  return fma_fp16x2(a, 0x3C003C00u, b);
}
inline unsigned permute_bytes(unsigned a, unsigned b, unsigned how) {
  const std::uint64_t bytes = a | static_cast<std::uint64_t>(b) << 32;
  unsigned picked = 0;
  for (int i = 0; i < 4; ++i) {
    picked |= static_cast<unsigned>(bytes >> 8 * (how >> 4 * i & 7) & 0xFF) << 8 * i;
  }
  return picked;
}
inline unsigned mask_and_turn(unsigned a, unsigned mask, unsigned turned) {
  return (a & mask) ^ turned;
}
inline unsigned unpack_e4m3x2(unsigned pair) {
  unsigned both = 0;
  for (int half = 0; half < 2; ++half) {
    const double number = numeric::decode(numeric::kE4m3, pair >> 8 * half & 0xFF);
    both |= numeric::encode(numeric::kFp16, number) << (16 * half);
  }
  return both;
}
inline int multiprocessor() {
  return static_cast<int>(blockIdx.x);
}
inline long long device_clock() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace tilestep::simt

#endif

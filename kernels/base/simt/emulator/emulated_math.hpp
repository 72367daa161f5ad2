#pragma once

/// \file
/// CUDA's math functions for the host compiler; those of <math.h> (expf, fmaxf, log2f, INFINITY, …)
/// are there as they are. The approximate ones (`__expf`) are the accurate ones here: a result may
/// differ from a GPU's by the few ulp that the CUDA guide states. Included by simt.hpp.

#include <math.h>

#include <bit>
#include <cstdint>
#include <type_traits>

namespace tilestep::simt::emulated {

inline float fast_exp(float x) {
  return ::expf(x);
}
inline float fast_log(float x) {
  return ::logf(x);
}
inline float fast_log2(float x) {
  return ::log2f(x);
}
inline float fast_sin(float x) {
  return ::sinf(x);
}
inline float fast_cos(float x) {
  return ::cosf(x);
}
inline float fast_pow(float x, float y) {
  return ::powf(x, y);
}

template <class A, class B>
using Common = std::common_type_t<A, B>;

}  // namespace tilestep::simt::emulated

// Macros, because the C library already declares functions of these names (and has none).
#define __expf(x) (::tilestep::simt::emulated::fast_exp(x))
#define __logf(x) (::tilestep::simt::emulated::fast_log(x))
#define __log2f(x) (::tilestep::simt::emulated::fast_log2(x))
#define __sinf(x) (::tilestep::simt::emulated::fast_sin(x))
#define __cosf(x) (::tilestep::simt::emulated::fast_cos(x))
#define __powf(x, y) (::tilestep::simt::emulated::fast_pow(x, y))

inline float rsqrtf(float x) {
  return 1.0f / sqrtf(x);
}
inline double rsqrt(double x) {
  return 1.0 / sqrt(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline float __frcp_rn(float x) {
  return 1.0f / x;
}
inline float __fsqrt_rn(float x) {
  return sqrtf(x);
}
inline float __fadd_rn(float x, float y) {
  return x + y;
}
inline float __fsub_rn(float x, float y) {
  return x - y;
}
inline float __fmul_rn(float x, float y) {
  return x * y;
}
inline float __fdiv_rn(float x, float y) {
  return x / y;
}
inline float __fmaf_rn(float x, float y, float z) {
  return fmaf(x, y, z);
}

inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
inline long long __double_as_longlong(double x) {
  return std::bit_cast<long long>(x);
}
inline double __longlong_as_double(long long x) {
  return std::bit_cast<double>(x);
}

inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __popcll(unsigned long long x) {
  return std::popcount(x);
}
inline int __clz(int x) {
  return std::countl_zero(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}
/// Position of the least significant 1, counted from 1; 0 if there is none.
inline int __ffs(int x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1;
}
inline int __ffsll(long long x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1;
}

/// CUDA's own min and max: numbers of one or two types, compared as their common type; a NaN loses
/// against a number, as in fminf and fmaxf.
template <class A, class B>
requires(std::is_arithmetic_v<A>&&
             std::is_arithmetic_v<B>) constexpr tilestep::simt::emulated::Common<A, B> min(A a,
                                                                                           B b) {
  using T = tilestep::simt::emulated::Common<A, B>;
  const T x = static_cast<T>(a);
  const T y = static_cast<T>(b);
  return y < x || x != x ? y : x;
}
template <class A, class B>
requires(std::is_arithmetic_v<A>&&
             std::is_arithmetic_v<B>) constexpr tilestep::simt::emulated::Common<A, B> max(A a,
                                                                                           B b) {
  using T = tilestep::simt::emulated::Common<A, B>;
  const T x = static_cast<T>(a);
  const T y = static_cast<T>(b);
  return x < y || x != x ? y : x;
}

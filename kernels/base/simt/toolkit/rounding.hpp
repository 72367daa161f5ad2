#pragma once

/// \file
/// Arithmetic and conversions with the rounding in their names: rn to nearest, rz toward zero, ru up, rd down ("CUDA Math
/// API", intrinsics for single and double precision and type casts). Included by words.hpp.

#include <fenv.h>
#include <math.h>

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "kernels/base/simt/emulator/emulated_math.hpp"

namespace tilestep::simt::emulated {

/// Nothing is known of `value` from here on: what is computed with it is computed after, and it before.
template <class T>
void hold(T& value) {
  asm volatile("" : "+m"(value) : : "memory");
}

/// compute(values…) while the processor rounds as `mode` says.
template <class To, class Compute, class... From>
To rounded(int mode, Compute compute, From... values) {
  const int before = fegetround();
  fesetround(mode);
  (hold(values), ...);
  To result = compute(values...);
  hold(result);
  fesetround(before);
  return result;
}

/// The whole number next to x in that direction, at the ends of Whole where x lies beyond them. NaN is 0, from a double
/// and to 64 bits the top bit alone (PTX ISA, cvt).
template <class Whole, class From>
Whole whole_of(int mode, From from) {
  using Limits = std::numeric_limits<Whole>;
  const auto x = static_cast<double>(from);
  if (x != x) {
    constexpr bool kTop = sizeof(Whole) == 8 || sizeof(From) == 8;
    return kTop ? static_cast<Whole>(1ULL << (8 * sizeof(Whole) - 1)) : Whole{0};
  }
  const double whole = mode == FE_TOWARDZERO ? ::trunc(x)
                       : mode == FE_UPWARD   ? ::ceil(x)
                       : mode == FE_DOWNWARD ? ::floor(x)
                                             : ::nearbyint(x);
  if (whole <= static_cast<double>(Limits::min())) return Limits::min();
  if (whole >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<Whole>(whole);
}

}  // namespace tilestep::simt::emulated

#define TILESTEP_ROUNDED1(name, To, From, mode, expression) \
  inline To name(From x) {                                  \
    return tilestep::simt::emulated::rounded<To>(           \
        mode, [](From a) { return expression; }, x);        \
  }
#define TILESTEP_ROUNDED2(name, T, mode, expression)      \
  inline T name(T x, T y) {                               \
    return tilestep::simt::emulated::rounded<T>(          \
        mode, [](T a, T b) { return expression; }, x, y); \
  }
#define TILESTEP_ARITHMETIC(T, p, fused, root, r, mode)                 \
  TILESTEP_ROUNDED2(__##p##add_##r, T, mode, a + b)                     \
  TILESTEP_ROUNDED2(__##p##sub_##r, T, mode, a - b)                     \
  TILESTEP_ROUNDED2(__##p##mul_##r, T, mode, a* b)                      \
  TILESTEP_ROUNDED2(__##p##div_##r, T, mode, a / b)                     \
  TILESTEP_ROUNDED1(__##p##rcp_##r, T, T, mode, 1 / a)                  \
  TILESTEP_ROUNDED1(__##p##sqrt_##r, T, T, mode, ::root(a))             \
  inline T __##fused##_##r(T x, T y, T z) {                             \
    return tilestep::simt::emulated::rounded<T>(                        \
        mode, [](T a, T b, T c) { return ::fused(a, b, c); }, x, y, z); \
  }
// To nearest, a float's are in emulated_math.hpp.
TILESTEP_ARITHMETIC(float, f, fmaf, sqrtf, rz, FE_TOWARDZERO)
TILESTEP_ARITHMETIC(float, f, fmaf, sqrtf, ru, FE_UPWARD)
TILESTEP_ARITHMETIC(float, f, fmaf, sqrtf, rd, FE_DOWNWARD)
TILESTEP_ARITHMETIC(double, d, fma, sqrt, rn, FE_TONEAREST)
TILESTEP_ARITHMETIC(double, d, fma, sqrt, rz, FE_TOWARDZERO)
TILESTEP_ARITHMETIC(double, d, fma, sqrt, ru, FE_UPWARD)
TILESTEP_ARITHMETIC(double, d, fma, sqrt, rd, FE_DOWNWARD)
#undef TILESTEP_ARITHMETIC
#undef TILESTEP_ROUNDED2

#define TILESTEP_WHOLE(name, From, To, r, mode)             \
  inline To name##_##r(From x) {                            \
    return tilestep::simt::emulated::whole_of<To>(mode, x); \
  }
#define TILESTEP_CONVERSIONS(r, mode)                                                        \
  TILESTEP_WHOLE(__float2int, float, int, r, mode)                                           \
  TILESTEP_WHOLE(__float2uint, float, unsigned, r, mode)                                     \
  TILESTEP_WHOLE(__float2ll, float, long long, r, mode)                                      \
  TILESTEP_WHOLE(__float2ull, float, unsigned long long, r, mode)                            \
  TILESTEP_WHOLE(__double2int, double, int, r, mode)                                         \
  TILESTEP_WHOLE(__double2uint, double, unsigned, r, mode)                                   \
  TILESTEP_WHOLE(__double2ll, double, long long, r, mode)                                    \
  TILESTEP_WHOLE(__double2ull, double, unsigned long long, r, mode)                          \
  TILESTEP_ROUNDED1(__double2float_##r, float, double, mode, static_cast<float>(a))          \
  TILESTEP_ROUNDED1(__int2float_##r, float, int, mode, static_cast<float>(a))                \
  TILESTEP_ROUNDED1(__uint2float_##r, float, unsigned, mode, static_cast<float>(a))          \
  TILESTEP_ROUNDED1(__ll2float_##r, float, long long, mode, static_cast<float>(a))           \
  TILESTEP_ROUNDED1(__ull2float_##r, float, unsigned long long, mode, static_cast<float>(a)) \
  TILESTEP_ROUNDED1(__ll2double_##r, double, long long, mode, static_cast<double>(a))        \
  TILESTEP_ROUNDED1(__ull2double_##r, double, unsigned long long, mode, static_cast<double>(a))
TILESTEP_CONVERSIONS(rn, FE_TONEAREST)
TILESTEP_CONVERSIONS(rz, FE_TOWARDZERO)
TILESTEP_CONVERSIONS(ru, FE_UPWARD)
TILESTEP_CONVERSIONS(rd, FE_DOWNWARD)
#undef TILESTEP_CONVERSIONS
#undef TILESTEP_WHOLE
#undef TILESTEP_ROUNDED1

inline double __int2double_rn(int x) {
  return x;
}
inline double __uint2double_rn(unsigned x) {
  return x;
}
inline int __double2hiint(double x) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 32);
}
inline int __double2loint(double x) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(x));
}
inline double __hiloint2double(int high, int low) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<unsigned>(high)) << 32 |
                               static_cast<unsigned>(low));
}

/// 1/√x, rounded once.
inline float __frsqrt_rn(float x) {
  const auto near = static_cast<float>(1 / ::sqrt(static_cast<double>(x)));
  if (!(x > 0) || x > std::numeric_limits<float>::max()) return near;
  // The double was rounded too: the exact one may lie beyond the middle between two floats. It does where
  // middle² · x is less than 1, or more; the square is exact, and what fma rounds keeps its sign.
  for (const float other : {::nextafterf(near, 0.0f), ::nextafterf(near, HUGE_VALF)}) {
    const double middle = (static_cast<double>(near) + static_cast<double>(other)) / 2;
    const double side = ::fma(middle * middle, static_cast<double>(x), -1.0);
    if (other > near ? side < 0 : side > 0) return other;
  }
  return near;
}

#pragma once

/// \file
/// Math functions that CUDA has and <math.h> has not, or not everywhere ("CUDA Math API"). The approximate ones are the
/// accurate ones here, as in emulated_math.hpp. Included by words.hpp.

#include <math.h>

#include "kernels/base/simt/emulator/emulated_math.hpp"

namespace tilestep::simt::emulated {

/// sin(π·x) without the error of π·x.
inline double sin_pi(double x) {
  double turn = ::remainder(x, 2.0);  // exact
  if (::fabs(turn) > 0.5) turn = ::copysign(1.0, turn) - turn;
  return ::sin(M_PI * turn);
}
inline double cos_pi(double x) {
  return sin_pi(0.5 - ::fabs(::remainder(x, 2.0)));
}
inline float fast_tan(float x) {
  return ::tanf(x);
}
inline float fast_log10(float x) {
  return ::log10f(x);
}
inline float fast_exp10(float x) {
  return static_cast<float>(::pow(10.0, static_cast<double>(x)));
}
template <class T>
void sine_and_cosine(T x, T* sine, T* cosine) {
  *sine = static_cast<T>(::sin(static_cast<double>(x)));
  *cosine = static_cast<T>(::cos(static_cast<double>(x)));
}
template <class T>
void sine_and_cosine_pi(T x, T* sine, T* cosine) {
  *sine = static_cast<T>(sin_pi(static_cast<double>(x)));
  *cosine = static_cast<T>(cos_pi(static_cast<double>(x)));
}
inline double inverse_erf(double y) {
  if (!(::fabs(y) < 1)) return ::fabs(y) == 1 ? ::copysign(HUGE_VAL, y) : NAN;
  // Winitzki's approximation, then Newton's method, whose steps square the error.
  const double log_rest = ::log1p(-y * y), half = 2 / (M_PI * 0.147) + log_rest / 2;
  double x = ::copysign(::sqrt(::sqrt(half * half - log_rest / 0.147) - half), y);
  for (int i = 0; i < 4; ++i) x -= (::erf(x) - y) * ::sqrt(M_PI) / 2 * ::exp(x * x);
  return x;
}

}  // namespace tilestep::simt::emulated

// Macros, as in emulated_math.hpp: newer C libraries declare functions of these names.
#define __tanf(x) (::tilestep::simt::emulated::fast_tan(x))
#define __log10f(x) (::tilestep::simt::emulated::fast_log10(x))
#define __exp10f(x) (::tilestep::simt::emulated::fast_exp10(x))
#define __sincosf(x, sine, cosine) \
  (::tilestep::simt::emulated::sine_and_cosine<float>(x, sine, cosine))
#define sincospif(x, sine, cosine) \
  (::tilestep::simt::emulated::sine_and_cosine_pi<float>(x, sine, cosine))
#define sincospi(x, sine, cosine) \
  (::tilestep::simt::emulated::sine_and_cosine_pi<double>(x, sine, cosine))
#define sinpif(x) (static_cast<float>(::tilestep::simt::emulated::sin_pi(static_cast<double>(x))))
#define cospif(x) (static_cast<float>(::tilestep::simt::emulated::cos_pi(static_cast<double>(x))))
#define sinpi(x) (::tilestep::simt::emulated::sin_pi(x))
#define cospi(x) (::tilestep::simt::emulated::cos_pi(x))

/// Up to 1 from 0 on, NaN becoming 0.
inline float __saturatef(float x) {
  return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}
inline float fdividef(float x, float y) {
  return x / y;
}
inline double rcbrt(double x) {
  return 1 / ::cbrt(x);
}
inline float rcbrtf(float x) {
  return static_cast<float>(rcbrt(static_cast<double>(x)));
}
inline double norm3d(double a, double b, double c) {
  return ::hypot(::hypot(a, b), c);
}
inline double norm4d(double a, double b, double c, double d) {
  return ::hypot(::hypot(a, b), ::hypot(c, d));
}
inline float norm3df(float a, float b, float c) {
  return static_cast<float>(norm3d(a, b, c));
}
inline float norm4df(float a, float b, float c, float d) {
  return static_cast<float>(norm4d(a, b, c, d));
}
inline float rnorm3df(float a, float b, float c) {
  return static_cast<float>(1 / norm3d(a, b, c));
}
inline float rnorm4df(float a, float b, float c, float d) {
  return static_cast<float>(1 / norm4d(a, b, c, d));
}
inline float rhypotf(float a, float b) {
  return static_cast<float>(1 / ::hypot(static_cast<double>(a), static_cast<double>(b)));
}
/// The square root of the sum of `dimensions` squares.
inline float normf(int dimensions, const float* a) {
  double sum = 0;
  for (int i = 0; i < dimensions; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(a[i]);
  return static_cast<float>(::sqrt(sum));
}
inline float rnormf(int dimensions, const float* a) {
  double sum = 0;
  for (int i = 0; i < dimensions; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(a[i]);
  return static_cast<float>(1 / ::sqrt(sum));
}
inline double normcdf(double x) {
  return ::erfc(-x * M_SQRT1_2) / 2;
}
inline float normcdff(float x) {
  return static_cast<float>(normcdf(static_cast<double>(x)));
}
inline double erfinv(double y) {
  return tilestep::simt::emulated::inverse_erf(y);
}
inline float erfinvf(float y) {
  return static_cast<float>(erfinv(static_cast<double>(y)));
}

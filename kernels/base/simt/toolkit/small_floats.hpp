#pragma once

/// \file
/// FP16 and BF16 as cuda_fp16.h and cuda_bf16.h have them ("CUDA Math API", "Half Precision Intrinsics"). A result is the
/// exact one rounded once, to nearest with ties to even; a NaN that is computed has all bits below the sign set. In a
/// namespace of its own, so that a program may hold NVIDIA's headers too. Included by those two.

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/base/numeric/small_float.hpp"
#include "kernels/base/simt/emulator/emulated_atomics.hpp"
#include "kernels/base/simt/emulator/emulated_threads.hpp"
#include "kernels/base/simt/emulator/emulated_types.hpp"
#include "kernels/base/simt/toolkit/rounding.hpp"

inline namespace tilestep_toolkit {

struct Fp16Format {
  static constexpr tilestep::numeric::FloatSpec kSpec = tilestep::numeric::kFp16;
};
struct Bf16Format {
  static constexpr tilestep::numeric::FloatSpec kSpec = tilestep::numeric::kBf16;
};

struct __half_raw {
  unsigned short x;
};
struct __nv_bfloat16_raw {
  unsigned short x;
};

/// A double that is rounded as `value` is: itself, or for 64 bits that it does not hold its odd neighbour.
template <class Number>
constexpr double to_odd(Number value) {
  if constexpr (std::is_integral_v<Number> && sizeof(Number) == 8) {
    return tilestep::numeric::add_to_odd(static_cast<double>(value >> 32) * 0x1p32,
                                         static_cast<double>(value & 0xFFFFFFFF));
  } else {
    return static_cast<double>(value);
  }
}

/// The bits of `value` rounded toward FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD or to nearest.
template <class Format>
constexpr unsigned short bits_of(double value, int mode = FE_TONEAREST) {
  namespace numeric = tilestep::numeric;
  const bool nearest = mode == FE_TONEAREST;
  const double kept = numeric::round_to(
      Format::kSpec, value, nearest ? numeric::Rounding::nearest : numeric::Rounding::truncate);
  unsigned bits = numeric::encode(Format::kSpec, kept);
  // Truncated away from where it was to go: the next larger magnitude, which is infinity after the largest.
  if (!nearest && kept != value && value == value &&
      mode == (value > 0 ? FE_UPWARD : FE_DOWNWARD)) {
    ++bits;
  }
  return static_cast<unsigned short>(bits);
}

/// One number, as __half or __nv_bfloat16. What takes it by value is inlined: an argument that a call copies from memory is
/// an access that the compilers do not tell of, and so would be none (simt/memory_words.cpp).
template <class Format>
class SmallFloat {
 public:
  SmallFloat() = default;
  template <class Number>
  requires std::is_arithmetic_v<Number>
  constexpr SmallFloat(Number value) : bits_(bits_of<Format>(to_odd(value))) {}
  constexpr SmallFloat(__half_raw raw) requires std::same_as<Format, Fp16Format> : bits_(raw.x) {}
  constexpr SmallFloat(__nv_bfloat16_raw raw) requires std::same_as<Format, Bf16Format>
      : bits_(raw.x) {}
  static constexpr SmallFloat of_bits(unsigned bits) {
    SmallFloat number{};
    number.bits_ = static_cast<unsigned short>(bits);
    return number;
  }

  constexpr unsigned short bits() const { return bits_; }
  unsigned short* address() { return &bits_; }
  constexpr double exact() const { return tilestep::numeric::decode(Format::kSpec, bits_); }
  /// A NaN is made anew from an FP16, and keeps its bits from a BF16.
  constexpr operator float() const {
    if constexpr (std::same_as<Format, Bf16Format>) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16);
    }
    return __hisnan(*this) ? std::bit_cast<float>(0x7FFFFFFFu) : static_cast<float>(exact());
  }

  friend __forceinline__ constexpr bool __hisnan(SmallFloat a) { return a.exact() != a.exact(); }
  friend __forceinline__ constexpr int __hisinf(SmallFloat a) {
    return tilestep::numeric::is_infinite(a.exact()) ? (a.exact() > 0 ? 1 : -1) : 0;
  }
  friend __forceinline__ constexpr SmallFloat __hneg(SmallFloat a) {
    return __hisnan(a) ? nan() : of_bits(a.bits_ ^ 0x8000u);
  }
  friend __forceinline__ constexpr SmallFloat __habs(SmallFloat a) {
    return __hisnan(a) ? nan() : of_bits(a.bits_ & 0x7FFFu);
  }
  friend __forceinline__ SmallFloat __hadd(SmallFloat a, SmallFloat b) {
    return tilestep::numeric::add_to_odd(a.exact(), b.exact());
  }
  friend __forceinline__ SmallFloat __hsub(SmallFloat a, SmallFloat b) {
    return tilestep::numeric::add_to_odd(a.exact(), -b.exact());
  }
  friend __forceinline__ SmallFloat __hmul(SmallFloat a, SmallFloat b) {
    return a.exact() * b.exact();
  }
  /// A double has more than twice the bits, so that rounding twice is rounding once.
  friend __forceinline__ SmallFloat __hdiv(SmallFloat a, SmallFloat b) {
    return a.exact() / b.exact();
  }
  friend __forceinline__ SmallFloat __hfma(SmallFloat a, SmallFloat b, SmallFloat c) {
    return tilestep::numeric::add_to_odd(a.exact() * b.exact(), c.exact());
  }
  friend __forceinline__ SmallFloat __hadd_rn(SmallFloat a, SmallFloat b) { return __hadd(a, b); }
  friend __forceinline__ SmallFloat __hsub_rn(SmallFloat a, SmallFloat b) { return __hsub(a, b); }
  friend __forceinline__ SmallFloat __hmul_rn(SmallFloat a, SmallFloat b) { return __hmul(a, b); }
  friend __forceinline__ SmallFloat __hadd_sat(SmallFloat a, SmallFloat b) {
    return saturated(__hadd(a, b));
  }
  friend __forceinline__ SmallFloat __hsub_sat(SmallFloat a, SmallFloat b) {
    return saturated(__hsub(a, b));
  }
  friend __forceinline__ SmallFloat __hmul_sat(SmallFloat a, SmallFloat b) {
    return saturated(__hmul(a, b));
  }
  friend __forceinline__ SmallFloat __hfma_sat(SmallFloat a, SmallFloat b, SmallFloat c) {
    return saturated(__hfma(a, b, c));
  }
  friend __forceinline__ SmallFloat __hfma_relu(SmallFloat a, SmallFloat b, SmallFloat c) {
    const SmallFloat sum = __hfma(a, b, c);
    return sum.exact() <= 0 ? SmallFloat(0) : sum;
  }

  // A number beats a NaN, and +0 is more than −0; with `nan` a NaN beats all.
  friend __forceinline__ SmallFloat __hmax(SmallFloat a, SmallFloat b) {
    return larger(a, b, false);
  }
  friend __forceinline__ SmallFloat __hmin(SmallFloat a, SmallFloat b) {
    return larger(a, b, true);
  }
  friend __forceinline__ SmallFloat __hmax_nan(SmallFloat a, SmallFloat b) {
    return __hisnan(a) || __hisnan(b) ? nan() : __hmax(a, b);
  }
  friend __forceinline__ SmallFloat __hmin_nan(SmallFloat a, SmallFloat b) {
    return __hisnan(a) || __hisnan(b) ? nan() : __hmin(a, b);
  }

  // With a NaN false; with `u` true.
#define TILESTEP_COMPARISON(name, op)                               \
  friend __forceinline__ bool name(SmallFloat a, SmallFloat b) {    \
    return !__hisnan(a) && !__hisnan(b) && a.exact() op b.exact();  \
  }                                                                 \
  friend __forceinline__ bool name##u(SmallFloat a, SmallFloat b) { \
    return __hisnan(a) || __hisnan(b) || a.exact() op b.exact();    \
  }
  TILESTEP_COMPARISON(__heq, ==)
  TILESTEP_COMPARISON(__hne, !=)
  TILESTEP_COMPARISON(__hlt, <)
  TILESTEP_COMPARISON(__hle, <=)
  TILESTEP_COMPARISON(__hgt, >)
  TILESTEP_COMPARISON(__hge, >=)
#undef TILESTEP_COMPARISON

#define TILESTEP_FUNCTION(name, expression)              \
  friend __forceinline__ SmallFloat name(SmallFloat a) { \
    const double x = a.exact();                          \
    return expression;                                   \
  }
  TILESTEP_FUNCTION(hexp, std::exp(x))
  TILESTEP_FUNCTION(hexp2, std::exp2(x))
  TILESTEP_FUNCTION(hexp10, std::pow(10.0, x))
  TILESTEP_FUNCTION(hlog, std::log(x))
  TILESTEP_FUNCTION(hlog2, std::log2(x))
  TILESTEP_FUNCTION(hlog10, std::log10(x))
  TILESTEP_FUNCTION(hsin, std::sin(x))
  TILESTEP_FUNCTION(hcos, std::cos(x))
  TILESTEP_FUNCTION(htanh, std::tanh(x))
  TILESTEP_FUNCTION(htanh_approx, std::tanh(x))
  TILESTEP_FUNCTION(hsqrt, std::sqrt(x))
  TILESTEP_FUNCTION(hrsqrt, 1 / std::sqrt(x))
  TILESTEP_FUNCTION(hrcp, 1 / x)
  TILESTEP_FUNCTION(hfloor, std::floor(x))
  TILESTEP_FUNCTION(hceil, std::ceil(x))
  TILESTEP_FUNCTION(htrunc, std::trunc(x))
  TILESTEP_FUNCTION(hrint, std::nearbyint(x))
#undef TILESTEP_FUNCTION

#define TILESTEP_OPERATOR(op, word)                                         \
  friend SmallFloat operator op(const SmallFloat& a, const SmallFloat& b) { \
    return word(a, b);                                                      \
  }                                                                         \
  friend SmallFloat& operator op##=(SmallFloat& a, const SmallFloat& b) {   \
    return a = word(a, b);                                                  \
  }
  TILESTEP_OPERATOR(+, __hadd)
  TILESTEP_OPERATOR(-, __hsub)
  TILESTEP_OPERATOR(*, __hmul)
  TILESTEP_OPERATOR(/, __hdiv)
#undef TILESTEP_OPERATOR
  friend SmallFloat operator+(const SmallFloat& a) {
    return a;
  }
  friend SmallFloat operator-(const SmallFloat& a) {
    return __hneg(a);
  }
  friend SmallFloat& operator++(SmallFloat& a) {
    return a += SmallFloat(1);
  }
  friend SmallFloat& operator--(SmallFloat& a) {
    return a -= SmallFloat(1);
  }
  friend bool operator==(const SmallFloat& a, const SmallFloat& b) {
    return __heq(a, b);
  }
  friend bool operator!=(const SmallFloat& a, const SmallFloat& b) {
    return __hneu(a, b);
  }
  friend bool operator<(const SmallFloat& a, const SmallFloat& b) {
    return __hlt(a, b);
  }
  friend bool operator<=(const SmallFloat& a, const SmallFloat& b) {
    return __hle(a, b);
  }
  friend bool operator>(const SmallFloat& a, const SmallFloat& b) {
    return __hgt(a, b);
  }
  friend bool operator>=(const SmallFloat& a, const SmallFloat& b) {
    return __hge(a, b);
  }

  friend __forceinline__ SmallFloat atomicAdd(SmallFloat* address, SmallFloat value) {
    return of_bits(tilestep::simt::emulated::atomic_update(
        address->address(),
        [&](unsigned short old) { return __hadd(of_bits(old), value).bits(); }));
  }

 private:
  static constexpr SmallFloat nan() {
    return of_bits(0x7FFF);
  }
  static SmallFloat saturated(SmallFloat a) {
    return a.exact() > 0 ? (a.exact() < 1 ? a : SmallFloat(1)) : SmallFloat(0);
  }
  static SmallFloat larger(SmallFloat a, SmallFloat b, bool turned) {
    if (__hisnan(a)) return __hisnan(b) ? nan() : b;
    if (__hisnan(b)) return a;
    const bool a_first = a.exact() == b.exact() ? a.bits_ < b.bits_ : a.exact() > b.exact();
    return a_first != turned ? a : b;
  }

  unsigned short bits_;
};

/// Two of them, as __half2 or __nv_bfloat162.
template <class Format>
struct alignas(4) SmallFloat2 {
  using One = SmallFloat<Format>;
  One x, y;

  SmallFloat2() = default;
  constexpr SmallFloat2(One low, One high) : x(low), y(high) {}

#define TILESTEP_BOTH1(name, one)                          \
  friend __forceinline__ SmallFloat2 name(SmallFloat2 a) { \
    return {one(a.x), one(a.y)};                           \
  }
#define TILESTEP_BOTH2(name, one)                                         \
  friend __forceinline__ SmallFloat2 name(SmallFloat2 a, SmallFloat2 b) { \
    return {one(a.x, b.x), one(a.y, b.y)};                                \
  }
#define TILESTEP_BOTH3(name, one)                                                        \
  friend __forceinline__ SmallFloat2 name(SmallFloat2 a, SmallFloat2 b, SmallFloat2 c) { \
    return {one(a.x, b.x, c.x), one(a.y, b.y, c.y)};                                     \
  }
  TILESTEP_BOTH2(__hadd2, __hadd)
  TILESTEP_BOTH2(__hsub2, __hsub)
  TILESTEP_BOTH2(__hmul2, __hmul)
  TILESTEP_BOTH2(__h2div, __hdiv)
  TILESTEP_BOTH2(__hadd2_rn, __hadd)
  TILESTEP_BOTH2(__hsub2_rn, __hsub)
  TILESTEP_BOTH2(__hmul2_rn, __hmul)
  TILESTEP_BOTH2(__hadd2_sat, __hadd_sat)
  TILESTEP_BOTH2(__hsub2_sat, __hsub_sat)
  TILESTEP_BOTH2(__hmul2_sat, __hmul_sat)
  TILESTEP_BOTH2(__hmax2, __hmax)
  TILESTEP_BOTH2(__hmin2, __hmin)
  TILESTEP_BOTH2(__hmax2_nan, __hmax_nan)
  TILESTEP_BOTH2(__hmin2_nan, __hmin_nan)
  TILESTEP_BOTH3(__hfma2, __hfma)
  TILESTEP_BOTH3(__hfma2_sat, __hfma_sat)
  TILESTEP_BOTH3(__hfma2_relu, __hfma_relu)
  TILESTEP_BOTH1(__hneg2, __hneg)
  TILESTEP_BOTH1(__habs2, __habs)
  TILESTEP_BOTH1(h2exp, hexp)
  TILESTEP_BOTH1(h2exp2, hexp2)
  TILESTEP_BOTH1(h2exp10, hexp10)
  TILESTEP_BOTH1(h2log, hlog)
  TILESTEP_BOTH1(h2log2, hlog2)
  TILESTEP_BOTH1(h2log10, hlog10)
  TILESTEP_BOTH1(h2sin, hsin)
  TILESTEP_BOTH1(h2cos, hcos)
  TILESTEP_BOTH1(h2tanh, htanh)
  TILESTEP_BOTH1(h2tanh_approx, htanh_approx)
  TILESTEP_BOTH1(h2sqrt, hsqrt)
  TILESTEP_BOTH1(h2rsqrt, hrsqrt)
  TILESTEP_BOTH1(h2rcp, hrcp)
  TILESTEP_BOTH1(h2floor, hfloor)
  TILESTEP_BOTH1(h2ceil, hceil)
  TILESTEP_BOTH1(h2trunc, htrunc)
  TILESTEP_BOTH1(h2rint, hrint)
  TILESTEP_BOTH1(__hisnan2, __hisnan)
#undef TILESTEP_BOTH1
#undef TILESTEP_BOTH3

  // 1.0 or 0.0 of each; with `b` whether both are; with `mask` all bits or none of each.
#define TILESTEP_COMPARISON2(word)                                                          \
  TILESTEP_BOTH2(__h##word##2, __h##word)                                                   \
  friend __forceinline__ bool __hb##word##2(SmallFloat2 a, SmallFloat2 b) {                 \
    return __h##word(a.x, b.x) && __h##word(a.y, b.y);                                      \
  }                                                                                         \
  friend __forceinline__ unsigned __h##word##2_mask(SmallFloat2 a, SmallFloat2 b) {         \
    return (__h##word(a.x, b.x) ? 0xFFFFu : 0u) | (__h##word(a.y, b.y) ? 0xFFFF0000u : 0u); \
  }
  TILESTEP_COMPARISON2(eq)
  TILESTEP_COMPARISON2(ne)
  TILESTEP_COMPARISON2(lt)
  TILESTEP_COMPARISON2(le)
  TILESTEP_COMPARISON2(gt)
  TILESTEP_COMPARISON2(ge)
  TILESTEP_COMPARISON2(equ)
  TILESTEP_COMPARISON2(neu)
  TILESTEP_COMPARISON2(ltu)
  TILESTEP_COMPARISON2(leu)
  TILESTEP_COMPARISON2(gtu)
  TILESTEP_COMPARISON2(geu)
#undef TILESTEP_COMPARISON2
#undef TILESTEP_BOTH2

#define TILESTEP_OPERATOR2(op, word)                                           \
  friend SmallFloat2 operator op(const SmallFloat2& a, const SmallFloat2& b) { \
    return word(a, b);                                                         \
  }                                                                            \
  friend SmallFloat2& operator op##=(SmallFloat2& a, const SmallFloat2& b) {   \
    return a = word(a, b);                                                     \
  }
  TILESTEP_OPERATOR2(+, __hadd2)
  TILESTEP_OPERATOR2(-, __hsub2)
  TILESTEP_OPERATOR2(*, __hmul2)
  TILESTEP_OPERATOR2(/, __h2div)
#undef TILESTEP_OPERATOR2
  friend SmallFloat2 operator-(const SmallFloat2& a) {
    return __hneg2(a);
  }
  friend bool operator==(const SmallFloat2& a, const SmallFloat2& b) {
    return __hbeq2(a, b);
  }
  friend bool operator!=(const SmallFloat2& a, const SmallFloat2& b) {
    return __hbneu2(a, b);
  }
  friend bool operator<(const SmallFloat2& a, const SmallFloat2& b) {
    return __hblt2(a, b);
  }
  friend bool operator<=(const SmallFloat2& a, const SmallFloat2& b) {
    return __hble2(a, b);
  }
  friend bool operator>(const SmallFloat2& a, const SmallFloat2& b) {
    return __hbgt2(a, b);
  }
  friend bool operator>=(const SmallFloat2& a, const SmallFloat2& b) {
    return __hbge2(a, b);
  }

  friend __forceinline__ float __low2float(SmallFloat2 a) {
    return a.x;
  }
  friend __forceinline__ float __high2float(SmallFloat2 a) {
    return a.y;
  }
  friend __forceinline__ SmallFloat2 __lowhigh2highlow(SmallFloat2 a) {
    return {a.y, a.x};
  }
  /// Each element by itself, as on a GPU.
  friend __forceinline__ SmallFloat2 atomicAdd(SmallFloat2* address, SmallFloat2 value) {
    return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
  }
};

// ("Warp Shuffle Functions")
#define TILESTEP_SHUFFLE(name, Type, Argument)                                                  \
  template <class Format>                                                                       \
  Type<Format> name(unsigned mask, Type<Format> value, Argument argument, int width = warpSize, \
                    tilestep::simt::Location at = tilestep::simt::Location::current()) {        \
    unsigned bits = 0;                                                                          \
    std::memcpy(&bits, &value, sizeof value);                                                   \
    bits = ::name(mask, bits, argument, width, at);                                             \
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);                               \
    return value;                                                                               \
  }
TILESTEP_SHUFFLE(__shfl_sync, SmallFloat, int)
TILESTEP_SHUFFLE(__shfl_up_sync, SmallFloat, unsigned)
TILESTEP_SHUFFLE(__shfl_down_sync, SmallFloat, unsigned)
TILESTEP_SHUFFLE(__shfl_xor_sync, SmallFloat, int)
TILESTEP_SHUFFLE(__shfl_sync, SmallFloat2, int)
TILESTEP_SHUFFLE(__shfl_up_sync, SmallFloat2, unsigned)
TILESTEP_SHUFFLE(__shfl_down_sync, SmallFloat2, unsigned)
TILESTEP_SHUFFLE(__shfl_xor_sync, SmallFloat2, int)
#undef TILESTEP_SHUFFLE

// What has the type's name in its own: `word` is half or bfloat16, `pair` half2 or bfloat162.
#define TILESTEP_SMALL_ROUNDED(Format, word, r, mode)                                  \
  inline SmallFloat<Format> __float2##word##_##r(float x) {                            \
    return SmallFloat<Format>::of_bits(bits_of<Format>(static_cast<double>(x), mode)); \
  }                                                                                    \
  TILESTEP_SMALL_WHOLE(Format, word, int, int, r, mode)                                \
  TILESTEP_SMALL_WHOLE(Format, word, uint, unsigned, r, mode)                          \
  TILESTEP_SMALL_WHOLE(Format, word, short, short, r, mode)                            \
  TILESTEP_SMALL_WHOLE(Format, word, ushort, unsigned short, r, mode)                  \
  TILESTEP_SMALL_WHOLE(Format, word, ll, long long, r, mode)                           \
  TILESTEP_SMALL_WHOLE(Format, word, ull, unsigned long long, r, mode)
#define TILESTEP_SMALL_WHOLE(Format, word, name, Whole, r, mode)                   \
  __forceinline__ Whole __##word##2##name##_##r(SmallFloat<Format> x) {            \
    return tilestep::simt::emulated::whole_of<Whole>(mode, static_cast<float>(x)); \
  }                                                                                \
  inline SmallFloat<Format> __##name##2##word##_##r(Whole x) {                     \
    return SmallFloat<Format>::of_bits(bits_of<Format>(to_odd(x), mode));          \
  }
#define TILESTEP_SMALL_WORDS(Format, word, pair)                                                \
  TILESTEP_SMALL_ROUNDED(Format, word, rn, FE_TONEAREST)                                        \
  TILESTEP_SMALL_ROUNDED(Format, word, rz, FE_TOWARDZERO)                                       \
  TILESTEP_SMALL_ROUNDED(Format, word, ru, FE_UPWARD)                                           \
  TILESTEP_SMALL_ROUNDED(Format, word, rd, FE_DOWNWARD)                                         \
  inline SmallFloat<Format> __float2##word(float x) {                                           \
    return x;                                                                                   \
  }                                                                                             \
  inline SmallFloat<Format> __double2##word(double x) {                                         \
    return x;                                                                                   \
  }                                                                                             \
  __forceinline__ float __##word##2float(SmallFloat<Format> x) {                                \
    return x;                                                                                   \
  }                                                                                             \
  __forceinline__ unsigned short __##word##_as_ushort(SmallFloat<Format> x) {                   \
    return x.bits();                                                                            \
  }                                                                                             \
  __forceinline__ short __##word##_as_short(SmallFloat<Format> x) {                             \
    return static_cast<short>(x.bits());                                                        \
  }                                                                                             \
  inline SmallFloat<Format> __ushort_as_##word(unsigned short x) {                              \
    return SmallFloat<Format>::of_bits(x);                                                      \
  }                                                                                             \
  inline SmallFloat<Format> __short_as_##word(short x) {                                        \
    return SmallFloat<Format>::of_bits(static_cast<unsigned short>(x));                         \
  }                                                                                             \
  inline SmallFloat2<Format> __floats2##pair##_rn(float x, float y) {                           \
    return {x, y};                                                                              \
  }                                                                                             \
  __forceinline__ SmallFloat2<Format> __float22##pair##_rn(float2 x) {                          \
    return {x.x, x.y};                                                                          \
  }                                                                                             \
  inline SmallFloat2<Format> __float2##pair##_rn(float x) {                                     \
    return {x, x};                                                                              \
  }                                                                                             \
  __forceinline__ float2 __##pair##2float2(SmallFloat2<Format> x) {                             \
    return {x.x, x.y};                                                                          \
  }                                                                                             \
  __forceinline__ SmallFloat2<Format> __##word##2##pair(SmallFloat<Format> x) {                 \
    return {x, x};                                                                              \
  }                                                                                             \
  __forceinline__ SmallFloat2<Format> make_##pair(SmallFloat<Format> x, SmallFloat<Format> y) { \
    return {x, y};                                                                              \
  }                                                                                             \
  __forceinline__ SmallFloat2<Format> __halves2##pair(SmallFloat<Format> x,                     \
                                                      SmallFloat<Format> y) {                   \
    return {x, y};                                                                              \
  }                                                                                             \
  __forceinline__ SmallFloat<Format> __low2##word(SmallFloat2<Format> x) {                      \
    return x.x;                                                                                 \
  }                                                                                             \
  __forceinline__ SmallFloat<Format> __high2##word(SmallFloat2<Format> x) {                     \
    return x.y;                                                                                 \
  }                                                                                             \
  __forceinline__ SmallFloat2<Format> __low2##pair(SmallFloat2<Format> x) {                     \
    return {x.x, x.x};                                                                          \
  }                                                                                             \
  __forceinline__ SmallFloat2<Format> __high2##pair(SmallFloat2<Format> x) {                    \
    return {x.y, x.y};                                                                          \
  }                                                                                             \
  __forceinline__ SmallFloat2<Format> __lows2##pair(SmallFloat2<Format> x,                      \
                                                    SmallFloat2<Format> y) {                    \
    return {x.x, y.x};                                                                          \
  }                                                                                             \
  __forceinline__ SmallFloat2<Format> __highs2##pair(SmallFloat2<Format> x,                     \
                                                     SmallFloat2<Format> y) {                   \
    return {x.y, y.y};                                                                          \
  }

}  // namespace tilestep_toolkit

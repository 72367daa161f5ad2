// The words of simt/toolkit and the headers beside them, against what other arithmetic says.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "kernels/base/simt/simt.hpp"
#include "kernels/base/simt/toolkit/cooperative_groups.h"
#include "kernels/base/simt/toolkit/cooperative_groups/reduce.h"
#include "kernels/base/simt/toolkit/cuda_bf16.h"
#include "kernels/base/simt/toolkit/cuda_fp16.h"
#include "kernels/base/simt/toolkit/math_constants.h"
#include "kernels/base/simt/toolkit/words.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/simt/testing.hpp"

namespace tilestep::simt {
namespace {

TEST_CASE("toolkit: integer intrinsics", "[simt]") {
  struct Row {
    const char* word;
    long long got, expected;
  };
  const Row rows[] = {
      {"__brev", __brev(0x12345678), 0x1E6A2C48},
      {"__brevll", static_cast<long long>(__brevll(0x123456789ABCDEF0)), 0x0F7B3D591E6A2C48},
      {"__byte_perm", __byte_perm(0x33221100, 0x77665544, 0x7250), 0x77225500},
      {"__byte_perm's high bits", __byte_perm(0x33221100, 0x77665544, 0xFC3A), 0x77443322},
      {"__umulhi", __umulhi(0xDEADBEEF, 0xCAFEBABE), 0xB092AB7B},
      {"__mulhi", __mulhi(-123456789, 987654321), -28389653},
      {"__umul64hi", static_cast<long long>(__umul64hi(0xDEADBEEFCAFEBABE, 0x123456789ABCDEF1)),
       0xFD5BDEEEB2A01D8},
      {"__mul64hi", __mul64hi(-1234567890123456789, 987654321987654321), -66099811847306178},
      {"__umul24", __umul24(0x12ABCDEF, 0xFF123456), 0x9A59BA4A},
      {"__mul24", __mul24(0x12ABCDEF, static_cast<int>(0xFF123456)), 1146731082},
      {"__mul24 of signs", __mul24(-5, 7), -35},
      {"__funnelshift_l", __funnelshift_l(0x89ABCDEF, 0x01234567, 44), 0x3456789A},
      {"__funnelshift_r", __funnelshift_r(0x89ABCDEF, 0x01234567, 12), 0x56789ABC},
      {"__funnelshift_lc", __funnelshift_lc(0x89ABCDEF, 0x01234567, 44), 0x89ABCDEF},
      {"__funnelshift_rc", __funnelshift_rc(0x89ABCDEF, 0x01234567, 32), 0x01234567},
      {"__sad", __sad(-2147483647 - 1, 2147483647, 3), 2},
      {"__usad", __usad(7, 9, 3), 5},
      {"__hadd", __hadd(-3, 2), -1},
      {"__rhadd", __rhadd(-3, 2), 0},
      {"__hadd at the end", __hadd(2147483647, 2147483645), 2147483646},
      {"__uhadd", __uhadd(0xFFFFFFFF, 0xFFFFFFFC), 0xFFFFFFFD},
      {"__urhadd", __urhadd(0xFFFFFFFF, 0xFFFFFFFC), 0xFFFFFFFE},
      {"__dp4a", __dp4a(static_cast<int>(0x80FF7F01), 0x7F028081, 5), -32636},
      {"__dp4a unsigned", __dp4a(0x80FF7F01u, 0x7F028081u, 5u), 33156},
      {"__dp4a of char4", __dp4a(make_char4(1, -2, 3, -4), make_char4(5, 6, 7, 8), 9), -9},
      {"min", min(-1, 1u), 1},
      {"max", max(-1, 1u), 0xFFFFFFFF},
      {"min of 64 bits", min(-1LL, 3), -1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.word);
    CHECK(row.got == row.expected);
  }
  CHECK(sizeof(short4) == 8);
  CHECK(alignof(uchar4) == 4);
  CHECK(alignof(uchar3) == 1);
  CHECK(alignof(double4) == 16);
  CHECK(alignof(longlong2) == 16);
  CHECK(alignof(char2) == 2);
  CHECK(make_ulonglong2(1, 2).y == 2);
}

/// The four results of a word must lie round the exact one as their names say.
template <class T>
void check_directions(const char* word, long double exact, T nearest, T zero, T up, T down) {
  CAPTURE(word, exact);
  CHECK(static_cast<long double>(down) <= exact);
  CHECK(exact <= static_cast<long double>(up));
  CHECK((up == down || up == std::nextafter(down, std::numeric_limits<T>::infinity())));
  CHECK(zero == (exact > 0 ? down : up));
  const long double left = exact - static_cast<long double>(down);
  const long double right = static_cast<long double>(up) - exact;
  if (left != right) CHECK(nearest == (left < right ? down : up));
}

/// Threads take three branches, some leave a loop early, and all meet at a barrier.
__global__ void coalesce(Global<int> out) {
  const int t = static_cast<int>(threadIdx.x);
  int result = -1;
  if (t % 3 == 1) {
    for (int step = 0; step < t % 4; ++step) {
      const auto group = cooperative_groups::coalesced_threads();
      const int up = group.shfl_up(t, 1), down = group.shfl_down(t, 2), first = group.shfl(t, 0);
      const int sum = cooperative_groups::reduce(group, t, cooperative_groups::plus<int>());
      result = static_cast<int>(group.size() * 100000 + group.thread_rank() * 1000) + up + down +
               first + sum + static_cast<int>(group.ballot(t % 2 == 0) & 7u) * 10000000;
    }
  } else if (t % 3 == 2) {
    result = static_cast<int>(cooperative_groups::coalesced_threads().size());
  }
  __syncthreads();
  out[t] = result;
}

TEST_CASE("toolkit: coalesced threads are those that reach a place together", "[simt]") {
  constexpr int kThreads = 80;
  std::vector<int> expected(kThreads, -1);
  for (int warp = 0; warp < kThreads; warp += 32) {
    const int end = std::min(warp + 32, kThreads);
    int others = 0;
    for (int t = warp; t < end; ++t) others += t % 3 == 2 ? 1 : 0;
    for (int t = warp; t < end; ++t) {
      if (t % 3 == 2) expected[static_cast<std::size_t>(t)] = others;
    }
    for (int step = 0; step < 3; ++step) {
      std::vector<int> group;
      int sum = 0, ballot = 0;
      for (int t = warp; t < end; ++t) {
        if (t % 3 != 1 || step >= t % 4) continue;
        if (t % 2 == 0) ballot |= 1 << group.size();
        group.push_back(t);
        sum += t;
      }
      const auto size = static_cast<int>(group.size());
      for (int rank = 0; rank < size; ++rank) {
        const auto at = [&](int i) { return group[static_cast<std::size_t>(i)]; };
        expected[static_cast<std::size_t>(at(rank))] =
            size * 100000 + rank * 1000 + at(std::max(rank - 1, 0)) +
            at(rank + 2 < size ? rank + 2 : rank) + at(0) + sum + (ballot & 7) * 10000000;
      }
    }
  }
  for (const EmulationOptions& options : all_orders()) {
    const auto device = make_emulated_device({}, options);
    Buffer<int> out(*device, kThreads);
    launch(*device, {.name = "coalesce", .block = {kThreads}}, coalesce, global(out.span(), "out"));
    CHECK(out.download() == expected);
  }
}

TEST_CASE("toolkit: each direction of rounding", "[simt]") {
  // A long double has 64 bits: sums and products of numbers this short are exact in it.
  std::mt19937_64 random(7);
  std::uniform_real_distribution<float> number(-100, 100);
#define DIRECTIONS(T, word, exact, ...)                                             \
  check_directions<T>(#word, exact, word##_rn(__VA_ARGS__), word##_rz(__VA_ARGS__), \
                      word##_ru(__VA_ARGS__), word##_rd(__VA_ARGS__))
  for (int i = 0; i < 2000; ++i) {
    const float a = number(random), b = number(random), c = number(random);
    const long double x = a, y = b, z = c;
    DIRECTIONS(float, __fadd, x + y, a, b);
    DIRECTIONS(float, __fsub, x - y, a, b);
    DIRECTIONS(float, __fmul, x* y, a, b);
    DIRECTIONS(float, __fmaf, x* y + z, a, b, c);
    DIRECTIONS(float, __fdiv, x / y, a, b);
    DIRECTIONS(float, __frcp, 1 / x, a);
    DIRECTIONS(float, __fsqrt, std::sqrt(std::fabs(x)), std::fabs(a));
    const double d =
        std::ldexp(static_cast<double>(static_cast<std::int64_t>(random()) >> 32), -11);
    const double e = std::ldexp(static_cast<double>(random() >> 34), -8) + 1;
    const long double v = d, w = e;
    DIRECTIONS(double, __dadd, v + w * 0x1p-40L, d, e * 0x1p-40);
    DIRECTIONS(double, __dmul, v* w, d, e);
    DIRECTIONS(double, __ddiv, v / w, d, e);
    DIRECTIONS(double, __dsqrt, std::sqrt(w), e);
    DIRECTIONS(double, __fma, v* w + 1, d, e, 1.0);
    const auto whole = static_cast<long long>(random());
    DIRECTIONS(float, __ll2float, static_cast<long double>(whole), whole);
    DIRECTIONS(double, __ll2double, static_cast<long double>(whole), whole);
    DIRECTIONS(double, __ull2double, static_cast<long double>(random.max() - 5), random.max() - 5);
    DIRECTIONS(float, __uint2float, static_cast<long double>(whole & 0xFFFFFFFF),
               static_cast<unsigned>(whole));
    DIRECTIONS(float, __double2float, v, d);
    const float root = __frsqrt_rn(std::fabs(a));
    const long double exact = 1 / std::sqrt(std::fabs(x));
    CHECK(std::fabs(root - exact) <= std::fabs(std::nextafter(root, 0.0f) - exact));
    CHECK(std::fabs(root - exact) <= std::fabs(std::nextafter(root, 9e9f) - exact));
  }
#undef DIRECTIONS
  CHECK(std::isinf(__frsqrt_rn(0)));
  CHECK(std::isnan(__frsqrt_rn(-1)));
  CHECK(std::fegetround() == FE_TONEAREST);
}

TEST_CASE("toolkit: numbers to whole numbers", "[simt]") {
  CHECK(__float2int_rn(2.5f) == 2);
  CHECK(__float2int_rn(3.5f) == 4);
  CHECK(__float2int_rz(-1.7f) == -1);
  CHECK(__float2int_ru(-1.7f) == -1);
  CHECK(__float2int_ru(1.2f) == 2);
  CHECK(__float2int_rd(-1.2f) == -2);
  CHECK(__float2int_rz(3e9f) == 2147483647);
  CHECK(__float2int_rz(-3e9f) == -2147483647 - 1);
  CHECK(__float2int_rn(NAN) == 0);
  CHECK(__float2uint_rz(-1) == 0);
  CHECK(__float2uint_rz(4e9f) == 4000000000u);
  CHECK(__float2uint_rz(5e9f) == 0xFFFFFFFFu);
  CHECK(__double2int_rn(NAN) == -2147483647 - 1);
  CHECK(__float2ll_rd(-0.5f) == -1);
  CHECK(__double2ull_rn(2e19) == ~0ULL);
  CHECK(__double2hiint(-2.0) == static_cast<int>(0xC0000000));
  CHECK(__hiloint2double(__double2hiint(M_PI), __double2loint(M_PI)) == M_PI);
}

TEST_CASE("toolkit: math functions and constants", "[simt]") {
  CHECK(sinpif(1.0f) == 0);
  CHECK(sinpif(-0.5f) == -1);
  CHECK(sinpif(2.25f) == Approx(std::sqrt(0.5)));
  CHECK(cospif(0.5f) == 0);
  CHECK(cospif(-7.0f) == -1);
  CHECK(cospi(1.0 / 3) == Approx(0.5));
  float sine = 0, cosine = 0;
  sincosf(0.7f, &sine, &cosine);
  CHECK(sine == Approx(std::sin(0.7)));
  CHECK(cosine == Approx(std::cos(0.7)));
  __sincosf(-2.0f, &sine, &cosine);
  CHECK(sine == Approx(std::sin(-2.0)));
  sincospif(1.5f, &sine, &cosine);
  CHECK((sine == -1 && cosine == 0));
  CHECK(__tanf(0.5f) == Approx(std::tan(0.5)));
  CHECK(__log10f(1000) == Approx(3));
  CHECK(__exp10f(-2) == Approx(0.01));
  CHECK(exp10f(3) == Approx(1000));
  CHECK(__saturatef(-1) == 0);
  CHECK(__saturatef(0.25f) == 0.25f);
  CHECK(__saturatef(2) == 1);
  CHECK(__saturatef(NAN) == 0);
  CHECK(fdividef(1, 4) == 0.25f);
  CHECK(rcbrtf(27) == Approx(1.0 / 3));
  CHECK(norm3df(2, 3, 6) == 7);
  CHECK(norm4df(1, 1, 1, 1) == 2);
  CHECK(rnorm3df(2, 3, 6) == Approx(1.0 / 7));
  CHECK(rnorm4df(1, 1, 1, 1) == 0.5f);
  CHECK(rhypotf(3, 4) == Approx(0.2));
  const float both[] = {3, 4};
  CHECK(normf(2, both) == 5);
  CHECK(rnormf(2, both) == Approx(0.2));
  CHECK(normcdff(1) == Approx(0.8413447461));
  for (const double y : {-0.999, -0.3, 0.0, 0.7, 0.999999}) CHECK(std::erf(erfinv(y)) == Approx(y));
  CHECK(std::isinf(erfinvf(1)));
  CHECK(std::isnan(erfinvf(1.5f)));
  CHECK(CUDART_PI_F == 3.14159274f);
  CHECK(CUDART_L2T_F == Approx(std::log2(10.0)));
  CHECK(CUDART_LNPI == Approx(std::log(M_PI)));
  CHECK(std::isinf(CUDART_INF_F));
  CHECK(std::isnan(CUDART_NAN_F));
  CHECK(FLT_MAX == CUDART_MAX_NORMAL_F);
}

/// A format's numbers, made by scaling, and the nearest of them by search.
template <class Small, int kMantissaBits, int kBias>
struct Numbers {
  std::vector<long double> finite;  ///< of the bits 0, 1, 2, …

  Numbers() {
    for (int bits = 0; bits >> kMantissaBits < 2 * kBias + 1; ++bits) {
      const int exponent = bits >> kMantissaBits;
      const int fraction = bits & ((1 << kMantissaBits) - 1);
      const int whole = exponent == 0 ? fraction : fraction + (1 << kMantissaBits);
      finite.push_back(std::ldexp(static_cast<long double>(whole),
                                  std::max(exponent, 1) - kBias - kMantissaBits));
    }
    finite.push_back(2 * finite.back() - finite[finite.size() - 2]);  // where infinity stands
  }
  unsigned bits_of(long double value) const {
    const unsigned sign = std::signbit(value) ? 0x8000u : 0;
    const long double size = std::fabs(value);
    if (size >= finite.back()) return sign | static_cast<unsigned>(finite.size() - 1);
    const auto above = std::upper_bound(finite.begin(), finite.end(), size);
    const auto low = static_cast<unsigned>(above - finite.begin() - 1);
    const long double left = size - finite[low], right = *above - size;
    return sign | (low + (left > right || (left == right && low % 2 != 0) ? 1 : 0));
  }

  void check_all() const {
    for (unsigned bits = 0; bits + 1 < finite.size(); ++bits) {
      const float value = static_cast<float>(Small::of_bits(bits));
      const auto middle = static_cast<double>((finite[bits] + finite[bits + 1]) / 2);
      if (static_cast<long double>(value) != finite[bits] || Small(value).bits() != bits ||
          Small(-value).bits() != (bits | 0x8000) || Small(middle).bits() != bits + bits % 2 ||
          Small(std::nextafter(middle, 0.0)).bits() != bits ||
          Small(std::nextafter(middle, 1e300)).bits() != bits + 1) {
        CAPTURE(bits);
        FAIL_CHECK("not rounded to nearest even");
        return;
      }
    }
    CHECK(Small(std::numeric_limits<float>::quiet_NaN()).bits() == 0x7FFF);
    CHECK(__hisnan(Small::of_bits(0xFFFF)));
    CHECK(__hisinf(Small(-HUGE_VALF)) == -1);
  }

  /// Numbers of sizes whose sums and products a long double holds.
  void check_arithmetic() const {
    std::mt19937 random(3);
    const auto any = [&] {
      const auto bits = static_cast<unsigned>(random());
      const unsigned exponent = kBias - 7 + bits / 65536 % 14;
      return Small::of_bits((bits & 0x8000) | exponent << kMantissaBits |
                            (bits & ((1u << kMantissaBits) - 1)));
    };
    int wrong = 0;
    for (int i = 0; i < 20000; ++i) {
      const Small a = any(), b = any(), c = any();
      const auto x = static_cast<long double>(a.exact()), y = static_cast<long double>(b.exact());
      const auto z = static_cast<long double>(c.exact());
      wrong += __hadd(a, b).bits() != bits_of(x + y);
      wrong += (a - b).bits() != bits_of(x - y);
      wrong += (a * b).bits() != bits_of(x * y);
      wrong += (a / b).bits() != bits_of(x / y);
      wrong += __hfma(a, b, c).bits() != bits_of(x * y + z);
      wrong += hsqrt(__habs(a)).bits() != bits_of(std::sqrt(std::fabs(x)));
      wrong += hexp(a).bits() != bits_of(std::exp(x));
      wrong += (a < b) != (x < y);
      wrong += __hmax(a, b).bits() != bits_of(std::max(x, y));
    }
    CHECK(wrong == 0);
    const Small nan(NAN), one(1), zero(0.0f), minus_zero = -zero;
    CHECK(__hmax(nan, one) == one);
    CHECK(__hmin(one, nan) == one);
    CHECK(__hisnan(__hmax_nan(nan, one)));
    CHECK(__hmax(minus_zero, zero).bits() == 0);
    CHECK(__hmin(zero, minus_zero).bits() == 0x8000);
    CHECK_FALSE(__hne(nan, one));
    CHECK(__hneu(nan, one));
    CHECK(nan != nan);
    CHECK(__hadd_sat(one, one) == one);
    CHECK(__hfma_relu(one, one, Small(-3)) == zero);
  }
};

TEST_CASE("toolkit: FP16 and BF16 are rounded once, to nearest even", "[simt]") {
  const Numbers<__half, 10, 15> fp16;
  const Numbers<__nv_bfloat16, 7, 127> bf16;
  fp16.check_all();
  bf16.check_all();
  fp16.check_arithmetic();
  bf16.check_arithmetic();

  CHECK(__half_as_ushort(__float2half_rz(1.9999f)) == 0x3FFF);
  CHECK(__half_as_ushort(__float2half_ru(1.0001f)) == 0x3C01);
  CHECK(__half_as_ushort(__float2half_rd(-1.0001f)) == 0xBC01);
  CHECK(__half_as_ushort(__float2half_rz(1e6f)) == 0x7BFF);
  CHECK(__half_as_ushort(__float2half_ru(1e6f)) == 0x7C00);
  CHECK(__half_as_ushort(__float2half_rd(-1e-9f)) == 0x8001);
  CHECK(__half2int_rn(half(2.5f)) == 2);
  CHECK(__half2int_ru(half(2.5f)) == 3);
  CHECK(__bfloat16_as_ushort(__ll2bfloat16_rn((1LL << 62) + (1LL << 54) + 1)) == 0x5E81);
  CHECK(__bfloat162float(__float2bfloat16(3.14159f)) == 3.140625f);

  const half2 pair = __floats2half2_rn(1.5f, -2.0f);
  CHECK(__low2float(pair) == 1.5f);
  CHECK(__high2float(pair) == -2.0f);
  CHECK(__half22float2(__hfma2(pair, pair, __float2half2_rn(1))).y == 5);
  CHECK(__half22float2(__lowhigh2highlow(pair)).x == -2);
  CHECK(__half22float2(h2exp(__halves2half2(half(0), half(1)))).x == 1);
  CHECK(__hgt2_mask(pair, __float2half2_rn(0)) == 0x0000FFFFu);
  CHECK_FALSE(__hbgt2(pair, __float2half2_rn(0)));
  CHECK(__bfloat1622float2(__float2bfloat162_rn(2) * __floats2bfloat162_rn(3, 4)).y == 8);
}

constexpr int kThreads = 64;

__global__ void more_atomics(Global<unsigned> cells, unsigned short* narrow, half2* halves) {
  const unsigned i = threadIdx.x;
  atomicInc(&cells[0], 4);
  atomicDec(cells + 1, 4);
  atomicAdd_block(cells + 2, i);
  atomicMax_system(&cells[3], i);
  atomicExch(cells + 4 + i % 2, 7);
  for (unsigned short old = 0, seen = 0;; old = seen) {
    seen = atomicCAS(narrow, old, static_cast<unsigned short>(old + 3));
    if (seen == old) break;
  }
  atomicAdd(halves, make_half2(1, 2));
  __stwb(cells + 6, __ldca(cells + 4));
}

TEST_CASE("toolkit: the other atomics, and all of them on checked arrays", "[simt]") {
  const auto device = make_emulated(ThreadOrder::shuffled);
  Buffer<unsigned> cells(*device, std::vector<unsigned>(7, 0));
  Buffer<unsigned short> narrow(*device, 1);
  Buffer<half2> halves(*device, 1);
  narrow.fill(0);
  halves.fill(0);
  const auto run = [&](std::size_t count) {
    launch(*device, {.name = "more_atomics", .block = {kThreads}}, more_atomics,
           global(Span<unsigned>{cells.span().data, count}, "cells"), narrow.span().data,
           halves.span().data);
  };
  run(7);
  // After 0 … 4 comes 0 again, and the other way round after 0 comes 4.
  CHECK(cells.download() == std::vector<unsigned>{kThreads % 5, (5 - kThreads % 5) % 5,
                                                  kThreads * (kThreads - 1) / 2, kThreads - 1, 7, 7,
                                                  7});
  CHECK(narrow.download().front() == 3 * kThreads);
  CHECK(static_cast<float>(halves.download().front().y) == 2 * kThreads);
  CHECK(tests::contains(tests::error_of([&] { run(4); }), "but cells has 4 elements"));
}

namespace cg = cooperative_groups;

__global__ void group_words(Global<int> out) {
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const auto four = cg::tiled_partition<4>(warp);
  const int i = static_cast<int>(block.thread_rank());
  const Global<int> row = out + i * 12;
  row[0] = static_cast<int>(four.thread_rank() + 10 * four.meta_group_rank() +
                            100 * four.meta_group_size());
  row[1] = four.shfl(i, 1);
  row[2] = warp.shfl_down(i, 3);
  row[3] = four.shfl_xor(i, 2);
  row[4] = static_cast<int>(four.ballot(i % 4 >= 2));
  row[5] = cg::reduce(four, i, cg::plus<int>());
  row[6] = cg::reduce(warp, i, cg::greater<int>());
  row[7] = static_cast<int>(warp.meta_group_rank() + 10 * warp.meta_group_size());
  row[8] = static_cast<int>(__match_any_sync(0xFFFFFFFFu, i % 8));
  int same = 0;
  row[9] = static_cast<int>(__match_all_sync(0xFFFFFFFFu, i / 32, &same)) + same;
  row[10] = static_cast<int>(static_cast<float>(__shfl_up_sync(0xFFFFFFFFu, __int2half_rn(i), 1)));
  row[11] =
      static_cast<int>(__high2float(warp.shfl(__floats2half2_rn(0, static_cast<float>(i)), 5)));
  four.sync();
  cg::sync(block);
}

TEST_CASE("toolkit: cooperative groups and matches", "[simt]") {
  const auto device = make_emulated(ThreadOrder::shuffled);
  Buffer<int> out(*device, kThreads * 12);
  launch(*device, {.name = "group_words", .block = {kThreads / 2, 2}}, group_words,
         global(out.span(), "out"));
  const std::vector<int> all = out.download();
  for (int i = 0; i < kThreads; ++i) {
    const int lane = i % 32, first = i / 4 * 4, warp = i / 32;
    const std::vector<int> expected = {i % 4 + 10 * (lane / 4) + 800,
                                       first + 1,
                                       lane < 29 ? i + 3 : i,
                                       i ^ 2,
                                       0xC,
                                       4 * first + 6,
                                       32 * warp + 31,
                                       warp + 20,
                                       0x01010101 << i % 8,
                                       0,
                                       lane == 0 ? i : i - 1,
                                       32 * warp + 5};
    CAPTURE(i);
    CHECK(std::vector<int>(all.begin() + i * 12, all.begin() + (i + 1) * 12) == expected);
  }
}

simt_dynamic_of<float> everywhere;

__global__ void dynamic_words(Global<float> out, int trap_at) {
  float* const here = simt_dynamic{};
  float(*rows)[4] = simt_dynamic{};
  const int i = static_cast<int>(threadIdx.x);
  everywhere[i] = static_cast<float>(i);
  __syncthreads();  // all are written
  if (i == trap_at) __trap();
  const float4 vector = simt_reinterpret<const float4*>(everywhere)[i / 4];
  const auto* const of_out = simt_reinterpret<const float2*>(out);
  out[i] =
      here[i] + 10 * rows[i / 4][i % 4] + 100 * vector.x + static_cast<float>(of_out == nullptr);
}

TEST_CASE("toolkit: dynamic shared memory by any name, and a trap", "[simt]") {
  const auto device = make_emulated();
  Buffer<float> out(*device, 16);
  const auto run = [&](int trap_at) {
    launch(*device, {.name = "dynamic_words", .grid = {3}, .block = {16}, .shared_bytes = 64},
           dynamic_words, global(out.span(), "out"), trap_at);
  };
  run(-1);
  const std::vector<float> all = out.download();
  for (int i = 0; i < 16; ++i)
    CHECK(all[static_cast<std::size_t>(i)] == static_cast<float>(11 * i + 100 * (i / 4 * 4)));
  CHECK(tests::contains(tests::error_of([&] { run(5); }),
                        "dynamic_words: thread (5,0,0) of block ("));
  CHECK(tests::contains(tests::error_of([&] { run(5); }), "calls __trap()"));
}

__global__ void as_pointers(const float* __restrict__ in, float* out, int skip) {
  float* const p = out + skip;
  if (in != nullptr) p[threadIdx.x] = in[threadIdx.x];
}
__global__ void cast_arrays(Global<const float> in, Global<float> out, int skip) {
  float* const p = out + 4;
  const float4 v = ((const float4*)(in + skip))[threadIdx.x];
  *simt_reinterpret<float4*>(p + 4 * threadIdx.x) = v;
  if (in == nullptr || p - out != 4 || &out[4] != p) out[0] = -1;
}

TEST_CASE("toolkit: a kernel may take its arrays as pointers, or cast them", "[simt]") {
  const auto device = make_emulated();
  Buffer<float> in(*device, counting<float>(16)), out(*device, std::vector<float>(20, 0));
  const Span<const float> from = in.span();
  launch(*device, {.name = "as_pointers", .block = {16}}, as_pointers, global(from, "in"),
         global(out.span(), "out"), 2);
  CHECK(out.download()[17] == 15);
  const auto cast = [&](int skip) {
    launch(*device, {.name = "cast_arrays", .block = {4}}, cast_arrays, global(from, "in"),
           global(out.span(), "out"), skip);
  };
  cast(0);
  CHECK(out.download() ==
        std::vector<float>{0, 0, 0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(tests::contains(tests::error_of([&] { cast(1); }),
                        "takes in from element 1 on as vectors of 16 bytes"));
}

}  // namespace
}  // namespace tilestep::simt

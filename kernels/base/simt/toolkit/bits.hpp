#pragma once

/// \file
/// Integer intrinsics ("CUDA Math API", "Integer Intrinsics"). Included by words.hpp.

#include <cstdint>

#include "kernels/base/simt/emulator/emulated_math.hpp"
#include "kernels/base/simt/toolkit/vectors.hpp"

namespace tilestep::simt::emulated {

__extension__ typedef __int128 Wide;
__extension__ typedef unsigned __int128 UnsignedWide;

inline unsigned long long joined(unsigned low, unsigned high) {
  return static_cast<unsigned long long>(high) << 32 | low;
}
/// c plus the products of both words' bytes, taken as `Byte`.
template <class Byte>
unsigned dot_of_bytes(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) {
    c += static_cast<unsigned>(static_cast<Byte>(a >> i) * static_cast<Byte>(b >> i));
  }
  return c;
}

}  // namespace tilestep::simt::emulated

inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long turned = 0;
  for (int bit = 0; bit < 64; ++bit) turned |= (x >> bit & 1) << (63 - bit);
  return turned;
}
inline unsigned __brev(unsigned x) {
  return static_cast<unsigned>(__brevll(x) >> 32);
}
/// Byte i of the result is byte (how >> 4i & 7) of y:x, x's being 0 … 3.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned how) {
  const std::uint64_t bytes = x | static_cast<std::uint64_t>(y) << 32;
  unsigned picked = 0;
  for (int i = 0; i < 4; ++i) {
    picked |= static_cast<unsigned>(bytes >> 8 * (how >> 4 * i & 7) & 0xFF) << 8 * i;
  }
  return picked;
}

inline int __mulhi(int x, int y) {
  return static_cast<int>(static_cast<long long>(x) * y >> 32);
}
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<unsigned long long>(x) * y >> 32);
}
inline long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<tilestep::simt::emulated::Wide>(x) * y >> 64);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(
      static_cast<tilestep::simt::emulated::UnsignedWide>(x) * y >> 64);
}
/// The low 32 bits of the product of both low 24 bits.
inline unsigned __umul24(unsigned x, unsigned y) {
  return (x & 0xFFFFFFu) * (y & 0xFFFFFFu);
}
inline int __mul24(int x, int y) {
  const auto low = [](int value) {
    return static_cast<unsigned>(static_cast<int>(static_cast<unsigned>(value) << 8) >> 8);
  };
  return static_cast<int>(low(x) * low(y));
}

/// |x − y| + z
inline unsigned __sad(int x, int y, unsigned z) {
  return (x < y ? static_cast<unsigned>(y) - static_cast<unsigned>(x)
                : static_cast<unsigned>(x) - static_cast<unsigned>(y)) +
         z;
}
inline unsigned __usad(unsigned x, unsigned y, unsigned z) {
  return (x < y ? y - x : x - y) + z;
}
/// The mean, rounded down; with `r` up.
inline int __hadd(int x, int y) {
  return static_cast<int>((static_cast<long long>(x) + y) >> 1);
}
inline int __rhadd(int x, int y) {
  return static_cast<int>((static_cast<long long>(x) + y + 1) >> 1);
}
inline unsigned __uhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<unsigned long long>(x) + y) >> 1);
}
inline unsigned __urhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<unsigned long long>(x) + y + 1) >> 1);
}

// high:low shifted, its high word left and its low word right; a shift counts modulo 32, with `c` up to 32.
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(tilestep::simt::emulated::joined(low, high) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift < 32 ? __funnelshift_l(low, high, shift) : low;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(tilestep::simt::emulated::joined(low, high) >> (shift & 31));
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift < 32 ? __funnelshift_r(low, high, shift) : high;
}

inline int __dp4a(int a, int b, int c) {
  return static_cast<int>(tilestep::simt::emulated::dot_of_bytes<signed char>(
      static_cast<unsigned>(a), static_cast<unsigned>(b), static_cast<unsigned>(c)));
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  return tilestep::simt::emulated::dot_of_bytes<unsigned char>(a, b, c);
}
inline int __dp4a(char4 a, char4 b, int c) {
  return __dp4a(std::bit_cast<int>(a), std::bit_cast<int>(b), c);
}
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return __dp4a(std::bit_cast<unsigned>(a), std::bit_cast<unsigned>(b), c);
}

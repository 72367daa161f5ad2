#pragma once

/// \file
/// The vector types that emulated_types.hpp leaves out, with their make_ functions ("C++ Language Extensions", "Built-in
/// Vector Types"). Included by words.hpp.

#include "kernels/base/simt/emulator/emulated_threads.hpp"
#include "kernels/base/simt/emulator/emulated_types.hpp"

// What a call returns into memory is a store that the compilers do not tell of (simt/memory_words.cpp): these are inlined.
// Clang takes no attribute after a definition.
#if !defined(__clang__)
__forceinline__ constexpr float2 make_float2(float x, float y);
__forceinline__ constexpr float3 make_float3(float x, float y, float z);
__forceinline__ constexpr float4 make_float4(float x, float y, float z, float w);
__forceinline__ constexpr int2 make_int2(int x, int y);
__forceinline__ constexpr int3 make_int3(int x, int y, int z);
__forceinline__ constexpr int4 make_int4(int x, int y, int z, int w);
__forceinline__ constexpr uint2 make_uint2(unsigned x, unsigned y);
__forceinline__ constexpr uint3 make_uint3(unsigned x, unsigned y, unsigned z);
__forceinline__ constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w);
__forceinline__ constexpr double2 make_double2(double x, double y);
#endif

#define TILESTEP_VECTOR1(name, T)                         \
  struct [[gnu::may_alias]] name##1 {                     \
    T x;                                                  \
  };                                                      \
  __forceinline__ constexpr name##1 make_##name##1(T x) { \
    return {x};                                           \
  }
#define TILESTEP_VECTOR2(name, T)                              \
  struct alignas(2 * sizeof(T)) [[gnu::may_alias]] name##2 {   \
    T x, y;                                                    \
  };                                                           \
  __forceinline__ constexpr name##2 make_##name##2(T x, T y) { \
    return {x, y};                                             \
  }
#define TILESTEP_VECTOR3(name, T)                                   \
  struct [[gnu::may_alias]] name##3 {                               \
    T x, y, z;                                                      \
  };                                                                \
  __forceinline__ constexpr name##3 make_##name##3(T x, T y, T z) { \
    return {x, y, z};                                               \
  }
#define TILESTEP_VECTOR4(name, T)                                                 \
  struct alignas(sizeof(T) < 8 ? 4 * sizeof(T) : 16) [[gnu::may_alias]] name##4 { \
    T x, y, z, w;                                                                 \
  };                                                                              \
  __forceinline__ constexpr name##4 make_##name##4(T x, T y, T z, T w) {          \
    return {x, y, z, w};                                                          \
  }
#define TILESTEP_VECTORS(name, T) \
  TILESTEP_VECTOR1(name, T)       \
  TILESTEP_VECTOR2(name, T) TILESTEP_VECTOR3(name, T) TILESTEP_VECTOR4(name, T)

TILESTEP_VECTORS(char, signed char)
TILESTEP_VECTORS(uchar, unsigned char)
TILESTEP_VECTORS(short, short)
TILESTEP_VECTORS(ushort, unsigned short)
TILESTEP_VECTORS(long, long)
TILESTEP_VECTORS(ulong, unsigned long)
TILESTEP_VECTORS(longlong, long long)
TILESTEP_VECTORS(ulonglong, unsigned long long)
TILESTEP_VECTOR1(int, int)
TILESTEP_VECTOR1(uint, unsigned)
TILESTEP_VECTOR1(float, float)
TILESTEP_VECTOR1(double, double)
TILESTEP_VECTOR3(double, double)
TILESTEP_VECTOR4(double, double)

#undef TILESTEP_VECTORS
#undef TILESTEP_VECTOR1
#undef TILESTEP_VECTOR2
#undef TILESTEP_VECTOR3
#undef TILESTEP_VECTOR4

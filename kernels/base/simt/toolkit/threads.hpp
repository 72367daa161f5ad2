#pragma once

/// \file
/// Qualifiers, dynamic shared memory as CUDA declares it, votes by value, and what a kernel finds without an #include.
/// Included by words.hpp.

#include <assert.h>
#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/base/simt/emulator/emulated_threads.hpp"
#include "kernels/base/simt/emulator/emulator.hpp"

// A kernel is what all of an edited source is: Hopper's, for code that asks.
#if !defined(__CUDA_ARCH__)
#define __CUDA_ARCH__ 900
#endif

/// "Variable Memory Space Specifiers". The host has no way to fill either in: the launches are the lesson's. They are
/// `inline` because two files of a lesson may include the source.
#define __constant__ inline
#define __managed__ inline
#define __grid_constant__
#define __maxnreg__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __align__(bytes)
#if !defined(__clang__)
#define __builtin_assume(condition) static_cast<void>(0)
#endif
/// What `__noinline__` becomes in the source: libstdc++ uses that word in its own way.
#define SIMT_OUTLINE __attribute__((noinline))

/// CUDA's clock(). With arguments it is another function of that name, such as hopper::clock.
#define clock(...) SIMT_CLOCK##__VA_OPT__(_OF)(__VA_ARGS__)
#define SIMT_CLOCK() static_cast<clock_t>(clock64())
#define SIMT_CLOCK_OF(...) clock(__VA_ARGS__)

/// What `extern __shared__ T name[];` in a function becomes is `T* name = simt_dynamic{};`: the block's dynamic shared
/// memory, the same for all of them ("C++ Language Extensions", "__shared__").
struct simt_dynamic {
  template <class T>
  operator T*() const {
    return static_cast<T*>(tilestep::simt::emulated::dynamic_shared_memory(0, 0, alignof(T)));
  }
};

namespace tilestep::simt::emulated {

/// The same at namespace scope, where there is no block yet: it is looked up wherever the name is used.
template <class T>
struct DynamicArray {
  constexpr DynamicArray() {}
  operator T*() const { return simt_dynamic(); }
  template <class V>
  requires(!std::is_same_v<V, T>) explicit operator V*() const { return simt_dynamic(); }
};

}  // namespace tilestep::simt::emulated

template <class T>
using simt_dynamic_of = const tilestep::simt::emulated::DynamicArray<T>;

/// What `reinterpret_cast` becomes in the source: what stands for an array, Checked and DynamicArray, is cast as the
/// pointer that it is on a GPU.
template <class To, class From>
__forceinline__ To simt_reinterpret(From&& from) {
  if constexpr (std::is_class_v<std::remove_cvref_t<From>> && std::is_pointer_v<To>) {
    return static_cast<To>(from);
  } else {
    return reinterpret_cast<To>(std::forward<From>(from));
  }
}

/// Ends the kernel with an Error that names it, block, thread and line ("Trap function").
[[noreturn]] inline void __trap() {
  tilestep::simt::emulated::trapped();
}
/// A thread may sleep no time at all ("Nanosleep Function").
inline void __nanosleep(unsigned) {}

/// The lanes of `mask` whose value has the same bits ("Warp Match Functions").
template <tilestep::simt::emulated::Shuffled T>
unsigned __match_any_sync(unsigned mask, T value,
                          tilestep::simt::Location at = tilestep::simt::Location::current()) {
  unsigned same = 0;
  for (int lane = 0; lane < warpSize; ++lane) {
    if ((mask >> lane & 1u) == 0) continue;
    const T other = tilestep::simt::emulated::shuffle(mask, value, lane, at);
    if (memcmp(&other, &value, sizeof(T)) == 0) same |= 1u << lane;
  }
  return same;
}
/// `mask` if all its lanes have the same value, else 0; `*all_same` says which.
template <tilestep::simt::emulated::Shuffled T>
unsigned __match_all_sync(unsigned mask, T value, int* all_same,
                          tilestep::simt::Location at = tilestep::simt::Location::current()) {
  *all_same = __all_sync(mask, __match_any_sync(mask, value, at) == mask, at);
  return *all_same ? mask : 0;
}

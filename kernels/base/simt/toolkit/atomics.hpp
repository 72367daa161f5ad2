#pragma once

/// \file
/// The atomics that emulated_atomics.hpp leaves out, their forms for a block and for the system, loads and stores with
/// the other hints, and all of them for what stands for an array (`atomicAdd(out + i, 1)`), checked ("C++ Language
/// Extensions", "Atomic Functions"). Included by words.hpp.

#include <type_traits>

#include "kernels/base/simt/checked.hpp"
#include "kernels/base/simt/emulator/emulated_atomics.hpp"
#include "kernels/base/simt/emulator/emulated_types.hpp"

/// 0 after `limit`, else one more.
inline unsigned atomicInc(unsigned* address, unsigned limit) {
  return tilestep::simt::emulated::atomic_update(
      address, [limit](unsigned old) { return old >= limit ? 0 : old + 1; });
}
/// `limit` after 0 and after what is larger than it, else one less.
inline unsigned atomicDec(unsigned* address, unsigned limit) {
  return tilestep::simt::emulated::atomic_update(
      address, [limit](unsigned old) { return old == 0 || old > limit ? limit : old - 1; });
}
inline unsigned short atomicCAS(unsigned short* address, unsigned short expected,
                                unsigned short value) {
  std::atomic_ref<unsigned short>(*address).compare_exchange_strong(expected, value,
                                                                    std::memory_order_relaxed);
  return expected;
}
/// Each element by itself, as on a GPU.
inline float2 atomicAdd(float2* address, float2 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
inline float4 atomicAdd(float4* address, float4 value) {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y),
          atomicAdd(&address->z, value.z), atomicAdd(&address->w, value.w)};
}

#define TILESTEP_CHECKED(name)                                           \
  template <class T, class... Values>                                    \
  auto name(const tilestep::simt::Checked<T>& array, Values... values) { \
    return name(&*array, values...);                                     \
  }
#define TILESTEP_SCOPED(name, scope)                           \
  template <class Address, class... Values>                    \
  auto name##scope(const Address& address, Values... values) { \
    return name(address, values...);                           \
  }
#define TILESTEP_ATOMIC_FORMS(name) \
  TILESTEP_CHECKED(name) TILESTEP_SCOPED(name, _block) TILESTEP_SCOPED(name, _system)
TILESTEP_ATOMIC_FORMS(atomicAdd)
TILESTEP_ATOMIC_FORMS(atomicSub)
TILESTEP_ATOMIC_FORMS(atomicExch)
TILESTEP_ATOMIC_FORMS(atomicMin)
TILESTEP_ATOMIC_FORMS(atomicMax)
TILESTEP_ATOMIC_FORMS(atomicInc)
TILESTEP_ATOMIC_FORMS(atomicDec)
TILESTEP_ATOMIC_FORMS(atomicCAS)
TILESTEP_ATOMIC_FORMS(atomicAnd)
TILESTEP_ATOMIC_FORMS(atomicOr)
TILESTEP_ATOMIC_FORMS(atomicXor)
#undef TILESTEP_ATOMIC_FORMS
#undef TILESTEP_SCOPED

#define TILESTEP_LOAD(name)  \
  template <class T>         \
  T name(const T* address) { \
    return *address;         \
  }
#define TILESTEP_STORE(name)                             \
  template <class T>                                     \
  void name(T* address, std::type_identity_t<T> value) { \
    *address = value;                                    \
  }
TILESTEP_LOAD(__ldca)
TILESTEP_LOAD(__ldcv)
TILESTEP_LOAD(__ldlu)
TILESTEP_STORE(__stwb)
TILESTEP_STORE(__stwt)
#undef TILESTEP_LOAD
#undef TILESTEP_STORE
TILESTEP_CHECKED(__ldg)
TILESTEP_CHECKED(__ldca)
TILESTEP_CHECKED(__ldcg)
TILESTEP_CHECKED(__ldcs)
TILESTEP_CHECKED(__ldcv)
TILESTEP_CHECKED(__ldlu)
TILESTEP_CHECKED(__stcg)
TILESTEP_CHECKED(__stcs)
TILESTEP_CHECKED(__stwb)
TILESTEP_CHECKED(__stwt)
#undef TILESTEP_CHECKED

#pragma once

/// \file
/// CUDA's atomics, fences and cached loads and stores, for the host compiler. Included by simt.hpp.

#include <atomic>
#include <concepts>
#include <type_traits>

#include "kernels/base/simt/sanitizers.hpp"

namespace tilestep::simt::emulated {

template <class T, class... Allowed>
concept OneOf = (std::same_as<T, Allowed> || ...);

using Word = unsigned long long;

/// Replaces `*address` by `change(old)` in one step and returns the old value.
template <class T, class Change>
T atomic_update(T* address, Change change) {
  std::atomic_ref<T> target(*address);
  T old = target.load(std::memory_order_relaxed);
  while (!target.compare_exchange_weak(old, change(old), std::memory_order_relaxed)) {
  }
  return old;
}

}  // namespace tilestep::simt::emulated

// All of them return the value before, and order nothing else, as in CUDA. The second argument does
// not take part in deduction, so that `atomicAdd(&count, 1)` works for an unsigned counter.

template <
    tilestep::simt::emulated::OneOf<int, unsigned, tilestep::simt::emulated::Word, float, double> T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_add(value, std::memory_order_relaxed);
}
template <tilestep::simt::emulated::OneOf<int, unsigned> T>
T atomicSub(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_sub(value, std::memory_order_relaxed);
}
template <
    tilestep::simt::emulated::OneOf<int, unsigned, tilestep::simt::emulated::Word, long long> T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return tilestep::simt::emulated::atomic_update(
      address, [value](T old) { return value < old ? value : old; });
}
template <
    tilestep::simt::emulated::OneOf<int, unsigned, tilestep::simt::emulated::Word, long long> T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return tilestep::simt::emulated::atomic_update(
      address, [value](T old) { return old < value ? value : old; });
}
template <tilestep::simt::emulated::OneOf<int, unsigned, tilestep::simt::emulated::Word, float> T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).exchange(value, std::memory_order_relaxed);
}
/// Stores `value` if `*address` equals `expected`.
template <tilestep::simt::emulated::OneOf<int, unsigned, tilestep::simt::emulated::Word> T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  std::atomic_ref<T>(*address).compare_exchange_strong(expected, value, std::memory_order_relaxed);
  return expected;
}
template <tilestep::simt::emulated::OneOf<int, unsigned, tilestep::simt::emulated::Word> T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_and(value, std::memory_order_relaxed);
}
template <tilestep::simt::emulated::OneOf<int, unsigned, tilestep::simt::emulated::Word> T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_or(value, std::memory_order_relaxed);
}
template <tilestep::simt::emulated::OneOf<int, unsigned, tilestep::simt::emulated::Word> T>
T atomicXor(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_xor(value, std::memory_order_relaxed);
}

/// Orders this thread's memory accesses, seen from the whole device.
inline void __threadfence() {
#if defined(TILESTEP_TSAN) && !defined(SIMT_EDITED)
  // ThreadSanitizer does not know fences; one shared read-modify-write orders at least as much.
  static std::atomic<int> order{0};
  order.fetch_add(0, std::memory_order_acq_rel);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}
inline void __threadfence_block() {
  __threadfence();
}
inline void __threadfence_system() {
  __threadfence();
}

// Loads and stores with a hint for the caches, which the emulation has none of.
template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
template <class T>
void __stcs(T* address, std::type_identity_t<T> value) {
  *address = value;
}
template <class T>
void __stcg(T* address, std::type_identity_t<T> value) {
  *address = value;
}

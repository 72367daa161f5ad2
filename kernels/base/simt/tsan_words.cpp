// What a source compiled with -fsanitize=thread calls before each access to memory, without ThreadSanitizer's
// runtime: edited kernels do, and shared_races.hpp looks at their shared memory. A program that is built with
// ThreadSanitizer has these words already, and there nobody watches.

#include <cstring>

#include "kernels/base/simt/sanitizers.hpp"
#include "kernels/base/simt/shared_races.hpp"

#if !defined(TILESTEP_TSAN)

namespace tilestep::simt::emulated {
namespace {

[[gnu::always_inline]] inline void watch(const volatile void* memory, std::size_t bytes,
                                         SharedUse use, void* frame) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const SharedWindow& window = shared_window;
  if (window.dynamic.holds(address) || window.statics.holds(address)) [[unlikely]] {
    window.races->access(address, bytes, use, static_cast<void**>(frame));
  }
}

}  // namespace

// The compilers know these names with other types, so they are given to functions of ours.
#define TILESTEP_WORD(name, declaration) \
  declaration __asm__("__tsan_" name);   \
  declaration

#define TILESTEP_ACCESS(bytes)                                                                  \
  TILESTEP_WORD("read" #bytes, void tsan_read##bytes(const void* memory)) {                     \
    watch(memory, bytes, SharedUse::read, __builtin_frame_address(0));                          \
  }                                                                                             \
  TILESTEP_WORD("write" #bytes, void tsan_write##bytes(void* memory)) {                         \
    watch(memory, bytes, SharedUse::write, __builtin_frame_address(0));                         \
  }                                                                                             \
  TILESTEP_WORD("unaligned_read" #bytes, void tsan_unaligned_read##bytes(const void* memory)) { \
    watch(memory, bytes, SharedUse::read, __builtin_frame_address(0));                          \
  }                                                                                             \
  TILESTEP_WORD("unaligned_write" #bytes, void tsan_unaligned_write##bytes(void* memory)) {     \
    watch(memory, bytes, SharedUse::write, __builtin_frame_address(0));                         \
  }
TILESTEP_ACCESS(1)
TILESTEP_ACCESS(2)
TILESTEP_ACCESS(4)
TILESTEP_ACCESS(8)
TILESTEP_ACCESS(16)

TILESTEP_WORD("read_range", void tsan_read_range(const void* memory, std::size_t bytes)) {
  watch(memory, bytes, SharedUse::read, __builtin_frame_address(0));
}
TILESTEP_WORD("write_range", void tsan_write_range(void* memory, std::size_t bytes)) {
  watch(memory, bytes, SharedUse::write, __builtin_frame_address(0));
}
TILESTEP_WORD("memset", void* tsan_memset(void* to, int byte, std::size_t bytes)) {
  watch(to, bytes, SharedUse::write, __builtin_frame_address(0));
  return std::memset(to, byte, bytes);
}
TILESTEP_WORD("memcpy", void* tsan_memcpy(void* to, const void* from, std::size_t bytes)) {
  watch(from, bytes, SharedUse::read, __builtin_frame_address(0));
  watch(to, bytes, SharedUse::write, __builtin_frame_address(0));
  return std::memcpy(to, from, bytes);
}
TILESTEP_WORD("memmove", void* tsan_memmove(void* to, const void* from, std::size_t bytes)) {
  watch(from, bytes, SharedUse::read, __builtin_frame_address(0));
  watch(to, bytes, SharedUse::write, __builtin_frame_address(0));
  return std::memmove(to, from, bytes);
}

TILESTEP_WORD("init", void tsan_init()) {}
TILESTEP_WORD("func_entry", void tsan_func_entry(void*)) {}
TILESTEP_WORD("func_exit", void tsan_func_exit()) {}
TILESTEP_WORD("vptr_update", void tsan_vptr_update(void**, void*)) {}
TILESTEP_WORD("vptr_read", void tsan_vptr_read(void**)) {}
TILESTEP_WORD("atomic_thread_fence", void tsan_thread_fence(int)) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
TILESTEP_WORD("atomic_signal_fence", void tsan_signal_fence(int)) {}

// Atomics come with their order, and get the strongest.
#define TILESTEP_CHANGE(bits, type, word)                                         \
  TILESTEP_WORD("atomic" #bits "_fetch_" #word,                                   \
                type tsan_##word##bits(volatile type* memory, type value, int)) { \
    watch(memory, bits / 8, SharedUse::atomic, __builtin_frame_address(0));       \
    return __atomic_fetch_##word(memory, value, __ATOMIC_SEQ_CST);                \
  }
#define TILESTEP_EXCHANGE_IF(bits, type, word)                                              \
  TILESTEP_WORD(                                                                            \
      "atomic" #bits "_compare_exchange_" #word,                                            \
      int tsan_##word##bits(volatile type* memory, type* expected, type value, int, int)) { \
    watch(memory, bits / 8, SharedUse::atomic, __builtin_frame_address(0));                 \
    return __atomic_compare_exchange_n(memory, expected, value, false, __ATOMIC_SEQ_CST,    \
                                       __ATOMIC_SEQ_CST);                                   \
  }
#define TILESTEP_ATOMIC(bits, type)                                                                \
  TILESTEP_WORD("atomic" #bits "_load", type tsan_load##bits(const volatile type* memory, int)) {  \
    watch(memory, bits / 8, SharedUse::atomic, __builtin_frame_address(0));                        \
    return __atomic_load_n(memory, __ATOMIC_SEQ_CST);                                              \
  }                                                                                                \
  TILESTEP_WORD("atomic" #bits "_store",                                                           \
                void tsan_store##bits(volatile type* memory, type value, int)) {                   \
    watch(memory, bits / 8, SharedUse::atomic, __builtin_frame_address(0));                        \
    __atomic_store_n(memory, value, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  TILESTEP_WORD("atomic" #bits "_exchange",                                                        \
                type tsan_exchange##bits(volatile type* memory, type value, int)) {                \
    watch(memory, bits / 8, SharedUse::atomic, __builtin_frame_address(0));                        \
    return __atomic_exchange_n(memory, value, __ATOMIC_SEQ_CST);                                   \
  }                                                                                                \
  TILESTEP_WORD("atomic" #bits "_compare_exchange_val",                                            \
                type tsan_val##bits(volatile type* memory, type expected, type value, int, int)) { \
    watch(memory, bits / 8, SharedUse::atomic, __builtin_frame_address(0));                        \
    __atomic_compare_exchange_n(memory, &expected, value, false, __ATOMIC_SEQ_CST,                 \
                                __ATOMIC_SEQ_CST);                                                 \
    return expected;                                                                               \
  }                                                                                                \
  TILESTEP_EXCHANGE_IF(bits, type, strong)                                                         \
  TILESTEP_EXCHANGE_IF(bits, type, weak)                                                           \
  TILESTEP_CHANGE(bits, type, add)                                                                 \
  TILESTEP_CHANGE(bits, type, sub)                                                                 \
  TILESTEP_CHANGE(bits, type, and)                                                                 \
  TILESTEP_CHANGE(bits, type, or)                                                                  \
  TILESTEP_CHANGE(bits, type, xor)                                                                 \
  TILESTEP_CHANGE(bits, type, nand)
TILESTEP_ATOMIC(8, std::uint8_t)
TILESTEP_ATOMIC(16, std::uint16_t)
TILESTEP_ATOMIC(32, std::uint32_t)
TILESTEP_ATOMIC(64, std::uint64_t)

}  // namespace tilestep::simt::emulated

#endif

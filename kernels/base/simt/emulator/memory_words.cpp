// What an edited source calls besides its own words: before each access to memory, as it is compiled with
// -fsanitize=thread, though without ThreadSanitizer's runtime; where an index leaves an array, by -fsanitize=bounds; and
// for the C library's functions on memory. A program that is built with ThreadSanitizer has its words already, and
// there nobody watches accesses.

#include <cstring>

#include "kernels/base/simt/emulator/block_runner.hpp"
#include "kernels/base/simt/emulator/global_watch.hpp"
#include "kernels/base/simt/sanitizers.hpp"

#if !defined(TILESTEP_TSAN)

namespace tilestep::simt::emulated {
namespace {

// As an atomic towards other blocks; in shared memory it is what it looks like, since it makes no lane wait.
[[gnu::always_inline]] inline void watch_volatile(const void* memory, std::size_t bytes,
                                                  SharedUse use, void* frame) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const WatchWindow& window = watch_window;
  const bool global = window.global.holds(address) && !window.dynamic.holds(address) &&
                      !window.statics.holds(address);
  if (global && use == SharedUse::read) window.view->poll(address);
  watch_access(memory, bytes, global ? SharedUse::atomic : use, frame);
}

}  // namespace

// The compilers know these names with other types, so they are given to functions of ours.
#define TILESTEP_WORD(name, declaration) \
  declaration __asm__("__tsan_" name);   \
  declaration

#define TILESTEP_ACCESS(bytes)                                                                  \
  TILESTEP_WORD("read" #bytes, void tsan_read##bytes(const void* memory)) {                     \
    watch_access(memory, bytes, SharedUse::read, __builtin_frame_address(0));                   \
  }                                                                                             \
  TILESTEP_WORD("write" #bytes, void tsan_write##bytes(void* memory)) {                         \
    watch_access(memory, bytes, SharedUse::write, __builtin_frame_address(0));                  \
  }                                                                                             \
  TILESTEP_WORD("unaligned_read" #bytes, void tsan_unaligned_read##bytes(const void* memory)) { \
    watch_access(memory, bytes, SharedUse::read, __builtin_frame_address(0));                   \
  }                                                                                             \
  TILESTEP_WORD("unaligned_write" #bytes, void tsan_unaligned_write##bytes(void* memory)) {     \
    watch_access(memory, bytes, SharedUse::write, __builtin_frame_address(0));                  \
  }                                                                                             \
  TILESTEP_WORD("volatile_read" #bytes, void tsan_volatile_read##bytes(const void* memory)) {   \
    watch_volatile(memory, bytes, SharedUse::read, __builtin_frame_address(0));                 \
  }                                                                                             \
  TILESTEP_WORD("volatile_write" #bytes, void tsan_volatile_write##bytes(void* memory)) {       \
    watch_volatile(memory, bytes, SharedUse::write, __builtin_frame_address(0));                \
  }                                                                                             \
  TILESTEP_WORD("unaligned_volatile_read" #bytes,                                               \
                void tsan_unaligned_volatile_read##bytes(const void* memory)) {                 \
    watch_volatile(memory, bytes, SharedUse::read, __builtin_frame_address(0));                 \
  }                                                                                             \
  TILESTEP_WORD("unaligned_volatile_write" #bytes,                                              \
                void tsan_unaligned_volatile_write##bytes(void* memory)) {                      \
    watch_volatile(memory, bytes, SharedUse::write, __builtin_frame_address(0));                \
  }
TILESTEP_ACCESS(1)
TILESTEP_ACCESS(2)
TILESTEP_ACCESS(4)
TILESTEP_ACCESS(8)
TILESTEP_ACCESS(16)

TILESTEP_WORD("read_range", void tsan_read_range(const void* memory, std::size_t bytes)) {
  watch_access(memory, bytes, SharedUse::read, __builtin_frame_address(0));
}
TILESTEP_WORD("write_range", void tsan_write_range(void* memory, std::size_t bytes)) {
  watch_access(memory, bytes, SharedUse::write, __builtin_frame_address(0));
}
TILESTEP_WORD("init", void tsan_init()) {}
TILESTEP_WORD("func_entry", void tsan_func_entry(void*)) {}
TILESTEP_WORD("func_exit", void tsan_func_exit()) {}
TILESTEP_WORD("vptr_update", void tsan_vptr_update(void**, void*)) {}
TILESTEP_WORD("vptr_read", void tsan_vptr_read(void**)) {}
TILESTEP_WORD("atomic_thread_fence", void tsan_thread_fence(int)) {
  if (watch_window.view != nullptr) watch_window.view->fence();
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
TILESTEP_WORD("atomic_signal_fence", void tsan_signal_fence(int)) {}

// Atomics come with their order, and get the strongest.
#define TILESTEP_CHANGE(bits, type, word)                                          \
  TILESTEP_WORD("atomic" #bits "_fetch_" #word,                                    \
                type tsan_##word##bits(volatile type* memory, type value, int)) {  \
    watch_access(memory, bits / 8, SharedUse::atomic, __builtin_frame_address(0)); \
    const type old = __atomic_fetch_##word(memory, value, __ATOMIC_SEQ_CST);       \
    watch_atomic_done(memory);                                                     \
    return old;                                                                    \
  }
#define TILESTEP_EXCHANGE_IF(bits, type, word)                                              \
  TILESTEP_WORD(                                                                            \
      "atomic" #bits "_compare_exchange_" #word,                                            \
      int tsan_##word##bits(volatile type* memory, type* expected, type value, int, int)) { \
    watch_access(memory, bits / 8, SharedUse::atomic, __builtin_frame_address(0));          \
    const bool done = __atomic_compare_exchange_n(memory, expected, value, false,           \
                                                  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);      \
    watch_atomic_done(memory);                                                              \
    return done;                                                                            \
  }
#define TILESTEP_ATOMIC(bits, type)                                                                \
  TILESTEP_WORD("atomic" #bits "_load", type tsan_load##bits(const volatile type* memory, int)) {  \
    watch_access(memory, bits / 8, SharedUse::atomic, __builtin_frame_address(0));                 \
    const type value = __atomic_load_n(memory, __ATOMIC_SEQ_CST);                                  \
    watch_atomic_done(memory);                                                                     \
    return value;                                                                                  \
  }                                                                                                \
  TILESTEP_WORD("atomic" #bits "_store",                                                           \
                void tsan_store##bits(volatile type* memory, type value, int)) {                   \
    watch_access(memory, bits / 8, SharedUse::atomic, __builtin_frame_address(0));                 \
    __atomic_store_n(memory, value, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  TILESTEP_WORD("atomic" #bits "_exchange",                                                        \
                type tsan_exchange##bits(volatile type* memory, type value, int)) {                \
    watch_access(memory, bits / 8, SharedUse::atomic, __builtin_frame_address(0));                 \
    const type old = __atomic_exchange_n(memory, value, __ATOMIC_SEQ_CST);                         \
    watch_atomic_done(memory);                                                                     \
    return old;                                                                                    \
  }                                                                                                \
  TILESTEP_WORD("atomic" #bits "_compare_exchange_val",                                            \
                type tsan_val##bits(volatile type* memory, type expected, type value, int, int)) { \
    watch_access(memory, bits / 8, SharedUse::atomic, __builtin_frame_address(0));                 \
    __atomic_compare_exchange_n(memory, &expected, value, false, __ATOMIC_SEQ_CST,                 \
                                __ATOMIC_SEQ_CST);                                                 \
    watch_atomic_done(memory);                                                                     \
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

namespace tilestep::simt::emulated {

// What memory.h's functions are called in edited sources (workbench/compiler.cpp renames them).
extern "C" {
void* tilestep_memset(void* to, int byte, std::size_t bytes) {
  watch_access(to, bytes, SharedUse::write, __builtin_frame_address(0));
  return std::memset(to, byte, bytes);
}
void* tilestep_memcpy(void* to, const void* from, std::size_t bytes) {
  watch_access(from, bytes, SharedUse::read, __builtin_frame_address(0));
  watch_access(to, bytes, SharedUse::write, __builtin_frame_address(0));
  return std::memcpy(to, from, bytes);
}
void* tilestep_memmove(void* to, const void* from, std::size_t bytes) {
  watch_access(from, bytes, SharedUse::read, __builtin_frame_address(0));
  watch_access(to, bytes, SharedUse::write, __builtin_frame_address(0));
  return std::memmove(to, from, bytes);
}

/// What both compilers give: where, the array's type, the index's type. Of LLVM's interface, "ubsan_handlers.h".
struct OutOfBounds {
  const char* file;
  std::uint32_t line, column;
  const struct ArrayType {
    std::uint16_t kind, info;
    char name[1];  ///< "'float [16][17]'"
  } * array;
};
// The compilers think that it does not throw: what is wrong is noted, and the access happens.
void tilestep_out_of_bounds(const OutOfBounds* what, std::uintptr_t index) {
  if (BlockRunner::inside_kernel()) BlockRunner::current().outside_array(what->array->name, index);
}
}

}  // namespace tilestep::simt::emulated

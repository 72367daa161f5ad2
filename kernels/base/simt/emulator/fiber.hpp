#pragma once

#include <boost/context/fiber.hpp>
#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "kernels/base/simt/sanitizers.hpp"

#if defined(TILESTEP_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(TILESTEP_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace tilestep::simt::emulated {

/// Stacks for fibers: each with a guard page below it, and each starting at another offset in its
/// page, because stacks that all start at the same one compete for the same cache sets (a block of
/// 256 threads then runs several times slower). Boost's StackAllocator concept.
class StackAllocator {
 public:
  boost::context::stack_context allocate();
  void deallocate(boost::context::stack_context& stack) noexcept;
};

class Fibers;

// A switch by Boost.Context saves and restores the floating-point control words, which nobody changes
// here, and those instructions let nothing that follows begin: it was a quarter of the time of a GEMM with
// two barriers a tile. On x86-64 a switch is therefore ten instructions of our own. The sanitizers know
// Boost's way, so theirs is the other one.
#if defined(__x86_64__) && !defined(TILESTEP_ASAN) && !defined(TILESTEP_TSAN)
#define TILESTEP_RAW_SWITCH 1
#endif

struct Context;
#if defined(TILESTEP_RAW_SWITCH)
/// What a context needs once, kept apart from what every switch reads: the contexts of a block's threads
/// then lie in few cache lines.
struct Stack {
  boost::context::stack_context memory = StackAllocator().allocate();
  std::function<void(Context&)> body;

  explicit Stack(std::function<void(Context&)> work) : body(std::move(work)) {}
  ~Stack() { StackAllocator().deallocate(memory); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;
};
#endif

/// One flow of control: a fiber, or the OS thread that the fibers run on.
struct Context {
  Fibers* owner = nullptr;
#if defined(TILESTEP_RAW_SWITCH)
  void* stack_pointer = nullptr;  ///< valid while the context is suspended
  std::unique_ptr<Stack> stack;   ///< null for the OS thread
#else
  boost::context::fiber fiber;  ///< valid while the context is suspended
#endif
#if defined(TILESTEP_ASAN)
  const void* stack_bottom = nullptr;
  std::size_t stack_bytes = 0;
  void* fake_stack = nullptr;
#endif
#if defined(TILESTEP_TSAN)
  void* tsan = nullptr;
#endif
};

#if defined(TILESTEP_RAW_SWITCH)
/// Leaves the running stack for that of `to`, where a fresh context begins with `to` as its argument.
/// What the compiler holds in registers it saves itself: all of them are named as changed, but for the
/// two that it may need to find its frame.
[[gnu::always_inline]] inline void switch_stacks(Context& from, Context& to) {
  void** save = &from.stack_pointer;
  Context* argument = &to;
  void* stack_pointer = to.stack_pointer;
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"  // what a leaf function keeps below its stack pointer
      "pushq %%rbp\n\t"
      "pushq %%rbx\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "movq %%rsp, (%[save])\n\t"
      "movq %[to], %%rsp\n\t"
      "popq %%rax\n\t"
      "jmp *%%rax\n"
      "1:\n\t"
      "popq %%rbx\n\t"
      "popq %%rbp\n\t"
      "leaq 128(%%rsp), %%rsp"
      : "+D"(argument), [save] "+S"(save), [to] "+d"(stack_pointer)
      :
      : "rax", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory", "xmm0",
        "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
        "xmm12", "xmm13", "xmm14", "xmm15");
}
#endif

/// The contexts of one OS thread. Any context can switch to any other that is suspended; the
/// sanitizers are told.
class Fibers {
 public:
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;
  Fibers() {
    main_.owner = this;
#if defined(TILESTEP_TSAN)
    main_.tsan = __tsan_get_current_fiber();
#endif
  }

  Context& main() {
    return main_;
  }

  /// A suspended fiber that runs `body(its context)` at its first switch. When `body` returns,
  /// control goes to `main()` for good.
  template <class Body>
  Context& make(Body body);

  /// Suspends `from`, which runs, and runs `to`. Part of every barrier, and therefore inlined into
  /// the kernel: a `ret` that follows a switch is always mispredicted, since the processor guesses it
  /// from the calls of the other fiber.
  [[gnu::always_inline]] static void switch_to(Context& from, Context& to) {
#if defined(TILESTEP_ASAN)
    __sanitizer_start_switch_fiber(&from.fake_stack, to.stack_bottom, to.stack_bytes);
#endif
#if defined(TILESTEP_TSAN)
    __tsan_switch_to_fiber(to.tsan, 0);
#endif
#if defined(TILESTEP_RAW_SWITCH)
    switch_stacks(from, to);
#else
    from.owner->previous_ = &from;
    boost::context::fiber back = std::move(to.fiber).resume();
    from.owner->arrived(from, std::move(back));
#endif
  }

 private:
#if defined(TILESTEP_RAW_SWITCH)
  /// Where a fresh context begins. Never returns: there is nothing above it on its stack.
  static void begin(Context* self) {
    self->stack->body(*self);
    switch_to(*self, self->owner->main_);
    __builtin_unreachable();
  }
#else
  // On the other side of a switch: keeps the handle of whoever switched here.
  [[gnu::always_inline]] void arrived([[maybe_unused]] Context& self,
                                      boost::context::fiber&& from) {
#if defined(TILESTEP_ASAN)
    const void* bottom = nullptr;
    std::size_t bytes = 0;
    __sanitizer_finish_switch_fiber(self.fake_stack, &bottom, &bytes);
    // Only here does one learn where the OS thread's own stack lies.
    previous_->stack_bottom = bottom;
    previous_->stack_bytes = bytes;
#endif
    previous_->fiber = std::move(from);
  }
#endif

  Context main_;
  std::deque<Context> made_;     ///< their addresses must not change
  Context* previous_ = nullptr;  ///< who switched last
};

template <class Body>
Context& Fibers::make(Body body) {
  Context* self = &made_.emplace_back();
  self->owner = this;
#if defined(TILESTEP_TSAN)
  self->tsan = __tsan_create_fiber(0);
#endif
#if defined(TILESTEP_RAW_SWITCH)
  self->stack = std::make_unique<Stack>(std::move(body));
  // The ABI wants the stack pointer 8 below a multiple of 16 where a function begins; there lies its
  // return address: none, which is also where a debugger's list of callers ends.
  auto* top = reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(self->stack->memory.sp) &
                                       ~std::uintptr_t{15});
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(&Fibers::begin);
  self->stack_pointer = top;
#else
  StackAllocator allocator;
  const boost::context::stack_context stack = allocator.allocate();
#if defined(TILESTEP_ASAN)
  self->stack_bottom = static_cast<const char*>(stack.sp) - stack.size;
  self->stack_bytes = stack.size;
#endif
  self->fiber = boost::context::fiber(
      std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack), allocator,
      [this, self, body](boost::context::fiber&& from) mutable {
        arrived(*self, std::move(from));
        body(*self);
        previous_ = self;
#if defined(TILESTEP_ASAN)
        // Null would free the fake stack (detect_stack_use_after_return), where the frames that are
        // about to return lie; so it is kept.
        __sanitizer_start_switch_fiber(&self->fake_stack, main_.stack_bottom, main_.stack_bytes);
#endif
#if defined(TILESTEP_TSAN)
        __tsan_switch_to_fiber(main_.tsan, 0);
#endif
        return std::move(main_.fiber);
      });
#endif
  return *self;
}

}  // namespace tilestep::simt::emulated

#pragma once

#include <boost/context/fiber.hpp>
#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <memory>
#include <utility>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TILESTEP_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define TILESTEP_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TILESTEP_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define TILESTEP_TSAN 1
#endif
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

/// One flow of control: a fiber, or the OS thread that the fibers run on.
struct Context {
  Fibers* owner = nullptr;
  boost::context::fiber fiber;  ///< valid while the context is suspended
#if defined(TILESTEP_ASAN)
  const void* stack_bottom = nullptr;
  std::size_t stack_bytes = 0;
  void* fake_stack = nullptr;
#endif
#if defined(TILESTEP_TSAN)
  void* tsan = nullptr;
#endif
};

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
  Context& running() {
    return *running_;
  }

  /// A suspended fiber that runs `body()` at its first switch. When `body` returns, control goes to
  /// `main()` and the stack is freed; the Context must outlive that.
  template <class Body>
  std::unique_ptr<Context> make(Body body);

  /// Part of every barrier, and therefore inlined into the kernel: a `ret` that follows a switch is
  /// always mispredicted, since the processor guesses it from the calls of the other fiber.
  [[gnu::always_inline]] void switch_to(Context& to) {
    Context& self = *running_;
    previous_ = &self;
    running_ = &to;
#if defined(TILESTEP_ASAN)
    __sanitizer_start_switch_fiber(&self.fake_stack, to.stack_bottom, to.stack_bytes);
#endif
#if defined(TILESTEP_TSAN)
    __tsan_switch_to_fiber(to.tsan, 0);
#endif
    boost::context::fiber from = std::move(to.fiber).resume();
    arrived(self, std::move(from));
  }

 private:
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

  Context main_;
  Context* running_ = &main_;
  Context* previous_ = nullptr;
};

template <class Body>
std::unique_ptr<Context> Fibers::make(Body body) {
  auto made = std::make_unique<Context>();
  Context* self = made.get();
  self->owner = this;
#if defined(TILESTEP_TSAN)
  self->tsan = __tsan_create_fiber(0);
#endif
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
        body();
        previous_ = self;
        running_ = &main_;
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
  return made;
}

}  // namespace tilestep::simt::emulated

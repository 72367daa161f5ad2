// How a signal handler ends a block whose thread cannot go on, and what its threads are called.

#include <fmt/format.h>

#include "kernels/base/simt/emulator/block_runner.hpp"

namespace tilestep::simt::emulated {
namespace {

/// Room for what `run` calls on the stack of its OS thread.
constexpr std::uintptr_t kMainStack = 64 * 1024;
/// Where a stack that is full is written to: behind its end lies nothing.
[[maybe_unused]] constexpr std::uintptr_t kGuardBytes = 4096;

}  // namespace

bool BlockRunner::stop(int number, const siginfo_t& info, void* context, bool time_is_up) noexcept {
  Interrupted interrupted(context);
  const auto stack = interrupted.stack_pointer();
  const auto frame = reinterpret_cast<std::uintptr_t>(main_frame_);
  // On the OS thread's own stack no kernel runs: it is about to begin, or has just ended.
  const bool in_kernel = stack > frame || frame - stack > kMainStack;
  stack_t alternate{};
  if (!in_kernel || leaves_stopped_ || ::sigaltstack(nullptr, &alternate) != 0 ||
      (alternate.ss_flags & SS_DISABLE) != 0) {
    return false;
  }
  if (stopped_.signal == 0) {
    stopped_.time_is_up = time_is_up;
#if defined(TILESTEP_RAW_SWITCH)
    const auto& memory = threads_[static_cast<std::size_t>(current_)].context->stack->memory;
    const auto bottom = reinterpret_cast<std::uintptr_t>(memory.sp) - memory.size;
    const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
    stopped_.outside_stack =
        number == SIGSEGV && bottom - kGuardBytes <= address && address < bottom;
#endif
    // Where the stack is spoiled this comes here once more.
    note_stopped(stopped_, number, info, interrupted);
  } else if (time_is_up) {
    return true;  // it is being noted
  }
  leaves_stopped_ = true;
  stopped_at_.owner = &fibers_;
  interrupted.go_on_in(leave_stopped, this,
                       static_cast<char*>(alternate.ss_sp) + alternate.ss_size);
  return true;
}

// Where a stopped thread goes on, no longer in the handler: as if the block had ended.
void BlockRunner::leave_stopped(void* self) {
  auto& stopped = *static_cast<BlockRunner*>(self);
  Fibers::switch_to(stopped.stopped_at_, stopped.fibers_.main());
  __builtin_unreachable();
}

std::string BlockRunner::position(int thread) const {
  const uint3 t = threads_[thread].index;
  const uint3 b = members_[rank_of(thread)].index;
  return fmt::format("{}: thread ({},{},{}) of block ({},{},{})", job_->launch->name, t.x, t.y, t.z,
                     b.x, b.y, b.z);
}

std::string BlockRunner::thread_name(int thread) const {
  const uint3 t = threads_[thread].index;
  return fmt::format("thread ({},{},{})", t.x, t.y, t.z);
}

const void* BlockRunner::top_of_stack() const {
#if defined(TILESTEP_RAW_SWITCH)
  return threads_[current_].context->stack->memory.sp;
#else
  return nullptr;
#endif
}

std::string BlockRunner::block_name(std::uint64_t linear) const {
  const dim3 grid = job_->launch->grid;
  return fmt::format("block ({},{},{})", linear % grid.x, linear / grid.x % grid.y,
                     linear / grid.x / grid.y);
}

MemoryFault BlockRunner::memory_fault(const char* check) const {
  MemoryFault fault;
  fault.check = check;
  fault.kernel = kernel_name();
  fault.block = block(0);
  fault.who = position(current_);
  fault.here = place_here().callers;
  return fault;
}

void BlockRunner::outside_array(const char* type, std::uintptr_t index) {
  if (!FaultGuard::armed() || std::exchange(told_outside_, true)) return;
  std::string name = type;
  std::erase(name, '\'');
  if (const std::size_t space = name.find(" ["); space != std::string::npos) name.erase(space, 1);
  MemoryFault fault = memory_fault("array_bounds");
  const bool vowel = std::string_view("aeiou").find(name[0]) != std::string_view::npos;
  fault.does = fmt::format("takes index {} of {} {}", static_cast<std::intptr_t>(index),
                           vowel ? "an" : "a", name);
  FaultGuard::note(std::move(fault));
}

std::string BlockRunner::block_position(int rank) const {
  const uint3 b = members_[static_cast<std::size_t>(rank)].index;
  return fmt::format("{}: block ({},{},{})", job_->launch->name, b.x, b.y, b.z);
}

}  // namespace tilestep::simt::emulated

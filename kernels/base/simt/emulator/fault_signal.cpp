#include "kernels/base/simt/emulator/fault_signal.hpp"

#include <fmt/format.h>
#include <ucontext.h>

#include "kernels/base/simt/emulator/fault_guard.hpp"

namespace tilestep::simt::emulated {
namespace {

/// No kernel's data lie so low: an index behind a null pointer.
constexpr std::uintptr_t kNearNull = 64 * 1024;

std::string what_it_did(const StoppedThread& thread) {
  const char* does = !thread.writes ? "uses" : *thread.writes ? "writes" : "reads";
  if (!thread.has_address) return "uses a pointer that leads to no memory";
  if (thread.address < kNearNull) {
    return fmt::format("{} address 0x{:x}, through a null pointer", does, thread.address);
  }
  return fmt::format("{} address 0x{:x}, where there is no memory", does, thread.address);
}

}  // namespace

FaultPlace StoppedThread::place() const {
  FaultPlace place;
  place.callers.assign(callers, callers + count);
  return place;
}

std::string StoppedThread::what() const {
  if (time_is_up) {
    return fmt::format(
        "still runs after {:g} seconds and was ended; an endless loop is the likely reason",
        std::chrono::duration<double>(FaultGuard::deadline()).count());
  }
  if (outside_stack) {
    return "needs more stack than a thread has: unbounded recursion, or a large local array";
  }
  switch (signal) {
    case SIGFPE:
      return "divides a whole number by zero";
    case SIGILL:
      return "reaches an instruction that ends it: __builtin_trap(), or the end of a function "
             "that returns nothing";
    case SIGABRT:
      return "ends by abort(): an assertion failed, or it wrote past the end of a local array";
    default:
      return what_it_did(*this);
  }
}

#if defined(__x86_64__)

namespace {
greg_t& reg(void* context, int number) {
  return static_cast<ucontext_t*>(context)->uc_mcontext.gregs[number];
}
}  // namespace

std::uintptr_t Interrupted::instruction() const {
  return static_cast<std::uintptr_t>(reg(context_, REG_RIP));
}
std::uintptr_t Interrupted::stack_pointer() const {
  return static_cast<std::uintptr_t>(reg(context_, REG_RSP));
}
// Bit 1 of a page fault's error code (Intel's manual, volume 3, "Page-Fault Exception").
std::optional<bool> Interrupted::writes() const {
  return (reg(context_, REG_ERR) & 2) != 0;
}
void Interrupted::go_on_in(void (*function)(void*), void* argument, char* top) {
  // As after a call: 8 below a multiple of 16, with nowhere to return to.
  auto stack = reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t{15};
  stack -= 8;
  *reinterpret_cast<std::uintptr_t*>(stack) = 0;
  reg(context_, REG_RSP) = static_cast<greg_t>(stack);
  reg(context_, REG_RIP) = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(function));
  reg(context_, REG_RDI) = static_cast<greg_t>(reinterpret_cast<std::uintptr_t>(argument));
  reg(context_, REG_EFL) &= ~greg_t{0x400};  // functions expect that strings are walked upwards
}

#elif defined(__aarch64__)

namespace {
mcontext_t& registers(void* context) {
  return static_cast<ucontext_t*>(context)->uc_mcontext;
}
}  // namespace

std::uintptr_t Interrupted::instruction() const {
  return registers(context_).pc;
}
std::uintptr_t Interrupted::stack_pointer() const {
  return registers(context_).sp;
}
std::optional<bool> Interrupted::writes() const {
  return std::nullopt;
}
void Interrupted::go_on_in(void (*function)(void*), void* argument, char* top) {
  registers(context_).sp = reinterpret_cast<std::uintptr_t>(top) & ~std::uintptr_t{15};
  registers(context_).pc = reinterpret_cast<std::uintptr_t>(function);
  registers(context_).regs[0] = reinterpret_cast<std::uintptr_t>(argument);
  registers(context_).regs[30] = 0;
}

#else
#error "say how a signal handler goes on elsewhere on this processor"
#endif

void note_stopped(StoppedThread& to, int number, const siginfo_t& info,
                  const Interrupted& interrupted) {
  const bool memory = number == SIGSEGV || number == SIGBUS;
  // The kernel has no address for those that no memory could have: it gives SI_KERNEL then.
  to.has_address = memory && info.si_code > 0 && info.si_code != SI_KERNEL;
  to.address = to.has_address ? reinterpret_cast<std::uintptr_t>(info.si_addr) : 0;
  if (memory) to.writes = interrupted.writes();
  to.callers[0] = reinterpret_cast<const void*>(interrupted.instruction());
  // A call to where no code is leaves its place on the stack alone.
  if (to.has_address && to.address == interrupted.instruction()) {
    const auto back = *reinterpret_cast<const std::uintptr_t*>(interrupted.stack_pointer());
    to.callers[0] = reinterpret_cast<const void*>(back - 1);
  }
  to.count = 1;
  to.signal = number;
  collect_callers(to.callers, to.count);
}

}  // namespace tilestep::simt::emulated

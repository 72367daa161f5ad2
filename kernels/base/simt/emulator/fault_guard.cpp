#include "kernels/base/simt/emulator/fault_guard.hpp"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

#include "kernels/base/simt/emulator/block_runner.hpp"
#include "kernels/base/simt/emulator/fault_place.hpp"
#include "kernels/base/simt/sanitizers.hpp"

namespace tilestep::simt {
namespace {

using Clock = std::chrono::steady_clock;

#if defined(TILESTEP_ASAN) || defined(TILESTEP_TSAN)
constexpr bool kOwnSignals = false;
#else
constexpr bool kOwnSignals = true;
#endif
/// What stops a thread whose time is up.
constexpr int kInterrupt = SIGUSR2;
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, kInterrupt};
constexpr std::size_t kSignalCount = sizeof kSignals / sizeof *kSignals;

std::atomic<bool> on_guard{false};
std::atomic<Clock::rep> ends_at{0};
std::atomic<Clock::rep> allowed{0};
struct sigaction before[kSignalCount];
std::mutex faults_mutex;
std::map<std::string, MemoryFault>& noted_faults() {
  static std::map<std::string, MemoryFault> faults;
  return faults;
}

void restore_signals() {
  for (std::size_t i = 0; i < kSignalCount; ++i) ::sigaction(kSignals[i], &before[i], nullptr);
}

void on_signal(int number, siginfo_t* info, void* context) {
  const int error = errno;
  // Not ours: happens again, and is handled as before the guard.
  const bool taken =
      emulated::BlockRunner::stop_current(number, *info, context, number == kInterrupt);
  if (!taken && number != kInterrupt) restore_signals();
  errno = error;
}

}  // namespace

FaultGuard::FaultGuard(std::chrono::milliseconds deadline) {
  assert(!on_guard);
  noted_faults().clear();
  allowed = Clock::duration(deadline).count();
  ends_at = (Clock::now() + deadline).time_since_epoch().count();
  on_guard = true;
  if (!kOwnSignals) return;
  // The unwinder takes memory when it is first used, which a handler must not.
  const void* callers[emulated::kMostCallers];
  volatile std::size_t count = 0;
  emulated::collect_callers(callers, count);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER;
  ::sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignalCount; ++i) ::sigaction(kSignals[i], &action, &before[i]);
}

FaultGuard::~FaultGuard() {
  if (kOwnSignals) restore_signals();
  on_guard = false;
}

bool FaultGuard::armed() {
  return on_guard.load(std::memory_order_relaxed);
}

bool FaultGuard::overdue() {
  return armed() && Clock::now().time_since_epoch().count() >= ends_at;
}

std::chrono::milliseconds FaultGuard::deadline() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::duration(allowed.load()));
}

void FaultGuard::note(MemoryFault fault) {
  const std::lock_guard lock(faults_mutex);
  const std::string kind = fault.kernel + '\n' + fault.check + (fault.other.empty() ? "" : "\n");
  const auto [kept, fresh] = noted_faults().try_emplace(kind, fault);
  if (!fresh && fault.block < kept->second.block) kept->second = std::move(fault);
}

std::vector<MemoryFault> FaultGuard::faults() {
  const std::lock_guard lock(faults_mutex);
  std::vector<MemoryFault> all;
  for (const auto& [kind, fault] : noted_faults()) all.push_back(fault);
  return all;
}

namespace emulated {

void interrupt(std::uintptr_t os_thread) {
  if (kOwnSignals) ::pthread_kill(static_cast<pthread_t>(os_thread), kInterrupt);
}

AlternateStack::AlternateStack() {
  if (!kOwnSignals || !FaultGuard::armed()) return;
  memory_ = std::make_unique<char[]>(kBytes);
  stack_t stack{};
  stack.ss_sp = memory_.get();
  stack.ss_size = kBytes;
  ::sigaltstack(&stack, nullptr);
}

AlternateStack::~AlternateStack() {
  if (!memory_) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  ::sigaltstack(&none, nullptr);
}

}  // namespace emulated
}  // namespace tilestep::simt

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// \file
/// While a kernel runs that a user wrote: what would end the process, or never end, ends the launch instead, with
/// a KernelFault that names kernel, block, thread and place.

namespace tilestep::simt {

/// What an edited kernel does to memory that it must not, whether its results show it or not: a race, a place outside an
/// array, a value that nobody wrote.
struct MemoryFault {
  const char* check = "";  ///< "shared_memory", "global_memory", "array_bounds"
  std::string kernel;
  std::uint64_t block = 0;  ///< linear
  /// "online_softmax: thread (1,0,0) of block (0,0,0)", "reads byte 4 of tile"
  std::string who, does;
  std::string other, did;  ///< of a race: "thread (0,0,0)", "has written"
  /// "no barrier is between the two"; without another thread the end of the sentence: ", which has 64 bytes".
  std::string why;
  std::vector<const void*> here, there;  ///< as FaultPlace::callers
};

/// For as long as it lives, launches of the emulation catch wild pointers, overflowing stacks, divisions by zero,
/// __builtin_trap and failed assertions in their threads, and end when `deadline` has passed. One at a time in
/// a process, made before the device and on one thread. A sanitizer keeps the signals to itself: then only the
/// deadline between two barriers is watched.
///
/// After a KernelFault that `ends_process` a device runs nothing more: every launch throws that again.
class FaultGuard {
 public:
  explicit FaultGuard(std::chrono::milliseconds deadline);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

  static bool armed();
  /// Whether the time of the guard that is armed is up.
  static bool overdue();
  /// How long it allows.
  static std::chrono::milliseconds deadline();

  /// Keeps one fault of a kind of each kernel, that of the lowest block.
  static void note(MemoryFault fault);
  /// Those noted since the guard was made, by kernel and check.
  static std::vector<MemoryFault> faults();
};

namespace emulated {

/// Makes an OS thread stop in the kernel that it runs, if it is in one, with the Fault of a deadline.
void interrupt(std::uintptr_t os_thread);

/// A stack for signal handlers, of the OS thread that makes it: a fiber's own may be what overflowed.
class AlternateStack {
 public:
  AlternateStack();
  ~AlternateStack();
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

 private:
  static constexpr std::size_t kBytes = 64 * 1024;
  std::unique_ptr<char[]> memory_;  ///< null where nobody is on guard
};

}  // namespace emulated
}  // namespace tilestep::simt

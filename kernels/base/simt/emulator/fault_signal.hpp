#pragma once

#include <signal.h>

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/base/simt/emulator/fault_place.hpp"

namespace tilestep::simt::emulated {

/// What a signal handler keeps of a thread that it stopped.
struct StoppedThread {
  int signal = 0;              ///< 0: none was
  bool time_is_up = false;     ///< it was stopped from outside
  bool has_address = false;    ///< of SIGSEGV and SIGBUS
  std::optional<bool> writes;  ///< or reads, where the processor says so
  bool outside_stack = false;  ///< its fiber's stack is full
  std::uintptr_t address = 0;
  volatile std::size_t count = 0;
  const void* callers[kMostCallers] = {};

  FaultPlace place() const;
  /// What is said of it after kernel, block and thread.
  std::string what() const;
};

/// What is known of an interrupted flow of control, from a handler's third argument.
struct Interrupted {
  explicit Interrupted(void* context) : context_(context) {}
  std::uintptr_t instruction() const;
  std::uintptr_t stack_pointer() const;
  std::optional<bool> writes() const;
  /// Lets it go on in `function(argument)`, on the stack that ends at `top`.
  void go_on_in(void (*function)(void*), void* argument, char* top);

 private:
  void* context_;
};

/// Fills `to`, in a handler.
void note_stopped(StoppedThread& to, int number, const siginfo_t& info,
                  const Interrupted& interrupted);

}  // namespace tilestep::simt::emulated

#include "app/cli/interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace tilestep::app {
namespace {

constexpr int kExitCode = 128 + SIGINT;
/// The emulator's threads ask, too.
std::atomic<bool> was_pressed = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");

extern "C" void take_interrupt(int) {
  if (was_pressed.exchange(true)) ::_exit(kExitCode);
}

}  // namespace

Interrupt::Interrupt() {
  struct sigaction ours {};
  ours.sa_handler = take_interrupt;
  ours.sa_flags = SA_RESTART;  // output under way is not to fail
  ::sigaction(SIGINT, &ours, &before_);
  // Where a script started us in the background, Ctrl-C is not meant for us.
  if (before_.sa_handler == SIG_IGN) ::sigaction(SIGINT, &before_, nullptr);
}

Interrupt::~Interrupt() {
  ::sigaction(SIGINT, &before_, nullptr);
}

bool Interrupt::pressed() {
  return was_pressed;
}

void Interrupt::end_program() {
  std::fflush(nullptr);
  ::signal(SIGINT, SIG_DFL);
  ::raise(SIGINT);
  ::_exit(kExitCode);
}

}  // namespace tilestep::app

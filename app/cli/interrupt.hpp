#pragma once

#include <signal.h>

namespace tilestep::app {

/// While it lives, the first Ctrl-C (SIGINT) is remembered instead of ending the program, so that
/// the run can stop where it leaves nothing behind; the second one ends the program at once.
/// One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// Ctrl-C was pressed during the life of this or of an earlier one.
  static bool pressed();
  /// Ends the program as Ctrl-C does (to a shell: 130), so that a script's loop ends with it.
  [[noreturn]] static void end_program();

 private:
  struct sigaction before_ {};
};

}  // namespace tilestep::app

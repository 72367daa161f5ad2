#pragma once

#include <optional>
#include <string>

#include "app/shell/shell.hpp"

namespace tilestep::app {

/// Watches over a window that `tilestep bench ui` has started: how soon its first picture is there, what the
/// program takes of memory, and whether it draws with nothing to do. It steps through the lesson and brings
/// everything to the front once, then rests, then closes the window. What it saw it prints, a line of
/// JSON when the first picture is there and one at the end.
class Watch {
 public:
  /// Nothing, but where the environment has TILESTEP_WATCH=1.
  static std::optional<Watch> asked_for();

  /// A frame is on screen.
  void shown(const Shell& shell, double now_s);
  enum class Did { nothing, pressed, ended };
  /// Presses the key that is due; at the end the window may close.
  Did go_on(Shell& shell, double now_s);
  /// Seconds until `go_on` has something to do.
  double due_in_s(double now_s) const;

 private:
  enum class Part { opening, stepping, visiting, calming, resting };

  void start(Part part, double now_s, double seconds);
  Did step(Shell& shell, double now_s);
  Did visit(Shell& shell, double now_s);

  Part part_ = Part::opening;
  double due_s_ = 0;
  int frames_ = 0;             ///< in all
  int frames_before_ = 0;      ///< the rest
  int step_ = -1, tries_ = 0;  ///< where the lesson stood, and for how many keys
  std::size_t visited_ = 0;
};

/// The memory use of this process.
double resident_mb();
/// Milliseconds of a clock that all processes of this machine share.
double shared_clock_ms();

}  // namespace tilestep::app

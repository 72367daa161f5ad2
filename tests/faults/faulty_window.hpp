#pragma once

#include <memory>

#include "tests/app/display_window.hpp"

namespace tilestep::tests {

/// A real window whose worker, or the way to one, can be made to fail and be mended again while it is open.
class FaultyWindow {
 public:
  explicit FaultyWindow(const Display& display);

  Window& operator*() { return *window_; }
  Window* operator->() { return window_.get(); }
  /// The worker's process; 0 if there is none.
  pid_t worker() const;
  int descriptors() const;
  /// Its HOME.
  std::filesystem::path home() const { return file("home"); }

  /// The worker is gone; in its place comes a shell that reads the first request and does this.
  void put_in_place(const std::string& script);
  /// The worker is gone, and the next one cannot be started: `what` is spawn, exec, pipe (the first)
  /// or pipe_2 (the second of it), memory (none is left for the thread that asks the worker).
  void cannot_start(const std::string& what);
  /// From now on workers are good ones again.
  void mend();
  /// While it holds, every deadline has passed.
  void hurry(bool on);

  /// A run for the other values of the scores, chosen with the pointer.
  void choose_other();
  /// The window's Run again, for the same knobs, and R, for the defaults.
  void run_again();
  void reset();
  /// Home and three steps with keys, each until it is on screen. False: the window did not follow.
  bool walks();
  /// What the picture and the panels say at the last step: the id and value of everything on screen that comes
  /// from a run. Null until there is a run and nothing more to come.
  nlohmann::json on_show();

  /// From now on, the longest time between two looks for events, in which the window drew and was deaf.
  void forget_gap();
  double longest_gap_ms() const;

 private:
  void lose_worker();
  /// Presses it until `there` answers true: under a loaded machine a key may go by.
  template <class There>
  bool press_until(const char* key, There there);

  std::filesystem::path file(const char* name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
  std::unique_ptr<Window> window_;
};

}  // namespace tilestep::tests

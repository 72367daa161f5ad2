#pragma once

namespace tilestep::app {

struct ShellState;

/// The tour of the window itself: a minute, one thing after another.
class Coach {
 public:
  void begin() { stop_ = 0; }
  void end() { stop_ = -1; }
  void go_on() { ++stop_; }
  bool is_on() const { return stop_ >= 0; }
  void draw(ShellState& state);

 private:
  int stop_ = -1;
};

}  // namespace tilestep::app

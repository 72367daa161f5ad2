#pragma once

#include <imgui.h>

#include "app/shell/shell.hpp"
#include "kernels/base/lab/knob.hpp"
#include "scenes/shared/scene.hpp"

namespace tilestep::app {

struct ShellState;

/// The tour of the window itself: cards that name a thing to do, each of which goes once it is done.
class Coach {
 public:
  void begin() { go_to(0); }
  void end() { go_to(-1); }
  /// The card on show is not done.
  void skip() { go_to(stop_ + 1); }
  bool is_on() const { return stop_ >= 0; }
  void draw(ShellState& state);

  /// The window as a card found it.
  struct Found {
    scenes::Cursor cursor;
    lab::Settings settings;
    Tab tab{};
    bool overlay = false, reader = false;
    ImVec2 pointer;
  };

 private:
  void go_to(int stop) {
    stop_ = stop;
    looks_ = true;
  }

  int stop_ = -1;
  bool looks_ = true;  ///< the card has yet to find the window
  Found found_;
};

}  // namespace tilestep::app

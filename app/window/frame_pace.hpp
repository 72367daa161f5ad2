#pragma once

#include <optional>

namespace tilestep::app {

/// Things that move on screen without user input.
struct Motion {
  bool animating = false;
  bool typing = false;  ///< a text cursor blinks
  bool working =
      false;            ///< the lab runs or measures, on the processor and GPU that frames take too
  bool timing = false;  ///< this machine's GPU is timed: a frame on it would be in the times
};

/// Decides when the window draws its next frame. Times are seconds of any steady clock.
class FramePace {
 public:
  /// A key, the mouse, the window itself: answered at once, always.
  void input();
  /// Something on screen changed by itself: drawn at once, but while the lab works only a few times
  /// a second, and while it times not at all.
  void news();
  /// Seconds until the next frame is due, 0 for now; nothing if none is until something happens.
  std::optional<double> next_in_s(double now_s, const Motion& motion) const;
  /// A frame was begun at `now_s`.
  void drawn(double now_s);

 private:
  // ImGui needs a few frames to answer: the press, the change, the new layout.
  static constexpr int kFramesAnEvent = 3;

  int input_frames_ = kFramesAnEvent;
  int news_frames_ = 0;
  double drawn_s_ = -1e9;
};

}  // namespace tilestep::app

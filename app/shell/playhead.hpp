#pragma once

namespace tilestep::app {

/// Where on the line of a trace's places the window is: a real number that moves evenly towards its
/// goal, or jumps there. At rest it is a whole number.
class Playhead {
 public:
  /// Is there at once; `position` may lie between two places, as under a hand on the scrubber.
  void cut(double position);
  /// Goes there in `seconds`.
  void aim(int goal, double seconds);
  void finish() { position_ = goal_; }
  /// While moving, it is at the last place it has passed.
  void stand(int place) { position_ = place; }
  void advance(double seconds);

  /// False while it is on its way.
  bool rests() const { return position_ == goal_; }
  bool goes_on() const { return goal_ > position_; }
  double position() const { return position_; }
  double goal() const { return goal_; }
  /// The last place that was reached.
  int place() const;
  /// How far it is from there to the next one: 0 … 1.
  double fraction() const { return position_ - place(); }

 private:
  double position_ = 0, goal_ = 0, speed_ = 1;  ///< places, places a second
};

}  // namespace tilestep::app

#include "app/shell/playhead.hpp"

#include <algorithm>
#include <cmath>

namespace tilestep::app {

void Playhead::cut(double position) {
  position_ = goal_ = position;
}

void Playhead::aim(int goal, double seconds) {
  goal_ = goal;
  speed_ = std::abs(goal_ - position_) / std::max(seconds, 1e-3);
}

void Playhead::advance(double seconds) {
  const double way = goal_ - position_, most = speed_ * std::max(seconds, 0.0);
  position_ = std::abs(way) <= most ? goal_ : position_ + std::copysign(most, way);
}

int Playhead::place() const {
  return static_cast<int>(std::floor(position_));
}

}  // namespace tilestep::app

#include "app/window/frame_pace.hpp"

#include <algorithm>

namespace tilestep::app {
namespace {

constexpr double kSmooth_s = 1.0 / 60;
constexpr double kWorking_s = 0.25;
constexpr double kBlink_s = 0.4;

}  // namespace

void FramePace::input() {
  input_frames_ = kFramesAnEvent;
}

void FramePace::news() {
  news_frames_ = kFramesAnEvent;
}

std::optional<double> FramePace::next_in_s(double now_s, const Motion& motion) const {
  if (input_frames_ > 0) return 0;
  if (motion.timing) return std::nullopt;
  if (news_frames_ == 0 && !motion.animating && !motion.typing) return std::nullopt;
  double interval_s = motion.animating ? kSmooth_s : kBlink_s;
  if (news_frames_ > 0) interval_s = 0;
  if (motion.working) interval_s = std::max(interval_s, kWorking_s);
  return std::max(0.0, drawn_s_ + interval_s - now_s);
}

void FramePace::drawn(double now_s) {
  if (input_frames_ > 0) --input_frames_;
  if (news_frames_ > 0) --news_frames_;
  drawn_s_ = now_s;
}

}  // namespace tilestep::app

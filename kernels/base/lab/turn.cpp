#include "kernels/base/lab/turn.hpp"

#include <fmt/format.h>

#include <chrono>

#include "kernels/base/lab/lesson.hpp"

namespace tilestep::lab {
namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Turn::Turn(simt::Device& device, Progress& progress) : device_(device) {
  if (device.info().uuid.empty()) return;
  device_.before_timing([this, &progress] { take(progress); });
}

Turn::~Turn() {
  device_.before_timing({});
}

void Turn::take(Progress& progress) {
  if (times_) return;
  TurnTimes times{now_ms(), 0, 0, ""};
  try {
    line_ = std::make_unique<GpuLine>(device_.info().uuid);
  } catch (const Error& error) {
    times.refused = error.what();  // without a queue the run is timed all the same, and says so
  }
  if (line_) {
    int told = 0;
    line_->take([&](int before) {
      progress.check();
      if (before != told) progress.wait(place_in_line(before) + " for the GPU");
      told = before;
    });
  }
  times.from_ms = now_ms();
  times_ = times;
}

std::optional<TurnTimes> Turn::times() const {
  std::optional<TurnTimes> times = times_;
  if (times) times->to_ms = now_ms();
  return times;
}

}  // namespace tilestep::lab

#include "app/window/watch.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string_view>

namespace tilestep::app {
namespace {

constexpr double kKey_s = 0.1;      ///< between two keys: some frames of what they begin
constexpr double kCalm_s = 1;       ///< until what the last key began has ended
constexpr double kRest_s = 2;       ///< with nothing to do
constexpr int kKeysAStep = 6;       ///< a step has been left by then, if there is another one
constexpr double kPatience_s = 60;  ///< with a first picture that does not come

/// All that can be brought to the front, there and back.
constexpr Key kVisits[] = {Key::m,        Key::k,        Key::g,      Key::l, Key::bracket_right,
                           Key::l,        Key::p,        Key::d,      Key::d, Key::p,
                           Key::d,        Key::find,     Key::escape, Key::t, Key::t,
                           Key::question, Key::question, Key::home};

void print_line(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

double resident_mb() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

double shared_clock_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

std::optional<Watch> Watch::asked_for() {
  const char* asked = std::getenv("TILESTEP_WATCH");
  if (asked == nullptr || std::string_view(asked) != "1") return std::nullopt;
  return Watch();
}

void Watch::start(Part part, double now_s, double seconds) {
  part_ = part;
  due_s_ = now_s + seconds;
}

void Watch::shown(const Shell& shell, double now_s) {
  ++frames_;
  if (part_ != Part::opening || !shell.has_report()) return;
  print_line(fmt::format(R"({{"first_picture_at_ms": {:.3f}, "resident_mb": {:.1f}}})",
                         shared_clock_ms(), resident_mb()));
  start(Part::stepping, now_s, kKey_s);
}

double Watch::due_in_s(double now_s) const {
  if (part_ == Part::opening) return kPatience_s;
  return std::max(0.0, due_s_ - now_s);
}

/// → begins a step and, pressed again, ends it.
Watch::Did Watch::step(Shell& shell, double now_s) {
  tries_ = shell.step() == step_ ? tries_ + 1 : 0;
  step_ = shell.step();
  due_s_ = now_s + kKey_s;
  if (tries_ > kKeysAStep) {
    part_ = Part::visiting;
    return Did::nothing;
  }
  shell.key(Key::right, false);
  return Did::pressed;
}

Watch::Did Watch::visit(Shell& shell, double now_s) {
  if (visited_ == std::size(kVisits)) {
    start(Part::calming, now_s, kCalm_s);
    return Did::nothing;
  }
  shell.key(kVisits[visited_++], false);
  due_s_ = now_s + kKey_s;
  return Did::pressed;
}

Watch::Did Watch::go_on(Shell& shell, double now_s) {
  if (part_ == Part::opening) return now_s < kPatience_s ? Did::nothing : Did::ended;
  if (now_s < due_s_) return Did::nothing;
  switch (part_) {
    case Part::opening:
      break;
    case Part::stepping:
      return step(shell, now_s);
    case Part::visiting:
      return visit(shell, now_s);
    case Part::calming:
      frames_before_ = frames_;
      start(Part::resting, now_s, kRest_s);
      break;
    case Part::resting:
      print_line(fmt::format(
          R"({{"idle_frames": {}, "idle_s": {}, "frames": {}, "steps": {}, "resident_mb": {:.1f}}})",
          frames_ - frames_before_, kRest_s, frames_, step_, resident_mb()));
      return Did::ended;
  }
  return Did::nothing;
}

}  // namespace tilestep::app

#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tilestep::lab {

/// A queue of processes, of any user on one machine, that want to time on one GPU. A process keeps its
/// place ahead of all later ones, and leaves when the object or the process ends, however that ends.
///
/// The queue is one file with locked bytes (`F_OFD_SETLK`): byte 0 while a process takes a place, byte n
/// for place n. A new place comes after the last one held, and a process has its turn when no earlier
/// place is held. The kernel releases the locks of a process that dies, and nothing is written, so
/// there is nothing to clean up or corrupt. The locks are advisory: a process that does not ask is not
/// stopped. Containers with separate folders have separate queues.
class GpuLine {
 public:
  /// `gpu`: its UUID. Throws Error (unavailable) if no queue can be made.
  explicit GpuLine(std::string_view gpu);
  ~GpuLine();
  GpuLine(const GpuLine&) = delete;
  GpuLine& operator=(const GpuLine&) = delete;

  /// Waits for its turn. Calls `waits(n)` now and then, with n processes ahead; it may throw to give up.
  void take(const std::function<void(int before)>& waits);
  bool is_ours() const { return place_ > 0 && first_; }

 private:
  void take_place();
  int before() const;

  int fd_ = -1;
  long place_ = 0;  ///< 0: none
  bool first_ = false;
};

/// The file of a GPU's line: `tilestep-<gpu>.line` in /tmp, or in the folder that TILESTEP_LINES names.
std::string line_file(std::string_view gpu);

/// "first in line", "second in line" … for a process with `before` others ahead.
std::string place_in_line(int before);

}  // namespace tilestep::lab

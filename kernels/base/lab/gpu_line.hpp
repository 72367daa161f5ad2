#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tilestep::lab {

/// A line of those who want to time on one GPU: processes of any user on one machine. Whoever is in it
/// is before all who come later, and leaves it when the object or its process ends, however that ends.
///
/// It is one file whose bytes are locked (`F_OFD_SETLK`): byte 0 for as long as somebody takes a place,
/// byte n is place n. A place is taken behind the last one that is held, and it is one's turn when none
/// before is held. The kernel gives up the locks of a process that dies, and nothing is written, so
/// there is nothing to clean up and nothing to be damaged. The locks are advisory: who does not ask is
/// not stopped. Containers with folders of their own have lines of their own.
class GpuLine {
 public:
  /// `gpu`: what tells it from others, its UUID. Throws Error (unavailable) if there can be no line.
  explicit GpuLine(std::string_view gpu);
  ~GpuLine();
  GpuLine(const GpuLine&) = delete;
  GpuLine& operator=(const GpuLine&) = delete;

  /// Waits for its turn. `waits(n)` is told now and then that n are before; it may throw to give up.
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

/// "first in line", "second in line" … for who has `before` before him and waits.
std::string place_in_line(int before);

}  // namespace tilestep::lab

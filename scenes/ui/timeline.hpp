#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenes/picture/timeline.hpp"
#include "scenes/ui/ui.hpp"

namespace tilestep::ui {

/// The window of a timeline, and the span that is pinned. The caller keeps it.
struct TimelineView {
  double from_us = 0, to_us = 1;
  int lane = -1, span = -1;  ///< that is pinned; −1: none

  /// Zooms about a time by a factor: 0.5 shows half as much.
  void zoom(double about_us, double factor, std::pair<double, double> range_us);
  /// Moves by a share of the window, to the right if positive.
  void pan(double share, std::pair<double, double> range_us);
  /// Shows a stretch with some room on both sides.
  void show(double from_us, double to_us, std::pair<double, double> range_us);
};

struct TimelineLook {
  /// Stretches shaded behind the lanes, which something beside the timeline is about.
  std::vector<std::pair<double, double>> shaded = {};
  /// A stretch of a lane, by number, that has an outline: the call that launched the pinned kernel.
  std::optional<std::pair<int, int>> linked = {};
  int lit_name = -1;  ///< spans of this name are lit; the pinned one's, if there is one
};

struct TimelineEvents {
  int lane = -1, span = -1;  ///< under the pointer; −1: none
  bool pinned = false;       ///< another span was pinned, or none is any more
};

/// Draws the timeline as one item of `size`, with a control `id` that ← and → move while it has the focus. The wheel
/// zooms about the pointer, dragging pans, a click pins a span. A lane's busy share is the height of what is too
/// narrow to be seen by itself.
TimelineEvents timeline(std::string_view id, const picture::Timeline& timeline, TimelineView& view,
                        ImVec2 size, const TimelineLook& look = {});

/// A time with the unit that fits: "12.3 ms".
std::string time_text(double us);

}  // namespace tilestep::ui

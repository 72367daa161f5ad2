#pragma once

#include <imgui.h>

namespace tilestep::app {

struct Rect {
  ImVec2 min, max;
  float width() const { return max.x - min.x; }
  float height() const { return max.y - min.y; }
  ImVec2 size() const { return {width(), height()}; }
};

enum class RailKind { full, narrow, none };

/// Where the parts of the window are, in real pixels.
struct Layout {
  RailKind rail_kind = RailKind::full;
  bool stacked = false;   ///< too little room for columns: one column that scrolls
  bool two_rows = false;  ///< the transport bar takes two rows
  bool dense = false;     ///< numbers in the side panel take one line each
  Rect rail;
  Rect header;
  Rect content;  ///< what scrolls when stacked; holds the four below
  Rect picture;
  Rect transport;
  Rect side;
  Rect tabs;
};

/// `size` of the window in real pixels, `scale` of the design (display, text size, presenter mode),
/// `plots`: the tab in front holds plots, which get more height.
Layout make_layout(ImVec2 size, float scale, bool presenter, bool plots);

}  // namespace tilestep::app

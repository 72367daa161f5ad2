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

/// How the window is used.
struct LayoutMode {
  bool presenter = false;
  bool reader = false;  ///< the lesson's text is beside the picture
  bool plots = false;   ///< the tab in front holds plots, which get more height
  float card = 0;      ///< the height of a question or a stop that is on show, real pixels; 0: none
  bool edits = false;  ///< the tab in front holds an editor, which gets more still
  bool assembly = false;  ///< and has assembly beside the source
  bool tells = false;     ///< the card shows a stop's text, which is shorter
};

/// Where the parts of the window are, in real pixels. At a desk: picture, transport, a side panel and
/// tabs. On a stage (presenter mode) and beside the reader the picture has the room: numbers and the
/// most wanted knobs stand on a bar, tabs lie over the picture while they are wanted.
struct Layout {
  RailKind rail_kind = RailKind::full;
  bool staged = false;
  bool stacked = false;   ///< too little room for columns: one column that scrolls
  bool two_rows = false;  ///< the transport bar takes two rows
  bool dense = false;     ///< numbers in the side panel take one line each
  Rect rail;
  Rect header;
  Rect content;  ///< the part that scrolls when stacked; holds the others below
  Rect picture;
  Rect card;  ///< staged: the question or the stop, below the picture
  Rect transport;
  Rect side;    ///< at a desk
  Rect tabs;    ///< at a desk; staged: what lies over the picture
  Rect bar;     ///< staged; empty where its numbers are in the transport, to make room
  Rect reader;  ///< with a reader
};

/// By how much the design may be enlarged in a window of `size` so that a picture still has room.
float most_scale(ImVec2 size, float display_scale);

/// `size` of the window in real pixels, `scale` of the design (display, text size, presenter mode).
Layout make_layout(ImVec2 size, float scale, const LayoutMode& mode);

}  // namespace tilestep::app

#include "app/shell/layout.hpp"

#include <algorithm>
#include <cmath>

namespace tilestep::app {
namespace {

/// The sizes of the parts in design pixels.
struct Plan {
  float rail, margin, gap, header, side, tabs, transport, bar, card, reader;
  bool bars;  ///< there is a bar
};

Plan plan_for(float width, float height, const LayoutMode& mode, bool two_rows, float scale) {
  const bool wide = width >= 1240;
  Plan plan{};
  plan.rail = mode.presenter ? 0 : wide && !mode.reader ? 216 : 56;
  plan.margin = mode.presenter ? 4 : wide ? 16 : 8;
  plan.gap = mode.presenter ? 4 : 8;
  plan.header = mode.presenter ? 36 : height >= 760 ? 80 : 68;
  plan.side = wide ? std::clamp(width * 0.222f, 320.0f, 400.0f) : 264;
  plan.tabs = std::clamp(height * (mode.plots && height >= 760 ? 0.36f : 0.28f), 188.0f, 520.0f);
  // Below some height the picture's boxes would become too small to read.
  if (mode.edits) plan.tabs = std::clamp(height * (height < 620 ? 0.35f : 0.4f), 188.0f, 640.0f);
  plan.transport = two_rows ? 96 : mode.presenter ? 44 : 56;
  plan.bar = mode.presenter ? 40 : 48;
  // Of a question the rest scrolls: below this height the boxes of a picture become slivers.
  const bool asks = mode.card > 0 && !mode.tells;
  constexpr float kLeastPicture = 264, kLeastAsked = 236;
  const float least_card = mode.tells ? 48 : 84, card = mode.card / scale + 24;
  const float fixed = plan.header + plan.margin + plan.transport + 2 * plan.gap;
  // While it is asked, and over recorded plots, the knobs bear on nothing, and the numbers have room beside the steps.
  const bool low = height - fixed - plan.bar - plan.gap < card + kLeastPicture;
  constexpr float kLowForPlots = 600;
  plan.bars = !(mode.presenter && (mode.plots ? height < kLowForPlots : asks && low));
  const float room = height - fixed - (plan.bars ? plan.bar + plan.gap : 0);
  const float most =
      std::max(84.0f, std::min(height * 0.34f, room - (asks ? kLeastAsked : kLeastPicture)));
  plan.card = std::clamp(card, least_card, most);
  plan.reader = std::clamp(width * 0.38f, 340.0f, 580.0f);
  return plan;
}

Rect rect(float x0, float y0, float x1, float y1) {
  return {{std::round(x0), std::round(y0)}, {std::round(x1), std::round(y1)}};
}

/// One part above the other; `height` is that of the visible column.
void stack(Layout& layout, const Plan& plan, float scale, const LayoutMode& mode) {
  const float gap = plan.gap * scale;
  const float right = layout.content.max.x - 16 * scale;  // room for the scrollbar
  // What is asked stays in sight under the picture, else the transport does; where that leaves no picture, it
  // comes first.
  const bool asks = layout.staged && mode.card > 0;
  const float room = layout.content.height() - gap;
  const float card = std::clamp(mode.card + 24 * scale, 80 * scale, room);
  const float above = room - (asks ? card : plan.transport * scale);
  const float least = 260 * scale, most = std::max(420 * scale, right - layout.content.min.x);
  float y = layout.content.min.y;
  const auto next = [&](float height) {
    const Rect part = rect(layout.content.min.x, y, right, y + height);
    y += height + gap;
    return part;
  };
  if (asks && above < least) layout.card = next(card);
  layout.picture = next(std::clamp(above, least, most));
  if (asks && above >= least) layout.card = next(card);
  layout.transport = next(plan.transport * scale);
  if (layout.staged) {
    layout.bar = next(plan.bar * scale);
    layout.tabs = layout.content;
  }
  if (mode.reader) layout.reader = next(std::max(360 * scale, layout.content.height()));
  if (layout.staged) return;
  layout.side = next(400 * scale);
  layout.tabs = next((mode.edits ? 480 : 340) * scale);
}

/// At a desk.
void columns(Layout& layout, const Plan& plan, float scale) {
  const Rect& all = layout.content;
  const float gap = plan.gap * scale;
  const float tabs_top = all.max.y - plan.tabs * scale;
  const float side_left = all.max.x - plan.side * scale;
  const float transport_top = tabs_top - gap - plan.transport * scale;
  layout.picture = rect(all.min.x, all.min.y, side_left - gap, transport_top - gap);
  layout.transport = rect(all.min.x, transport_top, side_left - gap, tabs_top - gap);
  layout.side = rect(side_left, all.min.y, all.max.x, tabs_top - gap);
  layout.tabs = rect(all.min.x, tabs_top, all.max.x, all.max.y);
}

/// Picture, what is asked, numbers with knobs, transport; the text at the right.
void stage(Layout& layout, const Plan& plan, float scale, const LayoutMode& mode) {
  const Rect& all = layout.content;
  const float gap = plan.gap * scale;
  float right = all.max.x;
  if (mode.reader) {
    layout.reader = rect(right - plan.reader * scale, all.min.y, right, all.max.y);
    right = layout.reader.min.x - gap;
  }
  float bottom = all.max.y;
  const auto from_below = [&](float height) {
    const Rect part = rect(all.min.x, bottom - height * scale, right, bottom);
    bottom = part.min.y - gap;
    return part;
  };
  layout.transport = from_below(plan.transport);
  if (plan.bars) layout.bar = from_below(plan.bar);
  if (mode.card > 0) layout.card = from_below(plan.card);
  layout.picture = rect(all.min.x, all.min.y, right, bottom);
  // Two texts side by side need the lines; what is left of the picture would be a strip.
  constexpr float kLow = 560;
  const bool all_of_it = mode.plots || (mode.assembly && all.height() < kLow * scale);
  const float share = all_of_it ? 0 : mode.edits ? 0.25f : 0.4f;
  layout.tabs =
      rect(all.min.x, all.min.y + share * layout.picture.height(), right, layout.picture.max.y);
}

}  // namespace

float most_scale(ImVec2 size, float display_scale) {
  constexpr float kLeastWidth = 512, kLeastHeight = 320;
  return std::min(size.x / kLeastWidth, size.y / kLeastHeight) / display_scale;
}

Layout make_layout(ImVec2 size, float scale, const LayoutMode& mode) {
  const float width = size.x / scale, height = size.y / scale;
  Layout layout;
  layout.staged = mode.presenter || mode.reader;
  // Below this the parts beside the picture leave it less than its boxes need.
  const float least_width = mode.presenter && !mode.reader ? 560 : mode.reader ? 900 : 800;
  const float least_height = mode.presenter ? 420 : mode.reader ? 520 : 560;
  layout.stacked = width < least_width || height < least_height;
  const float across = layout.stacked || !mode.reader ? width : width * 0.62f;
  layout.two_rows = (layout.stacked && width < 640) || across < 680;
  layout.dense = !layout.stacked && !layout.staged && height < 760;
  layout.rail_kind = mode.presenter                  ? RailKind::none
                     : width >= 1240 && !mode.reader ? RailKind::full
                                                     : RailKind::narrow;
  const Plan plan = plan_for(width, height, mode, layout.two_rows, scale);
  const float rail = plan.rail * scale, margin = plan.margin * scale;
  layout.rail = rect(0, 0, rail, size.y);
  layout.header = rect(rail + margin, 0, size.x - margin, plan.header * scale);
  layout.content = rect(rail + margin, plan.header * scale, size.x - margin, size.y - margin);
  if (layout.stacked) {
    stack(layout, plan, scale, mode);
  } else if (layout.staged) {
    stage(layout, plan, scale, mode);
  } else {
    columns(layout, plan, scale);
  }
  return layout;
}

}  // namespace tilestep::app

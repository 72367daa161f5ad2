#include "app/shell/layout.hpp"

#include <algorithm>
#include <cmath>

namespace tilestep::app {
namespace {

/// The sizes of the parts in design pixels.
struct Plan {
  float rail, margin, gap, header, side, tabs, transport;
};

Plan plan_for(float width, float height, bool presenter, bool two_rows, bool plots) {
  const bool wide = width >= 1240;
  Plan plan{};
  plan.rail = presenter ? 0 : wide ? 216 : 56;
  plan.margin = wide ? 16 : 8;
  plan.gap = 8;
  plan.header = height >= 760 ? 80 : 68;
  plan.side = wide ? std::clamp(width * 0.222f, 320.0f, 400.0f) : 264;
  // In presenter mode the picture gets the room; plots want more of it than a table's few rows.
  const float share = plots && height >= 760 ? 0.36f : 0.28f;
  const float staged = plots && height >= 660 ? 0.4f : 0.24f;
  plan.tabs = presenter ? std::clamp(height * staged, 164.0f, 400.0f)
                        : std::clamp(height * share, 188.0f, 520.0f);
  plan.transport = two_rows ? 96 : 56;
  return plan;
}

Rect rect(float x0, float y0, float x1, float y1) {
  return {{std::round(x0), std::round(y0)}, {std::round(x1), std::round(y1)}};
}

/// One part above the other; `height` is that of the visible column.
void stack(Layout& layout, const Plan& plan, float scale) {
  const float gap = plan.gap * scale;
  const float right = layout.content.max.x - 16 * scale;  // room for the scrollbar
  // The transport stays in sight under the picture, unless that leaves no picture.
  const float above = layout.content.height() - plan.transport * scale - gap;
  const float most = std::max(420 * scale, right - layout.content.min.x);
  const float picture = std::clamp(above, 260 * scale, most);
  float y = layout.content.min.y;
  const auto next = [&](float height) {
    const Rect part = rect(layout.content.min.x, y, right, y + height);
    y += height + gap;
    return part;
  };
  layout.picture = next(picture);
  layout.transport = next(plan.transport * scale);
  layout.side = next(400 * scale);
  layout.tabs = next(340 * scale);
}

void columns(Layout& layout, const Plan& plan, float scale, bool presenter) {
  const Rect& all = layout.content;
  const float gap = plan.gap * scale;
  const float tabs_top = all.max.y - plan.tabs * scale;
  const float side_left = all.max.x - plan.side * scale;
  const float transport_top = tabs_top - gap - plan.transport * scale;
  layout.picture = rect(all.min.x, all.min.y, side_left - gap, transport_top - gap);
  layout.transport = rect(all.min.x, transport_top, side_left - gap, tabs_top - gap);
  // In presenter mode the numbers and the question need the whole height.
  layout.side = rect(side_left, all.min.y, all.max.x, presenter ? all.max.y : tabs_top - gap);
  layout.tabs = rect(all.min.x, tabs_top, presenter ? side_left - gap : all.max.x, all.max.y);
}

}  // namespace

Layout make_layout(ImVec2 size, float scale, bool presenter, bool plots) {
  const float width = size.x / scale, height = size.y / scale;
  Layout layout;
  // Below this the transport and the tabs leave the picture less than its boxes need.
  layout.stacked = width < 800 || height < (presenter ? 500 : 560);
  layout.two_rows = layout.stacked && width < 640;
  layout.dense = !layout.stacked && !presenter && height < 760;
  layout.rail_kind = presenter ? RailKind::none : width >= 1240 ? RailKind::full : RailKind::narrow;
  const Plan plan = plan_for(width, height, presenter, layout.two_rows, plots);
  const float rail = plan.rail * scale, margin = plan.margin * scale;
  layout.rail = rect(0, 0, rail, size.y);
  layout.header = rect(rail + margin, 0, size.x - margin, plan.header * scale);
  layout.content = rect(rail + margin, plan.header * scale, size.x - margin, size.y - margin);
  if (layout.stacked) {
    stack(layout, plan, scale);
  } else {
    columns(layout, plan, scale, presenter);
  }
  return layout;
}

}  // namespace tilestep::app

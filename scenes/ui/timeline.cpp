#include "scenes/ui/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/ui/axis.hpp"
#include "scenes/ui/context.hpp"
#include "scenes/ui/focus.hpp"

namespace tilestep::ui {
namespace {

using picture::TimelineLane;
using picture::TimelineRun;
using picture::TimelineSpan;

constexpr double kLeastWindow_us = 0.05;
constexpr float kDrags = 4;  ///< design pixels: less is a click

Role tone_role(std::uint8_t tone) {
  return tone == 0 || tone > picture::kToneCount
             ? Role::muted
             : static_cast<Role>(static_cast<int>(Role::blue) + tone - 1);
}

void keep_within(TimelineView& view, std::pair<double, double> range_us) {
  const double all = std::max(range_us.second - range_us.first, kLeastWindow_us);
  const double most = all * 1.04;  // some room at the ends
  double width = std::clamp(view.to_us - view.from_us, kLeastWindow_us, most);
  if (!std::isfinite(width)) width = most;
  const double low = range_us.first - 0.02 * all, high = range_us.second + 0.02 * all;
  view.from_us = std::clamp(std::isfinite(view.from_us) ? view.from_us : low, low,
                            std::max(low, high - width));
  view.to_us = view.from_us + width;
}

class TimelineDrawing {
 public:
  TimelineDrawing(const picture::Timeline& timeline, TimelineView& view, const TimelineLook& look,
                  ImVec2 at, ImVec2 size)
      : timeline_(timeline),
        view_(view),
        look_(look),
        min_(at),
        max_(at.x + size.x, at.y + size.y) {
    note_ = line_height(Font::note);
    float names = px(40);
    for (const TimelineLane& lane : timeline.lanes)
      names = std::max(names, text_size(lane.name(), Font::note).x);
    left_ = min_.x + std::min(names + px(12), size.x * 0.22f);
    top_ = min_.y + note_ + px(6);
    const auto count = static_cast<float>(std::max<std::size_t>(timeline.lanes.size(), 1));
    pitch_ = std::clamp((max_.y - top_) / count, px(14), px(72));
    bottom_ = std::min(max_.y, top_ + pitch_ * count);
  }

  bool inside(ImVec2 place) const {
    return place.x >= left_ && place.x < max_.x && place.y >= top_ && place.y < bottom_;
  }
  double us_at(float x) const {
    return view_.from_us +
           (view_.to_us - view_.from_us) * static_cast<double>((x - left_) / (max_.x - left_));
  }
  double us_of(float pixels) const { return us_at(left_ + pixels) - view_.from_us; }
  int lane_at(float y) const {
    const int lane = static_cast<int>((y - top_) / pitch_);
    return lane >= 0 && lane < static_cast<int>(timeline_.lanes.size()) ? lane : -1;
  }
  float width() const { return max_.x - left_; }

  void draw(int hovered_lane, int hovered_span) {
    list().PushClipRect(min_, max_, true);
    draw_axis();
    for (const auto& [from, to] : look_.shaded) {
      const float x = place(from), end = std::max(place(to), x + px(2));
      list().AddRectFilled({x, top_}, {end, bottom_}, color(Role::accent, 0.14f));
      list().AddLine({x, top_}, {x, bottom_}, color(Role::accent, 0.6f));
      list().AddLine({end, top_}, {end, bottom_}, color(Role::accent, 0.6f));
    }
    for (std::size_t i = 0; i < timeline_.lanes.size(); ++i) draw_lane(static_cast<int>(i));
    outline(hovered_lane, hovered_span, Role::text, 1.5f);
    if (look_.linked) outline(look_.linked->first, look_.linked->second, Role::accent, 2);
    outline(view_.lane, view_.span, Role::accent, 2);
    draw_link();
    list().PopClipRect();
  }

  /// The rectangle of a span, as far as it is in sight.
  std::pair<ImVec2, ImVec2> area(int lane, const TimelineSpan& span) const {
    const float y = top_ + pitch_ * static_cast<float>(lane), gap = std::min(px(3), pitch_ * 0.15f);
    const float x = place(span.begin_us);
    return {{x, y + gap}, {std::max(place(span.end_us), x + px(1.5f)), y + pitch_ - gap}};
  }
  const TimelineSpan* span(int lane, int index) const {
    if (lane < 0 || lane >= static_cast<int>(timeline_.lanes.size())) return nullptr;
    const auto& spans = timeline_.lanes[static_cast<std::size_t>(lane)].spans();
    return index < 0 || index >= static_cast<int>(spans.size())
               ? nullptr
               : &spans[static_cast<std::size_t>(index)];
  }

 private:
  float place(double us) const {
    const double share = (us - view_.from_us) / (view_.to_us - view_.from_us);
    return left_ + width() * static_cast<float>(std::clamp(share, -0.01, 1.01));
  }

  void draw_axis() {
    const Axis axis{view_.from_us, view_.to_us, false};
    for (const double tick : axis.ticks(std::max(2, static_cast<int>(width() / px(110))))) {
      const float x = std::round(place(tick));
      list().AddLine({x, top_}, {x, bottom_}, color(Role::grid));
      const std::string said = tick_of(tick);
      const float half = text_size(said, Font::note).x / 2;
      if (x - half >= left_ && x + half <= max_.x)
        draw_text({x, min_.y}, said, Font::note, Role::muted, Align::center);
    }
  }

  /// With as many digits as tell two ticks apart.
  std::string tick_of(double us) const {
    const double window = view_.to_us - view_.from_us;
    const double unit = window >= 2e6 ? 1e6 : window >= 2e3 ? 1e3 : 1;
    const char* name = window >= 2e6 ? "s" : window >= 2e3 ? "ms" : "µs";
    const int digits = std::clamp(static_cast<int>(std::ceil(1 - std::log10(window / unit))), 0, 6);
    return fmt::format("{:.{}f} {}", us / unit, digits, name);
  }

  void draw_lane(int index) {
    const TimelineLane& lane = timeline_.lanes[static_cast<std::size_t>(index)];
    const float y = top_ + pitch_ * static_cast<float>(index);
    if (y >= max_.y) return;
    const float middle = y + pitch_ / 2;
    const std::string name = fitted(lane.name(), Font::note, left_ - min_.x - px(8));
    draw_text({min_.x, middle - note_ / 2}, name, Font::note, Role::muted);
    map(fmt::format("lane_{}", index), lane.name(), fmt::format("{} spans", lane.spans().size()),
        {min_.x, y}, {max_.x, std::min(y + pitch_, max_.y)});
    list().AddLine({left_, y + pitch_}, {max_.x, y + pitch_}, color(Role::grid));
    list().PushClipRect({left_, top_}, max_, true);
    const int columns = std::max(static_cast<int>(width() / px(1.5f)), 1);
    // Where there are few, even the narrowest is seen by itself; among many its height is its share of its column.
    const bool few = lane.first_from(view_.to_us) - lane.first_from(view_.from_us) < columns / 2;
    const double column_us = (view_.to_us - view_.from_us) / columns;
    for (TimelineRun run : lane.runs(view_.from_us, view_.to_us, columns)) {
      const double lasts = run.end_us - run.begin_us;
      if (!few && run.span >= 0 && lasts < column_us) {
        run.share = lasts / column_us;
        run.span = -1;
      }
      draw_run(index, lane, run);
    }
    if (look_.lit_name >= 0) draw_lit(index, lane, columns);
    list().PopClipRect();
  }

  void draw_run(int index, const TimelineLane& lane, const TimelineRun& run) {
    const TimelineSpan* one = run.span < 0 ? nullptr : span(index, run.span);
    const std::uint8_t tone = one != nullptr && one->tone != 0 ? one->tone : lane.tone();
    const bool dim = look_.lit_name >= 0 && (one == nullptr || one->name != look_.lit_name);
    // What has no tone of its own stands back.
    const ImU32 fill = color(tone_role(tone), (dim ? 0.35f : 0.9f) * (tone == 0 ? 0.5f : 1.0f));
    auto [low, high] = area(index, {run.begin_us, run.end_us});
    if (one == nullptr) low.y = high.y - (high.y - low.y) * static_cast<float>(run.share);
    const bool roomy = high.x - low.x > px(4);
    // A hairline of the panel between neighbours.
    list().AddRectFilled(low, {high.x - (roomy ? 1.0f : 0.0f), high.y}, fill, roomy ? px(2) : 0);
    if (one == nullptr || dim || one->name < 0 || pitch_ < note_ + px(4)) return;
    const float from = std::max(low.x, left_) + px(4),
                room = std::min(high.x, max_.x) - from - px(3);
    if (room < px(26) || one->name >= static_cast<int>(timeline_.names.size())) return;
    const std::string& name = timeline_.names[static_cast<std::size_t>(one->name)];
    draw_text_in({from, (low.y + high.y - note_) / 2}, fitted(name, Font::note, room), Font::note,
                 tone == 0 ? color(Role::text) : readable_on(color(tone_role(tone))));
  }

  /// All spans of the name that is lit, over the rest.
  void draw_lit(int index, const TimelineLane& lane, int columns) {
    struct Lit {
      int name = -1;
      std::vector<std::pair<const TimelineSpan*, std::size_t>> of;
      std::vector<TimelineLane> lanes;
    };
    std::vector<std::pair<const TimelineSpan*, std::size_t>> of;
    for (const TimelineLane& each : timeline_.lanes)
      of.emplace_back(each.spans().data(), each.spans().size());
    auto& lit = Context::current().kept<Lit>("timeline_lit");
    if (lit.name != look_.lit_name || lit.of != of) {
      lit = {look_.lit_name, std::move(of), {}};
      for (const TimelineLane& each : timeline_.lanes) lit.lanes.push_back(each.only(lit.name));
    }
    const TimelineLane& chosen = lit.lanes[static_cast<std::size_t>(index)];
    if (chosen.spans().empty()) return;
    const std::uint8_t own = chosen.spans().front().tone, tone = own != 0 ? own : lane.tone();
    for (const TimelineRun& run : chosen.runs(view_.from_us, view_.to_us, columns)) {
      auto [low, high] = area(index, {run.begin_us, run.end_us});
      if (run.span < 0) low.y = high.y - (high.y - low.y) * static_cast<float>(run.share);
      list().AddRectFilled(low, high, color(tone_role(tone)));
    }
  }

  void outline(int lane, int index, Role role, float thickness) const {
    const TimelineSpan* shown = span(lane, index);
    if (shown == nullptr || shown->end_us < view_.from_us || shown->begin_us > view_.to_us) return;
    const auto [low, high] = area(lane, *shown);
    list().PushClipRect({left_ - px(2), top_ - px(2)}, {max_.x, max_.y}, true);
    list().AddRect({low.x - 1, low.y - 1}, {high.x + 1, high.y + 1}, color(role), px(2), 0,
                   px(thickness));
    list().PopClipRect();
  }

  /// From the end of the call to the begin of what it launched.
  void draw_link() const {
    if (!look_.linked) return;
    const TimelineSpan *from = span(look_.linked->first, look_.linked->second),
                       *to = span(view_.lane, view_.span);
    if (from == nullptr || to == nullptr) return;
    const auto [a, b] = area(look_.linked->first, *from);
    const auto [c, d] = area(view_.lane, *to);
    const bool below = c.y > a.y;
    list().PushClipRect({left_, top_}, max_, true);
    list().AddLine({b.x, below ? b.y : a.y}, {c.x, below ? c.y : d.y}, color(Role::accent),
                   px(1.5f));
    list().PopClipRect();
  }

  const picture::Timeline& timeline_;
  TimelineView& view_;
  const TimelineLook& look_;
  ImVec2 min_, max_;
  float note_ = 0, left_ = 0, top_ = 0, bottom_ = 0, pitch_ = 0;
};

struct Drag {
  bool down = false, moved = false;
  float from_x = 0;
  double from_us = 0;
};

}  // namespace

void TimelineView::zoom(double about_us, double factor, std::pair<double, double> range_us) {
  const double share = (about_us - from_us) / std::max(to_us - from_us, 1e-9);
  const double width =
      std::clamp((to_us - from_us) * factor, kLeastWindow_us,
                 std::max(1.04 * (range_us.second - range_us.first), kLeastWindow_us));
  from_us = about_us - share * width;
  to_us = from_us + width;
  keep_within(*this, range_us);
}

void TimelineView::pan(double share, std::pair<double, double> range_us) {
  const double by = share * (to_us - from_us);
  from_us += by;
  to_us += by;
  keep_within(*this, range_us);
}

void TimelineView::show(double begin_us, double end_us, std::pair<double, double> range_us) {
  const double room = 0.08 * std::max(end_us - begin_us, kLeastWindow_us);
  from_us = begin_us - room;
  to_us = end_us + room;
  keep_within(*this, range_us);
}

TimelineEvents timeline(std::string_view id, const picture::Timeline& timeline, TimelineView& view,
                        ImVec2 size, const TimelineLook& look) {
  const ImVec2 at = ImGui::GetCursorScreenPos(), max(at.x + size.x, at.y + size.y);
  TimelineEvents events;
  const auto range = timeline.range_us();
  keep_within(view, range);
  ImGui::PushID(id.data(), id.data() + id.size());
  ImGui::InvisibleButton("timeline", {std::max(size.x, 1.0f), std::max(size.y, 1.0f)});
  const bool hovered = ImGui::IsItemHovered(), active = ImGui::IsItemActive();
  ImGui::PopID();
  const Focused keys = Context::current().focus().control(id, at, max, Takes::across);
  if (keys.across != 0) view.pan(0.15 * keys.across, range);
  TimelineDrawing drawing(timeline, view, look, at, size);
  const ImGuiIO& io = ImGui::GetIO();
  auto& drag = Context::current().kept<Drag>(kept_name("timeline", id));
  if (hovered && io.MouseWheel != 0 && drawing.inside(io.MousePos))
    view.zoom(drawing.us_at(io.MousePos.x), std::pow(0.8, static_cast<double>(io.MouseWheel)),
              range);
  if (hovered && io.MouseWheelH != 0) view.pan(-0.1 * static_cast<double>(io.MouseWheelH), range);
  if (active && !drag.down) drag = {true, false, io.MousePos.x, view.from_us};
  if (active && std::abs(io.MousePos.x - drag.from_x) > px(kDrags)) drag.moved = true;
  if (active && drag.moved) {
    const double width = view.to_us - view.from_us;
    view.from_us = drag.from_us - drawing.us_of(io.MousePos.x - drag.from_x);
    view.to_us = view.from_us + width;
    keep_within(view, range);
  }
  if (hovered && drawing.inside(io.MousePos)) {
    events.lane = drawing.lane_at(io.MousePos.y);
    if (events.lane >= 0) {
      events.span = timeline.lanes[static_cast<std::size_t>(events.lane)].at(
          drawing.us_at(io.MousePos.x), drawing.us_of(px(3)));
    }
    ImGui::SetMouseCursor(drag.moved ? ImGuiMouseCursor_ResizeEW : ImGuiMouseCursor_Hand);
  }
  if (!active && drag.down) {
    if (!drag.moved && hovered) {
      const bool same = view.lane == events.lane && view.span == events.span;
      view.lane = same || events.span < 0 ? -1 : events.lane;
      view.span = same || events.span < 0 ? -1 : events.span;
      events.pinned = true;
    }
    drag = {};
  }
  drawing.draw(events.lane, events.span);
  map(id, "Timeline", fmt::format("{:.3f} to {:.3f} µs", view.from_us, view.to_us), at, max);
  return events;
}

std::string time_text(double us) {
  const double size = std::abs(us);
  const auto said = [](double value, const char* unit) {
    const double shown = std::abs(value);
    return fmt::format("{:.{}f} {}", value, shown >= 100 ? 0 : shown >= 10 ? 1 : 2, unit);
  };
  if (size >= 1e6) return said(us * 1e-6, "s");
  if (size >= 1e3) return said(us * 1e-3, "ms");
  if (size >= 1 || size == 0) return said(us, "µs");
  return fmt::format("{:.0f} ns", us * 1e3);
}

}  // namespace tilestep::ui

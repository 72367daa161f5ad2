#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/ui/axis.hpp"
#include "scenes/ui/context.hpp"

namespace tilestep::ui {
namespace {

ImDrawList& list() {
  return *ImGui::GetWindowDrawList();
}

struct Room {
  ImVec2 min, max;
  float width() const { return max.x - min.x; }
  float height() const { return max.y - min.y; }
};

float line_height(Font font) {
  return text_size("x", font).y;
}

/// Vertical grid lines with their numbers below, and the unit at the right end.
void draw_bar_axis(const Axis& axis, const Room& room, const std::string& unit) {
  const int most = std::max(2, static_cast<int>(room.width() / px(90)));
  const float unit_width = text_size(unit, Font::note).x + px(12);
  for (const double tick : axis.ticks(most)) {
    const float x = std::round(room.min.x + room.width() * axis.place(tick));
    list().AddLine({x, room.min.y}, {x, room.max.y}, color(Role::grid));
    if (x + px(20) > room.max.x - unit_width && tick != 0) continue;
    draw_text({x, room.max.y + px(4)}, tick_text(tick), Font::note, Role::muted, Align::center);
  }
  draw_text({room.max.x, room.max.y + px(4)}, unit, Font::note, Role::muted, Align::right);
}

std::string bar_value(const Bar& bar, const std::string& unit) {
  return unit.empty() ? value_text(bar.value) : fmt::format("{} {}", value_text(bar.value), unit);
}

void draw_bar(const BarPlot& plot, const Bar& bar, const Axis& axis, const Room& room) {
  const float middle = std::round((room.min.y + room.max.y) / 2);
  const float half = std::round(px(9));
  const float zero = room.min.x + room.width() * axis.place(0);
  const float end = room.min.x + room.width() * axis.place(bar.value);
  list().AddRectFilled({zero, middle - half}, {std::max(end, zero + px(2)), middle + half},
                       color(bar.role), px(3));
  float after = end;
  if (bar.p10 && bar.p90) {
    const float low = room.min.x + room.width() * axis.place(*bar.p10);
    const float high = room.min.x + room.width() * axis.place(*bar.p90);
    const ImU32 ink = color(Role::text);
    list().AddLine({low, middle}, {high, middle}, ink, px(1.5f));
    for (const float x : {low, high}) {
      list().AddLine({x, middle - px(4)}, {x, middle + px(4)}, ink, px(1.5f));
    }
    after = std::max(after, high);
  }
  const std::string value = bar_value(bar, plot.unit);
  const ImVec2 size = text_size(value, Font::mono_note);
  const float y = middle - size.y / 2;
  const float x = after + px(kGapSmall);
  draw_text({x, y}, value, Font::mono_note);
  const float note_x = x + size.x + px(kGapSmall);
  draw_text({note_x, middle - line_height(Font::note) / 2},
            fitted(bar.note, Font::note,
                   ImGui::GetWindowPos().x + ImGui::GetWindowWidth() - px(kGap) - note_x),
            Font::note, Role::muted);
}

void draw_bar_roof(const BarPlot& plot, const Axis& axis, const Room& room) {
  if (!plot.roof) return;
  const float x = std::round(room.min.x + room.width() * axis.place(*plot.roof));
  dashed_line({x, room.min.y}, {x, room.max.y}, Role::muted);
  const std::string label =
      fmt::format("{} {} {}", plot.roof_label, value_text(*plot.roof), plot.unit);
  const float half = text_size(label, Font::note).x / 2;
  const float right = ImGui::GetWindowPos().x + ImGui::GetWindowWidth() - px(kGap);
  const float middle = std::clamp(x, room.min.x + half, std::max(right - half, room.min.x + half));
  draw_text({middle, room.min.y - line_height(Font::note) - px(2)}, label, Font::note, Role::muted,
            Align::center);
}

}  // namespace

void bar_plot(const BarPlot& plot) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  float labels = 0, ends = 0;
  std::vector<double> values;
  for (const Bar& bar : plot.bars) {
    labels = std::max(labels, text_size(bar.label).x);
    float end = text_size(bar_value(bar, plot.unit), Font::mono_note).x + px(kGap);
    if (!bar.note.empty()) end += text_size(bar.note, Font::note).x + px(kGapSmall);
    ends = std::max(ends, end);
    values.push_back(std::max(bar.value, bar.p90.value_or(bar.value)));
  }
  if (plot.roof) values.push_back(*plot.roof);
  labels = std::min(labels, width * 0.3f);
  ends = std::min(ends, width * 0.32f);
  const float row = std::round(px(28));
  const float top = plot.title.empty() ? 0 : line_height(Font::body_bold) + px(kGapSmall);
  const float roof = plot.roof ? line_height(Font::note) + px(4) : 0;
  const float rows = row * static_cast<float>(plot.bars.size());
  const float foot = line_height(Font::note) + px(kGapSmall);
  if (top > 0) draw_text(at, fitted(plot.title, Font::body_bold, width), Font::body_bold);
  const Axis axis = axis_for(values, false, true);
  const Room room{{at.x + labels + px(12), at.y + top + roof},
                  {at.x + width - ends, at.y + top + roof + rows}};
  draw_bar_axis(axis, room, plot.unit);
  for (std::size_t i = 0; i < plot.bars.size(); ++i) {
    const float y = room.min.y + row * static_cast<float>(i);
    const std::string label = fitted(plot.bars[i].label, Font::body, labels);
    draw_text({room.min.x - px(12), y + (row - line_height(Font::body)) / 2}, label, Font::body,
              Role::text, Align::right);
    draw_bar(plot, plot.bars[i], axis, {{room.min.x, y}, {room.max.x, y + row}});
    map(fmt::format("{}_{}", plot.id, i), plot.bars[i].label, bar_value(plot.bars[i], plot.unit),
        {at.x, y}, {at.x + width, y + row});
  }
  draw_bar_roof(plot, axis, room);
  ImGui::Dummy({width, top + roof + rows + foot});
}

// ---- line plots -------------------------------------------------------------------------------

namespace {

class LinePlotView {
 public:
  LinePlotView(const LinePlot& plot, ImVec2 at, ImVec2 size) : plot_(plot), at_(at), size_(size) {
    size_.y = std::max(size_.y, above() + px(kLeastRoom) + below());
    std::vector<double> xs, ys;
    for (const Curve& curve : plot.curves) {
      xs.insert(xs.end(), curve.x.begin(), curve.x.end());
      for (const auto* values : {&curve.y, &curve.low, &curve.high}) {
        ys.insert(ys.end(), values->begin(), values->end());
      }
    }
    if (plot.roof) ys.push_back(*plot.roof);
    x_ = axis_for(xs, plot.x_log, false);
    y_ = axis_for(ys, plot.y_log, true);
    if (!plot.x_log && !xs.empty())
      x_.high = std::max(*std::max_element(xs.begin(), xs.end()), x_.low + 1e-12);
    place_room();
  }

  /// As asked, or taller: a plot of no height shows nothing.
  ImVec2 size() const { return size_; }

  void draw() {
    draw_title();
    draw_axes();
    list().PushClipRect({room_.min.x - px(6), room_.min.y - px(6)},
                        {room_.max.x + px(6), room_.max.y + px(6)}, true);
    for (const Curve& curve : plot_.curves) draw_curve(curve);
    list().PopClipRect();
    draw_marks();
    draw_labels();
    draw_hover();
  }

 private:
  static constexpr float kLeastRoom = 40;

  /// What title and name of the axis take above the curves, and the numbers below them.
  float above() const {
    const float title = plot_.title.empty() ? 0 : line_height(Font::body_bold) + px(4);
    return title + line_height(Font::note) + px(8);
  }
  static float below() { return 2 * line_height(Font::note) + px(10); }

  ImVec2 point(double x, double y) const {
    return {room_.min.x + room_.width() * x_.place(x), room_.max.y - room_.height() * y_.place(y)};
  }

  void place_room() {
    float ticks = 0, ends = 0;
    for (const double tick : y_.ticks(5)) {
      ticks = std::max(ticks, text_size(tick_text(tick), Font::note).x);
    }
    for (const Curve& curve : plot_.curves) {
      ends = std::max(ends, text_size(curve.label, Font::note).x);
    }
    ends = std::min(ends, size_.x * 0.28f);
    room_.min = {at_.x + ticks + px(kGapSmall), at_.y + above()};
    room_.max = {at_.x + size_.x - ends - px(kGap), at_.y + size_.y - below()};
    room_.max.x = std::max(room_.max.x, room_.min.x + px(kLeastRoom));
  }

  void draw_title() const {
    float y = at_.y;
    if (!plot_.title.empty()) {
      draw_text({at_.x, y}, fitted(plot_.title, Font::body_bold, size_.x), Font::body_bold);
      y += line_height(Font::body_bold) + px(4);
    }
    const std::string label = plot_.y_log ? plot_.y_label + ", log scale" : plot_.y_label;
    draw_text({at_.x, y}, fitted(label, Font::note, size_.x), Font::note, Role::muted);
  }

  void draw_axes() const {
    for (const double tick : y_.ticks(std::max(2, static_cast<int>(room_.height() / px(36))))) {
      const float y = std::round(point(x_.low, tick).y);
      list().AddLine({room_.min.x, y}, {room_.max.x, y}, color(Role::grid));
      draw_text({room_.min.x - px(6), y - line_height(Font::note) / 2}, tick_text(tick), Font::note,
                Role::muted, Align::right);
    }
    for (const double tick : x_.ticks(std::max(2, static_cast<int>(room_.width() / px(70))))) {
      const float x = std::round(point(tick, y_.low).x);
      list().AddLine({x, room_.max.y}, {x, room_.max.y + px(4)}, color(Role::border));
      draw_text({x, room_.max.y + px(4)}, tick_text(tick), Font::note, Role::muted, Align::center);
    }
    list().AddLine({room_.min.x, room_.max.y}, room_.max, color(Role::border));
    const std::string label = plot_.x_log ? plot_.x_label + ", log scale" : plot_.x_label;
    const std::string name = fitted(label, Font::note, size_.x);
    const float half = text_size(name, Font::note).x / 2;
    const float middle = std::clamp((room_.min.x + room_.max.x) / 2, at_.x + half,
                                    std::max(at_.x + half, at_.x + size_.x - half));
    draw_text({middle, room_.max.y + line_height(Font::note) + px(6)}, name, Font::note,
              Role::muted, Align::center);
  }

  bool drawable(const Curve& curve, std::size_t i) const {
    return std::isfinite(curve.x[i]) && std::isfinite(curve.y[i]) &&
           (!plot_.x_log || curve.x[i] > 0) && (!plot_.y_log || curve.y[i] > 0);
  }

  void draw_curve(const Curve& curve) const {
    const std::size_t count = std::min(curve.x.size(), curve.y.size());
    if (curve.low.size() >= count && curve.high.size() >= count) {
      for (std::size_t i = 0; i + 1 < count; ++i) {
        if (!drawable(curve, i) || !drawable(curve, i + 1)) continue;
        list().AddQuadFilled(point(curve.x[i], curve.low[i]),
                             point(curve.x[i + 1], curve.low[i + 1]),
                             point(curve.x[i + 1], curve.high[i + 1]),
                             point(curve.x[i], curve.high[i]), color(curve.role, 0.16f));
      }
    }
    std::vector<ImVec2> line;
    for (std::size_t i = 0; i < count; ++i) {
      if (drawable(curve, i)) line.push_back(point(curve.x[i], curve.y[i]));
    }
    if (curve.dashed) {
      for (std::size_t i = 0; i + 1 < line.size(); ++i) {
        dashed_line(line[i], line[i + 1], curve.role, 2);
      }
    } else if (line.size() > 1) {
      list().AddPolyline(line.data(), static_cast<int>(line.size()), color(curve.role), 0, px(2));
    }
    if (line.size() <= 32) {
      for (const ImVec2& each : line) list().AddCircleFilled(each, px(3), color(curve.role));
    }
  }

  void draw_marks() const {
    if (plot_.roof) {
      const float y = std::round(point(x_.low, *plot_.roof).y);
      dashed_line({room_.min.x, y}, {room_.max.x, y}, Role::muted);
      // Over the line, or under it where the axis' name stands above.
      const float over = y - line_height(Font::note) - px(1);
      draw_text({room_.min.x + px(4), over < room_.min.y - px(4) ? y + px(1) : over},
                fitted(plot_.roof_label, Font::note, room_.width()), Font::note, Role::muted);
    }
    if (plot_.marked_x && *plot_.marked_x >= x_.low && *plot_.marked_x <= x_.high) {
      const float x = std::round(point(*plot_.marked_x, y_.low).x);
      list().AddLine({x, room_.min.y}, {x, room_.max.y}, color(Role::accent), px(1.5f));
      // At the foot, where neither the axis' name nor the roof's is.
      const bool left = x > (room_.min.x + room_.max.x) / 2;
      draw_text({x + px(left ? -4 : 4), room_.max.y - line_height(Font::note) - px(2)}, "here",
                Font::note, Role::accent, left ? Align::right : Align::left);
    }
  }

  /// Labels at the ends of the curves, pushed apart where they would touch.
  void draw_labels() const {
    struct End {
      float y;
      ImVec2 tip;
      const Curve* curve;
    };
    std::vector<End> ends;
    for (const Curve& curve : plot_.curves) {
      for (std::size_t i = std::min(curve.x.size(), curve.y.size()); i-- > 0;) {
        if (!drawable(curve, i)) continue;
        const ImVec2 tip = point(curve.x[i], curve.y[i]);
        ends.push_back({tip.y, tip, &curve});
        break;
      }
    }
    std::sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.y < b.y; });
    const float height = line_height(Font::note);
    for (std::size_t i = 1; i < ends.size(); ++i) {
      ends[i].y = std::max(ends[i].y, ends[i - 1].y + height);
    }
    float lowest = room_.max.y;
    for (std::size_t i = ends.size(); i-- > 0;) {
      ends[i].y = std::min(ends[i].y, lowest);
      lowest = ends[i].y - height;
    }
    for (const End& end : ends) {
      const float x = room_.max.x + px(12);
      const float room = at_.x + size_.x - x;
      list().AddLine({room_.max.x + px(3), end.tip.y}, {x - px(2), end.y}, color(end.curve->role),
                     px(1));
      draw_text({x, end.y - height / 2}, fitted(end.curve->label, Font::note, room), Font::note,
                Role::text);
    }
  }

  void draw_hover() const {
    if (!ImGui::IsWindowHovered() || !ImGui::IsMouseHoveringRect(room_.min, room_.max)) return;
    const float mouse = ImGui::GetIO().MousePos.x;
    const Curve* nearest_curve = nullptr;
    std::size_t nearest = 0;
    float best = px(24);
    for (const Curve& curve : plot_.curves) {
      for (std::size_t i = 0; i < std::min(curve.x.size(), curve.y.size()); ++i) {
        if (!drawable(curve, i)) continue;
        const ImVec2 place = point(curve.x[i], curve.y[i]);
        const float away =
            std::abs(place.x - mouse) + std::abs(place.y - ImGui::GetIO().MousePos.y);
        if (away < best) {
          best = away;
          nearest = i;
          nearest_curve = &curve;
        }
      }
    }
    if (nearest_curve == nullptr) return;
    list().AddCircle(point(nearest_curve->x[nearest], nearest_curve->y[nearest]), px(6),
                     color(Role::text), 0, px(1.5f));
    ImGui::SetTooltip("%s\n%s: %s\n%s: %s", nearest_curve->label.c_str(), plot_.x_label.c_str(),
                      tick_text(nearest_curve->x[nearest]).c_str(), plot_.y_label.c_str(),
                      value_text(nearest_curve->y[nearest]).c_str());
  }

  const LinePlot& plot_;
  ImVec2 at_, size_;
  Axis x_, y_;
  Room room_;
};

}  // namespace

void line_plot(const LinePlot& plot, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  LinePlotView view(plot, at, size);
  view.draw();
  ImGui::Dummy(view.size());
  map(plot.id, plot.title, fmt::format("{} curves", plot.curves.size()), at,
      {at.x + view.size().x, at.y + view.size().y});
}

}  // namespace tilestep::ui

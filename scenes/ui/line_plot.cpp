#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/ui/axis.hpp"
#include "scenes/ui/context.hpp"

namespace tilestep::ui {
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
    // No margin at the right, where the labels are; a single value keeps it.
    const double last = xs.empty() ? x_.low : *std::max_element(xs.begin(), xs.end());
    if (!plot.x_log && last > x_.low) x_.high = last;
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

  int y_tick_count() const { return std::max(2, static_cast<int>(room_.height() / px(30))); }

  void place_room() {
    float ticks = 0, ends = 0;
    room_.min.y = at_.y + above();
    room_.max.y = at_.y + size_.y - below();
    for (const double tick : y_ticks()) {
      ticks = std::max(ticks, text_size(tick_text(tick), Font::note).x);
    }
    for (const Curve& curve : plot_.curves) {
      ends = std::max(ends, text_size(curve.label, Font::note).x);
    }
    ends = std::min(ends, size_.x * 0.28f);
    room_.min.x = at_.x + ticks + px(kGapSmall);
    room_.max.x = at_.x + size_.x - ends - px(kGap);
    room_.max.x = std::max(room_.max.x, room_.min.x + px(kLeastRoom));
  }

  void draw_title() const {
    float y = at_.y;
    if (!plot_.title.empty()) {
      draw_text({at_.x, y}, fitted(plot_.title, Font::body_bold, size_.x), Font::body_bold);
      y += line_height(Font::body_bold) + px(4);
    }
    draw_text({at_.x, y}, fitted(y_label(), Font::note, size_.x), Font::note, Role::muted);
  }

  /// On a logarithmic axis the values that were measured, powers of two first, as many as fit; else
  /// round numbers.
  std::vector<double> x_ticks() const {
    const auto most = std::max(2, static_cast<int>(room_.width() / px(70)));
    std::vector<double> measured;
    for (const Curve& curve : plot_.curves) {
      measured.insert(measured.end(), curve.x.begin(), curve.x.end());
    }
    std::sort(measured.begin(), measured.end());
    measured.erase(std::unique(measured.begin(), measured.end()), measured.end());
    if (!plot_.x_log || measured.size() > 40) return x_.ticks(most);
    std::stable_partition(measured.begin(), measured.end(), [](double x) {
      return x > 0 && std::log2(x) == std::floor(std::log2(x));
    });
    std::vector<double> ticks;
    for (const double x : measured) {
      const auto half = [&](double tick) { return text_size(x_text(tick), Font::note).x / 2; };
      const bool clear = std::none_of(ticks.begin(), ticks.end(), [&](double other) {
        const float apart = std::max(px(38), half(x) + half(other) + px(8));
        return std::abs(x_.place(x) - x_.place(other)) * room_.width() < apart;
      });
      if (clear) ticks.push_back(x);
    }
    return ticks;
  }

  std::string x_text(double tick) const {
    const bool written_out = plot_.x_log && tick >= 1e4 && tick < 1e6;
    return written_out ? value_text(tick) : tick_text(tick);
  }

  /// As many as the height has room for.
  std::vector<double> y_ticks() const {
    return y_.ticks(std::max(2, static_cast<int>(room_.height() / px(30))));
  }

  void draw_axes() const {
    for (const double tick : y_ticks()) {
      const float y = std::round(point(x_.low, tick).y);
      list().AddLine({room_.min.x, y}, {room_.max.x, y}, color(Role::grid));
      draw_text({room_.min.x - px(6), y - line_height(Font::note) / 2}, tick_text(tick), Font::note,
                Role::muted, Align::right);
    }
    for (const double tick : x_ticks()) {
      const float x = std::round(point(tick, y_.low).x);
      list().AddLine({x, room_.max.y}, {x, room_.max.y + px(4)}, color(Role::border));
      draw_text({x, room_.max.y + px(4)}, x_text(tick), Font::note, Role::muted, Align::center);
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
      list().AddPolyline(line.data(), static_cast<int>(line.size()),
                         color(curve.role, curve.thin ? 0.6f : 1.0f), 0,
                         px(curve.thin ? 1.0f : 2.0f));
    }
    if (line.size() <= 32 && !curve.thin) {
      for (const ImVec2& each : line) list().AddCircleFilled(each, px(3), color(curve.role));
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (!drawable(curve, i) || !unstable(curve, i)) continue;
      list().AddCircleFilled(point(curve.x[i], curve.y[i]), px(4.5f), color(Role::panel));
      list().AddCircle(point(curve.x[i], curve.y[i]), px(4.5f), color(curve.role), 0, px(1.5f));
    }
  }

  /// A spread over 10 %: the point is hollow.
  static bool unstable(const Curve& curve, std::size_t i) {
    return i < curve.low.size() && i < curve.high.size() &&
           curve.high[i] - curve.low[i] > 0.1 * std::abs(curve.y[i]);
  }

  std::string y_label() const {
    return plot_.y_log ? plot_.y_label + ", log scale" : plot_.y_label;
  }

  void draw_marks() const {
    const float note = line_height(Font::note);
    // In the line of the axis label, between it and the roof's label at the right end.
    float first = at_.x + text_size(y_label(), Font::note).x + px(12);
    float last = room_.max.x;
    if (plot_.roof) {
      const float y = std::round(point(x_.low, *plot_.roof).y);
      // Its name stands above the plot, where no curve comes.
      stroke({room_.max.x, room_.min.y - px(2)}, {room_.max.x, y}, Role::muted, false);
      stroke({room_.min.x, y}, {room_.max.x, y}, Role::muted, false);
      map(plot_.id + "_roof", plot_.roof_label, value_text(*plot_.roof),
          {room_.min.x, y - px(0.75f)}, {room_.max.x, y + px(0.75f)});
      const std::string label =
          fitted(fmt::format("{} {}", plot_.roof_label, value_text(*plot_.roof)), Font::note,
                 std::max(room_.max.x - first, px(20)));
      last -= draw_text({room_.max.x, room_.min.y - note - px(2)}, label, Font::note, Role::muted,
                        Align::right)
                  .x +
              px(12);
    }
    if (plot_.marked_x && *plot_.marked_x >= x_.low && *plot_.marked_x <= x_.high) {
      const float x = std::round(point(*plot_.marked_x, y_.low).x);
      list().AddLine({x, room_.min.y}, {x, room_.max.y}, color(Role::accent), px(1.5f));
      const float half = text_size("here", Font::note).x / 2;
      first += half;
      draw_text({std::clamp(x, first, std::max(first, last - half)), room_.min.y - note - px(2)},
                "here", Font::note, Role::accent, Align::center);
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
    ImGui::SetTooltip("%s\n%s: %s\n%s: %s%s", nearest_curve->label.c_str(), plot_.x_label.c_str(),
                      tick_text(nearest_curve->x[nearest]).c_str(), plot_.y_label.c_str(),
                      value_text(nearest_curve->y[nearest]).c_str(),
                      unstable(*nearest_curve, nearest) ? ", unstable" : "");
  }

  const LinePlot& plot_;
  ImVec2 at_, size_;
  Axis x_, y_;
  PlotRoom room_;
};

}  // namespace

void stroke(ImVec2 from, ImVec2 to, Role role, bool dashed) {
  if (dashed) {
    dashed_line(from, to, role, 1.5f);
  } else {
    list().AddLine(from, to, color(role), px(1.5f));
  }
}

void line_plot(const LinePlot& plot, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  LinePlotView view(plot, at, size);
  view.draw();
  ImGui::Dummy(view.size());
  map(plot.id, plot.title, fmt::format("{} curves", plot.curves.size()), at,
      {at.x + view.size().x, at.y + view.size().y});
}

}  // namespace tilestep::ui

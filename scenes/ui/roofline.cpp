#include "scenes/ui/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "scenes/ui/axis.hpp"
#include "scenes/ui/context.hpp"

namespace tilestep::ui {
namespace {

struct Box {
  ImVec2 min, max;
  bool touches(const Box& other) const {
    return min.x < other.max.x && other.min.x < max.x && min.y < other.max.y && other.min.y < max.y;
  }
  bool within(const Box& other) const {
    return min.x >= other.min.x && max.x <= other.max.x && min.y >= other.min.y &&
           max.y <= other.max.y;
  }
};

/// Whether the line from `from` to `to` runs through `box`.
bool crosses(const Box& box, ImVec2 from, ImVec2 to) {
  float begin = 0, end = 1;  // the share of the line that is inside
  const auto clip = [&](float start, float step, float low, float high) {
    if (step == 0) return start >= low && start <= high;
    float in = (low - start) / step, out = (high - start) / step;
    if (in > out) std::swap(in, out);
    begin = std::max(begin, in);
    end = std::min(end, out);
    return begin <= end;
  };
  return clip(from.x, to.x - from.x, box.min.x, box.max.x) &&
         clip(from.y, to.y - from.y, box.min.y, box.max.y);
}

double best_memory(const Roofline& plot) {
  double best = 0;
  for (const MemoryRoof& roof : plot.memory) {
    if (!roof.datasheet) best = std::max(best, roof.tb_s);
  }
  return best;
}

bool drawable(const RooflineDot& dot) {
  return std::isfinite(dot.flop_per_byte) && std::isfinite(dot.tflops) && dot.flop_per_byte > 0 &&
         dot.tflops > 0;
}

class RoofView {
 public:
  RoofView(const Roofline& plot, ImVec2 at, ImVec2 size) : plot_(plot), at_(at), size_(size) {
    note_ = text_size("0", Font::note).y;
    std::vector<double> xs, ys;
    for (const RooflineDot& dot : plot.dots) {
      if (!drawable(dot)) continue;
      xs.push_back(dot.flop_per_byte);
      ys.push_back(dot.tflops);
    }
    double highest = 0;
    for (const ComputeRoof& roof : plot.compute) {
      highest = std::max(highest, roof.tflops);
      // Where the roofs meet belongs on screen: left of it memory limits, right of it arithmetic.
      for (const MemoryRoof& memory : plot.memory) {
        if (memory.tb_s > 0) xs.push_back(roof.tflops / memory.tb_s);
      }
      ys.push_back(roof.tflops);
    }
    x_ = axis_for(xs, true, false);
    x_.low /= 3;
    x_.high *= 4;
    for (const MemoryRoof& memory : plot.memory) {
      if (memory.tb_s > 0)
        ys.push_back(std::min(x_.low * 2 * memory.tb_s, std::max(highest, 1e-3)));
    }
    y_ = axis_for(ys, true, false);
    y_.low /= 1.8;
    y_.high *= 2;
    const float top = (plot.title.empty() ? 0 : text_size("0", Font::body_bold).y + px(2)) + note_;
    const float ticks = text_size("1000", Font::note).x + px(kGapSmall);
    room_ = {{at.x + ticks, at.y + top + px(6)},
             {at.x + size.x - px(kGap), at.y + size.y - 2 * note_ - px(10)}};
    room_.max.x = std::max(room_.max.x, room_.min.x + px(40));
    room_.max.y = std::max(room_.max.y, room_.min.y + px(40));
  }

  void draw() {
    draw_axes();
    list().PushClipRect(room_.min, {room_.max.x + 1, room_.max.y + 1}, true);
    for (const MemoryRoof& roof : plot_.memory) draw_memory(roof);
    for (const ComputeRoof& roof : plot_.compute) draw_compute(roof);
    list().PopClipRect();
    // The dots first take their places, so that labels keep clear of them.
    for (const RooflineDot& dot : plot_.dots) {
      if (drawable(dot)) taken_.push_back(box_round(point(dot.flop_per_byte, dot.tflops), px(5)));
    }
    label_roofs();
    draw_dots();
    draw_hover();
  }

 private:
  ImVec2 point(double x, double y) const {
    return {room_.min.x + (room_.max.x - room_.min.x) * x_.place(x),
            room_.max.y - (room_.max.y - room_.min.y) * y_.place(y)};
  }
  static Box box_round(ImVec2 center, float radius) {
    return {{center.x - radius, center.y - radius}, {center.x + radius, center.y + radius}};
  }

  void draw_axes() const {
    float y = at_.y;
    if (!plot_.title.empty()) {
      draw_text(at_, fitted(plot_.title, Font::body_bold, size_.x), Font::body_bold);
      y += text_size("0", Font::body_bold).y + px(2);
    }
    draw_text({at_.x, y}, fitted("TFLOP/s, log scale", Font::note, size_.x), Font::note,
              Role::muted);
    const float width = room_.max.x - room_.min.x;
    const float height = room_.max.y - room_.min.y;
    for (const double tick : y_.ticks(std::max(2, static_cast<int>(height / px(34))))) {
      const float line = std::round(point(x_.low, tick).y);
      list().AddLine({room_.min.x, line}, {room_.max.x, line}, color(Role::grid));
      draw_text({room_.min.x - px(6), line - note_ / 2}, tick_text(tick), Font::note, Role::muted,
                Align::right);
    }
    for (const double tick : x_.ticks(std::max(2, static_cast<int>(width / px(64))))) {
      const float line = std::round(point(tick, y_.low).x);
      list().AddLine({line, room_.min.y}, {line, room_.max.y}, color(Role::grid));
      draw_text({line, room_.max.y + px(4)}, tick_text(tick), Font::note, Role::muted,
                Align::center);
    }
    list().AddLine({room_.min.x, room_.max.y}, room_.max, color(Role::border));
    draw_text({(room_.min.x + room_.max.x) / 2, room_.max.y + note_ + px(6)},
              fitted("FLOP per byte of DRAM, log scale", Font::note, size_.x), Font::note,
              Role::muted, Align::center);
  }

  /// Up to the highest roof of its kind, where it ends.
  void draw_memory(const MemoryRoof& roof) {
    if (roof.tb_s <= 0) return;
    double top = 0;
    for (const ComputeRoof& compute : plot_.compute) {
      if (compute.datasheet == roof.datasheet) top = std::max(top, compute.tflops);
    }
    if (top <= 0) top = y_.high;
    draw_roof(point(x_.low, x_.low * roof.tb_s), point(top / roof.tb_s, top), roof.datasheet);
  }

  void draw_compute(const ComputeRoof& roof) {
    if (roof.tflops <= 0) return;
    double memory = 0;
    for (const MemoryRoof& one : plot_.memory) {
      if (one.datasheet == roof.datasheet) memory = std::max(memory, one.tb_s);
    }
    const double from = memory > 0 ? std::max(x_.low, roof.tflops / memory) : x_.low;
    draw_roof(point(from, roof.tflops), point(x_.high, roof.tflops), roof.datasheet);
  }

  void draw_roof(ImVec2 from, ImVec2 to, bool datasheet) {
    roofs_.emplace_back(from, to);
    if (datasheet) {
      dashed_line(from, to, Role::faint, 1);
    } else {
      list().AddLine(from, to, color(Role::muted), px(2));
    }
  }

  /// Compute roofs are named at their right end (measured ones below, datasheet ones above), the
  /// memory roof along its foot.
  void label_roofs() {
    const auto name = [&](const std::string& label, ImVec2 where, Align align, bool datasheet) {
      const ImVec2 size = text_size(label, Font::note);
      const float left = align == Align::right ? where.x - size.x : where.x;
      const Box box{{left, where.y}, {left + size.x, where.y + size.y}};
      if (!box.within({at_, {room_.max.x + 1, room_.max.y}}) || !is_free(box)) return;
      write(box, box.min, label, datasheet ? Role::faint : Role::muted);
    };
    // Measured roofs come first: where names collide, the datasheet's are left out.
    for (const bool datasheet : {false, true}) {
      for (const ComputeRoof& roof : plot_.compute) {
        if (roof.datasheet != datasheet || roof.tflops <= 0) continue;
        const ImVec2 end = point(x_.high, roof.tflops);
        name(fmt::format("{} {}", roof.label, value_text(roof.tflops)),
             {end.x - px(4), end.y + px(datasheet ? -1 : 3) - (datasheet ? note_ : 0)},
             Align::right, datasheet);
      }
      for (const MemoryRoof& roof : plot_.memory) {
        if (roof.datasheet != datasheet || roof.tb_s <= 0) continue;
        const double x = std::max(x_.low, y_.low / roof.tb_s) * 1.15;
        const ImVec2 foot = point(x, x * roof.tb_s);
        // Below its line, and to the right of where the line is at that height.
        const double lower =
            y_.low * std::pow(y_.high / y_.low, static_cast<double>(note_ + px(14)) /
                                                    static_cast<double>(room_.max.y - room_.min.y));
        const ImVec2 right = point(lower / roof.tb_s, lower);
        const float across = std::max(right.x, foot.x) + px(8);
        const float down = std::min(foot.y, room_.max.y - note_ - px(3));
        name(fmt::format("{} {} TB/s", roof.label, value_text(roof.tb_s)),
             {across, datasheet ? down - note_ - px(14) : down}, Align::left, datasheet);
      }
    }
  }

  bool is_free(const Box& box) const {
    return std::none_of(taken_.begin(), taken_.end(),
                        [&](const Box& other) { return box.touches(other); }) &&
           std::none_of(roofs_.begin(), roofs_.end(),
                        [&](const auto& roof) { return crosses(box, roof.first, roof.second); });
  }

  void draw_dots() {
    // Leaders and plates lie under the dots.
    for (const RooflineDot& dot : plot_.dots) {
      if (drawable(dot)) label_dot(dot, point(dot.flop_per_byte, dot.tflops));
    }
    for (std::size_t i = 0; i < plot_.dots.size(); ++i) {
      const RooflineDot& dot = plot_.dots[i];
      if (!drawable(dot)) continue;
      const ImVec2 place = point(dot.flop_per_byte, dot.tflops);
      if (dot.provenance == lab::Provenance::derived) {
        list().AddCircle(place, px(5), color(dot.role), 0, px(2));
      } else {
        list().AddCircleFilled(place, px(5), color(dot.role));
      }
      map(fmt::format("{}_dot_{}", plot_.id, i), dot.label,
          fmt::format("{} FLOP/B, {} TFLOP/s", value_text(dot.flop_per_byte),
                      value_text(dot.tflops)),
          {place.x - px(5), place.y - px(5)}, {place.x + px(5), place.y + px(5)});
    }
  }

  /// The first free place beside the dot, the nearest ones first; farther ones with a leader.
  void label_dot(const RooflineDot& dot, ImVec2 place) {
    const ImVec2 size = text_size(dot.label, Font::note);
    constexpr std::array kRows = {0, -1, 1, -2, 2, -3, 3, -4, 4};
    for (const int row : kRows) {
      const float down = px(10) * static_cast<float>(row);
      const float away = px(row == 0 ? 9 : 12 + 2 * static_cast<float>(std::abs(row)));
      for (const bool right : {true, false}) {
        const float x = right ? place.x + away : place.x - away - size.x;
        const ImVec2 corner(x, place.y + down - size.y / 2);
        const Box box{{x, corner.y + px(1)}, {x + size.x, corner.y + size.y - px(2)}};
        if (!box.within(room_) || !is_free(box)) continue;
        if (std::abs(row) > 1) {
          const float edge = right ? x - px(2) : x + size.x + px(2);
          list().AddLine(place, {edge, place.y + down}, color(Role::muted), px(1));
        }
        write(box, corner, dot.label, Role::text);
        return;
      }
    }
  }

  /// Text on a plate that keeps lines from running through it.
  void write(const Box& box, ImVec2 corner, const std::string& text, Role role) {
    list().AddRectFilled({box.min.x - px(2), box.min.y}, {box.max.x + px(2), box.max.y},
                         color(Role::panel, 0.85f), px(2));
    draw_text(corner, text, Font::note, role);
    taken_.push_back({{box.min.x - px(4), box.min.y}, {box.max.x + px(4), box.max.y}});
  }

  void draw_hover() const {
    if (!ImGui::IsWindowHovered()) return;
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    const RooflineDot* nearest = nullptr;
    float best = px(14);
    for (const RooflineDot& dot : plot_.dots) {
      if (!drawable(dot)) continue;
      const ImVec2 place = point(dot.flop_per_byte, dot.tflops);
      const float away = std::hypot(place.x - mouse.x, place.y - mouse.y);
      if (away >= best) continue;
      best = away;
      nearest = &dot;
    }
    if (nearest == nullptr) return;
    list().AddCircle(point(nearest->flop_per_byte, nearest->tflops), px(9), color(Role::text), 0,
                     px(1.5f));
    std::string text = fmt::format("{}\n{} TFLOP/s ({}) at {} FLOP per byte", nearest->label,
                                   value_text(nearest->tflops), name_of(nearest->provenance),
                                   value_text(nearest->flop_per_byte));
    if (const double memory = best_memory(plot_); memory > 0) {
      text += fmt::format("\nmemory roof there: {} TFLOP/s",
                          value_text(memory * nearest->flop_per_byte));
    }
    if (!nearest->detail.empty()) text += "\n" + nearest->detail;
    ImGui::BeginTooltip();
    ImGui::Dummy(draw_wrapped(ImGui::GetCursorScreenPos(), text,
                              std::min(px(360), text_size(text, Font::note).x + 1), Font::note));
    ImGui::EndTooltip();
  }

  const Roofline& plot_;
  ImVec2 at_, size_;
  float note_ = 0;
  Axis x_, y_;
  Box room_;
  std::vector<Box> taken_;
  std::vector<std::pair<ImVec2, ImVec2>> roofs_;
};

}  // namespace

double attainable(const Roofline& plot, const ComputeRoof& roof, double flop_per_byte) {
  return std::min(roof.tflops, best_memory(plot) * flop_per_byte);
}

float roofline_height() {
  return px(260);
}

void roofline(const Roofline& plot, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  RoofView(plot, at, size).draw();
  ImGui::Dummy(size);
  map(plot.id, plot.title, fmt::format("{} dots", plot.dots.size()), at,
      {at.x + size.x, at.y + size.y});
}

}  // namespace tilestep::ui

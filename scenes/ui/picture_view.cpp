#include "scenes/ui/picture_view.hpp"

#include <algorithm>
#include <cmath>

#include "scenes/ui/context.hpp"
#include "scenes/ui/control_parts.hpp"
#include "scenes/ui/theme.hpp"

namespace tilestep::ui {
namespace {

using picture::Area;
using picture::Color;
using picture::Pen;
using picture::Point;

constexpr Font kFonts[] = {Font::note,      Font::body, Font::body_bold, Font::section,
                           Font::mono_note, Font::mono, Font::mono_large};

Font font_of(picture::Face face) {
  return kFonts[static_cast<std::size_t>(face)];
}
ImVec2 at(Point p) {
  return {p.x, p.y};
}
ImVec2 low(const Area& a) {
  return {a.x0, a.y0};
}
ImVec2 high(const Area& a) {
  return {a.x1, a.y1};
}

/// The current window's draw list.
class WindowCanvas final : public picture::Canvas {
 public:
  void fill(const Area& area, Color color, float corner) override {
    list_.AddRectFilled(low(area), high(area), packed(color), corner);
  }
  void outline(const Area& area, const Pen& pen, float corner) override {
    if (pen.kind == Pen::solid) {
      list_.AddRect(low(area), high(area), packed(pen.color), corner, 0, pen.thickness);
      return;
    }
    const Point corners[] = {{area.x0, area.y0},
                             {area.x1, area.y0},
                             {area.x1, area.y1},
                             {area.x0, area.y1},
                             {area.x0, area.y0}};
    line(corners, pen);
  }
  void hatch(const Area& area, Color color) override {
    hatch_in(low(area), high(area), packed(color), 5);
  }
  void dot(Point center, float radius, Color color) override {
    list_.AddCircleFilled(at(center), radius, packed(color));
  }
  void triangle(Point a, Point b, Point c, Color color) override {
    list_.AddTriangleFilled(at(a), at(b), at(c), packed(color));
  }
  void line(std::span<const Point> points, const Pen& pen) override {
    const ImU32 color = packed(pen.color);
    if (pen.kind == Pen::curved) {
      list_.AddBezierCubic(at(points[0]), at(points[1]), at(points[2]), at(points[3]), color,
                           pen.thickness);
    } else if (pen.kind == Pen::dashed) {
      for (std::size_t k = 1; k < points.size(); ++k) {
        dashes(points[k - 1], points[k], color, pen.thickness);
      }
    } else {
      line_.clear();
      for (const Point point : points) line_.push_back(at(point));
      list_.AddPolyline(line_.data(), static_cast<int>(line_.size()), color, 0, pen.thickness);
    }
  }
  /// Without anti-aliasing, which would show the seams; the line covers the edge.
  void under(std::span<const Point> points, std::span<const float> feet, Color color) override {
    const ImU32 ink = packed(color);
    const ImVec2 white = ImGui::GetFontTexUvWhitePixel();
    const int parts = static_cast<int>(points.size()) - 1;
    list_.PrimReserve(6 * parts, 4 * parts);
    for (std::size_t k = 1; k < points.size(); ++k) {
      const Point from = points[k - 1], to = points[k];
      list_.PrimQuadUV(at(from), at(to), {to.x, feet[k]}, {from.x, feet[k - 1]}, white, white,
                       white, white, ink);
    }
  }
  void text(const picture::Words& words, Color color) override {
    draw_text_in({std::round(words.area.x0), std::round(words.area.y0)}, words.text,
                 font_of(words.face), packed(color));
  }

 private:
  ImU32 packed(Color color) const {
    const float alpha = std::clamp(color.alpha * opacity_, 0.0f, 1.0f);
    return IM_COL32(color.rgb >> 16 & 255u, color.rgb >> 8 & 255u, color.rgb & 255u,
                    static_cast<ImU32>(alpha * 255 + 0.5f));
  }
  void dashes(Point from, Point to, ImU32 color, float thickness) {
    const float length = std::hypot(to.x - from.x, to.y - from.y);
    const ImVec2 unit((to.x - from.x) / length, (to.y - from.y) / length);
    for (float way = 0; way < length; way += px(8)) {
      const float end = std::min(way + px(4.5f), length);
      list_.AddLine({from.x + unit.x * way, from.y + unit.y * way},
                    {from.x + unit.x * end, from.y + unit.y * end}, color, thickness);
    }
  }

  ImDrawList& list_ = *ImGui::GetWindowDrawList();
  const float opacity_ = Context::current().opacity();
  std::vector<ImVec2> line_;
};

/// Type and lengths at a fraction of their size.
class SmallMetrics final : public picture::Metrics {
 public:
  explicit SmallMetrics(float scale) : scale_(scale) {}
  float width(std::string_view text, picture::Face face) const override {
    return scale_ * metrics_.width(text, face);
  }
  float height(picture::Face face) const override { return scale_ * metrics_.height(face); }
  float px(float design) const override { return scale_ * metrics_.px(design); }

 private:
  PictureMetrics metrics_;
  float scale_;
};

/// What a thumbnail has for its drawing.
Area below_name(const Area& area) {
  return {area.x0 + px(6), area.y0 + text_size("x", Font::note).y + px(4), area.x1 - px(6),
          area.y1 - px(5)};
}

}  // namespace

float PictureMetrics::width(std::string_view text, picture::Face face) const {
  return text_size(text, font_of(face)).x;
}
float PictureMetrics::height(picture::Face face) const {
  return font_pixels(font_of(face));
}

void draw(const picture::Placed& placed, const picture::Emphasis& emphasis) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  // Round a box at the picture's edge slab and frame stand on the panel's margin.
  const bool slabs = std::any_of(placed.pieces.begin(), placed.pieces.end(), [](const auto& piece) {
    return piece.kind == picture::Piece::slab;
  });
  const float margin = slabs || emphasis.lit_boxes != nullptr ? px(6) : 0;
  ImVec2 from = list.GetClipRectMin(), to = list.GetClipRectMax();
  from = {from.x - margin, from.y - margin};
  to = {to.x + margin, to.y + margin};
  list.PushClipRect(from, to);
  WindowCanvas canvas;
  picture::paint(placed, picture_palette(), PictureMetrics(), emphasis,
                 {from.x, from.y, to.x, to.y}, canvas);
  list.PopClipRect();
}

Strip strip_of(const Area& area, std::size_t count, const picture::Metrics& metrics) {
  // In a low room little more than the names.
  constexpr float kLow = 300, kShare = 0.13f;
  const float gap = metrics.px(6), width = std::round(metrics.px(112));
  const float height =
      std::round(area.height() < metrics.px(kLow)
                     ? metrics.px(22)
                     : std::clamp(kShare * area.height(), metrics.px(40), metrics.px(56)));
  const bool below = height * area.width() <= width * area.height();
  const float across = below ? height : width;
  const float least = std::round(metrics.px(below ? 78 : 40)),
              most = std::round(metrics.px(below ? 160 : 56));
  Strip strip{area, {}};
  (below ? strip.left.y1 : strip.left.x1) -= across + gap;
  const float from = below ? area.x0 : area.y0, room = below ? area.width() : area.height();
  const auto fitting = static_cast<std::size_t>((room + gap) / (least + gap));
  count = std::min(count, fitting);
  const auto n = static_cast<float>(std::max(count, std::size_t{1}));
  const float along = std::min(most, std::floor((room - (n - 1) * gap) / n));
  for (std::size_t k = 0; k < count; ++k) {
    const float at = from + static_cast<float>(k) * (along + gap);
    strip.areas.push_back(below ? Area{at, area.y1 - across, at + along, area.y1}
                                : Area{area.x1 - across, at, area.x1, at + along});
  }
  return strip;
}

picture::Placed small(const picture::Box& box, const picture::Picture& picture, const Area& area) {
  constexpr float kScale = 0.22f;
  picture::Box whole = box;
  whole.rank = 0;  // it alone is drawn
  picture::Placed placed =
      picture::place({{}, picture.axes, std::move(whole)}, below_name(area), SmallMetrics(kScale));
  if (placed.pieces.empty() && placed.strokes.empty()) {
    // Words alone: the lines that they are.
    for (const picture::Words& words : placed.words) {
      placed.pieces.push_back(
          {.of = words.of, .area = words.area, .state = picture::State::to_come});
    }
  }
  placed.words.clear();
  placed.said.clear();
  return placed;
}

bool thumbnail(std::string_view id, std::string_view name, const picture::Placed& drawn,
               const Area& area) {
  const ImVec2 min = low(area), max = high(area);
  ImGui::SetCursorScreenPos(min);
  ImGui::PushID(id.data(), id.data() + id.size());
  bool pressed = ImGui::InvisibleButton("thumbnail", {area.width(), area.height()});
  pressed = Context::current().focus().control(id, min, max).pressed || pressed;
  const bool hovered = ImGui::IsItemHovered();
  ImGui::PopID();
  use_hand();
  list().AddRectFilled(min, max, color(hovered ? Role::raised : Role::background),
                       px(kControlCorner));
  list().AddRect(min, max, color(hovered ? Role::muted : Role::border), px(kControlCorner));
  const std::string shown = fitted(name, Font::note, area.width() - px(12));
  draw_text({min.x + px(6), min.y + px(2)}, shown, Font::note, Role::muted);
  if (shown != name) tooltip(name);
  const Area inside = below_name(area);
  if (inside.height() > px(8)) {
    list().PushClipRect(low(inside), high(inside), true);
    WindowCanvas canvas;
    picture::paint(drawn, picture_palette(), PictureMetrics(), {}, inside, canvas);
    list().PopClipRect();
  }
  map(id, name, "", min, max);
  return pressed;
}

picture::Palette picture_palette() {
  const auto rgb = [](ImU32 color) {
    return (color >> IM_COL32_R_SHIFT & 255u) << 16 | (color >> IM_COL32_G_SHIFT & 255u) << 8 |
           (color >> IM_COL32_B_SHIFT & 255u);
  };
  picture::Palette made;
  for (std::size_t k = 0; k < made.paints.size(); ++k) {
    made.paints[k] = rgb(color(static_cast<Role>(k)));
    made.inks[k] = rgb(ink(static_cast<Role>(k)));
  }
  for (std::size_t k = 0; k < made.heat.size(); ++k) {
    made.heat[k] = rgb(heat(static_cast<float>(k) / static_cast<float>(made.heat.size() - 1)));
  }
  return made;
}

std::shared_ptr<const ShownPicture> laid_out(picture::Picture picture, Area area) {
  auto shown = std::make_shared<ShownPicture>();
  shown->picture = std::move(picture);
  shown->marks = picture::marks_of(shown->picture);
  shown->placed = picture::place(shown->picture, area, PictureMetrics());
  return shown;
}

void map(const std::shared_ptr<const ShownPicture>& shown, const std::string& prefix) {
  Context::current().map_later([shown, prefix](const AddPart& add) {
    for (const picture::Part& part : picture::parts_of(shown->placed, shown->marks)) {
      add(prefix + part.id, part.label, part.value, low(part.area), high(part.area),
          {part.least.x, part.least.y});
    }
  });
}

}  // namespace tilestep::ui

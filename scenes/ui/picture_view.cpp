#include "scenes/ui/picture_view.hpp"

#include <algorithm>
#include <cmath>

#include "scenes/ui/context.hpp"
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

#include "scenes/ui/picture_view.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "scenes/ui/context.hpp"

namespace tilestep::ui {
namespace {

using picture::Area;
using picture::Coat;
using picture::Layer;
using picture::Piece;
using picture::Placed;
using picture::Point;
using picture::State;
using picture::Stroke;
using picture::Words;

constexpr Font kFonts[] = {Font::note,      Font::body, Font::body_bold, Font::section,
                           Font::mono_note, Font::mono, Font::mono_large};

Font font_of(picture::Face face) {
  return kFonts[static_cast<std::size_t>(face)];
}
bool is_finite(const Area& a) {
  return std::isfinite(a.x0 + a.y0 + a.x1 + a.y1);
}
ImVec2 low(const Area& a) {
  return {a.x0, a.y0};
}
ImVec2 high(const Area& a) {
  return {a.x1, a.y1};
}
Area grown(const Area& a, float by) {
  return {a.x0 - by, a.y0 - by, a.x1 + by, a.y1 + by};
}

/// Draws one picture in one frame.
class Painter {
 public:
  Painter(const Placed& placed, const picture::Lighting* lit,
          const picture::Differences* differences)
      : placed_(placed),
        lit_(lit != nullptr && lit->any() ? lit : nullptr),
        list_(*ImGui::GetWindowDrawList()),
        round_from_(px(16)),
        corner_(px(2)) {
    const ImVec2 from = list_.GetClipRectMin(), to = list_.GetClipRectMax();
    seen_ = {from.x, from.y, to.x, to.y};
    for (int role = 0; role < kRoleCount; ++role) {
      colors_[static_cast<std::size_t>(role)] = color(static_cast<Role>(role));
    }
    for (const Layer layer : {Layer::ground, Layer::body, Layer::over}) {
      for (const Piece& each : placed.pieces) {
        if (each.layer == layer && in_sight(each.area)) piece(each);
      }
      for (const Stroke& each : placed.strokes) {
        if (each.layer == layer) stroke(each);
      }
    }
    if (lit_ != nullptr) outline_lit();
    if (differences != nullptr) underline(*differences);
    for (const Words& each : placed.words) words(each);
  }

 private:
  bool in_sight(const Area& a) const {
    return is_finite(a) && a.x0 < seen_.x1 && a.x1 > seen_.x0 && a.y0 < seen_.y1 && a.y1 > seen_.y0;
  }
  ImU32 color_of(Coat coat) const {
    const ImU32 opaque = colors_[static_cast<std::size_t>(coat.role)];
    return coat.alpha >= 1 ? opaque : faded(opaque, coat.alpha);
  }
  /// What a piece is filled with.
  ImU32 fill_of(const Piece& p) const {
    if (picture::shows_heat(p)) return p.alpha >= 1 ? heat(p.heat) : faded(heat(p.heat), p.alpha);
    return color_of(picture::coat_of(p));
  }

  void rectangle(const Area& a, ImU32 paint) {
    const float corner = std::min(a.width(), a.height()) >= round_from_ ? corner_ : 0;
    list_.AddRectFilled(low(a), high(a), paint, corner);
  }
  void outline(const Area& a, ImU32 paint, float thickness) {
    list_.AddRect(low(a), high(a), paint, corner_, 0, px(thickness));
  }

  void piece(const Piece& p) {
    if (p.alpha <= 0) return;
    switch (p.kind) {
      case Piece::fill:
      case Piece::chip:
      case Piece::hatch:
        filled(p);
        break;
      case Piece::wash:
        list_.AddRectFilled(low(p.area), high(p.area), fill_of(p), corner_);
        break;
      case Piece::outline:
        outline(p.area, fill_of(p), p.state == State::current ? 1.5f : 1.0f);
        break;
      case Piece::dashed:
        dashed(p.area, fill_of(p));
        break;
      case Piece::frame:
        if (p.state == State::predicted) {
          dashed(p.area, fill_of(p));
        } else {
          framed(p.area, fill_of(p));
        }
        break;
      default:
        sign(p);
    }
    if (p.flags != 0) flags(p);
  }

  void filled(const Piece& p) {
    const float side = std::min(p.area.width(), p.area.height());
    if (p.state == State::predicted) return dashed(p.area, fill_of(p));
    if (picture::is_hatched(p)) {
      if (side < px(4)) return rectangle(p.area, faded(fill_of(p), 0.45f));  // too thin for lines
      hatch_in(low(p.area), high(p.area), fill_of(p), 5);
      if (side >= px(8)) outline(p.area, faded(fill_of(p), 0.6f), 1);
      return;
    }
    if (p.kind == Piece::chip) {
      list_.AddRectFilled(low(p.area), high(p.area), fill_of(p), px(4));
      if (p.state != State::current) {
        list_.AddRect(low(p.area), high(p.area), color_of({Role::border, p.alpha}), px(4));
      }
      return;
    }
    rectangle(p.area, fill_of(p));
    if (p.state == State::current && picture::has_own_colour(p)) {
      const float thickness = side >= px(9) ? 2.0f : 1.0f;
      outline(grown(p.area, -px(thickness) / 2), color_of({Role::accent, p.alpha}), thickness);
    }
    if (p.state == State::wrong && side >= px(9)) {
      const float size = px(2.5f), off = size + px(2);
      cross_at({p.area.x1 - off, p.area.y0 + off}, size, readable_on(fill_of(p)));
    }
  }

  void sign(const Piece& p) {
    const Point c = p.area.center();
    const float radius = std::min(p.area.width(), p.area.height()) / 2;
    const ImU32 paint = fill_of(p);
    if (p.kind == Piece::dot) {
      list_.AddCircleFilled({c.x, c.y}, radius, paint);
    } else if (p.kind == Piece::cross) {
      cross_at(c, radius, paint);
    } else {
      const float way = p.kind == Piece::up ? radius : -radius;
      list_.AddTriangleFilled({c.x - radius, c.y + way}, {c.x + radius, c.y + way},
                              {c.x, c.y - way}, paint);
    }
  }
  void cross_at(Point c, float r, ImU32 paint) {
    const float thickness = std::max(r * 0.35f, 1.2f);
    list_.AddLine({c.x - r, c.y - r}, {c.x + r, c.y + r}, paint, thickness);
    list_.AddLine({c.x - r, c.y + r}, {c.x + r, c.y - r}, paint, thickness);
  }
  void dashed(const Area& a, ImU32 paint) {
    const Point corners[] = {{a.x0, a.y0}, {a.x1, a.y0}, {a.x1, a.y1}, {a.x0, a.y1}, {a.x0, a.y0}};
    for (int k = 0; k < 4; ++k) dashes(corners[k], corners[k + 1], paint, 1.2f);
  }
  void dashes(Point from, Point to, ImU32 paint, float thickness) {
    const float length = std::hypot(to.x - from.x, to.y - from.y);
    if (!(length > 0) || !std::isfinite(length)) return;
    const ImVec2 unit((to.x - from.x) / length, (to.y - from.y) / length);
    for (float at = 0; at < length; at += px(8)) {
      const float end = std::min(at + px(4.5f), length);
      list_.AddLine({from.x + unit.x * at, from.y + unit.y * at},
                    {from.x + unit.x * end, from.y + unit.y * end}, paint, px(thickness));
    }
  }
  /// A dark seam keeps it visible on every colour.
  void framed(const Area& a, ImU32 paint) {
    list_.AddRect(low(a), high(a), color(Role::background), corner_, 0, px(4));
    list_.AddRect(low(a), high(a), paint, corner_, 0, px(2));
  }
  void flags(const Piece& p) {
    if ((p.flags & picture::kPicked) != 0)
      framed(grown(p.area, px(0.5f)), color_of({Role::text, p.alpha}));
    if ((p.flags & picture::kFrozen) == 0) return;
    const float size = std::min(px(6), p.area.height() / 2);
    list_.AddTriangleFilled({p.area.x1 - size, p.area.y0}, {p.area.x1, p.area.y0},
                            {p.area.x1, p.area.y0 + size}, color_of({Role::text, p.alpha}));
  }

  void stroke(const Stroke& s) {
    if (s.alpha <= 0 || s.points.size() < 2) return;
    const bool finite = std::all_of(s.points.begin(), s.points.end(),
                                    [](Point p) { return std::isfinite(p.x + p.y); });
    if (!finite) return;
    const bool bright = lit_ != nullptr && lit_->lights(s.of);
    const ImU32 paint = bright ? color_of({Role::text, s.alpha}) : color_of(picture::coat_of(s));
    const float thickness = s.width + (bright ? 0.5f : 0.0f);
    const std::vector<Point>& p = s.points;
    if (s.curved && p.size() == 4) {
      list_.AddBezierCubic({p[0].x, p[0].y}, {p[1].x, p[1].y}, {p[2].x, p[2].y}, {p[3].x, p[3].y},
                           paint, px(thickness));
    } else if (s.dashed) {
      for (std::size_t k = 1; k < p.size(); ++k) dashes(p[k - 1], p[k], paint, thickness);
    } else {
      static_assert(sizeof(Point) == sizeof(ImVec2));
      line_.clear();
      for (const Point at : p) line_.push_back({at.x, at.y});
      list_.AddPolyline(line_.data(), static_cast<int>(line_.size()), paint, 0, px(thickness));
    }
    if (s.arrow) head(p[p.size() - 2], p.back(), paint, s.width);
  }
  void head(Point from, Point to, ImU32 paint, float thickness) {
    const float length = std::hypot(to.x - from.x, to.y - from.y);
    if (length <= 0) return;
    const ImVec2 unit((to.x - from.x) / length, (to.y - from.y) / length);
    const float size = std::min(px(3 + 2 * thickness), length), half = size / 2;
    const ImVec2 base(to.x - unit.x * size, to.y - unit.y * size);
    list_.AddTriangleFilled({to.x, to.y}, {base.x - unit.y * half, base.y + unit.x * half},
                            {base.x + unit.y * half, base.y - unit.x * half}, paint);
  }

  void outline_lit() {
    for (const Piece& p : placed_.pieces) {
      const bool body = p.kind == Piece::fill || p.kind == Piece::chip || p.kind == Piece::hatch ||
                        p.kind == Piece::outline;
      if (body && in_sight(p.area) && lit_->lights(p.of)) {
        outline(grown(p.area, px(0.5f)), color_of({Role::text, p.alpha}), 1.5f);
      }
    }
  }

  void underline(const picture::Differences& differences) {
    const ImU32 ink = color(Role::text), seam = color(Role::background);
    for (const Piece& p : placed_.pieces) {
      const bool body = p.kind == Piece::fill || p.kind == Piece::chip || p.kind == Piece::hatch ||
                        p.kind == Piece::dot;
      if (!body || !in_sight(p.area) || !differences.differs(p.of)) continue;
      const float y = std::round(p.area.y1), inset = std::min(px(1), p.area.width() / 4);
      list_.AddRectFilled({p.area.x0 + inset, y - px(3)}, {p.area.x1 - inset, y}, seam);
      list_.AddRectFilled({p.area.x0 + inset, y - px(2)}, {p.area.x1 - inset, y}, ink);
    }
  }

  /// The colour behind words, opaque.
  ImU32 ground_of(const Piece& p) const {
    const ImU32 paint = fill_of(p);
    const float alpha = static_cast<float>(paint >> IM_COL32_A_SHIFT & 255u) / 255;
    return mixed(palette(theme(), Role::panel), paint | IM_COL32_A_MASK, alpha);
  }
  /// readable_on, remembered: thousands of words stand on a few colours.
  ImU32 ink_on(ImU32 ground) {
    Remembered& slot = inks_[(ground * 2654435761u) >> 24];
    if (slot.ground != ground || !slot.known) slot = {ground, readable_on(ground), true};
    return slot.ink;
  }
  ImU32 ink_of(const Words& w) {
    const bool on = w.on >= 0 && w.on < static_cast<int>(placed_.pieces.size());
    if (w.ink != picture::Ink::on_piece || !on) return color_of({picture::role_of(w), w.alpha});
    const Piece& p = placed_.pieces[static_cast<std::size_t>(w.on)];
    const float opacity = Context::current().opacity();
    if (!picture::stands_for_ground(p)) {
      return color_of({p.state == State::to_come ? Role::muted : Role::text, w.alpha});
    }
    return faded(ink_on(ground_of(p)), w.alpha * opacity);
  }
  void words(const Words& w) {
    if (w.alpha <= 0 || !in_sight(w.area)) return;
    if (w.patch) {
      list_.AddRectFilled({w.area.x0 - px(2), w.area.y0}, {w.area.x1 + px(2), w.area.y1},
                          color_of({Role::panel, 0.85f * w.alpha}));
    }
    const ImU32 ink = ink_of(w);
    draw_text_in({std::round(w.area.x0), std::round(w.area.y0)}, w.text, font_of(w.face), ink);
  }

  struct Remembered {
    ImU32 ground = 0, ink = 0;
    bool known = false;
  };

  const Placed& placed_;
  const picture::Lighting* lit_;
  ImDrawList& list_;
  float round_from_, corner_;
  Area seen_;
  std::array<ImU32, kRoleCount> colors_{};
  std::array<Remembered, 256> inks_{};
  std::vector<ImVec2> line_;
};

}  // namespace

float PictureMetrics::width(std::string_view text, picture::Face face) const {
  return text_size(text, font_of(face)).x;
}
float PictureMetrics::height(picture::Face face) const {
  return font_pixels(font_of(face));
}

void draw(const Placed& placed, const picture::Lighting* lit,
          const picture::Differences* differences) {
  const Painter painter(placed, lit, differences);
}

picture::Palette picture_palette() {
  const auto rgb = [](ImU32 color) {
    return (color >> IM_COL32_R_SHIFT & 255u) << 16 | (color >> IM_COL32_G_SHIFT & 255u) << 8 |
           (color >> IM_COL32_B_SHIFT & 255u);
  };
  picture::Palette made;
  for (std::size_t k = 0; k < made.paints.size(); ++k) {
    made.paints[k] = rgb(color(static_cast<Role>(k)));
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

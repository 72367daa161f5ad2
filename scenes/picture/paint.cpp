#include "scenes/picture/paint.hpp"

#include <algorithm>
#include <cmath>

namespace tilestep::picture {
namespace {

std::uint32_t blend(std::uint32_t a, std::uint32_t b, float t) {
  const auto part = static_cast<int>(t * 256 + 0.5f);
  std::uint32_t mixed = 0;
  for (const int shift : {0, 8, 16}) {
    const int x = static_cast<int>(a >> shift & 255u), y = static_cast<int>(b >> shift & 255u);
    mixed |= static_cast<std::uint32_t>((x * 256 + (y - x) * part + 128) >> 8) << shift;
  }
  return mixed;
}

/// Black or white, whichever reads better: where its contrast by WCAG 2.1 is the larger one, which is above 4.5:1 on any
/// ground. A black that is nearly black would leave some grays out.
std::uint32_t readable_on(std::uint32_t ground) {
  const auto linear = [&](int shift) {
    const float c = float(ground >> shift & 255u) / 255;
    return c <= 0.04045f ? c / 12.92f : std::pow((c + 0.055f) / 1.055f, 2.4f);
  };
  const float luminance = 0.2126f * linear(16) + 0.7152f * linear(8) + 0.0722f * linear(0);
  return luminance > 0.1791f ? 0x000000u : 0xFFFFFFu;
}

Area grown(const Area& a, float by) {
  return {a.x0 - by, a.y0 - by, a.x1 + by, a.y1 + by};
}
/// What of it is inside: an outline at the picture's edge would be cut off.
Area inside(const Area& a, const Area& all) {
  return {std::max(a.x0, all.x0), std::max(a.y0, all.y0), std::min(a.x1, all.x1),
          std::min(a.y1, all.y1)};
}
float side_of(const Area& a) {
  return std::min(a.width(), a.height());
}
Color faded(Color color, float alpha) {
  return {color.rgb, color.alpha * alpha};
}

/// Draws one picture once.
class Painter {
 public:
  Painter(const Placed& placed, const Palette& palette, const Metrics& metrics,
          const Emphasis& emphasis, const Area& seen, Canvas& canvas)
      : placed_(placed),
        palette_(palette),
        metrics_(metrics),
        lit_(emphasis.lit != nullptr && emphasis.lit->any() ? emphasis.lit : nullptr),
        differences_(emphasis.differences),
        seen_(seen),
        canvas_(canvas) {
    for (const Piece& p : placed.pieces) {
      if (p.kind == Piece::slab) slabs_.push_back(&p);
    }
    if (emphasis.lit_boxes != nullptr) lit_boxes_ = *emphasis.lit_boxes;
    if (emphasis.lit_boxes != nullptr && (lit_ != nullptr || !lit_boxes_.empty())) fade(lit_boxes_);
  }

  void run() {
    for (const Layer layer : {Layer::ground, Layer::body, Layer::over}) {
      for (const Piece& each : placed_.pieces) {
        if (each.layer == layer && in_sight(each.area) && each.alpha > 0) piece(each);
      }
      for (const Stroke& each : placed_.strokes) {
        if (each.layer == layer) stroke(each);
      }
    }
    const bool stand_out = lit_ != nullptr || differences_ != nullptr;
    for (const Piece& each : placed_.pieces) {
      if (stand_out && in_sight(each.area)) emphasize(each);
    }
    for (const Area& each : lit_boxes_) {
      canvas_.outline(grown(each, px(4)), {color_of(Coat{Role::text}), px(1.5f)}, px(6));
    }
    for (const Words& each : placed_.words) words(each);
  }

 private:
  bool is_lit(const Identity& of) const { return lit_ != nullptr && lit_->lights(of); }
  /// Says how much of each piece's and stroke's colour is left.
  void fade(std::vector<Area> bright) {
    for (const Piece& p : placed_.pieces) {
      if (is_lit(p.of)) bright.push_back(p.area);
    }
    const auto left = [&](const Identity& of, Point at) {
      const bool keeps =
          of.mark < 0 || is_lit(of) ||
          std::any_of(bright.begin(), bright.end(), [&](const Area& a) { return a.holds(at); });
      return keeps ? 1 : 0.45f;
    };
    for (const Piece& p : placed_.pieces) pieces_left_.push_back(left(p.of, p.area.center()));
    for (const Stroke& s : placed_.strokes) {
      const std::size_t half = s.points.size() / 2;
      strokes_left_.push_back(s.points.empty() ? 1 : left(s.of, s.points[half]));
    }
  }
  float left_of(const Piece& p) const {
    return pieces_left_.empty() ? 1 : pieces_left_[&p - placed_.pieces.data()];
  }
  float left_of(const Stroke& s) const {
    return strokes_left_.empty() ? 1 : strokes_left_[&s - placed_.strokes.data()];
  }

  float px(float design) const { return metrics_.px(design); }
  bool in_sight(const Area& a) const { return a.is_finite() && meet(a, seen_); }
  Color color_of(Coat coat) const {
    return {palette_.paints[static_cast<std::size_t>(coat.role)], coat.alpha};
  }
  Color ink_of(Role role, float alpha) const {
    return {palette_.inks[static_cast<std::size_t>(role)], alpha};
  }
  Color color_of(const Piece& p) const { return faded(unfaded(p), left_of(p)); }
  Color unfaded(const Piece& p) const {
    if (!shows_heat(p)) return color_of(coat_of(p));
    const float at = std::clamp(p.heat, 0.0f, 1.0f) * float(palette_.heat.size() - 1);
    const auto low = std::min(static_cast<std::size_t>(at), palette_.heat.size() - 2);
    return {blend(palette_.heat[low], palette_.heat[low + 1], at - float(low)), p.alpha};
  }

  void outline(const Area& a, Color color, float thickness) {
    canvas_.outline(a, {color, px(thickness)}, px(2));
  }
  void dashed(const Area& a, Color color) { canvas_.outline(a, {color, px(1.2f), Pen::dashed}, 0); }

  void piece(const Piece& p) {
    const Color color = color_of(p);
    const Area& a = p.area;
    const Point c = a.center();
    const float radius = side_of(a) / 2;
    canvas_.begin(p.of);
    switch (p.kind) {
      case Piece::fill:
      case Piece::chip:
      case Piece::hatch:
        body(p, color);
        break;
      case Piece::wash:
        canvas_.fill(a, color, px(2));
        break;
      case Piece::outline:
        outline(a, color, p.state == State::current ? 1.5f : 1);
        break;
      case Piece::dashed:
        dashed(a, color);
        break;
      case Piece::stripes:
        stripes(p);
        break;
      case Piece::slab:
        slab(p);
        break;
      case Piece::frame:
        p.state == State::predicted ? dashed(a, color) : framed(a, color);
        break;
      case Piece::dot:
        canvas_.dot(c, radius, color);
        break;
      case Piece::cross:
        cross(c, radius, color);
        break;
      default:
        const float way = p.kind == Piece::up ? radius : -radius;
        canvas_.triangle({c.x - radius, c.y + way}, {c.x + radius, c.y + way}, {c.x, c.y - way},
                         color);
    }
    if ((p.flags & kPicked) != 0) framed(grown(a, px(0.5f)), color_of(Coat{Role::text, p.alpha}));
  }
  void body(const Piece& p, Color color) {
    const Area& a = p.area;
    const float side = side_of(a), corner = side >= px(16) ? px(2) : 0;
    if (p.state == State::predicted) return dashed(a, color);
    if (is_hatched(p)) {
      if (side < px(4)) return canvas_.fill(a, faded(color, 0.45f), corner);  // too thin for lines
      canvas_.hatch(a, color);
      if (side >= px(8)) outline(a, faded(color, 0.6f), 1);
      return;
    }
    const bool chip = p.kind == Piece::chip;
    canvas_.fill(a, color, chip ? px(4) : corner);
    if (chip && p.state != State::current) {
      canvas_.outline(a, {color_of(Coat{Role::border, p.alpha})}, px(4));
    }
    if (chip) return;
    if (p.state == State::current && has_own_colour(p)) {
      const float thickness = side >= px(9) ? 2 : 1;
      outline(grown(a, -px(thickness) / 2), color_of(Coat{Role::accent, p.alpha}), thickness);
    }
    if (p.state == State::wrong && side >= px(9)) {
      const float size = px(2.5f), off = size + px(2);
      cross({a.x1 - off, a.y0 + off}, size, {readable_on(color.rgb), p.alpha});
    }
  }
  /// Opaque, so that a place in another stands out from it.
  void slab(const Piece& p) {
    canvas_.fill(p.area, color_of(Coat{Role::panel, p.alpha}), px(4));
    canvas_.fill(p.area, color_of(Coat{Role::background, p.heat * p.alpha}), px(4));
    canvas_.outline(p.area, {color_of(Coat{Role::border, p.alpha}), px(0.75f + 1.25f * p.heat)},
                    px(4));
  }
  void stripes(const Piece& p) {
    const Color color = color_of(Coat{Role::panel, 0.55f * p.alpha});
    if (side_of(p.area) < px(4)) return canvas_.fill(p.area, color, 0);  // too thin for lines
    canvas_.hatch(p.area, color);
  }
  void cross(Point c, float r, Color color) {
    const Pen pen{color, std::max(r * 0.35f, 1.2f)};
    canvas_.line(std::array{Point{c.x - r, c.y - r}, Point{c.x + r, c.y + r}}, pen);
    canvas_.line(std::array{Point{c.x - r, c.y + r}, Point{c.x + r, c.y - r}}, pen);
  }
  /// A dark seam keeps it visible on every colour.
  void framed(const Area& a, Color color) {
    outline(a, {color_of(Coat{Role::background}).rgb, color.alpha}, 4);
    outline(a, color, 2);
  }
  void emphasize(const Piece& p) {
    const bool body = p.kind == Piece::fill || p.kind == Piece::chip || p.kind == Piece::hatch;
    if ((body || p.kind == Piece::outline) && is_lit(p.of)) {
      constexpr float kThick = 1.5f;
      outline(inside(grown(p.area, px(0.5f)), grown(placed_.area, -px(kThick / 2))),
              color_of(Coat{Role::text, p.alpha}), kThick);
    }
    if (differences_ == nullptr || !(body || p.kind == Piece::dot)) return;
    if (!differences_->differs(p.of)) return;
    const float y = std::round(p.area.y1), inset = std::min(px(1), p.area.width() / 4);
    for (const auto& [role, high] : {std::pair{Role::background, px(3)}, {Role::text, px(2)}}) {
      canvas_.fill({p.area.x0 + inset, y - high, p.area.x1 - inset, y}, color_of(Coat{role}), 0);
    }
  }

  void stroke(const Stroke& s) {
    if (s.alpha <= 0 || s.points.size() < 2) return;
    const bool finite = std::all_of(s.points.begin(), s.points.end(),
                                    [](Point p) { return std::isfinite(p.x + p.y); });
    if (!finite) return;
    const bool bright = is_lit(s.of);
    const Color color = faded(color_of(coat_of(s)), left_of(s));
    const Pen::Kind kind = s.curved && s.points.size() == 4 ? Pen::curved
                           : s.dashed                       ? Pen::dashed
                                                            : Pen::solid;
    canvas_.begin(s.of);
    // A line on its way may have more points than it will have, or fewer.
    const std::size_t tinted = std::min(s.points.size(), s.feet.size());
    if (tinted > 1)
      canvas_.under({s.points.data(), tinted}, {s.feet.data(), tinted}, faded(color, 0.18f));
    canvas_.line(s.points, {color, px(s.width + (bright ? 1.5f : 0)), kind});
    if (!s.arrow) return;
    const Point to = s.points.back(), from = s.points[s.points.size() - 2];
    const float length = std::hypot(to.x - from.x, to.y - from.y);
    if (length <= 0) return;
    const float size = std::min(px(3 + 2 * s.width), length);
    const float x = (to.x - from.x) / length * size, y = (to.y - from.y) / length * size;
    canvas_.triangle(to, {to.x - x - y / 2, to.y - y + x / 2}, {to.x - x + y / 2, to.y - y - x / 2},
                     color);
  }

  /// What a thing at `at` stands on: the panel, or the last place there.
  std::uint32_t below(Point at) const {
    const std::uint32_t panel = color_of(Coat{Role::panel}).rgb;
    std::uint32_t ground = panel;
    for (const Piece* p : slabs_) {
      if (!p->area.holds(at)) continue;
      ground = blend(panel, color_of(Coat{Role::background}).rgb, p->heat * p->alpha);
    }
    return ground;
  }
  Color ink_of(const Words& w) {
    const bool on = w.on >= 0 && w.on < static_cast<int>(placed_.pieces.size());
    if (w.ink != Ink::on_piece || !on) return ink_of(role_of(w), w.alpha);
    const Piece& p = placed_.pieces[w.on];
    if (!stands_for_ground(p)) {
      return ink_of(p.state == State::to_come ? Role::muted : Role::text, w.alpha);
    }
    const Color over = color_of(p);
    const std::uint32_t ground =
        blend(below(p.area.center()), over.rgb, std::clamp(over.alpha, 0.0f, 1.0f));
    // Remembered: thousands of words stand on a few colours.
    auto& [known, ink] = inks_[(ground * 2654435761u) >> 24];
    if (known != ground + 1) ink = readable_on(ground);
    known = ground + 1;
    return {ink, w.alpha};
  }
  void words(const Words& w) {
    if (w.alpha <= 0 || w.text.empty() || !in_sight(w.area)) return;
    if (w.patch) {
      const Area wider{w.area.x0 - px(2), w.area.y0, w.area.x1 + px(2), w.area.y1};
      canvas_.fill(wider, color_of(Coat{Role::panel, 0.85f * w.alpha}), 0);
    }
    canvas_.begin(w.of);
    canvas_.text(w, ink_of(w));
    if (lit_ == nullptr || !lit_->lights(w)) return;
    canvas_.fill({w.area.x0, w.area.y1 - px(1), w.area.x1, w.area.y1 + px(1)},
                 color_of(Coat{Role::text, w.alpha}), 0);
  }

  const Placed& placed_;
  const Palette& palette_;
  const Metrics& metrics_;
  const Lighting* lit_;
  const Differences* differences_;
  const Area seen_;
  Canvas& canvas_;
  std::vector<Area> lit_boxes_;
  std::vector<const Piece*> slabs_;
  std::vector<float> pieces_left_, strokes_left_;                    ///< empty: all of it
  std::array<std::pair<std::uint32_t, std::uint32_t>, 256> inks_{};  ///< ground + 1, ink
};

}  // namespace

void paint(const Placed& placed, const Palette& palette, const Metrics& metrics,
           const Emphasis& emphasis, const Area& seen, Canvas& canvas) {
  Painter(placed, palette, metrics, emphasis, seen, canvas).run();
}

}  // namespace tilestep::picture

#include "scenes/picture/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace tilestep::picture {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:  // XML has no other control characters
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') out += c;
    }
  }
  return out;
}

std::string hex(std::uint32_t rgb) {
  return fmt::format("#{:06x}", rgb & 0xFFFFFFu);
}
std::uint32_t blend(std::uint32_t a, std::uint32_t b, float t) {
  std::uint32_t mixed = 0;
  for (const int shift : {0, 8, 16}) {
    const auto x = static_cast<float>(a >> shift & 255u), y = static_cast<float>(b >> shift & 255u);
    mixed |= static_cast<std::uint32_t>(std::lround(x + (y - x) * t)) << shift;
  }
  return mixed;
}
/// Relative luminance by WCAG 2.1.
double luminance(std::uint32_t rgb) {
  const auto linear = [&](int shift) {
    const double c = static_cast<double>(rgb >> shift & 255u) / 255;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(16) + 0.7152 * linear(8) + 0.0722 * linear(0);
}

bool is_finite(const Area& a) {
  return std::isfinite(a.x0 + a.y0 + a.x1 + a.y1);
}

/// Em sizes in design pixels, and families, in the order of Face.
struct Type {
  float em;
  const char* style;
};
constexpr Type kTypes[] = {{13, "sans"}, {16, "sans"}, {16, "sans bold"}, {20, "sans bold"},
                           {13, "mono"}, {16, "mono"}, {28, "mono"}};

class Writer {
 public:
  Writer(const Placed& placed, const std::vector<const Mark*>& marks, const Palette& palette,
         const Metrics& metrics, const std::function<std::string(const Key&)>& explain)
      : placed_(placed), palette_(palette), metrics_(metrics), explain_(explain) {
    for (Part& part : parts_of(placed, marks)) parts_.emplace(part.id, std::move(part));
    body();
  }

  std::string text() const {
    const Area& a = placed_.area;
    // A4 across, without its margins.
    constexpr double kWide = 277, kTall = 190;
    const double w = std::max(1.0, double(a.width())), h = std::max(1.0, double(a.height()));
    const double scale = std::min(kWide / w, kTall / h);
    std::string out = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{:.1f}mm\" "
        "height=\"{:.1f}mm\" viewBox=\"{:g} {:g} {:g} {:g}\">\n"
        "<style>.sans{{font-family:Inter,'Segoe UI',Helvetica,Arial,sans-serif}}"
        ".mono{{font-family:'JetBrains Mono',Menlo,Consolas,monospace}}"
        ".bold{{font-weight:600}}text{{white-space:pre}}</style>\n",
        w * scale, h * scale, a.x0, a.y0, w, h);
    out += "<defs>\n";
    for (const std::uint32_t ink : hatches_) {
      out += fmt::format(
          "<pattern id=\"hatch-{0:06x}\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
          "patternTransform=\"rotate(45)\"><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"5\" "
          "stroke=\"{1}\" stroke-width=\"1.4\"/></pattern>\n",
          ink, hex(ink));
    }
    out += "</defs>\n";
    out += fmt::format("<rect {} fill=\"{}\"/>\n", rectangle(a), hex(paint(Role::panel)));
    return out + body_ + "</svg>\n";
  }

 private:
  std::uint32_t paint(Role of) const { return palette_.paints[static_cast<std::size_t>(of)]; }
  static std::string rectangle(const Area& a) {
    return fmt::format("x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"", a.x0, a.y0,
                       std::max(a.width(), 0.0f), std::max(a.height(), 0.0f));
  }

  /// The name is an id once; what else is drawn of it has a number after it.
  std::string identity(std::string name) {
    for (char& c : name) {
      const bool fine = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
      if (!fine) c = '_';
    }
    if (name.empty() || std::isalpha(static_cast<unsigned char>(name[0])) == 0) name = "_" + name;
    const int number = used_[name]++;
    return number == 0 ? name : fmt::format("{}.{}", name, number);
  }

  /// An element with its id, value and sentence: `shape` is all but these.
  void put(const Identity& of, const std::string& name, const std::string& element,
           const std::string& attributes, const std::string& content = {}) {
    body_ += fmt::format("<{} id=\"{}\" {}", element, identity(name), attributes);
    const auto part = parts_.find(name);
    if (part != parts_.end() && !part->second.value.empty()) {
      body_ += fmt::format(" data-value=\"{}\"", escaped(part->second.value));
    }
    const std::string& title = of.mark >= 0 ? sentence(of.key) : kNothing;
    if (title.empty() && content.empty()) {
      body_ += "/>\n";
      return;
    }
    if (!title.empty()) body_ += fmt::format("><title>{}</title>", escaped(title));
    body_ += fmt::format("{}{}</{}>\n", title.empty() ? ">" : "", content, element);
  }
  const std::string& sentence(const Key& key) {
    const auto [found, fresh] = sentences_.try_emplace(key);
    if (fresh && explain_) found->second = explain_(key);
    return found->second;
  }

  std::uint32_t color_of(const Piece& p) const {
    if (shows_heat(p)) {
      const float at = std::clamp(p.heat, 0.0f, 1.0f) * float(palette_.heat.size() - 1);
      const auto low = std::min(static_cast<std::size_t>(at), palette_.heat.size() - 2);
      return blend(palette_.heat[low], palette_.heat[low + 1], at - static_cast<float>(low));
    }
    return paint(coat_of(p).role);
  }
  float alpha_of(const Piece& p) const { return shows_heat(p) ? p.alpha : coat_of(p).alpha; }

  std::string stroked(std::uint32_t ink, float width, float alpha, bool dashed) const {
    return fmt::format(
        "fill=\"none\" stroke=\"{}\" stroke-width=\"{:.2f}\" stroke-opacity=\"{:.2f}\"{}", hex(ink),
        metrics_.px(width), alpha,
        dashed ? fmt::format(" stroke-dasharray=\"{0:.1f} {0:.1f}\"", metrics_.px(4))
               : std::string());
  }
  static std::string filled(std::uint32_t ink, float alpha) {
    return fmt::format("fill=\"{}\" fill-opacity=\"{:.2f}\"", hex(ink), alpha);
  }

  void piece(const Piece& p) {
    if (!is_finite(p.area) || p.alpha <= 0) return;
    const std::uint32_t ink = color_of(p);
    const float alpha = alpha_of(p);
    const std::string name = to_text(p.of.key), at = rectangle(p.area);
    const Point c = p.area.center();
    const float r = std::min(p.area.width(), p.area.height()) / 2;
    const bool dashed = p.kind == Piece::dashed || p.state == State::predicted;
    if (p.kind == Piece::up || p.kind == Piece::down) {
      const float way = p.kind == Piece::up ? r : -r;
      put(p.of, name, "polygon",
          fmt::format("points=\"{:.2f},{:.2f} {:.2f},{:.2f} {:.2f},{:.2f}\" {}", c.x - r, c.y + way,
                      c.x + r, c.y + way, c.x, c.y - way, filled(ink, alpha)));
    } else if (p.kind == Piece::cross) {
      put(p.of, name, "path",
          fmt::format("d=\"M{:.2f} {:.2f}L{:.2f} {:.2f}M{:.2f} {:.2f}L{:.2f} {:.2f}\" {}", c.x - r,
                      c.y - r, c.x + r, c.y + r, c.x - r, c.y + r, c.x + r, c.y - r,
                      stroked(ink, 1.5f, alpha, false)));
    } else if (p.kind == Piece::dot) {
      put(p.of, name, "circle",
          fmt::format("cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:.2f}\" {}", c.x, c.y, r,
                      filled(ink, alpha)));
    } else if (dashed || p.kind == Piece::outline || p.kind == Piece::frame) {
      put(p.of, name, "rect",
          at + " " + stroked(ink, p.kind == Piece::frame ? 2 : 1, alpha, dashed));
    } else if (is_hatched(p)) {
      hatches_.insert(ink);
      put(p.of, name, "rect",
          fmt::format("{} fill=\"url(#hatch-{:06x})\" fill-opacity=\"{:.2f}\"", at, ink, alpha));
    } else {
      put(p.of, name, "rect",
          fmt::format("{} rx=\"{:.1f}\" {}", at, metrics_.px(p.kind == Piece::chip ? 4 : 1),
                      filled(ink, alpha)));
    }
    marks_on(p);
  }
  /// What stands on a piece besides its colour.
  void marks_on(const Piece& p) {
    const auto frame = [&](Role of, float grow) {
      const Area a{p.area.x0 - grow, p.area.y0 - grow, p.area.x1 + grow, p.area.y1 + grow};
      put({}, to_text(p.of.key), "rect",
          rectangle(a) + " " + stroked(paint(of), 2, p.alpha, false));
    };
    if (has_own_colour(p) && p.state == State::current) frame(Role::accent, -metrics_.px(1));
    if ((p.flags & kPicked) != 0) frame(Role::text, metrics_.px(0.5f));
  }

  void stroke(const Stroke& s) {
    if (s.points.size() < 2 || s.alpha <= 0) return;
    std::string path;
    for (std::size_t k = 0; k < s.points.size(); ++k) {
      if (!std::isfinite(s.points[k].x + s.points[k].y)) return;
      const char* how = k == 0                             ? "M"
                        : s.curved && s.points.size() == 4 ? (k == 1 ? "C" : " ")
                                                           : "L";
      path += fmt::format("{}{:.2f} {:.2f}", how, s.points[k].x, s.points[k].y);
    }
    const std::uint32_t ink = paint(coat_of(s).role);
    put(s.of, to_text(s.of.key), "path",
        fmt::format("d=\"{}\" {}", path, stroked(ink, s.width, coat_of(s).alpha, s.dashed)));
    if (!s.arrow) return;
    const Point to = s.points.back(), from = s.points[s.points.size() - 2];
    const float length = std::hypot(to.x - from.x, to.y - from.y);
    if (!(length > 0)) return;
    const float size = metrics_.px(6), x = (to.x - from.x) / length * size,
                y = (to.y - from.y) / length * size;
    put({}, to_text(s.of.key), "polygon",
        fmt::format("points=\"{:.2f},{:.2f} {:.2f},{:.2f} {:.2f},{:.2f}\" {}", to.x, to.y,
                    to.x - x - y / 2, to.y - y + x / 2, to.x - x + y / 2, to.y - y - x / 2,
                    filled(ink, coat_of(s).alpha)));
  }

  std::uint32_t ink_of(const Words& w) const {
    const bool on = w.on >= 0 && w.on < static_cast<int>(placed_.pieces.size());
    if (w.ink != Ink::on_piece || !on) return paint(role_of(w));
    const Piece& p = placed_.pieces[static_cast<std::size_t>(w.on)];
    if (!stands_for_ground(p)) return paint(p.state == State::to_come ? Role::muted : Role::text);
    const std::uint32_t ground =
        blend(paint(Role::panel), color_of(p), std::clamp(alpha_of(p), 0.0f, 1.0f));
    return luminance(ground) > 0.179 ? 0x0B0E12u : 0xFFFFFFu;
  }
  void words(const Words& w) {
    if (w.alpha <= 0 || w.text.empty() || !is_finite(w.area)) return;
    if (w.patch) {
      put({}, to_text(w.of.key), "rect",
          rectangle(w.area) + " " + filled(paint(Role::panel), 0.85f));
    }
    const Type& type = kTypes[static_cast<std::size_t>(w.face)];
    put(w.of, to_text(w.of.key), "text",
        fmt::format("x=\"{:.2f}\" y=\"{:.2f}\" class=\"{}\" font-size=\"{:.2f}\" "
                    "textLength=\"{:.2f}\" lengthAdjust=\"spacingAndGlyphs\" {}",
                    w.area.x0, w.area.y0 + w.area.height() * 0.79f, type.style,
                    metrics_.px(type.em), w.area.width(), filled(ink_of(w), w.alpha)),
        escaped(w.text));
  }

  void body() {
    for (const Room& room : placed_.rooms) {
      put({}, to_text(room.key), "rect", rectangle(room.area) + " fill=\"none\"");
    }
    for (const Layer layer : {Layer::ground, Layer::body, Layer::over}) {
      for (const Piece& each : placed_.pieces) {
        if (each.layer == layer) piece(each);
      }
      for (const Stroke& each : placed_.strokes) {
        if (each.layer == layer) stroke(each);
      }
    }
    for (const Words& each : placed_.words) words(each);
  }

  const std::string kNothing;
  const Placed& placed_;
  const Palette& palette_;
  const Metrics& metrics_;
  const std::function<std::string(const Key&)>& explain_;
  std::map<std::string, Part> parts_;
  std::map<std::string, int> used_;
  std::map<Key, std::string> sentences_;
  std::set<std::uint32_t> hatches_;
  std::string body_;
};

}  // namespace

std::string svg(const Placed& placed, const std::vector<const Mark*>& marks, const Palette& palette,
                const Metrics& metrics, const std::function<std::string(const Key&)>& explain) {
  return Writer(placed, marks, palette, metrics, explain).text();
}

}  // namespace tilestep::picture

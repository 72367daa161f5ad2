#include "scenes/picture/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

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
/// Em sizes in design pixels, and families, in the order of Face.
struct Type {
  float em;
  const char* style;
};
constexpr Type kTypes[] = {{13, "sans"}, {16, "sans"}, {16, "sans bold"}, {20, "sans bold"},
                           {13, "mono"}, {16, "mono"}, {28, "mono"}};

std::string rectangle(const Area& a) {
  return fmt::format("x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"", a.x0, a.y0,
                     std::max(a.width(), 0.0f), std::max(a.height(), 0.0f));
}
std::string filled(Color color) {
  return fmt::format("fill=\"{}\" fill-opacity=\"{:.2f}\"", hex(color.rgb), color.alpha);
}

class Writer final : public Canvas {
 public:
  Writer(const Placed& placed, const std::vector<const Mark*>& marks, const Palette& palette,
         const Metrics& metrics, const std::function<std::string(const Key&)>& explain)
      : metrics_(metrics), explain_(explain) {
    for (Part& part : parts_of(placed, marks)) parts_.emplace(part.id, std::move(part));
    for (const Room& room : placed.rooms) {
      begin({room.key});
      put("rect", rectangle(room.area) + " fill=\"none\"");
    }
    paint(placed, palette, metrics, {}, placed.area, *this);
  }

  std::string text(const Area& a, std::uint32_t panel) const {
    // A4 across, without its margins.
    constexpr double kWide = 277, kTall = 190;
    const double w = std::max(1.0, double(a.width())), h = std::max(1.0, double(a.height()));
    const double scale = std::min(kWide / w, kTall / h);
    std::string out = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{:.1f}mm\" "
        "height=\"{:.1f}mm\" viewBox=\"{:g} {:g} {:g} {:g}\">\n"
        "<style>@page{{size:A4 landscape;margin:10mm}}.sans{{font-family:Inter,'Segoe "
        "UI',Helvetica,Arial,sans-serif}}"
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
    return out + fmt::format("<rect {} {}/>\n", rectangle(a), filled({panel})) + body_ + "</svg>\n";
  }

  void begin(const Identity& of) override { of_ = of; }
  void fill(const Area& area, Color color, float corner) override {
    put("rect", fmt::format("{} rx=\"{:.1f}\" {}", rectangle(area), corner, filled(color)));
  }
  void outline(const Area& area, const Pen& pen, float corner) override {
    put("rect", fmt::format("{} rx=\"{:.1f}\" {}", rectangle(area), corner, stroked(pen)));
  }
  void hatch(const Area& area, Color color) override {
    hatches_.insert(color.rgb);
    put("rect", fmt::format("{} fill=\"url(#hatch-{:06x})\" fill-opacity=\"{:.2f}\"",
                            rectangle(area), color.rgb, color.alpha));
  }
  void dot(Point c, float radius, Color color) override {
    put("circle", fmt::format("cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{:.2f}\" {}", c.x, c.y, radius,
                              filled(color)));
  }
  void triangle(Point a, Point b, Point c, Color color) override {
    put("polygon", fmt::format("points=\"{:.2f},{:.2f} {:.2f},{:.2f} {:.2f},{:.2f}\" {}", a.x, a.y,
                               b.x, b.y, c.x, c.y, filled(color)));
  }
  void line(std::span<const Point> points, const Pen& pen) override {
    std::string path;
    for (std::size_t k = 0; k < points.size(); ++k) {
      const char* how = k == 0 ? "M" : pen.kind != Pen::curved ? "L" : k == 1 ? "C" : " ";
      path += fmt::format("{}{:.2f} {:.2f}", how, points[k].x, points[k].y);
    }
    put("path", fmt::format("d=\"{}\" {}", path, stroked(pen)));
  }
  void under(std::span<const Point> points, std::span<const float> feet, Color color) override {
    std::string path;
    for (std::size_t k = 0; k < points.size(); ++k)
      path += fmt::format("{:.2f},{:.2f} ", points[k].x, points[k].y);
    for (std::size_t k = points.size(); k-- > 0;)
      path += fmt::format("{:.2f},{:.2f} ", points[k].x, feet[k]);
    put("polygon", fmt::format("points=\"{}\" {}", path, filled(color)));
  }
  void text(const Words& w, Color color) override {
    const Type& type = kTypes[static_cast<std::size_t>(w.face)];
    put("text",
        fmt::format("x=\"{:.2f}\" y=\"{:.2f}\" class=\"{}\" font-size=\"{:.2f}\" "
                    "textLength=\"{:.2f}\" lengthAdjust=\"spacingAndGlyphs\" {}",
                    w.area.x0, w.area.y0 + w.area.height() * 0.79f, type.style,
                    metrics_.px(type.em), w.area.width(), filled(color)),
        escaped(w.text));
  }

 private:
  std::string stroked(const Pen& pen) const {
    const bool dashed = pen.kind == Pen::dashed;
    return fmt::format(
        "fill=\"none\" stroke=\"{}\" stroke-width=\"{:.2f}\" stroke-opacity=\"{:.2f}\"{}",
        hex(pen.color.rgb), pen.thickness, pen.color.alpha,
        dashed ? fmt::format(" stroke-dasharray=\"{0:.1f} {0:.1f}\"", metrics_.px(4)) : "");
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

  /// An element; the first of a thing has its id, value and sentence.
  void put(std::string_view element, const std::string& attributes, std::string content = {}) {
    body_ += fmt::format("<{} ", element);
    if (const auto of = std::exchange(of_, std::nullopt)) {
      const std::string name = to_text(of->key);
      body_ += fmt::format("id=\"{}\" ", identity(name));
      const auto part = parts_.find(name);
      if (part != parts_.end() && !part->second.value.empty()) {
        body_ += fmt::format("data-value=\"{}\" ", escaped(part->second.value));
      }
      const std::string title = of->mark >= 0 ? sentence(of->key) : std::string();
      if (!title.empty()) content = fmt::format("<title>{}</title>", escaped(title)) + content;
    }
    body_ += attributes;
    body_ += content.empty() ? "/>\n" : fmt::format(">{}</{}>\n", content, element);
  }
  const std::string& sentence(const Key& key) {
    const auto [found, fresh] = sentences_.try_emplace(key);
    if (fresh && explain_) found->second = explain_(key);
    return found->second;
  }

  const Metrics& metrics_;
  const std::function<std::string(const Key&)>& explain_;
  std::optional<Identity> of_;  ///< what the next element is of
  std::map<std::string, Part> parts_;
  std::map<std::string, int> used_;
  std::map<Key, std::string> sentences_;
  std::set<std::uint32_t> hatches_;
  std::string body_;
};

}  // namespace

std::string svg(const Placed& placed, const std::vector<const Mark*>& marks, const Palette& palette,
                const Metrics& metrics, const std::function<std::string(const Key&)>& explain) {
  const Writer writer(placed, marks, palette, metrics, explain);
  Area all = placed.area;
  for (const Piece& piece : placed.pieces) {
    const auto& [x0, y0, x1, y1] = piece.area;
    if (piece.kind == Piece::slab) all = joined(all, {x0 - 2, y0 - 2, x1 + 2, y1 + 2});
  }
  return writer.text(all, palette.paints[static_cast<std::size_t>(Role::panel)]);
}

}  // namespace tilestep::picture

#include "app/cli/site/flip_book.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "scenes/picture/shot.hpp"
#include "scenes/ui/picture_view.hpp"

namespace tilestep::app {

using nlohmann::json;
using picture::Area;

namespace {

enum Kind { kFill, kOutline, kHatch, kDot, kPolygon, kLine, kText };

int tenths(float length) {
  return std::isfinite(length) ? static_cast<int>(std::lround(length * 10)) : 0;
}

/// A shape as painted, without the colour's place in the table of colours.
struct Shape {
  Kind kind = kFill;
  std::string id;
  picture::Key key;
  bool titled = false;  ///< the first of a thing that can be pointed at
  picture::Color color;
  std::vector<int> numbers;
  std::string text;
};

/// Keeps all that is painted, in order.
class Recorder final : public picture::Canvas {
 public:
  void begin(const picture::Identity& of) override {
    of_ = of;
    fresh_ = true;
  }
  void fill(const Area& area, picture::Color color, float corner) override {
    Shape& shape = put(kFill, color, area);
    shape.numbers.push_back(tenths(corner));
  }
  void outline(const Area& area, const picture::Pen& pen, float corner) override {
    Shape& shape = put(kOutline, pen.color, area);
    shape.numbers.insert(shape.numbers.end(), {tenths(corner), tenths(pen.thickness),
                                               pen.kind == picture::Pen::dashed ? 1 : 0});
  }
  void hatch(const Area& area, picture::Color color) override { put(kHatch, color, area); }
  void dot(picture::Point center, float radius, picture::Color color) override {
    put(kDot, color).numbers = {tenths(center.x), tenths(center.y), tenths(radius)};
  }
  void triangle(picture::Point a, picture::Point b, picture::Point c,
                picture::Color color) override {
    add_points(put(kPolygon, color), std::array{a, b, c});
  }
  void line(std::span<const picture::Point> points, const picture::Pen& pen) override {
    Shape& shape = put(kLine, pen.color);
    shape.numbers = {tenths(pen.thickness), static_cast<int>(pen.kind)};
    add_points(shape, points);
  }
  void under(std::span<const picture::Point> points, std::span<const float> feet,
             picture::Color color) override {
    Shape& shape = put(kPolygon, color);
    add_points(shape, points);
    for (std::size_t k = points.size(); k-- > 0;) {
      shape.numbers.insert(shape.numbers.end(), {tenths(points[k].x), tenths(feet[k])});
    }
  }
  void text(const picture::Words& words, picture::Color color) override {
    Shape& shape = put(kText, color);
    const Area& a = words.area;
    shape.numbers = {tenths(a.x0), tenths(a.y0 + a.height() * 0.79f), tenths(a.width()),
                     static_cast<int>(words.face)};
    shape.text = words.text;
  }

  std::vector<Shape> shapes;

 private:
  Shape& put(Kind kind, picture::Color color) {
    const std::string name = picture::to_text(of_.key);
    const int number = used_[name]++;
    shapes.push_back({kind,
                      number == 0 ? name : name + "." + std::to_string(number),
                      of_.key,
                      std::exchange(fresh_, false) && of_.mark >= 0,
                      color,
                      {},
                      {}});
    return shapes.back();
  }
  Shape& put(Kind kind, picture::Color color, const Area& a) {
    Shape& shape = put(kind, color);
    shape.numbers = {tenths(a.x0), tenths(a.y0), tenths(std::max(a.width(), 0.0f)),
                     tenths(std::max(a.height(), 0.0f))};
    return shape;
  }
  static void add_points(Shape& shape, std::span<const picture::Point> points) {
    for (const picture::Point p : points) {
      shape.numbers.insert(shape.numbers.end(), {tenths(p.x), tenths(p.y)});
    }
  }

  picture::Identity of_;
  bool fresh_ = false;
  std::map<std::string, int> used_;
};

std::string hex(std::uint32_t rgb) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text = "#";
  for (int shift = 20; shift >= 0; shift -= 4) text += kDigits[rgb >> shift & 15u];
  return text;
}

std::string_view name_of(scenes::Readout::Look look) {
  switch (look) {
    case scenes::Readout::accent:
      return "accent";
    case scenes::Readout::good:
      return "good";
    case scenes::Readout::wrong:
      return "wrong";
    default:
      return "";
  }
}

}  // namespace

int ThingNames::of(const std::string& name) {
  const auto [found, fresh] = numbers_.try_emplace(name, static_cast<int>(all_.size()));
  if (fresh) all_.push_back(name);
  return found->second;
}

struct FlipBook::Pages {
  /// Each thing once, by its number.
  template <class T>
  class Numbered {
   public:
    int of(T thing) {
      const auto [found, fresh] =
          numbers_.try_emplace(std::move(thing), static_cast<int>(all_.size()));
      if (fresh) all_.push_back(&found->first);
      return found->second;
    }
    json list() const {
      json list = json::array();
      for (const T* each : all_) list.push_back(*each);
      return list;
    }

   private:
    std::map<T, int> numbers_;
    std::vector<const T*> all_;
  };

  const SvgPress& press;
  const scenes::Scene& scene;
  ThingNames& names;
  scenes::StepAxis axis = {};
  picture::Extent extent = {};
  Area area = {};
  bool told = true;
  std::vector<picture::Key> off = {};
  /// Frames by place, and the words beside them.
  std::map<int, std::pair<int, json>> places = {};
  Numbered<std::string> texts = {};
  Numbered<std::vector<std::string>> colours = {};
  Numbered<std::vector<int>> shapes = {};
  std::vector<std::vector<int>> frames = {};

  std::vector<Shape> painted(const picture::Placed& placed, ui::ThemeKind theme,
                             const picture::Emphasis& emphasis) const {
    Recorder recorder;
    press.with_type(theme, [&] {
      picture::paint(placed, ui::picture_palette(), ui::PictureMetrics(), emphasis, area, recorder);
    });
    return std::move(recorder.shapes);
  }

  /// A frame of shapes, which are the same in both themes but for their colours. Gives its number.
  int add(const picture::Placed& placed, const scenes::View& view,
          const picture::Emphasis& emphasis = {}) {
    const std::vector<Shape> dark = painted(placed, ui::ThemeKind::dark, emphasis),
                             light = painted(placed, ui::ThemeKind::light, emphasis);
    std::map<picture::Key, int> titles;
    const auto title_of = [&](const Shape& shape) {
      if (!told || !shape.titled) return 0;
      const auto [found, fresh] = titles.try_emplace(shape.key, 0);
      if (fresh) found->second = texts.of(scene.explain(view, shape.key));
      return found->second;
    };
    std::vector<int>& ranges = frames.emplace_back();
    for (std::size_t k = 0; k < dark.size(); ++k) {
      const Shape& shape = dark[k];
      std::vector<int> row = {shape.kind, names.of(shape.id),
                              colours.of({hex(shape.color.rgb), hex(light.at(k).color.rgb)}),
                              static_cast<int>(std::lround(shape.color.alpha * 100)),
                              title_of(shape)};
      row.insert(row.end(), shape.numbers.begin(), shape.numbers.end());
      if (shape.kind == kText) row.push_back(texts.of(shape.text));
      const int number = shapes.of(std::move(row));
      if (!ranges.empty() && ranges[ranges.size() - 2] + ranges.back() == number) {
        ++ranges.back();
      } else {
        ranges.insert(ranges.end(), {number, 1});
      }
    }
    return static_cast<int>(frames.size()) - 1;
  }

  picture::Placed placed(const picture::Picture& picture) const {
    std::optional<picture::Placed> laid;
    press.with_type(ui::ThemeKind::dark,
                    [&] { laid = picture::place(picture, area, ui::PictureMetrics(), off); });
    return std::move(*laid);
  }

  json words_of(const scenes::View& view, const picture::Picture& picture) const {
    json readouts = json::array();
    for (const scenes::Readout& one : scenes::readouts_of(scene, view)) {
      readouts.push_back({one.label, one.value, one.unit, name_of(one.look),
                          tilestep::name_of(one.provenance), one.detail});
    }
    const scenes::SourceMark mark = scene.source(view);
    json values = json::object();
    for (const auto& [line, value] : mark.values) values[std::to_string(line)] = value;
    return {{"headline", picture::plain(picture.headline.full)},
            {"readouts", std::move(readouts)},
            {"source", {mark.path, mark.current, mark.step_lines, std::move(values)}}};
  }
};

namespace {

/// Each row as what it has more than the row of its kind before.
json differences(json rows) {
  std::map<int, json> before;
  for (json& row : rows) {
    json& last = before[row[0].get<int>()];
    const json here = row;
    for (std::size_t k = 1; k < std::min(row.size(), last.size()); ++k) {
      row[k] = row[k].get<int>() - last[k].get<int>();
    }
    last = here;
  }
  return rows;
}

}  // namespace

FlipBook::FlipBook(const SvgPress& press, const scenes::Scene& scene, ThingNames& names,
                   const Shot& shot)
    : pages_(new Pages{press, scene, names}) {
  Pages& pages = *pages_;
  pages.axis = scene.steps();
  pages.extent = scene.extent();
  pages.told = shot.told;
  pages.texts.of("");
  press.with_type(ui::ThemeKind::dark, [&] {
    const ui::PictureMetrics metrics;
    pages.area = {0, 0, metrics.px(shot.size.x), metrics.px(shot.size.y)};
    if (shot.subject.empty()) return;
    const picture::Picture whole = scene.picture(pages.extent, {shot.cast_at});
    for (const picture::Box* box : picture::beside(whole, shot.subject, pages.area, metrics)) {
      pages.off.push_back(box->key);
    }
  });
}

FlipBook::~FlipBook() = default;

const std::vector<picture::Key>& FlipBook::aside() const {
  return pages_->off;
}

void FlipBook::add(int place) {
  Pages& pages = *pages_;
  if (pages.places.contains(place)) return;
  const scenes::View view{pages.axis.at_place(place)};
  const picture::Picture picture = pages.scene.picture(pages.extent, view);
  const int frame = pages.add(pages.placed(picture), view);
  pages.places.emplace(place, std::pair(frame, pages.words_of(view, picture)));
}

int FlipBook::add_lit(int place, const std::vector<std::string>& keys) {
  Pages& pages = *pages_;
  const scenes::View view{pages.axis.at_place(place)};
  const picture::Picture picture = pages.scene.picture(pages.extent, view);
  const std::vector<const picture::Mark*> marks = picture::marks_of(picture);
  const picture::Placed placed = pages.placed(picture);
  const picture::Lit named = picture::lit_by(keys, picture, marks, placed);
  const picture::Lighting lit(marks, named.subjects, named.keys);
  return pages.add(placed, view, {&lit, nullptr, &named.boxes});
}

json FlipBook::data() const {
  const Pages& pages = *pages_;
  json places = json::array(), at = json::array(), words = json::array();
  for (const auto& [place, shown] : pages.places) {
    places.push_back(place);
    at.push_back(shown.first);
    words.push_back(shown.second);
  }
  return {{"size", {pages.area.width(), pages.area.height()}},
          {"texts", pages.texts.list()},
          {"colours", pages.colours.list()},
          {"shapes", differences(pages.shapes.list())},
          {"frames", pages.frames},
          {"places", std::move(places)},
          {"at", std::move(at)},
          {"words", std::move(words)}};
}

}  // namespace tilestep::app

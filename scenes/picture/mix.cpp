#include "scenes/picture/mix.hpp"

#include <algorithm>
#include <cmath>

namespace tilestep::picture {
namespace {

float eased(float t) {
  const float x = std::clamp(t, 0.0f, 1.0f);
  return x * x * (3 - 2 * x);
}
float between(float a, float b, float e) {
  return a + (b - a) * e;
}
Point between(Point a, Point b, float e) {
  return {between(a.x, b.x, e), between(a.y, b.y, e)};
}
Area between(const Area& a, const Area& b, float e) {
  return {between(a.x0, b.x0, e), between(a.y0, b.y0, e), between(a.x1, b.x1, e),
          between(a.y1, b.y1, e)};
}

/// The place in `into` that `at` has in `frame`.
Point carried(Point at, const Area& frame, const Area& into) {
  const auto along = [](float x, float low, float high, float to_low, float to_high) {
    const float share = high > low ? (x - low) / (high - low) : 0.5f;
    return to_low + share * (to_high - to_low);
  };
  return {along(at.x, frame.x0, frame.x1, into.x0, into.x1),
          along(at.y, frame.y0, frame.y1, into.y0, into.y1)};
}
Area carried(const Area& area, const Area& frame, const Area& into) {
  const Point low = carried(Point{area.x0, area.y0}, frame, into);
  const Point high = carried(Point{area.x1, area.y1}, frame, into);
  return {low.x, low.y, high.x, high.y};
}

/// A text keeps its size: `size` round `center`.
Area round(Point center, const Area& size) {
  const float x = size.width() / 2, y = size.height() / 2;
  return {center.x - x, center.y - y, center.x + x, center.y + y};
}

/// Where `words` of this size stand between two areas: at the edge that both share, else in the middle.
Area standing(const Area& size, const Area& a, const Area& b, float e) {
  constexpr float kNear = 1;
  Area area = round(between(a.center(), b.center(), e), size);
  float shift = 0;
  if (std::abs(a.x0 - b.x0) < kNear) {
    shift = between(a.x0, b.x0, e) - area.x0;
  } else if (std::abs(a.x1 - b.x1) < kNear) {
    shift = between(a.x1, b.x1, e) - area.x1;
  }
  area.x0 += shift;
  area.x1 += shift;
  return area;
}

/// The part of an area that stands at `e` of its entry.
Area grown(const Area& area, Entry entry, float e) {
  Area part = area;
  switch (entry) {
    case Entry::fades:
      break;
    case Entry::rises:
      part.y0 = between(area.y1, area.y0, e);
      break;
    case Entry::falls:
      part.y1 = between(area.y0, area.y1, e);
      break;
    case Entry::from_left:
      part.x1 = between(area.x0, area.x1, e);
      break;
    case Entry::from_right:
      part.x0 = between(area.x1, area.x0, e);
      break;
  }
  return part;
}

/// The points of a line from its beginning to the share `e` of the way along x after point `known`.
void grow(std::vector<Point>& points, std::size_t known, float e) {
  if (points.size() <= known || known == 0) return;
  const float begin = points[known - 1].x;
  const float end = between(begin, points.back().x, e);
  if (points.back().x == begin) return points.resize(e < 1 ? known : points.size());
  const bool rightwards = points.back().x > begin;
  for (std::size_t k = known; k < points.size(); ++k) {
    if (rightwards ? points[k].x < end : points[k].x > end) continue;
    const float span = points[k].x - points[k - 1].x;
    const float share = span == 0 ? 0 : (end - points[k - 1].x) / span;
    points[k] = between(points[k - 1], points[k], share);
    points.resize(k + 1);
  }
}

/// The first `e` of a straight line.
void draw_out(Stroke& stroke, float e) {
  Point& end = stroke.points.back();
  end = between(stroke.points.front(), end, e);
}

}  // namespace

/// Makes the primitives of one fraction.
class Mixer {
 public:
  using How = Join::How;
  using Step = Join::Step;

  Mixer(const Placed& from, const Placed& to, const Join& join, float t, Placed& out)
      : from_(from), to_(to), join_(join), t_(t) {
    resize(out.pieces, join.pieces_.size());
    resize(out.strokes, join.strokes_.size());
    resize(out.words, join.words_.size());
    for (std::size_t k = 0; k < out.pieces.size(); ++k) piece(join.pieces_[k], out.pieces[k]);
    for (std::size_t k = 0; k < out.strokes.size(); ++k) stroke(join.strokes_[k], out.strokes[k]);
    for (std::size_t k = 0; k < out.words.size(); ++k) words(join.words_[k], out.words[k]);
    out.area = to.area;
    out.rooms = to.rooms;
    out.said = to.said;
    out.folded = to.folded;
    out.short_of = to.short_of;
    out.flights.clear();
  }

 private:
  template <class T>
  static void resize(std::vector<T>& all, std::size_t size) {
    all.resize(size);
  }
  template <class T>
  static const T& at(const std::vector<T>& all, int index) {
    return all[static_cast<std::size_t>(index)];
  }

  /// How far a thing is on its way.
  float progress(const Step& step) const {
    if (step.wave < 0) return eased(t_);
    return eased(t_ * static_cast<float>(join_.waves_) - static_cast<float>(step.wave));
  }
  const Join::Course* course(const Step& step) const {
    return step.course < 0 ? nullptr : &at(join_.courses_, step.course);
  }

  void piece(const Step& step, Piece& out) const {
    const float e = progress(step);
    out = step.to >= 0 ? at(to_.pieces, step.to) : at(from_.pieces, step.from);
    if (const Join::Course* way = course(step)) {
      const Area now = between(way->begin, way->end, e);
      out.area = carried(out.area, way->arrives ? way->end : way->begin, now);
      out.layer = Layer::over;
    } else if (step.how == How::moves) {
      const Piece& was = at(from_.pieces, step.from);
      out.area = between(was.area, out.area, e);
      out.alpha = between(was.alpha, out.alpha, e);
      if (was.heat >= 0 && out.heat >= 0) out.heat = between(was.heat, out.heat, e);
    } else if (step.how == How::enters) {
      if (out.entry == Entry::fades) out.alpha *= e;
      out.area = grown(out.area, out.entry, e);
    } else if (step.how == How::leaves) {
      out.alpha *= 1 - e;
    }
  }

  void stroke(const Step& step, Stroke& out) const {
    const float e = progress(step);
    out = step.to >= 0 ? at(to_.strokes, step.to) : at(from_.strokes, step.from);
    if (const Join::Course* way = course(step)) {
      const Area now = between(way->begin, way->end, e);
      for (Point& point : out.points) {
        point = carried(point, way->arrives ? way->end : way->begin, now);
      }
      out.feet.clear();
      out.layer = Layer::over;
    } else if (step.how == How::moves) {
      follow(at(from_.strokes, step.from), out, e);
    } else if (step.how == How::enters) {
      enter(out, e);
    } else if (step.how == How::leaves) {
      out.alpha *= 1 - e;
    }
  }
  /// Points in both move; a line that got longer grows, one that got shorter is taken back.
  static void follow(const Stroke& was, Stroke& out, float e) {
    out.alpha = between(was.alpha, out.alpha, e);
    const std::size_t common = std::min(was.points.size(), out.points.size());
    const bool longer = out.points.size() > common, shorter = was.points.size() > common;
    if ((longer || shorter) && (out.curved || was.curved || common == 0)) return;
    for (std::size_t k = 0; k < common; ++k) {
      out.points[k] = between(was.points[k], out.points[k], e);
    }
    if (shorter) {
      out.points.insert(out.points.end(), was.points.begin() + std::ptrdiff_t(common),
                        was.points.end());
    }
    if (longer || shorter) grow(out.points, common, longer ? e : 1 - e);
  }
  static void enter(Stroke& out, float e) {
    if (out.arrow && out.points.size() == 2) {
      draw_out(out, e);
    } else if (out.points.size() > 2 && !out.curved) {
      grow(out.points, 1, e);
    } else {
      out.alpha *= e;
    }
  }

  void words(const Step& step, Words& out) const {
    const float e = progress(step);
    out = step.to >= 0 ? at(to_.words, step.to) : at(from_.words, step.from);
    out.on = step.on;
    if (step.headline) {  // says what happens now
      if (step.to < 0) out.alpha = 0;
      return;
    }
    if (const Join::Course* way = course(step)) {
      const Area now = between(way->begin, way->end, e);
      const Point center = carried(out.area.center(), way->arrives ? way->end : way->begin, now);
      if (step.saying >= 0 && e < 1) say_as(at(from_.words, step.saying), out);
      out.area = round(center, out.area);
    } else if (step.how == How::moves) {
      const Words& was = at(from_.words, step.from);
      const Area end = out.area;
      if (was.text != out.text) say_as(was, out);
      out.area = standing(out.area, was.area, end, e);
      out.alpha = between(was.alpha, out.alpha, e);
    } else if (step.how == How::enters) {
      out.alpha *= std::max(0.0f, 2 * e - 1);  // when what they take the place of is gone
    } else if (step.how == How::leaves) {
      out.alpha *= std::max(0.0f, 1 - 2 * e);
    }
  }
  static void say_as(const Words& was, Words& out) {
    out.text = was.text;
    out.face = was.face;
    out.area = was.area;
  }

  const Placed &from_, &to_;
  const Join& join_;
  float t_;
};

void mix(const Placed& from, const Placed& to, const Join& join, float t, Placed& out) {
  if (t <= 0) {
    out = from;
  } else if (!(t < 1)) {
    out = to;
  } else {
    const Mixer mixer(from, to, join, t, out);
  }
}

Placed mix(const Placed& from, const Placed& to, const Join& join, float t) {
  Placed out;
  mix(from, to, join, t, out);
  return out;
}

}  // namespace tilestep::picture

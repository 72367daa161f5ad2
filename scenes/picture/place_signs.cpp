// The marks that say something of others, and those of words.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/picture/look.hpp"
#include "scenes/picture/placer.hpp"

namespace tilestep::picture {
namespace {

/// What names a line or a frame is read whatever has become of it.
Ink ink_of_label(State state) {
  return state == State::current || state == State::wrong ? ink_of(state) : Ink::text;
}

/// From the middle of a thing, or from its edge where it is large, to the nearest of a note.
std::pair<Point, Point> leader(const Area& of, const Area& note) {
  const auto nearest = [](Point to, const Area& in) {
    return Point{std::clamp(to.x, in.x0, in.x1), std::clamp(to.y, in.y0, in.y1)};
  };
  const Point c = of.center();
  const float x = std::max(of.width() / 2 - 6, 0.0f), y = std::max(of.height() / 2 - 6, 0.0f);
  const Point from = nearest(note.center(), {c.x - x, c.y - y, c.x + x, c.y + y});
  return {from, nearest(from, note)};
}

}  // namespace

bool Placer::find(const Key& key, Area& area) {
  if (!index_) {
    indexed_ = places_.size();
    index_.emplace(indexed_);
    for (std::size_t n = 0; n < indexed_; ++n) index_->add(places_[n].first, int(n));
  }
  const int found = index_->find(key);
  // The few that came since, frames and notes, are not worth an index of their own.
  const auto at = found >= 0
                      ? places_.begin() + found
                      : std::find_if(places_.begin() + std::ptrdiff_t(indexed_), places_.end(),
                                     [&](const auto& place) { return place.first == key; });
  if (at == places_.end()) return false;
  area = at->second;
  return true;
}

/// A line's label, or a frame's: on a patch, since what it is of runs near it.
void Placer::put_label(const Text& label, float room, const Key& of, Ink ink,
                       const std::function<Point(float width)>& place) {
  if (label.full.empty()) return;
  const std::vector<Run>& words = form(label, room, Face::note);
  say(words, place(width(words, Face::note)), Face::note, ink, id(of, 1));
  out_.words.back().patch = true;
}

void Placer::put(const Curve& m) {
  const Span x = span(m.ax, false);
  const Span y = span(m.ay, true);
  // Points nearer than a pixel say nothing that is seen, and dashes need their length.
  const bool many = m.x.size() > 512;
  const float least = m.dashed ? px(8) : many ? px(1.5f) : 0.5f;
  const auto along = [&](const std::vector<double>& values, std::uint8_t part, float thick) {
    Stroke stroke{.of = id(m.key, part),
                  .width = thick,
                  .dashed = m.dashed,
                  .state = m.state,
                  .tone = m.tone};
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (!std::isfinite(values[k]) || !std::isfinite(m.x[k])) continue;
      const Point at{x.at(m.x[k]), y.at(values[k])};
      const bool last = k + 1 == values.size();
      if (!stroke.points.empty() && !last) {
        const float dx = std::abs(at.x - stroke.points.back().x);
        const float dy = std::abs(at.y - stroke.points.back().y);
        if (dx < least && (dy < least || (many && dx < px(1.5f)))) continue;
      }
      stroke.points.push_back(at);
      if (part == 0 && !m.base.empty())
        stroke.feet.push_back(y.at(m.base[m.base.size() > 1 ? k : 0]));
    }
    if (stroke.points.size() > 1) out_.strokes.push_back(stroke);
    return stroke.points;
  };
  along(m.low, 1, 0.5f);
  along(m.high, 2, 0.5f);
  const float thick = (m.flags & kPicked) != 0 ? 3.5f : m.dashed ? 1.5f : 2.5f;
  const std::vector<Point> points = along(m.y, 0, thick);
  if (points.empty()) return;
  const Point end = points.back();
  const Area around{end.x - px(4), end.y - px(4), end.x + px(4), end.y + px(4)};
  stands(m.key, around);
  if (points.size() == 1) {
    out_.pieces.push_back({.of = id(m.key),
                           .area = around,
                           .kind = Piece::dot,
                           .state = m.state,
                           .tone = m.tone,
                           .layer = Layer::over});
  }
  if (!m.end.full.empty()) ends_.push_back({&m, mark_, end});
}

/// The words of a box' curves, each at its end: those that come close push each other down, then up.
void Placer::put_ends() {
  if (ends_.empty()) return;
  const float line = height(Face::note), margin = here_->inside.x1 + px(14);
  const bool has_margin = here_->box->right > 0;
  for (End& end : ends_) {
    end.words = &form(end.curve->end, std::max(here_->area.x1 - margin, px(60)), Face::note);
    const float length = width(*end.words, Face::note);
    end.left = end.tip.x + px(14);
    const bool near = (has_margin && !end.curve->ends_free) ||
                      end.left + length + px(8) > (has_margin ? margin : here_->area.x1);
    if (near) end.left = has_margin ? margin : end.tip.x - px(6) - length;
    end.top = end.tip.y - line / 2;
  }
  std::stable_sort(ends_.begin(), ends_.end(),
                   [](const End& a, const End& b) { return a.top < b.top; });
  const float pitch = line + px(1);
  // The first and the last are said where not all have room.
  const float high = here_->inside.height() - line;
  const auto most = static_cast<std::size_t>(std::max(2.0f, high / pitch + 1));
  while (ends_.size() > most) {
    out_.short_of.push_back(fmt::format("'{}' has no place", plain(ends_[1].curve->end.full)));
    ends_.erase(ends_.begin() + 1);
  }
  const float lowest = std::min(here_->inside.y1 - line / 2, here_->area.y1 - line);
  float free = std::max(here_->inside.y0 - line / 2, here_->area.y0);
  for (End& end : ends_) {
    end.top = std::max(end.top, free);
    const Area area{end.left, end.top, end.left + width(*end.words, Face::note), end.top + line};
    for (const Words& w : out_.words) {
      if (meet(area, w.area)) end.top = std::max(end.top, w.area.y1);
    }
    free = end.top + pitch;
  }
  free = lowest;
  for (std::size_t i = ends_.size(); i-- > 0; free = ends_[i].top - pitch) {
    ends_[i].top = std::min(ends_[i].top, free);
  }
  const std::size_t others = out_.words.size();
  for (const End& end : ends_) {
    const Curve& m = *end.curve;
    const Area area{end.left, end.top, end.left + width(*end.words, Face::note), end.top + line};
    const bool overprints =
        std::any_of(out_.words.begin(), out_.words.begin() + static_cast<std::ptrdiff_t>(others),
                    [&](const Words& w) { return meet(area, w.area); });
    if (end.top < here_->area.y0 - line || overprints) {
      out_.short_of.push_back(fmt::format("'{}' has no place", plain(m.end.full)));
      continue;
    }
    if (end.left > end.tip.x) {
      put_stroke({.of = {m.key, 3, end.mark, -1},
                  .points = {end.tip, {end.left - px(3), end.top + line / 2}},
                  .tone = m.tone});
    }
    say(*end.words, {end.left, end.top}, Face::note, m.tone > 0 ? Ink::tone : Ink::muted,
        {m.key, 6, end.mark, -1});
    for (std::size_t w = out_.words.size(); w-- > 0 && out_.words[w].of.key == m.key;) {
      out_.words[w].tone = m.tone;
      out_.words[w].patch = true;
    }
  }
  ends_.clear();
}

/// Where many come on one place what is wrong is seen.
void Placer::put(const Ticks& m) {
  const Items& items = m.items;
  const Span x = span(m.x, false);
  const Area& room = here_->inside;
  const float line = height(Face::mono_note), sign = std::min(px(7), room.height());
  const float middle = (room.y0 + room.y1) / 2;
  const float tall = std::clamp(0.3f * room.height(), px(13), px(48));
  const Point bar{px(2), std::min(tall, room.height())}, dot{px(3), px(3)};
  constexpr Piece::Kind kKinds[] = {Piece::fill, Piece::up, Piece::down, Piece::cross, Piece::dot};
  float last = -1e9f;
  bool wrong = false;
  for (int k = 0; k < items.count; ++k) {
    const float at = x.at(m.at[k]);
    const bool now_wrong = items.state[k] == State::wrong;
    if (at < last + px(2) && at >= last && (wrong || !now_wrong)) continue;
    last = at;
    wrong = now_wrong;
    const int glyph = std::min<int>(items.glyph[k], 4);
    const Point size = glyph == 0 ? bar : glyph == 4 ? dot : Point{sign, sign};
    const Area area{at - size.x / 2, middle - size.y / 2, at + size.x / 2, middle + size.y / 2};
    put_item(items, k, area, kKinds[glyph]);
    const std::string words = written(items, k);
    if (words.empty() || area.y1 + line > room.y1 + 1) continue;
    const float below = std::min(area.y1 + line / 2 + px(2), room.y1 - line / 2);
    const float half = width(words, Face::mono_note) / 2;
    const float in_room = std::clamp(at, room.x0 + half, std::max(room.x0 + half, room.x1 - half));
    const Area place{in_room - half - px(3), area.y1, in_room + half + px(3), area.y1 + line};
    const bool taken = std::any_of(out_.words.begin(), out_.words.end(),
                                   [&](const Words& w) { return meet(w.area, place); });
    if (taken) continue;
    say_centered(words, {in_room, below}, Face::mono_note,
                 items.state[k] == State::to_come ? Ink::muted : Ink::text, id(items, k, 1));
  }
}

void Placer::put(const Rule& m) {
  const Span axis = span(m.axis, spans_.count({m.axis, true}) != 0);
  const Area& room = here_->inside;
  const float at = std::round(axis.at(m.at));
  const bool lies = axis.upright;
  const Area line = lies ? Area{room.x0, at, room.x1, at} : Area{at, room.y0, at, room.y1};
  stands(m.key,
         lies ? Area{line.x0, at - 1, line.x1, at + 1} : Area{at - 1, line.y0, at + 1, line.y1});
  put_stroke({.of = id(m.key),
              .points = {{line.x0, line.y0}, {line.x1, line.y1}},
              .width = m.state == State::to_come ? 1 : 1.5f,
              .dashed = m.state == State::plain,
              .state = m.state});
  const Ink ink = m.state == State::to_come ? Ink::muted : ink_of_label(m.state);
  const bool margin = lies && here_->box->right > 0;
  const float wide = margin ? here_->box->right * em_ - px(6) : room.width() / 2;
  put_label(m.label, wide, m.key, ink, [&](float length) -> Point {
    const float high = height(Face::note), most = std::max(room.x0, room.x1 - length);
    if (margin) return {room.x1 + px(6), at - high / 2};
    if (lies) return {room.x1 - length, at - high - px(1)};
    return {std::clamp(at + px(4), room.x0, most), room.y0};
  });
}

void Placer::put(const Arrow& m) {
  const Span axis = span(m.axis, false);
  const Area& room = here_->inside;
  const float y = (room.y0 + room.y1) / 2 - px(float(m.key.i > 0 ? -6 : 6));
  const float from = axis.at(m.from), to = axis.at(m.to);
  put_stroke({.of = id(m.key),
              .points = {{from, y}, {to, y}},
              .width = 2,
              .arrow = std::abs(to - from) > px(3),
              .state = m.state});
  stands(m.key, {std::min(from, to), y - px(4), std::max(from, to), y + px(4)});
  if (m.label.full.empty()) return;
  const std::vector<Run>& words = form(m.label, room.width(), Face::mono_note);
  const float length = width(words, Face::mono_note), high = height(Face::mono_note);
  const float x = std::clamp(to - length / 2, room.x0, std::max(room.x0, room.x1 - length));
  say(words, {x, y - high - px(5)}, Face::mono_note, ink_of_label(m.state), id(m.key, 1));
}

void Placer::put(const Wall& m) {
  const Area& room = here_->inside;
  stands(m.key, room);
  out_.pieces.push_back({.of = id(m.key),
                         .area = room,
                         .kind = m.removed ? Piece::dashed : Piece::fill,
                         .state = m.state});
  if (m.label.full.empty() || room.height() < height(Face::note)) return;
  const std::vector<Run>& words = form(m.label, room.width() - px(4), Face::note);
  if (width(words, Face::note) > room.width() - px(4)) return;
  say_on(plain(words), id(m.key, 1), Face::note, m.removed ? Ink::muted : Ink::on_piece);
}

/// From below the one above to above the one below, or from side to side.
void Placer::put(const Links& m) {
  for (int k = 0; k < m.items.count; ++k) {
    const Anchor &a = m.from[k], &b = m.to[k];
    Area from, to;
    if (!find(b.key, to)) continue;
    if (!m.items.names.empty()) {
      const float left = to.x0 + to.width() * b.from, right = to.x0 + to.width() * b.to;
      const float seam = right - left > px(4) ? px(0.5f) : 0;
      const Area part{left + seam, to.y0, right - seam, to.y1};
      put_item(m.items, k, part);
      if (words_fit(m.items, {part.width(), part.height()}))
        say_on(m.items.names[k], id(m.items, k));
    }
    if (!find(a.key, from)) continue;
    const auto along = [](const Area& area, const Anchor& part) {
      return area.x0 + area.width() * (part.from + part.to) / 2;
    };
    const bool down = from.y1 <= to.y0, upright = down || to.y1 <= from.y0;
    const bool right = from.center().x <= to.center().x;
    Point start{right ? from.x1 : from.x0, from.center().y};
    Point end{right ? to.x0 : to.x1, to.center().y};
    if (upright) {
      start = {along(from, a), down ? from.y1 : from.y0};
      end = {along(to, b), down ? to.y0 : to.y1};
    }
    const bool arrow = m.items.glyph[k] > 0;  // something moves there
    const Point bend{upright ? 0 : (end.x - start.x) * 0.45f,
                     upright ? (end.y - start.y) * 0.45f : 0};
    put_stroke({.of = id(m.items, k),
                .points = {start,
                           {start.x + bend.x, start.y + bend.y},
                           {end.x - bend.x, end.y - bend.y},
                           end},
                .width = arrow ? 3 : 1.2f,
                .curved = true,
                .arrow = arrow,
                .state = m.items.state[k],
                .tone = m.items.tone[k],
                .layer = Layer::over});
  }
}

void Placer::put(const picture::Frame& m) {
  Area all, one;
  bool any = false;
  for (const Key& key : m.round) {
    if (!find(key, one)) continue;
    all = any ? joined(all, one) : one;
    any = true;
  }
  if (!any) return;
  const float pad = px(2);
  const float line = px(1);  // half of its thickness
  all = {std::max(all.x0 - pad, area_.x0 + line), std::max(all.y0 - pad, area_.y0 + line),
         std::min(all.x1 + pad, area_.x1 - line), std::min(all.y1 + pad, area_.y1 - line)};
  stands(m.key, all);
  out_.pieces.push_back(
      {.of = id(m.key), .area = all, .kind = Piece::frame, .state = m.state, .layer = Layer::over});
  put_label(m.label, std::max(all.width(), px(90)), m.key, ink_of_label(m.state),
            [&](float length) { return beside(all, length, m.key); });
}

/// Where a line of text of this length stands at an area: above it if that is free, else where the least
/// is covered of below it and the places right and left of these; where words are in the way of all of them, inside, or
/// where it covers the least of them.
Point Placer::beside(const Area& of, float length, const Key& key) const {
  constexpr float kWordsInTheWay = 1e5f;
  const float high = height(Face::note), gap = px(1);
  const float most = std::max(area_.x0, area_.x1 - length);
  Point best{};
  float least = INFINITY;
  const float within = 3 * gap;
  for (const float y : {of.y0 - high - gap, of.y1 + gap, of.y1 - high - within, of.y0 + within}) {
    const bool outside = y < of.y0 || y >= of.y1;
    if (!outside && least < kWordsInTheWay) break;
    const float in = outside ? 0 : within;
    for (const float x : {of.x0 + in, of.x1 - length - in, of.center().x - length / 2}) {
      const Point at{std::clamp(x, area_.x0, most), y};
      const bool inside = y >= area_.y0 && y + high <= area_.y1;
      const Area place{at.x, at.y, at.x + length, at.y + high};
      float cost = inside ? std::min(crowd(place, key, kWordsInTheWay), kWordsInTheWay)
                          : 10 * kWordsInTheWay;
      for (const Words& w : out_.words) {
        if (!inside || !meet(w.area, place)) continue;
        cost += (std::min(w.area.x1, place.x1) - std::max(w.area.x0, place.x0)) *
                (std::min(w.area.y1, place.y1) - std::max(w.area.y0, place.y0));
      }
      if (cost >= least) continue;
      least = cost;
      best = at;
    }
  }
  return best;
}

/// How much of what is drawn an area covers, as far as it matters: up to `most`. Words count as what must
/// not be covered.
float Placer::crowd(const Area& area, const Key& of, float most) const {
  const auto covers = [&](const Words& w) { return meet(w.area, area); };
  if (std::any_of(out_.words.begin(), out_.words.end(), covers)) return INFINITY;
  float ink = 0;
  for (const Piece& p : out_.pieces) {
    const bool solid = p.layer != Layer::ground && p.kind != Piece::frame && p.of.key != of;
    if (solid && meet(p.area, area)) ink += p.kind == Piece::outline ? 1 : 8;
    if (ink > most) return ink;
  }
  for (const Stroke& stroke : out_.strokes) {
    if (stroke.layer == Layer::ground) continue;
    for (std::size_t k = 1; k < stroke.points.size(); ++k) {
      const Point a = stroke.points[k - 1], b = stroke.points[k];
      const Area around{std::min(a.x, b.x), std::min(a.y, b.y), std::max(a.x, b.x),
                        std::max(a.y, b.y)};
      if (!meet(around, area)) continue;
      const int parts = 1 + static_cast<int>((around.width() + around.height()) / px(8));
      for (int n = 0; n <= parts; ++n) {
        const float t = float(n) / float(parts);
        ink += area.holds({a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t}) ? 1.0f : 0.0f;
      }
    }
  }
  return ink;
}

/// How many of the things drawn a leader would run over.
int Placer::run_over(Point from, Point to, const Key& of) const {
  const Area around{std::min(from.x, to.x), std::min(from.y, to.y), std::max(from.x, to.x),
                    std::max(from.y, to.y)};
  const auto in_way = [&](const Piece& p) {
    if (!meet(p.area, around) || p.layer == Layer::ground || p.kind == Piece::frame) return false;
    if (p.of.key == of) return false;
    for (float t = 0.05f; t < 1; t += 0.05f) {
      if (p.area.holds({from.x + (to.x - from.x) * t, from.y + (to.y - from.y) * t})) return true;
    }
    return false;
  };
  return static_cast<int>(std::count_if(out_.pieces.begin(), out_.pieces.end(), in_way));
}

/// Where it covers least, and of such places the nearest; with a leader where it stands apart.
void Placer::put(const Note& m) {
  Area of;
  if (!find(m.at.key, of)) return;
  constexpr int kColumns = 12, kRows = 8;
  const float high = height(Face::note), pad = px(4);
  const Area& room = here_->area;
  std::vector<const std::vector<Run>*> forms;
  for (const auto* form : {&m.text.full, &m.text.brief, &m.text.least}) {
    if (!form->empty()) forms.push_back(form);
  }
  for (const std::vector<Run>* words : forms) {
    const float length = width(*words, Face::note);
    const float free_x = room.width() - length, free_y = room.height() - high;
    float least = 1e6f;
    Point best;
    for (int i = 0; i < kColumns * kRows && free_x >= 0 && free_y >= 0; ++i) {
      const Point at{room.x0 + free_x * float(i % kColumns) / (kColumns - 1),
                     room.y0 + free_y * float(i / kColumns) / (kRows - 1)};
      const Area area{at.x - pad, at.y, at.x + length + pad, at.y + high};
      const float dx = std::max({area.x0 - of.x1, of.x0 - area.x1, 0.0f});
      const float dy = std::max({area.y0 - of.y1, of.y0 - area.y1, 0.0f});
      const float way = std::hypot(dx, dy) / px(1) + (meet(area, of) ? 500.0f : 0.0f);
      if (way >= least) continue;
      float cost = crowd(area, m.at.key, (least - way) / 100) * 100 + way;
      if (cost >= least) continue;
      const auto [from, to] = leader(of, {at.x, at.y, at.x + length, at.y + high});
      cost += px(40) * static_cast<float>(run_over(from, to, m.at.key));
      if (cost >= least) continue;
      least = cost;
      best = at;
    }
    const bool covers = least >= 100 && words != forms.back();
    if (covers || least >= 1e6f) continue;
    const Area area{best.x, best.y, best.x + length, best.y + high};
    const auto [from, to] = leader(of, area);
    if (std::hypot(to.x - from.x, to.y - from.y) > px(14)) {
      put_stroke({.of = id(m.key, 2), .points = {from, to}});
    }
    say(*words, best, Face::note, Ink::text, id(m.key, 1));
    out_.words.back().patch = true;
    out_.said.push_back({m.key, plain(m.text.full), {}, area});
    return;
  }
  out_.short_of.push_back(fmt::format("'{}' has no place", plain(m.text.full)));
}

std::vector<const Mark*> marks_of(const Picture& picture) {
  std::vector<const Mark*> marks;
  const auto visit = [&](const auto& self, const Box& box) -> void {
    for (const Mark& mark : box.marks) marks.push_back(&mark);
    for (const Box& inner : box.boxes) self(self, inner);
  };
  visit(visit, picture.root);
  return marks;
}

}  // namespace tilestep::picture

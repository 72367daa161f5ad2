// The marks that say something of others, and those of words.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/picture/look.hpp"
#include "scenes/picture/placer.hpp"

namespace tilestep::picture {
namespace {

Area joined(const Area& a, const Area& b) {
  return {std::min(a.x0, b.x0), std::min(a.y0, b.y0), std::max(a.x1, b.x1), std::max(a.y1, b.y1)};
}
bool meet(const Area& a, const Area& b) {
  return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1;
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

bool Placer::find(const Key& key, Area& area) const {
  const auto found = at_.find(key);
  if (found == at_.end()) return false;
  area = found->second;
  return true;
}

void Placer::put(const Ring& m) {
  const Items& items = m.stages;
  flights(items);
  if (items.count == 0) return;
  const Area& room = here_->inside;
  const float gap = px(8), line = height(Face::note);
  const float wide =
      (room.width() - gap * static_cast<float>(items.count - 1)) / static_cast<float>(items.count);
  for (int k = 0; k < items.count; ++k) {
    const auto index = static_cast<std::size_t>(k);
    const float x = room.x0 + (wide + gap) * static_cast<float>(k);
    const Area area{x, room.y0 + line + px(2), x + wide, room.y1};
    at_[items.key(k)] = area;
    const auto on = static_cast<int>(out_.pieces.size());
    out_.pieces.push_back(piece(items, k, area));
    std::string words = fmt::format("phase {}", m.phase[index]);
    if (m.bytes_expected[index] > 0) words += fmt::format(", {} B", m.bytes_expected[index]);
    if (width(words, Face::mono_note) > wide - px(4)) words = fmt::format("{}", m.phase[index]);
    say_centered(words, area.center(), Face::mono_note, Ink::on_piece, id(items, k, 1), on);
    const char* who = k == m.fill && k == m.drain ? "fill, drain"
                      : k == m.fill               ? "fill"
                      : k == m.drain              ? "drain"
                                                  : "";
    say_centered(who, {x + wide / 2, room.y0 + line / 2}, Face::note,
                 k == m.fill ? Ink::accent : Ink::muted, id(items, k, 2));
  }
}

void Placer::put(const Curve& m) {
  const Span x = span(m.ax, false);
  const Span y = span(m.ay, true);
  // Points nearer than a pixel say nothing that is seen, and dashes need their length.
  const bool many = m.x.size() > 512;
  const float least = m.dashed ? px(8) : many ? px(1.5f) : 0.5f;
  const auto along = [&](const std::vector<double>& values, std::uint8_t part, float thick) {
    Stroke stroke{{m.key, part, mark_, -1}};
    stroke.width = thick;
    stroke.tone = m.tone;
    stroke.state = m.state;
    stroke.dashed = m.dashed;
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
  at_[m.key] = {end.x - px(4), end.y - px(4), end.x + px(4), end.y + px(4)};
  if (points.size() == 1) {
    Piece dot{{m.key, 0, mark_, -1}, at_[m.key], Piece::dot, m.state, m.tone};
    dot.layer = Layer::over;
    out_.pieces.push_back(dot);
  }
  if (!m.end.full.empty()) ends_.push_back({&m, mark_, end});
}

/// The words of a box' curves, each at its end: those that come close push each other down, then up.
void Placer::put_ends() {
  if (ends_.empty()) return;
  const float line = height(Face::note), margin = here_->inside.x1 + px(14);
  const bool has_margin = here_->box->right > 0;
  for (End& end : ends_) {
    // Before the margin where that has more room.
    const float before = end.curve->ends_free ? margin - end.tip.x - px(22) : 0;
    const float room = std::max({here_->area.x1 - margin, px(60), before});
    end.words = &form(end.curve->end, room, Face::note);
    const float length = width(*end.words, Face::note);
    end.left = end.tip.x + px(14);
    const bool near = (has_margin && !end.curve->ends_free) ||
                      end.left + length + px(8) > (has_margin ? margin : here_->area.x1);
    if (near) end.left = has_margin ? margin : end.tip.x - px(6) - length;
    end.top = end.tip.y - line / 2;
  }
  std::stable_sort(ends_.begin(), ends_.end(),
                   [](const End& a, const End& b) { return a.top < b.top; });
  // Closer together where they are many, as far as they can be told apart.
  const auto gaps = static_cast<float>(std::max<std::size_t>(ends_.size(), 2) - 1);
  const float pitch =
      std::clamp((here_->inside.height() - line) / gaps, 0.85f * line, line + px(1));
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
  for (const End& end : ends_) {
    const Curve& m = *end.curve;
    if (end.top < here_->area.y0 - line) {
      out_.short_of.push_back(fmt::format("'{}' has no place", plain(m.end.full)));
      continue;
    }
    Stroke leader{{m.key, 3, end.mark, -1}, {end.tip, {end.left - px(3), end.top + line / 2}}};
    leader.tone = m.tone;
    leader.width = 1;
    if (end.left > end.tip.x) out_.strokes.push_back(std::move(leader));
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
  flights(items);
  const Span x = span(m.x, false);
  const Area& room = here_->inside;
  const float line = height(Face::mono_note), size = std::min(px(7), room.height());
  const float middle = (room.y0 + room.y1) / 2;
  constexpr Piece::Kind kKinds[] = {Piece::fill, Piece::up, Piece::down, Piece::cross, Piece::dot};
  float last = -1e9f;
  bool wrong = false;
  for (int k = 0; k < items.count; ++k) {
    const auto index = static_cast<std::size_t>(k);
    const float at = x.at(m.at[index]);
    const bool now_wrong = items.state[index] == State::wrong;
    if (at < last + px(2) && at >= last && (wrong || !now_wrong)) continue;
    last = at;
    wrong = now_wrong;
    const std::uint8_t glyph = std::min<std::uint8_t>(items.glyph[index], 4);
    const float wide = glyph == 0 ? px(2) : glyph == 4 ? px(3) : size;
    const float tall = glyph == 0 ? std::min(px(13), room.height()) : glyph == 4 ? px(3) : size;
    const Area area{at - wide / 2, middle - tall / 2, at + wide / 2, middle + tall / 2};
    Piece made = piece(items, k, area, kKinds[glyph]);
    at_[made.of.key] = made.area;
    out_.pieces.push_back(made);
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
                 items.state[index] == State::to_come ? Ink::muted : Ink::text, id(items, k, 1));
  }
}

void Placer::put(const Rule& m) {
  const bool upright = spans_.count({m.axis, true}) != 0;
  const Span axis = span(m.axis, upright);
  const Area& room = here_->inside;
  const float at = std::round(axis.at(m.at));
  const bool lies = axis.upright;
  Stroke line{{m.key, 0, mark_, -1},
              lies ? std::vector<Point>{{room.x0, at}, {room.x1, at}}
                   : std::vector<Point>{{at, room.y0}, {at, room.y1}}};
  line.width = m.state == State::to_come ? 1 : 1.5f;
  line.state = m.state;
  line.dashed = m.state == State::plain;
  at_[m.key] =
      lies ? Area{room.x0, at - 1, room.x1, at + 1} : Area{at - 1, room.y0, at + 1, room.y1};
  out_.strokes.push_back(std::move(line));
  if (m.label.full.empty()) return;
  const Ink ink = m.state == State::current   ? Ink::accent
                  : m.state == State::wrong   ? Ink::wrong
                  : m.state == State::to_come ? Ink::muted
                                              : Ink::text;
  const bool margin = lies && here_->box->right > 0;
  const float wide = margin ? here_->box->right * em_ - px(6) : room.width() / 2;
  const std::vector<Run>& words = form(m.label, wide, Face::note);
  const float length = width(words, Face::note), high = height(Face::note);
  Point place{room.x1 - length, at - high - px(1)};
  if (margin) place = {room.x1 + px(6), at - high / 2};
  if (!lies)
    place = {std::clamp(at + px(4), room.x0, std::max(room.x0, room.x1 - length)), room.y0};
  say(words, place, Face::note, ink, {m.key, 1, mark_, -1});
  out_.words.back().patch = true;
}

void Placer::put(const Arrow& m) {
  const Span axis = span(m.axis, false);
  const Area& room = here_->inside;
  const float y = (room.y0 + room.y1) / 2 - px(static_cast<float>(m.key.i > 0 ? -6 : 6));
  const float from = axis.at(m.from), to = axis.at(m.to);
  Stroke line{{m.key, 0, mark_, -1}, {{from, y}, {to, y}}};
  line.width = 2;
  line.arrow = std::abs(to - from) > px(3);
  line.state = m.state;
  out_.strokes.push_back(std::move(line));
  at_[m.key] = {std::min(from, to), y - px(4), std::max(from, to), y + px(4)};
  if (m.label.full.empty()) return;
  const std::vector<Run>& words = form(m.label, room.width(), Face::mono_note);
  const float length = width(words, Face::mono_note), high = height(Face::mono_note);
  const float x = std::clamp(to - length / 2, room.x0, std::max(room.x0, room.x1 - length));
  say(words, {x, y - high - px(5)}, Face::mono_note,
      m.state == State::current ? Ink::accent : Ink::text, {m.key, 1, mark_, -1});
}

void Placer::put(const Wall& m) {
  const Area& room = here_->inside;
  Piece wall{{m.key, 0, mark_, -1}, room, m.removed ? Piece::dashed : Piece::fill, m.state};
  at_[m.key] = room;
  const auto on = static_cast<int>(out_.pieces.size());
  out_.pieces.push_back(wall);
  if (m.label.full.empty() || room.height() < height(Face::note)) return;
  const std::vector<Run>& words = form(m.label, room.width() - px(4), Face::note);
  if (width(words, Face::note) > room.width() - px(4)) return;
  say_centered(plain(words), room.center(), Face::note, m.removed ? Ink::muted : Ink::on_piece,
               {m.key, 1, mark_, -1}, on);
}

void Placer::put(const Links& m) {
  const Items& items = m.items;
  for (int k = 0; k < items.count; ++k) {
    const auto index = static_cast<std::size_t>(k);
    const Anchor &a = m.from[index], &b = m.to[index];
    Area from, to;
    if (!find(a.key, from) || !find(b.key, to)) continue;
    const auto along = [](const Area& area, const Anchor& part) {
      return area.x0 + area.width() * (part.from + part.to) / 2;
    };
    Stroke link{id(items, k)};
    link.curved = true;
    link.width = 1.2f;
    link.state = items.state[index];
    link.tone = items.tone[index];
    link.layer = Layer::over;
    if (from.y1 <= to.y0 || to.y1 <= from.y0) {  // one above the other
      const bool down = from.y1 <= to.y0;
      const Point start{along(from, a), down ? from.y1 : from.y0},
          end{along(to, b), down ? to.y0 : to.y1};
      const float bend = (end.y - start.y) * 0.45f;
      link.points = {start, {start.x, start.y + bend}, {end.x, end.y - bend}, end};
    } else {
      const bool right = from.center().x <= to.center().x;
      const Point start{right ? from.x1 : from.x0, from.center().y},
          end{right ? to.x0 : to.x1, to.center().y};
      const float bend = (end.x - start.x) * 0.45f;
      link.points = {start, {start.x + bend, start.y}, {end.x - bend, end.y}, end};
    }
    out_.strokes.push_back(std::move(link));
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
  all = {std::max(all.x0 - pad, area_.x0), std::max(all.y0 - pad, area_.y0),
         std::min(all.x1 + pad, area_.x1), std::min(all.y1 + pad, area_.y1)};
  Piece frame{{m.key, 0, mark_, -1}, all, Piece::frame, m.state};
  frame.layer = Layer::over;
  at_.try_emplace(m.key, all);
  out_.pieces.push_back(frame);
  if (m.label.full.empty()) return;
  const std::vector<Run>& words = form(m.label, std::max(all.width(), px(90)), Face::note);
  const float length = width(words, Face::note);
  const float x = std::clamp(all.x0, area_.x0, std::max(area_.x0, area_.x1 - length));
  say(words, {x, all.y0 - height(Face::note) - px(1)}, Face::note,
      m.state == State::current ? Ink::accent : Ink::text, {m.key, 1, mark_, -1});
  out_.words.back().patch = true;
}

/// How much of what is drawn an area covers; words count as what must not be covered.
float Placer::crowd(const Area& area, const Key& of) const {
  const auto covers = [&](const Words& w) { return meet(w.area, area); };
  if (std::any_of(out_.words.begin(), out_.words.end(), covers)) return INFINITY;
  float ink = 0;
  for (const Piece& p : out_.pieces) {
    const bool solid = p.layer != Layer::ground && p.kind != Piece::frame && p.of.key != of;
    if (solid && meet(p.area, area)) ink += p.kind == Piece::outline ? 1 : 8;
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
        const float t = static_cast<float>(n) / static_cast<float>(parts);
        ink += area.holds({a.x + (b.x - a.x) * t, a.y + (b.y - a.y) * t}) ? 1.0f : 0.0f;
      }
    }
  }
  return ink;
}

/// How many of the things drawn a leader would run over.
int Placer::run_over(Point from, Point to, const Key& of) const {
  const auto in_way = [&](const Piece& p) {
    if (p.layer == Layer::ground || p.kind == Piece::frame || p.of.key == of) return false;
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
      const Point at{room.x0 + free_x * static_cast<float>(i % kColumns) / (kColumns - 1),
                     room.y0 + free_y * static_cast<float>(i / kColumns) / (kRows - 1)};
      const Area area{at.x - pad, at.y, at.x + length + pad, at.y + high};
      const float dx = std::max({area.x0 - of.x1, of.x0 - area.x1, 0.0f});
      const float dy = std::max({area.y0 - of.y1, of.y0 - area.y1, 0.0f});
      float cost = crowd(area, m.at.key) * 100 + std::hypot(dx, dy) / px(1) +
                   (meet(area, of) ? 500.0f : 0.0f);
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
    Stroke line{{m.key, 2, mark_, -1}, {from, to}};
    if (std::hypot(to.x - from.x, to.y - from.y) > px(14)) out_.strokes.push_back(std::move(line));
    say(*words, best, Face::note, Ink::text, {m.key, 1, mark_, -1});
    out_.words.back().patch = true;
    at_[m.key] = area;
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

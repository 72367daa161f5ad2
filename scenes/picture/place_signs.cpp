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
  const auto along = [&](const std::vector<double>& values, std::uint8_t part, float thick) {
    Stroke stroke{{m.key, part, mark_, -1}};
    stroke.width = thick;
    stroke.tone = m.tone;
    stroke.state = m.state;
    stroke.dashed = m.dashed;
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (!std::isfinite(values[k]) || !std::isfinite(m.x[k])) continue;
      const Point at{x.at(m.x[k]), y.at(values[k])};
      // Points nearer than a pixel say nothing that is seen.
      const bool last = k + 1 == values.size();
      if (!stroke.points.empty() && !last && std::abs(at.x - stroke.points.back().x) < 0.5f &&
          std::abs(at.y - stroke.points.back().y) < 0.5f)
        continue;
      stroke.points.push_back(at);
    }
    if (stroke.points.size() > 1) out_.strokes.push_back(stroke);
    return stroke.points;
  };
  along(m.low, 1, 0.5f);
  along(m.high, 2, 0.5f);
  const std::vector<Point> points = along(m.y, 0, m.dashed ? 1.5f : 2.5f);
  if (points.empty()) return;
  const Point end = points.back();
  at_[m.key] = {end.x - px(4), end.y - px(4), end.x + px(4), end.y + px(4)};
  if (points.size() == 1) {
    Piece dot{{m.key, 0, mark_, -1}, at_[m.key], Piece::dot, m.state, m.tone};
    dot.layer = Layer::over;
    out_.pieces.push_back(dot);
  }
  if (m.end.full.empty()) return;
  const Face face = Face::note;
  const float line = height(face);
  const bool margin = here_->box->right > 0;
  const float room =
      margin ? here_->area.x1 - here_->inside.x1 - px(14) : here_->inside.x1 - end.x - px(6);
  const std::vector<Run>& words = form(m.end, std::max(room, px(40)), face);
  float left = margin ? here_->inside.x1 + px(14) : end.x + px(6);
  if (!margin && left + width(words, face) > here_->area.x1)
    left = end.x - px(6) - width(words, face);
  float top =
      std::clamp(end.y - line / 2, here_->inside.y0 - line / 2, here_->inside.y1 - line / 2);
  // Ends that come close push each other down, then up.
  const auto hits = [&](float y0) {
    return std::any_of(out_.words.begin(), out_.words.end(), [&](const Words& other) {
      return other.of.part == 6 &&
             meet({left, y0, left + width(words, face), y0 + line}, other.area);
    });
  };
  for (int n = 1; n < 12 && hits(top); ++n) {
    const float aside = static_cast<float>((n + 1) / 2) * line * (n % 2 == 1 ? 1.0f : -1.0f);
    const float tried = std::clamp(end.y - line / 2 + aside, here_->inside.y0 - line / 2,
                                   here_->inside.y1 - line / 2);
    if (!hits(tried)) top = tried;
  }
  Stroke leader{{m.key, 3, mark_, -1}, {end, {left - px(3), top + line / 2}}};
  leader.tone = m.tone;
  leader.dashed = true;
  if (left - end.x > px(10) || std::abs(top + line / 2 - end.y) > line)
    out_.strokes.push_back(std::move(leader));
  say(words, {left, top}, face, m.tone > 0 ? Ink::tone : Ink::muted, {m.key, 6, mark_, -1});
  for (std::size_t w = out_.words.size(); w-- > 0 && out_.words[w].of.key == m.key;) {
    out_.words[w].tone = m.tone;
    out_.words[w].patch = true;
  }
}

void Placer::put(const Ticks& m) {
  const Items& items = m.items;
  flights(items);
  const Span x = span(m.x, false);
  const Area& room = here_->inside;
  const float size = std::min(px(7), room.height());
  const float y = (room.y0 + room.y1 - size) / 2;
  for (int k = 0; k < items.count; ++k) {
    const auto index = static_cast<std::size_t>(k);
    const float at = x.at(m.at[index]);
    const std::uint8_t glyph = items.glyph[index];
    const Piece::Kind kind = glyph == 1   ? Piece::up
                             : glyph == 2 ? Piece::down
                             : glyph == 3 ? Piece::cross
                                          : Piece::fill;
    const float half = kind == Piece::fill ? px(1) : size / 2;
    Piece made = piece(items, k, {at - half, y, at + half, y + size}, kind);
    at_[made.of.key] = made.area;
    out_.pieces.push_back(made);
    const std::string words = written(items, k);
    const float line = height(Face::mono_note);
    if (!words.empty() && y + size + line <= room.y1 + 1) {
      say_centered(words, {at, y + size + line / 2 + px(2)}, Face::mono_note, Ink::muted,
                   id(items, k, 1));
    }
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
  all = {all.x0 - pad, all.y0 - pad, all.x1 + pad, all.y1 + pad};
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

/// Beside the thing where nothing is written yet; with a leader where it stands apart.
void Placer::put(const Note& m) {
  Area of;
  if (!find(m.at.key, of)) return;
  const std::vector<Run>& words = form(m.text, here_->area.width(), Face::note);
  const float length = width(words, Face::note), high = height(Face::note), gap = px(6);
  const Point middle = of.center();
  const Point tried[] = {{of.x1 + gap, middle.y - high / 2},
                         {middle.x - length / 2, of.y0 - high - gap},
                         {of.x0 - gap - length, middle.y - high / 2},
                         {middle.x - length / 2, of.y1 + gap},
                         {of.x1 + 2 * gap, of.y0 - 2 * high},
                         {of.x0 - 2 * gap - length, of.y0 - 2 * high},
                         {of.x1 + 2 * gap, of.y1 + high},
                         {of.x0 - 2 * gap - length, of.y1 + high}};
  for (const Point& at : tried) {
    const Area area{at.x, at.y, at.x + length, at.y + high};
    if (area.x0 < here_->area.x0 || area.x1 > here_->area.x1 || area.y0 < here_->area.y0 ||
        area.y1 > here_->area.y1)
      continue;
    if (std::any_of(out_.words.begin(), out_.words.end(),
                    [&](const Words& w) { return meet(w.area, area); }))
      continue;
    const bool ink = std::any_of(out_.pieces.begin(), out_.pieces.end(), [&](const Piece& p) {
      return p.layer == Layer::body && p.kind == Piece::fill && p.of.key != m.at.key &&
             meet(p.area, area);
    });
    if (ink) continue;
    say(words, at, Face::note, Ink::text, {m.key, 1, mark_, -1});
    out_.words.back().patch = true;
    at_[m.key] = area;
    return;
  }
  out_.short_of.push_back(fmt::format("'{}' has no place", plain(m.text.full)));
}

// ---- words ---------------------------------------------------------------------------------------

void Placer::put(const Lines& m) {
  flights(m.items);
  if (m.items.count == 0) return;
  m.voice == Lines::words ? put_sentences(m) : put_formulas(m);
}

void Placer::put_sentences(const Lines& m) {
  const Items& items = m.items;
  const Area& room = here_->inside;
  float y = room.y0;
  for (int k = 0; k < items.count; ++k) {
    const State state = items.state[static_cast<std::size_t>(k)];
    const Ink ink = state == State::current   ? Ink::accent
                    : state == State::wrong   ? Ink::wrong
                    : state == State::to_come ? Ink::faint
                                              : Ink::muted;
    const std::string all = plain(m.rows[static_cast<std::size_t>(k)].full);
    const float left = room.y1 - y + px(3);
    std::vector<std::string> lines;
    float step = 0;
    Face face = Face::note;
    for (const Face tried : {dense_ ? Face::note : Face::body, Face::note}) {
      face = tried;
      step = height(face) * 1.12f;
      lines = wrapped(all, room.width(), face, static_cast<int>(left / step));
      if (!lines.empty()) break;
    }
    if (lines.empty() && !all.empty()) {
      out_.short_of.push_back(fmt::format("'{}' has no room", all));
    }
    const float top = y;
    std::uint8_t part = 2;
    for (std::string& words : lines) {
      say(std::move(words), {room.x0, y}, face, ink, id(items, k, part++));
      y += step;
    }
    at_[items.key(k)] = {room.x0, top, room.x1, y};
    out_.said.push_back({items.key(k), all, std::string(word_for(state)), at_.at(items.key(k))});
    y += px(3);
  }
}

/// Where not all rows have room, those that are current, or the first.
void Placer::put_formulas(const Lines& m) {
  const Items& items = m.items;
  const Area& room = here_->inside;
  const bool large = m.voice == Lines::large;
  const auto has_room = [&](Face face) {
    const bool wide = !large || width(m.rows[0].full, face) <= room.width();
    return wide && height(face) * static_cast<float>(items.count) <= room.height() + px(1);
  };
  Face face = large && !dense_ ? Face::mono_large : dense_ && !large ? Face::mono_note : Face::mono;
  for (const Face smaller : {Face::mono, Face::mono_note}) {
    if (!has_room(face)) face = smaller;
  }
  const float line = height(face);
  const int fits = static_cast<int>((room.height() + px(2)) / line);
  std::vector<int> shown;
  for (int k = 0; k < items.count; ++k) {
    const bool current = items.state[static_cast<std::size_t>(k)] == State::current;
    if (items.count <= fits || current) shown.push_back(k);
  }
  for (int k = 0; shown.empty() && k < fits; ++k) shown.push_back(k);
  shown.resize(std::min(shown.size(), static_cast<std::size_t>(fits)));
  const auto rows = static_cast<float>(shown.size());
  const float pitch = std::min(line + px(7), std::max(room.height() / rows, line));
  const float pad = items.count > 1 ? px(12) : 0;
  // What stands before the first "=" of each row is as wide in all.
  const auto split = [&](const std::vector<Run>& runs) {
    const std::string all = plain(runs);
    const std::size_t at = items.count > 1 ? all.find('=') : std::string::npos;
    return std::pair(all.substr(0, std::min(at, all.size())), all.substr(std::min(at, all.size())));
  };
  float before = 0;
  for (const Text& row : m.rows) {
    const auto [head, tail] = split(row.full);
    if (!tail.empty()) before = std::max(before, width(head, face));
  }
  const auto parts = [&](int k) {
    const Text& row = m.rows[static_cast<std::size_t>(k)];
    const float wide = room.width() - 2 * pad;
    const auto [head, tail] = split(row.full);
    const float indent = tail.empty() ? 0 : before - width(head, face);
    return split(form(row, wide - indent, face));
  };
  float y = room.y0;
  for (const int k : shown) {
    const State state = items.state[static_cast<std::size_t>(k)];
    const Area area{room.x0, std::max(y - px(2), room.y0), room.x1,
                    std::min(y + line + px(2), room.y1)};
    at_[items.key(k)] = area;
    out_.said.push_back({items.key(k), plain(m.rows[static_cast<std::size_t>(k)].full),
                         std::string(word_for(state)), area});
    if (state == State::current && items.count > 1) {
      Piece wash = piece(items, k, area, Piece::wash);
      wash.layer = Layer::ground;
      out_.pieces.push_back(wash);
      out_.pieces.push_back(piece(items, k, {area.x0, area.y0, area.x0 + px(3), area.y1}));
      out_.pieces.back().of.part = 1;
    }
    const Ink ink = state == State::to_come ? Ink::faint
                    : state == State::wrong ? Ink::wrong
                    : state == State::done  ? Ink::muted
                                            : Ink::text;
    if (items.count == 1) {  // alone it keeps its runs, and stands in the middle
      const float rise = std::max(0.0f, (room.height() - line) / 2);
      say(form(m.rows[0], room.width(), face), {room.x0, y + rise}, face, ink, id(items, k, 2));
      return;
    }
    const auto [head, tail] = parts(k);
    say(head, {room.x0 + pad, y}, face, ink, id(items, k, 2));
    say(tail, {room.x0 + pad + before, y}, face, ink, id(items, k, 3));
    y += pitch;
  }
}

void Placer::put(const Ledger& m) {
  const Items& items = m.items;
  flights(items);
  const Area& room = here_->inside;
  const float line = height(Face::note) + px(6);
  float names = 0;
  for (const Text& row : m.rows) names = std::max(names, width(row.full, Face::note));
  names = std::min(names + px(12), room.width() * 0.5f);
  const auto columns = static_cast<int>(m.columns.size());
  const float wide = (room.width() - names) / static_cast<float>(std::max(columns, 1));
  const float tall = std::min(line, room.height() / static_cast<float>(m.rows.size() + 1));
  const float rise = (tall - height(Face::note)) / 2;
  for (int c = 0; c < columns; ++c) {
    const float right = room.x0 + names + wide * static_cast<float>(c + 1) - px(6);
    say_right(form(m.columns[static_cast<std::size_t>(c)], wide - px(8), Face::note),
              {right, room.y0 + rise}, Face::note, Ink::muted,
              {here_->box->key, static_cast<std::uint8_t>(100 + c)});
  }
  for (int r = 0; r < static_cast<int>(m.rows.size()); ++r) {
    const float y = room.y0 + tall * static_cast<float>(r + 1);
    say(form(m.rows[static_cast<std::size_t>(r)], names - px(6), Face::note), {room.x0, y + rise},
        Face::note, Ink::muted, {here_->box->key, static_cast<std::uint8_t>(150 + r)});
    for (int c = 0; c < columns; ++c) {
      const int k = r * columns + c;
      const float left = room.x0 + names + wide * static_cast<float>(c);
      put_cell(items, k, {left, y, left + wide - px(2), y + tall - px(2)}, -1, false);
      const std::string words = written(items, k);
      if (width(words, Face::mono_note) > wide - px(10)) continue;
      const auto on = static_cast<int>(out_.pieces.size()) - 1;
      say_centered(words, out_.pieces.back().area.center(), Face::mono_note, Ink::on_piece,
                   id(items, k), on);
    }
  }
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

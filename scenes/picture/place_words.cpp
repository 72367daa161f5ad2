// The marks that are words in places of their own: sentences, formulas, small tables, stages.
#include <fmt/format.h>

#include <algorithm>

#include "scenes/picture/look.hpp"
#include "scenes/picture/placer.hpp"

namespace tilestep::picture {

void Placer::put_said(const Items& items, int item, std::string words, const Area& area) {
  stands(items.key(item), area);
  out_.said.push_back(
      {items.key(item), std::move(words), std::string(word_for(items.state[item])), area});
}

void Placer::put(const Lines& m) {
  if (m.items.count == 0) return;
  m.voice == Lines::words ? put_sentences(m) : put_formulas(m);
}

void Placer::put_sentences(const Lines& m) {
  const Items& items = m.items;
  const Area& room = here_->inside;
  float y = room.y0;
  for (int k = 0; k < items.count; ++k) {
    const Text& row = m.rows[k];
    const std::string all = plain(row.full);
    const float left = room.y1 - y + px(3);
    std::vector<std::string> lines;
    float step = 0;
    Face face = Face::note;
    for (const auto* form : {&row.full, &row.brief, &row.least}) {
      for (const Face tried : {dense_ ? Face::note : Face::body, Face::note}) {
        if (!lines.empty()) break;
        face = tried;
        step = height(face) * 1.12f;
        lines = wrapped(plain(*form), room.width(), face, static_cast<int>(left / step));
      }
    }
    if (lines.empty() && !all.empty()) {
      out_.short_of.push_back(fmt::format("'{}' has no room", all));
    }
    const float top = y;
    int part = 2;
    for (std::string& words : lines) {
      say(std::move(words), {room.x0, y}, face, ink_of(items.state[k]), id(items, k, part++));
      y += step;
    }
    const float air = lines.empty() ? 0 : step - height(face);  // below the last line
    put_said(items, k, all, {room.x0, top, room.x1, y - air});
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
    return wide && height(face) * float(items.count) <= room.height() + px(1);
  };
  Face face = large && !dense_ ? Face::mono_large : dense_ && !large ? Face::mono_note : Face::mono;
  for (const Face smaller : {Face::mono, Face::mono_note}) {
    if (!has_room(face)) face = smaller;
  }
  const float line = height(face);
  const int fits = static_cast<int>((room.height() + px(2)) / line);
  std::vector<int> shown;
  for (int k = 0; k < items.count; ++k) {
    const bool current = items.state[k] == State::current;
    if (items.count <= fits || current) shown.push_back(k);
  }
  // With what led to the current ones, as far as there is room.
  while (!shown.empty() && shown.front() > 0 && std::ssize(shown) < fits) {
    shown.insert(shown.begin(), shown.front() - 1);
  }
  if (shown.empty() && items.count > fits) {
    const bool over = items.state[items.count - 1] != State::to_come;
    for (int k = over ? items.count - fits : 0; std::ssize(shown) < fits; ++k) shown.push_back(k);
  }
  shown.resize(std::min(shown.size(), static_cast<std::size_t>(fits)));
  const auto rows = float(shown.size());
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
    const Text& row = m.rows[k];
    const float wide = room.width() - 2 * pad;
    const auto [head, tail] = split(row.full);
    const float indent = tail.empty() ? 0 : before - width(head, face);
    return split(form(row, wide - indent, face));
  };
  float y = room.y0;
  for (const int k : shown) {
    const State state = items.state[k];
    const Area area{room.x0, std::max(y - px(2), room.y0), room.x1,
                    std::min(y + line + px(2), room.y1)};
    put_said(items, k, plain(m.rows[k].full), area);
    if (state == State::current && items.count > 1) {
      put_item(items, k, area, Piece::wash).layer = Layer::ground;
      put_item(items, k, {area.x0, area.y0, area.x0 + px(3), area.y1}, Piece::fill, 1);
    }
    const Ink ink = state == State::current ? Ink::text : ink_of(state, Ink::text);
    if (items.count == 1) {  // alone it keeps its runs, and stands in the middle
      const float rise = std::max(0.0f, (room.height() - line) / 2);
      say(form(m.rows[0], room.width(), face), {room.x0, y + rise}, face, ink, id(items, k, 2));
      return;
    }
    const auto [head, tail] = parts(k);
    say(head, {room.x0 + pad, y}, face, ink, id(items, k, 2));
    if (!head.empty()) name_words(m.rows[k].full.front());
    say(tail, {room.x0 + pad + before, y}, face, ink, id(items, k, 3));
    y += pitch;
  }
}

/// Stages side by side, who fills and who drains them above.
void Placer::put(const Ring& m) {
  const Items& items = m.stages;
  const Area& room = here_->inside;
  const float gap = px(8), line = height(Face::note);
  const float pitch = (room.width() + gap) / float(std::max(items.count, 1));
  for (int k = 0; k < items.count; ++k) {
    const float x = room.x0 + pitch * float(k);
    const Area area{x, room.y0 + line + px(2), x + pitch - gap, room.y1};
    put_item(items, k, area);
    std::string words = fmt::format("phase {}", m.phase[k]);
    if (m.bytes_expected[k] > 0) words += fmt::format(", {} B", m.bytes_expected[k]);
    if (width(words, Face::mono_note) > area.width() - px(4)) words = std::to_string(m.phase[k]);
    say_on(words, id(items, k, 1));
    const char* who = k == m.fill && k == m.drain ? "fill, drain"
                      : k == m.fill               ? "fill"
                      : k == m.drain              ? "drain"
                                                  : "";
    say_centered(who, {area.center().x, room.y0 + line / 2}, Face::note,
                 k == m.fill ? Ink::accent : Ink::muted, id(items, k, 2));
  }
}

void Placer::put(const Ledger& m) {
  const Area& room = here_->inside;
  const Face face = Face::note;
  float names = 0;
  for (const Text& row : m.rows) names = std::max(names, width(row.full, face));
  names = std::min(names + px(12), room.width() * 0.5f);
  const int columns = static_cast<int>(m.columns.size()), rows = static_cast<int>(m.rows.size());
  const float wide = (room.width() - names) / float(std::max(columns, 1));
  const float tall = std::min(height(face) + px(6), room.height() / float(rows + 1));
  const float rise = (tall - height(face)) / 2;
  const auto of = [&](int part) { return id(here_->box->key, part); };
  for (int c = 0; c < columns; ++c) {
    const float right = room.x0 + names + wide * float(c + 1) - px(6);
    say_right(form(m.columns[c], wide - px(8), face), {right, room.y0 + rise}, face, Ink::muted,
              of(100 + c));
  }
  for (int r = 0; r < rows; ++r) {
    const float y = room.y0 + tall * float(r + 1);
    say(form(m.rows[r], names - px(6), face), {room.x0, y + rise}, face, Ink::muted, of(150 + r));
    for (int c = 0; c < columns; ++c) {
      const int k = r * columns + c;
      const float left = room.x0 + names + wide * float(c);
      put_item(m.items, k, {left, y, left + wide - px(2), y + tall - px(2)});
      const std::string words = written(m.items, k);
      if (width(words, Face::mono_note) <= wide - px(10)) say_on(words, id(m.items, k));
    }
  }
}

}  // namespace tilestep::picture

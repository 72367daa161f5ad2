// The marks that are words: sentences, formulas, small tables.
#include <fmt/format.h>

#include <algorithm>

#include "scenes/picture/look.hpp"
#include "scenes/picture/placer.hpp"

namespace tilestep::picture {

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
    const Text& row = m.rows[static_cast<std::size_t>(k)];
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

}  // namespace tilestep::picture

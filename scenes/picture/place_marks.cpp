// The marks that hold items in a row: cells, chips, bars, piles, spans, stretches of memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "scenes/picture/placer.hpp"

namespace tilestep::picture {
namespace {

constexpr float kMostCell = 40;  ///< design pixels: cells do not grow beyond this
constexpr float kLeastCell = 3;  ///< smaller ones fold
constexpr float kMostBar = 30, kMostLying = 22;

bool is_finite(const Area& a) {
  return std::isfinite(a.x0 + a.y0 + a.x1 + a.y1);
}

/// How far a value lies between the least and the most of those that are known.
class Heat {
 public:
  explicit Heat(const Items& items) : on_(items.heat) {
    if (!on_) return;
    for (int k = 0; k < items.count; ++k) {
      const float value = items.value[static_cast<std::size_t>(k)];
      if (!std::isfinite(value) || items.state[static_cast<std::size_t>(k)] == State::to_come)
        continue;
      low_ = any_ ? std::min(low_, value) : value;
      high_ = any_ ? std::max(high_, value) : value;
      any_ = true;
    }
  }
  float of(float value) const {
    if (!on_ || !any_ || !std::isfinite(value)) return -1;
    return high_ > low_ ? std::clamp((value - low_) / (high_ - low_), 0.0f, 1.0f) : 0.5f;
  }

 private:
  bool on_, any_ = false;
  float low_ = 0, high_ = 0;
};

}  // namespace

Identity Placer::id(const Items& items, int item, std::uint8_t part) const {
  return {items.key(item), part, mark_, item};
}

Piece Placer::piece(const Items& items, int item, Area area, Piece::Kind kind) const {
  const auto k = static_cast<std::size_t>(item);
  Piece made{id(items, item), area, kind, items.state[k], items.tone[k], items.flags[k]};
  if ((made.flags & kWas) != 0) made.kind = Piece::dashed;
  return made;
}

void Placer::flights(const Items& items) {
  for (std::size_t k = 0; k < items.ways.size(); ++k) {
    const Way& way = items.ways[k];
    if (way.from.name.empty() && way.to.name.empty()) continue;
    out_.flights.push_back({items.key(static_cast<int>(k)), way});
  }
}

// ---- cells ---------------------------------------------------------------------------------------

bool Placer::words_fit(const Items& items, Point cell) const {
  if (cell.y + px(3) < height(Face::mono_note) || cell.x < px(8)) return false;
  for (int k = 0; k < items.count; ++k) {
    if (width(written(items, k), Face::mono_note) > cell.x - px(2)) return false;
  }
  return true;
}

void Placer::put_cell(const Items& items, int item, Area area, float heat, bool words) {
  if (!is_finite(area)) return;
  Piece made = piece(items, item, area);
  made.heat = heat;
  at_[made.of.key] = area;
  const auto on = static_cast<int>(out_.pieces.size());
  out_.pieces.push_back(made);
  if (!words) return;
  say_centered(written(items, item), area.center(), Face::mono_note, Ink::on_piece, id(items, item),
               on);
}

void Placer::put(const Cells& m) {
  const Items& items = m.items;
  flights(items);
  if (items.count == 0) return;
  const Area& room = here_->inside;
  const int count = items.count / m.parts;
  const int columns = m.columns > 0 ? m.columns : count;
  const int rows = (count + columns - 1) / columns;
  const auto on_axis = [&](Name axis, bool upright) {
    return axis.empty() ? std::optional<Span>() : std::optional(span(axis, upright));
  };
  const std::optional<Span> x = on_axis(m.x, false), y = on_axis(m.y, true);
  const int gaps_x = m.groups > 0 ? (columns - 1) / m.groups : 0;
  const int gaps_y = m.groups > 0 ? (rows - 1) / m.groups : 0;
  const float gap = m.groups > 0 ? px(3) : 0;
  float wide = (room.width() - gap * static_cast<float>(gaps_x)) / static_cast<float>(columns);
  float tall = (room.height() - gap * static_cast<float>(gaps_y)) / static_cast<float>(rows);
  if (!x && !y) {
    wide = tall = std::min({wide, tall, px(kMostCell)});
    if (!m.scale.empty()) wide = tall = std::min(wide, cell_.at(m.scale));
    if (wide < std::max(px(kLeastCell), 1.0f)) return put_folded(m, room, columns, wide);
    if (wide > px(3)) wide = tall = std::floor(wide);
  }
  if (x) wide = x->slot;
  if (y) tall = y->slot;
  const float seam = std::min(wide, tall) >= px(3) ? std::max(1.0f, std::round(px(1))) : 0;
  const float part = (wide - seam) / static_cast<float>(m.parts);
  const bool words = words_fit(items, {part, tall - seam});
  const Heat heat(items);
  for (int k = 0; k < items.count; ++k) {
    const int cell = k / m.parts, column = cell % columns;
    const int row = m.upwards ? rows - 1 - cell / columns : cell / columns;
    if ((x && !x->shows(column)) || (y && !y->shows(row))) continue;
    const float group_x = m.groups > 0 ? gap * static_cast<float>(column / m.groups) : 0;
    const float group_y = m.groups > 0 ? gap * static_cast<float>(row / m.groups) : 0;
    const float left = x ? x->begin(column) : room.x0 + wide * static_cast<float>(column) + group_x;
    const float top = y ? y->begin(row) : room.y0 + tall * static_cast<float>(row) + group_y;
    const float from = left + part * static_cast<float>(k % m.parts);
    put_cell(items, k, {from, top, from + part, top + tall - seam},
             heat.of(items.value[static_cast<std::size_t>(k)]), words);
  }
}

/// Several items become one where each would be a speck: by the declared rule, but what is wrong or
/// current is never averaged away.
void Placer::put_folded(const Cells& m, Area room, int columns, float cell) {
  const Items& items = m.items;
  const int rows = (items.count / m.parts + columns - 1) / columns;
  const int by = std::max(2, static_cast<int>(std::ceil(px(kLeastCell) / std::max(cell, 0.01f))));
  const float size = cell * static_cast<float>(by);
  const Heat heat(items);
  for (int top = 0; top < rows; top += by) {
    for (int left = 0; left < columns; left += by) {
      int shown = -1, count = 0;
      double sum = 0, most = -INFINITY;
      State state = State::plain;
      for (int row = top; row < std::min(top + by, rows); ++row) {
        const int end = std::min(
            {(row * columns + left + by) * m.parts, (row + 1) * columns * m.parts, items.count});
        for (int k = (row * columns + left) * m.parts; k < end; ++k) {
          const auto index = static_cast<std::size_t>(k);
          if (shown < 0) {
            shown = k;
            state = items.state[index];
          }
          const State here = items.state[index];
          if (here == State::wrong || (here == State::current && state != State::wrong)) {
            if (here != state) shown = k;
            state = here;
          }
          sum += static_cast<double>(items.value[index]);
          most = std::max(most, static_cast<double>(items.value[index]));
          ++count;
        }
      }
      if (shown < 0) continue;
      const float x = room.x0 + cell * static_cast<float>(left),
                  y = room.y0 + cell * static_cast<float>(top);
      put_cell(items, shown, {x, y, std::min(x + size, room.x1), std::min(y + size, room.y1)},
               heat.of(static_cast<float>(items.fold == Fold::most ? most : sum / count)), false);
      out_.pieces.back().state = state;
    }
  }
}

// ---- chips ---------------------------------------------------------------------------------------

void Placer::put(const Chips& m) {
  const Items& items = m.items;
  if (items.count == 0) return;
  const Area& room = here_->inside;
  const float gap = m.chain ? px(18) : px(4), pad = px(8);
  const auto length = [&](int k) { return width(written(items, k), Face::note) + 2 * pad; };
  int chosen = 0;
  for (int k = 0; k < items.count; ++k) {
    const auto index = static_cast<std::size_t>(k);
    if (items.state[index] == State::current || (items.flags[index] & kPicked) != 0) chosen = k;
  }
  // As many as have room, grown from the chosen one to both sides.
  int first = chosen, end = chosen + 1;
  float used = length(chosen);
  for (bool grew = true; grew;) {
    grew = false;
    if (end < items.count && used + gap + length(end) <= room.width()) {
      used += gap + length(end++);
      grew = true;
    }
    if (first > 0 && used + gap + length(first - 1) <= room.width()) {
      used += gap + length(--first);
      grew = true;
    }
  }
  const float tall = std::min(height(Face::note) + px(8), room.height());
  float x = room.x0;
  const float y = (room.y0 + room.y1 - tall) / 2;
  for (int k = first; k < end; ++k) {
    const Area area{x, y, x + length(k), y + tall};
    at_[items.key(k)] = area;
    const auto on = static_cast<int>(out_.pieces.size());
    out_.pieces.push_back(piece(items, k, area, Piece::chip));
    if (out_.pieces.back().tone > 0) {  // a sign of it, so that a row of them is not loud
      Piece sign =
          piece(items, k, {area.x0 + pad, area.y1 - px(4), area.x1 - pad, area.y1 - px(2)});
      sign.of.part = 2;
      sign.flags = kNone;
      out_.pieces.back().tone = 0;
      out_.pieces.push_back(sign);
    }
    say_centered(written(items, k), area.center(), Face::note, Ink::on_piece, id(items, k), on);
    if (m.chain && k + 1 < end) {
      Stroke to_next{id(items, k, 1),
                     {{area.x1 + px(3), y + tall / 2}, {area.x1 + gap - px(3), y + tall / 2}}};
      to_next.arrow = true;
      to_next.state = State::to_come;
      out_.strokes.push_back(std::move(to_next));
    }
    x = area.x1 + gap;
  }
}

// ---- bars ----------------------------------------------------------------------------------------

/// How many digits the values of upright bars have room for: as many as the widest number of the axis
/// leaves in every slot, so that they do not come and go; below 0: none.
int Placer::bar_digits(const Bars& m, const Span& band, const Span& length) const {
  Format format = m.items.format;
  if (format.kind == Format::none || length.to - length.from < px(28)) return -1;
  for (int digits = format.digits; digits >= std::max(0, format.digits - 1); --digits) {
    Items ends =
        items("", {static_cast<float>(length.axis->low), static_cast<float>(length.axis->high)},
              {format.kind, digits, format.unit});
    const float widest = std::max(width(written(ends, 0), Face::mono_note),
                                  width(written(ends, 1), Face::mono_note));
    if (widest + px(1) <= band.slot) return digits;
    if (format.kind != Format::fixed) break;
  }
  return -1;
}

/// Where a curve of the box runs over an item: its value stands clear of it.
std::optional<float> Placer::curve_over(const Bars& m, int item) const {
  const double at = item + 0.5;
  for (const Mark& mark : here_->box->marks) {
    const auto* curve = std::get_if<Curve>(&mark);
    if (curve == nullptr || curve->ax != m.x || curve->ay != m.y) continue;
    for (std::size_t k = 1; k < curve->x.size(); ++k) {
      const double from = curve->x[k - 1], to = curve->x[k];
      if (!(from < at && at < to)) continue;
      const double t = (at - from) / (to - from);
      return span(m.y, true).at(curve->y[k - 1] + t * (curve->y[k] - curve->y[k - 1]));
    }
  }
  return std::nullopt;
}

void Placer::put_bar_value(const Bars& m, int item, Area bar, float slot, int digits) {
  Items one = items("", {m.items.value[static_cast<std::size_t>(item)]}, m.items.format);
  one.format.digits = digits;
  const std::string words = written(one, 0);
  if (width(words, Face::mono_note) > slot) return;  // dropped, never cut
  const State state = m.items.state[static_cast<std::size_t>(item)];
  const Ink ink = state == State::to_come   ? Ink::faint
                  : state == State::current ? Ink::text
                                            : Ink::muted;
  const float half = height(Face::mono_note) / 2;
  Point middle{(bar.x0 + bar.x1) / 2, bar.y0 - half - px(1)};
  const std::optional<float> line = curve_over(m, item);
  if (line && std::abs(*line - middle.y) < 0.6f * half + px(2)) middle.y = *line - half - px(1);
  say_centered(words, middle, Face::mono_note, ink, id(m.items, item, 2));
  if (!words.empty()) out_.words.back().patch = true;  // the outline of what was may run under it
}

void Placer::put_bar(const Bars& m, const Span& band, const Span& length, int item) {
  const auto k = static_cast<std::size_t>(item);
  const bool upright = length.upright;
  const float value = m.items.value[k], base = m.items.base[k];
  const float most = upright ? kMostBar : kMostLying;
  const float half = std::max(1.0f, std::min(band.slot * 0.72f, px(most))) / 2;
  const float middle = band.middle(item);
  const float foot = length.at(static_cast<double>(base));
  Area area{middle - half, foot, middle + half, foot};
  Piece::Kind kind = Piece::fill;
  if (std::isinf(value) && value < 0) {
    kind = Piece::hatch;  // what has no height says so at its foot
    area.y0 = foot - std::min(px(14), (length.to - length.from) / 3);
  } else {
    const float end = std::isnan(value) ? foot : length.at(static_cast<double>(value));
    if (upright) {
      area.y0 = std::min(end, foot - px(1));
      area.y1 = std::max(end, foot);
    } else {
      area = {std::min(foot, end), middle - half, std::max({foot, end, std::min(foot, end) + 1}),
              middle + half};
    }
  }
  Piece made = piece(m.items, item, area, kind);
  made.entry = upright ? Entry::rises : Entry::from_left;
  at_[made.of.key] = area;
  out_.pieces.push_back(made);
}

void Placer::put(const Bars& m) {
  flights(m.items);
  const bool upright = axes_.at(m.x)->kind == Axis::band;
  const Span band = upright ? span(m.x, false) : span(m.y, true);
  const Span length = upright ? span(m.y, true) : span(m.x, false);
  const int digits = upright ? bar_digits(m, band, length) : -1;
  if (upright) {
    const float foot = std::round(length.at(std::max(0.0, length.axis->low)));
    Stroke ground{{here_->box->key, 252}, {{here_->inside.x0, foot}, {here_->inside.x1, foot}}};
    ground.state = State::to_come;
    ground.layer = Layer::ground;
    out_.strokes.push_back(std::move(ground));
  }
  for (int k = 0; k < m.items.count; ++k) {
    if (!band.shows(k)) continue;
    put_bar(m, band, length, k);
    const bool was = (m.items.flags[static_cast<std::size_t>(k)] & kWas) != 0;
    if (digits >= 0 && !was) put_bar_value(m, k, out_.pieces.back().area, band.slot, digits);
  }
}

// ---- stretches of memory -------------------------------------------------------------------------

void Placer::put(const Strip& m) {
  const Items& items = m.items;
  flights(items);
  if (items.count == 0) return;
  const Area& room = here_->inside;
  std::vector<std::int64_t> lines;
  for (const std::int64_t address : m.address) {
    if (lines.empty() || lines.back() != address / m.line) lines.push_back(address / m.line);
  }
  const auto count = static_cast<float>(lines.size());
  const float near = std::min(px(4), 0.1f * room.width() / count);
  const float far = std::min(px(22), 0.3f * room.width() / count);
  std::vector<float> left(lines.size(), 0);
  float gaps = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    gaps += lines[i] == lines[i - 1] + 1 ? near : far;
    left[i] = gaps;
  }
  // One line alone is not blown up to the whole width.
  const float wide = std::max(1.0f, std::min((room.width() - gaps) / count, px(360)));
  const float start = room.x0 + std::max(0.0f, room.width() - gaps - wide * count) / 2;
  for (std::size_t i = 0; i < lines.size(); ++i) left[i] += start + wide * static_cast<float>(i);

  const float byte = wide / static_cast<float>(m.line), tall = room.height();
  const auto per_line = m.line / m.bytes;
  float taken = -1e9f;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Key line{items.name == Name("line") ? Name("lines") : Name("line"), static_cast<int>(i)};
    for (int s = 0; s < per_line; ++s) {
      const float x = left[i] + byte * static_cast<float>(s * m.bytes);
      Piece empty{{line, static_cast<std::uint8_t>(s), mark_, -1},
                  {x, room.y0, x + byte * static_cast<float>(m.bytes), room.y0 + tall},
                  Piece::outline,
                  State::to_come};
      empty.layer = Layer::ground;
      out_.pieces.push_back(empty);
    }
    const std::string words = std::to_string(lines[i] * m.line);
    if (left[i] < taken + px(8) || left[i] + width(words, Face::mono_note) > room.x1 + 1) continue;
    taken = left[i] + say(words, {left[i], room.y1 + px(3)}, Face::mono_note, Ink::muted,
                          {line, 200, mark_, -1});
  }
  std::size_t line = 0;
  for (int k = 0; k < items.count; ++k) {
    const auto index = static_cast<std::size_t>(k);
    const std::int64_t address = m.address[index];
    while (line + 1 < lines.size() && lines[line] != address / m.line) ++line;
    const float x = left[line] + byte * static_cast<float>(address % m.line);
    const Area area{x + px(0.5f), room.y0, x + byte * static_cast<float>(m.bytes) - px(0.5f),
                    room.y1};
    at_[items.key(k)] = area;
    Piece whole = piece(items, k, area, Piece::outline);
    out_.pieces.push_back(whole);
    Piece waste = piece(items, k, area, Piece::hatch);
    waste.of.part = 1;
    waste.state = State::wasted;
    out_.pieces.push_back(waste);
    const std::uint64_t used = m.used.empty() ? ~0ull : m.used[index];
    for (int b = 0; b < m.bytes;) {
      if ((used >> b & 1u) == 0) {
        ++b;
        continue;
      }
      int end = b;
      while (end < m.bytes && (used >> end & 1u) != 0) ++end;
      const float from = x + byte * static_cast<float>(b), to = x + byte * static_cast<float>(end);
      Piece run = piece(items, k, {from, area.y0, std::max(to - px(0.5f), from + px(1)), area.y1});
      run.of.part = static_cast<std::uint8_t>(2 + b);
      out_.pieces.push_back(run);
      b = end;
    }
  }
}

// ---- spans over time -----------------------------------------------------------------------------

void Placer::put(const Spans& m) {
  const Items& items = m.items;
  flights(items);
  const Span time = span(m.x, false);
  const Span lanes = span(m.lanes, true);
  const float seam = lanes.slot > px(5) ? px(2) : lanes.slot > 3 ? 1 : 0;
  const float line = height(Face::note);
  int every = 1;
  while (static_cast<float>(every) * lanes.slot < line) every *= 2;
  for (int lane = lanes.first; here_->box->left > 0 && lane < lanes.first + lanes.count;
       lane += every) {
    const Axis& axis = *lanes.axis;
    const std::string words =
        axis.names.empty()
            ? fmt::format("{} {}",
                          axis.title.full.empty() ? axis.name.text() : plain(axis.title.full), lane)
            : axis.names[static_cast<std::size_t>(lane)];
    const float x = here_->inside.x0 - px(8) - width(words, Face::note);
    say(words, {x, lanes.middle(lane) - line / 2}, Face::note, Ink::muted,
        {{lanes.axis->name, lane}, 5, mark_, -1});
  }
  for (int k = 0; k < items.count; ++k) {
    const auto index = static_cast<std::size_t>(k);
    if (!lanes.shows(m.lane[index])) continue;
    const float from = time.at(m.begin[index]), to = time.at(std::min(m.end[index], m.now));
    const float tall = std::min(lanes.slot, px(22));
    const float top = lanes.middle(m.lane[index]) - tall / 2;
    const float apart = to - from > px(5) ? px(1) : 0;
    const Area area{from, top, std::max(to - apart, from + 1), top + tall - seam};
    const bool waste = items.state[index] == State::wasted;
    Piece made = piece(items, k, area, waste ? Piece::hatch : Piece::fill);
    made.entry = Entry::from_left;
    at_[made.of.key] = area;
    const auto on = static_cast<int>(out_.pieces.size());
    out_.pieces.push_back(made);
    const std::string words = written(items, k);
    if (area.height() + px(3) < height(Face::mono_note) ||
        width(words, Face::mono_note) + px(2) > area.width())
      continue;
    say_centered(words, area.center(), Face::mono_note, waste ? Ink::muted : Ink::on_piece,
                 id(items, k), on);
  }
}

}  // namespace tilestep::picture

// The marks that hold items in a row: cells, chips, bars, spans, stretches of memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "scenes/picture/placer.hpp"

namespace tilestep::picture {
namespace {

constexpr float kMostCell = 40;  ///< design pixels: cells do not grow beyond this
constexpr float kLeastCell = 3;  ///< smaller ones fold
constexpr float kMostBar = 30, kMostLying = 22, kMostLine = 44;
/// With much room a bar is thicker than that, to be seen from the last row.
constexpr float kThickest = 80, kOfSlot = 0.72f;

/// How far a value lies between the least and the most of those that are known.
class Heat {
 public:
  explicit Heat(const Items& items) : on_(items.heat) {
    for (int k = 0; on_ && k < items.count; ++k) {
      const float value = items.value[k];
      if (!std::isfinite(value) || items.state[k] == State::to_come) continue;
      low_ = std::min(low_, value);
      high_ = std::max(high_, value);
    }
  }
  float of(float value) const {
    if (!on_ || low_ > high_ || !std::isfinite(value)) return -1;
    return high_ > low_ ? std::clamp((value - low_) / (high_ - low_), 0.0f, 1.0f) : 0.5f;
  }

 private:
  bool on_;
  float low_ = INFINITY, high_ = -INFINITY;
};

}  // namespace

Identity Placer::id(const Items& items, int item, int part) const {
  return {items.key(item), static_cast<std::uint8_t>(part), mark_, item};
}

Piece& Placer::put_item(const Items& items, int item, Area area, Piece::Kind kind, int part) {
  Piece made{id(items, item, part), area, kind, items.state[item], items.tone[item],
             items.flags[item]};
  if ((made.flags & kWas) != 0) made.kind = Piece::dashed;
  if (part == 0) stands(made.of.key, area);
  return out_.pieces.emplace_back(made);
}

void Placer::flights(const Items& items) {
  for (int k = 0; k < std::ssize(items.ways); ++k) {
    const Way& way = items.ways[k];
    if (way.from.name.empty() && way.to.name.empty()) continue;
    out_.flights.push_back({items.key(items.first_way + k), way});
  }
}

// ---- cells ---------------------------------------------------------------------------------------

/// Digits stand on the line, and may stand in a lower cell than letters, some of which hang below it.
bool Placer::words_fit(const Items& items, Point cell) const {
  bool letters = false;
  for (int k = 0; k < items.count; ++k) {
    const std::string words = written(items, k);
    if (width(words, Face::mono_note) > cell.x - px(2)) return false;
    letters = letters || words.find_first_not_of("0123456789.") != std::string::npos;
  }
  return cell.y + px(letters ? 3 : 5) >= height(Face::mono_note) && cell.x >= px(8);
}

/// Where the cells of a grid stand: on axes, or squares in rows.
struct Placer::Grid {
  Area room;
  std::optional<Span> x = {}, y = {};
  int columns = 1, rows = 1, parts = 1, groups = 0;
  float wide = 1, tall = 1, gap = 0, seam = 0;

  Area cell(int column, int row, int part) const {
    const float group_x = groups > 0 ? gap * float(column / groups) : 0;
    const float group_y = groups > 0 ? gap * float(row / groups) : 0;
    const float left = x ? x->begin(column) : room.x0 + wide * float(column) + group_x;
    const float top = y ? y->begin(row) : room.y0 + tall * float(row) + group_y;
    const float each = (wide - seam) / float(parts), from = left + each * float(part);
    return {from, top, from + each, top + tall - seam};
  }
};

Placer::Grid Placer::grid_of(const Cells& m) const {
  Grid grid{.room = here_->inside};
  grid.parts = m.parts;
  grid.groups = m.groups;
  const int count = m.items.count / m.parts;
  grid.columns = m.columns > 0 ? m.columns : count;
  grid.rows = (count + grid.columns - 1) / grid.columns;
  if (!m.x.empty()) grid.x = span(m.x, false);
  if (!m.y.empty()) grid.y = span(m.y, true);
  grid.gap = m.groups > 0 ? px(3) : 0;
  const auto share = [&](float length, int cells) {
    const int gaps = m.groups > 0 ? (cells - 1) / m.groups : 0;
    return (length - grid.gap * float(gaps)) / float(cells);
  };
  grid.wide = share(grid.room.width(), grid.columns);
  grid.tall = share(grid.room.height(), grid.rows);
  if (!grid.x && !grid.y) {
    float side = std::min({grid.wide, grid.tall, px(kMostCell)});
    if (!m.scale.empty()) side = std::min(side, cell_.at(m.scale).y);
    grid.wide = grid.tall = side > px(3) ? std::floor(side) : side;
  }
  if (grid.x) grid.wide = grid.x->slot;
  if (grid.y) grid.tall = grid.y->slot;
  const bool apart = std::min(grid.wide, grid.tall) >= px(3);
  grid.seam = apart ? std::max(1.0f, std::round(px(1))) : 0;
  return grid;
}

/// Of a row of numbered cells that are too narrow for all numbers those that have room: both ends, then as on a ruler.
std::set<int> Placer::some_names(const Items& items, const Grid& grid) const {
  std::set<int> named;
  const Area first = grid.cell(0, 0, 0);
  const bool row = grid.rows == 1 && grid.parts == 1 && !items.names.empty() &&
                   (!grid.x || grid.x->count >= grid.columns);
  const auto is_number = [](const std::string& name) {
    return name.find_first_not_of("0123456789") == std::string::npos;
  };
  if (!row || !std::all_of(items.names.begin(), items.names.end(), is_number)) return named;
  if (first.height() + px(3) < height(Face::mono_note) || first.width() < px(8)) return named;
  const auto half = [&](int k) { return width(written(items, k), Face::mono_note) / 2 + px(1); };
  const auto middle = [&](int k) { return grid.cell(k, 0, 0).center().x; };
  const auto meets = [&](int a, int b) {
    return std::abs(middle(a) - middle(b)) < half(a) + half(b);
  };
  const auto add = [&](int k) {
    const auto is_met = [&](int other) { return meets(k, other); };
    if (std::none_of(named.begin(), named.end(), is_met)) named.insert(k);
  };
  add(0);
  add(items.count - 1);
  int step = 1;
  while (step < items.count) step *= 2;
  for (; step > 0; step /= 2) {
    for (int k = 0; k < items.count; k += step) add(k);
  }
  return named;
}

void Placer::put(const Cells& m) {
  const Items& items = m.items;
  if (items.count == 0) return;
  const Grid grid = grid_of(m);
  const bool specks = !grid.x && !grid.y && grid.wide < std::max(px(kLeastCell), 1.0f);
  if (specks) return put_folded(m, grid);
  const Area first = grid.cell(0, 0, 0);
  const bool words = words_fit(items, {first.width(), first.height()});
  const std::set<int> named = words ? std::set<int>{} : some_names(items, grid);
  const Heat heat(items);
  if (grid.y && !grid.y->axis->names.empty()) name_lanes(*grid.y);
  const int from = grid.x ? grid.x->first : 0;
  const int to = grid.x ? std::min(from + grid.x->count, grid.columns) : grid.columns;
  for (int row = 0; row < grid.rows; ++row) {
    if (grid.y && !grid.y->shows(row)) continue;
    const int end = std::min((row * grid.columns + to) * m.parts, items.count);
    for (int k = (row * grid.columns + from) * m.parts; k < end; ++k) {
      const Area area = grid.cell(k / m.parts % grid.columns, row, k % m.parts);
      if (!area.is_finite()) continue;
      const bool hollow = items.glyph[k] == kHollow && items.state[k] != State::current;
      Piece& piece = put_item(items, k, area, hollow ? Piece::outline : Piece::fill);
      piece.heat = heat.of(items.value[k]);
      // Many outlines close together would be a mesh.
      if (hollow && items.state[k] == State::to_come) piece.alpha = 0.45f;
      if (words || named.count(k) > 0) say_on(written(items, k), id(items, k));
      // No stripes under a number that is looked at now: it would be faint on them.
      const bool striped = items.glyph[k] == kStriped && items.state[k] != State::wasted &&
                           items.state[k] != State::current;
      if (striped) put_item(items, k, area, Piece::stripes, 1).flags = kNone;
    }
  }
}

/// Several items become one where each would be a speck: by the declared rule, but what is wrong or
/// current is never averaged away.
void Placer::put_folded(const Cells& m, const Grid& grid) {
  const Items& items = m.items;
  const int by = std::max(2, int(std::ceil(px(kLeastCell) / std::max(grid.wide, 0.01f))));
  const int columns = grid.columns;
  const float size = grid.wide * float(by);
  const auto rank = [](State state) {
    return state == State::wrong ? 2 : state == State::current ? 1 : 0;
  };
  const Heat heat(items);
  for (int top = 0; top < grid.rows; top += by) {
    for (int left = 0; left < columns; left += by) {
      int shown = -1, count = 0;
      double sum = 0, most = -INFINITY;
      for (int row = top; row < std::min(top + by, grid.rows); ++row) {
        const int end = std::min(
            {(row * columns + left + by) * m.parts, (row + 1) * columns * m.parts, items.count});
        for (int k = (row * columns + left) * m.parts; k < end; ++k) {
          if (shown < 0 || rank(items.state[k]) > rank(items.state[shown])) shown = k;
          sum += double(items.value[k]);
          most = std::max(most, double(items.value[k]));
          ++count;
        }
      }
      if (shown < 0) continue;
      const float x = grid.room.x0 + grid.wide * float(left),
                  y = grid.room.y0 + grid.wide * float(top);
      const Area area{x, y, std::min(x + size, grid.room.x1), std::min(y + size, grid.room.y1)};
      if (!area.is_finite()) continue;
      put_item(items, shown, area).heat =
          heat.of(float(items.fold == Fold::most ? most : sum / count));
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
    if (items.state[k] == State::current || (items.flags[k] & kPicked) != 0) chosen = k;
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
  const float middle = (room.y0 + room.y1) / 2;
  float x = room.x0;
  for (int k = first; k < end; ++k) {
    const Area area{x, middle - tall / 2, x + length(k), middle + tall / 2};
    put_item(items, k, area, Piece::chip).tone = 0;
    say_on(written(items, k), id(items, k), Face::note);
    if (items.tone[k] > 0) {  // a sign of it, so that a row of them is not loud
      const Area line{area.x0 + pad, area.y1 - px(4), area.x1 - pad, area.y1 - px(2)};
      put_item(items, k, line, Piece::fill, 2).flags = kNone;
    }
    if (m.chain && k + 1 < end) {
      put_stroke({.of = id(items, k, 1),
                  .points = {{area.x1 + px(3), middle}, {area.x1 + gap - px(3), middle}},
                  .arrow = true,
                  .state = State::to_come});
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
  // One digit less is still the number where it stays within a twentieth of it: 0.135 is 0.14, and 2.5 is not 2.
  const auto same = [&](int k) {
    const double value = double(m.items.value[k]), unit = std::pow(10.0, format.digits - 1);
    return !std::isfinite(value) ||
           std::abs(std::round(value * unit) / unit - value) <= std::abs(value) / 20;
  };
  int least = format.digits;
  if (format.kind == Format::fixed && format.digits > 0) {
    int k = 0;
    while (k < m.items.count && same(k)) ++k;
    if (k == m.items.count) --least;
  }
  for (; format.digits >= least; --format.digits) {
    const auto wide = [&](double end) {
      return width(written(float(end), format), Face::mono_note);
    };
    if (std::max(wide(length.axis->low), wide(length.axis->high)) + px(1) <= band.slot) {
      return format.digits;
    }
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
  const Format format{m.items.format.kind, digits, m.items.format.unit};
  const std::string words = written(m.items.value[item], format);
  if (words.empty() || width(words, Face::mono_note) > slot) return;  // dropped, never cut
  const State state = m.items.state[item];
  const Ink ink = state == State::to_come   ? Ink::faint
                  : state == State::current ? Ink::text
                                            : Ink::muted;
  const float half = height(Face::mono_note) / 2;
  Point middle{(bar.x0 + bar.x1) / 2, bar.y0 - half - px(1)};
  const std::optional<float> line = curve_over(m, item);
  // Not off its bar, though: the line is left out under it.
  if (line && std::abs(*line - middle.y) < 0.6f * half + px(2) && middle.y - *line < 0.3f * half) {
    middle.y = *line - half - px(1);
  }
  say_centered(words, middle, Face::mono_note, ink, id(m.items, item, 2));
  out_.words.back().patch = true;  // the outline of what was may run under it
}

float Placer::thick(float slot) const {
  return std::min(px(kThickest), kOfSlot * slot);
}

void Placer::put_bar(const Bars& m, const Span& band, const Span& length, int item) {
  const bool upright = length.upright;
  const float value = m.items.value[item];
  const float most = upright ? kMostBar : kMostLying;
  const float half =
      std::max(1.0f, std::min(band.slot * 0.8f, std::max(px(most), thick(band.slot)))) / 2;
  const float middle = band.middle(item);
  const float foot = length.at(double(m.items.base[item]));
  const float end = std::isnan(value) ? foot : length.at(double(value));
  Area area{middle - half, std::min(end, foot - px(1)), middle + half, std::max(end, foot)};
  if (!upright) {
    const float from = std::min(foot, end);
    area = {from, middle - half, std::max({foot, end, from + 1}), middle + half};
  }
  const bool nothing = std::isinf(value) && value < 0;  // what has no height says so at its foot
  if (nothing) {
    const float high = foot - std::min(px(14), (length.to - length.from) / 3);
    area = {middle - half, high, middle + half, foot};
  }
  put_item(m.items, item, area, nothing ? Piece::hatch : Piece::fill).entry =
      upright ? Entry::rises : Entry::from_left;
}

void Placer::put(const Bars& m) {
  const bool upright = axes_.at(m.x)->kind == Axis::band;
  const Span band = upright ? span(m.x, false) : span(m.y, true);
  const Span length = upright ? span(m.y, true) : span(m.x, false);
  const int digits = upright ? bar_digits(m, band, length) : -1;
  if (upright) {
    const float foot = std::round(length.at(std::max(0.0, length.axis->low)));
    put_stroke({.of = {here_->box->key, 252},
                .points = {{here_->inside.x0, foot}, {here_->inside.x1, foot}},
                .state = State::to_come,
                .layer = Layer::ground});
  }
  for (int k = band.first; k < std::min(band.first + band.count, m.items.count); ++k) {
    put_bar(m, band, length, k);
    const bool was = (m.items.flags[k] & kWas) != 0;
    if (digits >= 0 && !was) put_bar_value(m, k, out_.pieces.back().area, band.slot, digits);
  }
}

// ---- stretches of memory -------------------------------------------------------------------------

/// Where the lines of a strip stand: on a number line below each other; else side by side, those that follow
/// each other close together.
struct Placer::Shelves {
  std::vector<std::int64_t> lines;
  std::vector<Area> areas;
};

Placer::Shelves Placer::shelves_of(const Strip& m) const {
  Shelves to;
  for (std::size_t i = 0; i < m.names.size(); ++i) to.lines.push_back(std::int64_t(i));
  for (const std::int64_t address : m.address) {
    const std::int64_t line = address / m.line;
    if (m.names.empty() && (to.lines.empty() || to.lines.back() != line)) to.lines.push_back(line);
  }
  const Area& room = here_->inside;
  const auto count = float(to.lines.size());
  if (!m.x.empty()) {
    const Span along = span(m.x, false);
    // A train is few rows, and what the box is about.
    const float most = px(m.names.empty() ? kMostLine : 2 * kMostLine);
    const float tall = std::min(room.height() / std::max(count, 1.0f), most);
    const float seam = tall > px(6) ? px(2) : tall > px(2.5f) ? px(1) : 0;
    for (std::size_t i = 0; i < to.lines.size(); ++i) {
      const float top = room.y1 - tall * (count - float(i));
      to.areas.push_back({along.from, top, along.to, top + tall - seam});
    }
    return to;
  }
  const float near = std::min(px(4), 0.1f * room.width() / count);
  const float far = std::min(px(22), 0.3f * room.width() / count);
  const auto gap = [&](std::size_t i) {
    return i == 0 ? 0 : to.lines[i] == to.lines[i - 1] + 1 ? near : far;
  };
  float gaps = 0;
  for (std::size_t i = 0; i < to.lines.size(); ++i) gaps += gap(i);
  // One line alone is not blown up to the whole width.
  const float wide = std::max(1.0f, std::min((room.width() - gaps) / count, px(360)));
  float left = room.x0 + std::max(0.0f, room.width() - gaps - wide * count) / 2;
  for (std::size_t i = 0; i < to.lines.size(); ++i) {
    left += gap(i);
    to.areas.push_back({left, room.y0, left + wide, room.y1});
    left += wide;
  }
  return to;
}

void Placer::put(const Strip& m) {
  const Shelves shelves = shelves_of(m);
  const float line_height = height(Face::mono_note);
  float taken = -1e9f;
  for (std::size_t i = 0; i < shelves.lines.size(); ++i) {
    const Area& area = shelves.areas[i];
    const Key key{m.items.name, int(i), 0};
    const int stretches = m.line / m.bytes;  // of the line, whatever is in them
    const float each = area.width() / float(stretches);
    for (int s = 0; s < stretches; ++s) {
      const float x = area.x0 + each * float(s);
      out_.pieces.push_back({.of = id(key, s),
                             .area = {x, area.y0, x + each, area.y1},
                             .kind = Piece::outline,
                             .state = State::to_come,
                             .layer = Layer::ground});
    }
    const std::string words =
        m.names.empty() ? std::to_string(shelves.lines[i] * m.line) : m.names[i];
    const float wide = width(words, Face::mono_note);
    Point at{area.x0, here_->inside.y1 + px(3)};
    bool fits = at.x >= taken + px(8) && at.x + wide <= here_->inside.x1 + 1;
    float end = at.x + wide;
    if (!m.x.empty()) {
      at = {area.x1 + px(6), area.center().y - line_height / 2};
      fits = at.y >= std::max(taken, here_->area.y0) && at.x + wide <= here_->area.x1 + 1;
      end = at.y + line_height;
    }
    if (!fits) continue;
    say(words, at, Face::mono_note, Ink::muted, id(key, 200));
    taken = end;
  }
  std::size_t line = 0;
  for (int k = 0; k < m.items.count; ++k) {
    while (line + 1 < shelves.lines.size() && shelves.lines[line] != m.address[k] / m.line) ++line;
    const Area& area = shelves.areas[line];
    const float byte = area.width() / float(m.line);
    const float x = area.x0 + byte * float(m.address[k] % m.line);
    put_stretch(m, k, {x, area.y0, x + byte * float(m.bytes), area.y1});
  }
}

constexpr int kWastedPart =
    128;  ///< Identity::part of bytes that nothing uses, from their first on

/// What is used of it is filled, what is wasted hatched.
void Placer::put_stretch(const Strip& m, int item, Area area) {
  const Area inner{area.x0 + px(0.5f), area.y0, area.x1 - px(0.5f), area.y1};
  put_item(m.items, item, inner, Piece::outline);
  if ((m.items.flags[item] & kWas) != 0) return;
  const std::uint64_t used = m.used.empty() ? ~0ull : m.used[item];
  const auto is_used = [&](int b) { return (used >> b & 1u) != 0; };
  const float byte = area.width() / float(m.bytes);
  for (int b = 0; b < m.bytes; ++b) {
    const int first = b;
    while (b + 1 < m.bytes && is_used(b + 1) == is_used(first)) ++b;
    const float from = area.x0 + byte * float(first), to = area.x0 + byte * float(b + 1);
    const Area part{from, area.y0, std::max(to - px(0.5f), from + px(1)), area.y1};
    if (is_used(first)) {
      put_item(m.items, item, part, Piece::fill, 2 + first);
    } else if (m.items.state[item] != State::to_come) {
      put_item(m.items, item, part, Piece::hatch, kWastedPart + first).state = State::wasted;
    }
  }
}

// ---- spans over time -----------------------------------------------------------------------------

void Placer::put(const Spans& m) {
  const Items& items = m.items;
  const Span time = span(m.x, false), lanes = span(m.lanes, true);
  const float seam = lanes.slot > px(5) ? px(2) : lanes.slot > 3 ? 1 : 0;
  // Of several on the same lanes the first says what they are called.
  const auto on_lanes = [&](const Mark& mark) {
    const auto* spans = std::get_if<Spans>(&mark);
    return spans != nullptr && spans->lanes == m.lanes;
  };
  const std::vector<Mark>& marks = here_->box->marks;
  const auto first = std::find_if(marks.begin(), marks.end(), on_lanes);
  if (first != marks.end() && std::get_if<Spans>(&*first) == &m) name_lanes(lanes);
  for (int k = 0; k < items.count; ++k) {
    if (!lanes.shows(m.lane[k])) continue;
    const float from = time.at(m.begin[k]), to = time.at(std::min(m.end[k], m.now));
    const int last = m.lane[k] + std::max<int>(items.glyph[k], 1) - 1;
    const float room = lanes.begin(last) + lanes.slot - lanes.begin(m.lane[k]);
    const float tall =
        items.glyph[k] > 0 ? room : std::min(room, std::max(px(kMostLying), thick(room)));
    const float top = lanes.begin(m.lane[k]) + (room - tall) / 2;
    const bool waste = items.state[k] == State::wasted;
    const Piece::Kind kind = waste ? Piece::hatch : Piece::fill;
    const Area whole{from, top, std::max(to - (to - from > px(5) ? px(1) : 0), from + 1),
                     top + tall - seam};
    const std::string words = written(items, k);
    const float wide = width(words, Face::mono_note) + px(2);
    Area area = whole;  // of the words
    if (time.band()) {
      // A cell for each beat, so that nobody takes them for a length. The words are on one in the middle.
      const int begin = std::max(static_cast<int>(m.begin[k]), time.first);
      const int end = std::min(static_cast<int>(m.end[k]), time.first + time.count);
      const auto cell = [&](int beat) {
        const float x = time.begin(beat);
        return Area{x, whole.y0, x + time.slot, whole.y1};
      };
      if (begin < end) stands(items.key(k), whole);
      for (int beat = begin; beat < end; ++beat) {
        const int part = (beat - static_cast<int>(m.begin[k])) % 100;
        put_item(items, k, cell(beat), kind, part).entry = Entry::from_left;
      }
      if (begin >= end) continue;
      if (const Area middle = cell((begin + end - 1) / 2); middle.width() >= wide) area = middle;
    } else {
      put_item(items, k, area, kind).entry = Entry::from_left;
    }
    if (area.height() + px(3) < height(Face::mono_note) || area.width() < px(8)) continue;
    if (words.empty() || wide > area.width()) continue;
    say_centered(words, area.center(), Face::mono_note, waste ? Ink::muted : Ink::on_piece,
                 id(items, k));
    out_.words.back().on = static_cast<int>(out_.pieces.size()) - 1;
  }
}

/// In the left margin, of every so many that have room.
void Placer::name_lanes(const Span& lanes) {
  if (here_->box->left <= 0) return;
  const Axis& axis = *lanes.axis;
  const float line = height(Face::note);
  const std::string kind(axis.title.full.empty() ? std::string(axis.name.text())
                                                 : plain(axis.title.full));
  int every = 1;
  while (float(every) * lanes.slot < line) every *= 2;
  float free = here_->inside.y0;  // above it is the label
  for (int lane = lanes.first; lane < lanes.first + lanes.count; lane += every) {
    const std::string words =
        axis.names.empty() ? fmt::format("{} {}", kind, lane) : axis.names[lane];
    const float x = here_->inside.x0 - px(8) - width(words, Face::note);
    const float y = std::max(lanes.middle(lane) - line / 2, free);
    say(words, {x, y}, Face::note, Ink::muted, id(Key{axis.name, lane}, 5));
    free = y + line;
  }
}

}  // namespace tilestep::picture

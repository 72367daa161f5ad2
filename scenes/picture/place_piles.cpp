// Piles of tiles: experts and their tokens, pools and their pages.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "scenes/picture/placer.hpp"

namespace tilestep::picture {
namespace {

constexpr float kMostSlot = 52, kLeastSlot = 6;  ///< design pixels; smaller ones become a bar
constexpr float kMostPile = 64;                  ///< width of a bar
constexpr float kAspect = 1.5f;

int in(const std::vector<int>& column, int pile) {
  return column.empty() ? 0 : column[pile];
}

}  // namespace

/// Where the slots of the piles are. They grow upwards: tiles first, then what was dropped.
struct Placer::Piles {
  Area room;
  std::optional<Span> axis;
  float pitch = 1, wide = 1, tall = 1;  ///< of piles; of a pile; of a row of slots
  float gap = 0, pile_gap = 0, seam = 0;
  int tile = 1, across = 1;
  bool cells = false, words = false;

  bool shows(int pile) const { return !axis || axis->shows(pile); }
  float left(int pile) const {
    const float middle = axis ? axis->middle(pile) : room.x0 + pitch * (float(pile) + 0.5f);
    return wide >= 4 ? std::round(middle - wide / 2) : middle - wide / 2;
  }
  /// How high so many slots stand.
  float height(double slots) const {
    const double tiles = std::floor(slots / tile), rest = slots - tiles * tile;
    const double rows = tiles * std::ceil(double(tile) / across) + rest / across;
    return float(rows) * tall + float(tiles) * gap;
  }
  /// The slot `place` of the tiles, or of what was dropped above them.
  Area slot(int pile, int place) const {
    return cell_at(pile, place, height(place - place % across));
  }
  Area dropped(int pile, int tiles, int place) const {
    return cell_at(pile, place, lift(tiles) + tall * float(place / across));
  }
  Area cell_at(int pile, int place, float above) const {
    const float cell = wide / float(across), foot = room.y1 - above;
    const float x = left(pile) + cell * float(place % across);
    return {x, foot - tall + seam, x + cell - seam, foot};
  }
  Area tile_area(int pile, int number) const {
    const float foot = room.y1 - height(double(number) * tile);
    const float top = foot - tall * std::ceil(float(tile) / float(across));
    return {left(pile), top, left(pile) + wide, foot};
  }
  /// How high what was dropped stands above the ground.
  float lift(int tiles) const { return height(double(tiles) * tile) + pile_gap; }
};

Placer::Piles Placer::piles_of(const Stacks& m) const {
  Piles to;
  to.room = here_->inside;
  if (!m.x.empty()) to.axis = span(m.x, false);
  // The numbers above the piles have room too.
  const bool numbers = m.items.format.kind != Format::none || !m.items.names.empty();
  const float high = to.room.height() - (numbers ? height(Face::mono_note) + px(2) : 0);
  to.pitch = to.axis ? to.axis->slot : to.room.width() / float(m.items.count);
  to.tile = m.tile;
  const bool any_dropped =
      std::any_of(m.dropped.begin(), m.dropped.end(), [](int n) { return n > 0; });
  to.pile_gap = any_dropped ? std::min(px(6), 0.03f * high) : 0;
  // How high a row may be so that the highest pile fits.
  const auto fits = [&](int across, float gap) {
    float tall = px(kMostSlot);
    for (int p = 0; p < m.items.count; ++p) {
      const int per_tile = (m.tile + across - 1) / across;
      const int rows = in(m.tiles, p) * per_tile + (in(m.dropped, p) + across - 1) / across;
      const float gaps = gap * float(in(m.tiles, p)) + to.pile_gap;
      if (rows > 0) tall = std::min(tall, (high - gaps) / float(rows));
    }
    return tall;
  };
  // The largest slots that any number of them side by side allows.
  const float lane = to.pitch * 0.84f;
  float best = 0;
  for (int across = 1; across <= m.tile && m.held.count > 0; across *= 2) {
    const float tall = fits(across, px(4));
    const float wide = std::min(lane / float(across), tall * kAspect);
    if (std::min(wide, tall) <= best) continue;
    best = std::min(wide, tall);
    to.across = across;
    to.wide = wide * float(across);
    to.tall = std::min(tall, wide * kAspect);
  }
  to.cells = best >= px(kLeastSlot);
  if (to.cells) {
    to.gap = px(4);
    to.seam = 1;
    to.words = words_fit(m.held, {to.wide / float(to.across) - 1, to.tall - 1});
    return to;
  }
  to.across = 1;
  to.wide = to.pitch < px(4) ? to.pitch : std::min(lane, px(kMostPile));
  to.tall = fits(1, 0);
  return to;
}

void Placer::put(const Stacks& m) {
  if (m.items.count == 0) return;
  const Piles piles = piles_of(m);
  int held = 0;
  for (int p = 0; p < m.items.count; ++p) {
    if (piles.shows(p)) put_pile(m, piles, p, held);
    held += in(m.kept, p) + in(m.dropped, p);
  }
  if (!m.limit.key.name.empty()) put_limit(m, piles);
}

void Placer::put_pile(const Stacks& m, const Piles& piles, int pile, int held) {
  const float left = piles.left(pile), right = left + piles.wide, ground = piles.room.y1;
  const int dropped = in(m.dropped, pile), tiles = in(m.tiles, pile);
  const float rows = std::ceil(float(dropped) / float(piles.across));
  const float high = dropped > 0
                         ? piles.lift(tiles) + rows * piles.tall
                         : piles.height(double(tiles) * m.tile) - (tiles > 0 ? piles.gap : 0);
  const Area all{left, ground - std::max(high, 1.0f), right, ground};
  // What holds on to a pile holds on to what it keeps.
  const float tall = std::max(piles.height(double(tiles) * m.tile) - piles.gap, 1.0f);
  stands(m.items.key(pile), {left, ground - tall, right, ground});
  put_item(m.items, pile, {left, ground, right, ground + px(2)}).state = State::plain;
  piles.cells ? put_held(m, piles, pile, held) : put_bars(m, piles, pile);
  for (int t = 0; t < tiles; ++t) {
    const Area area = piles.tile_area(pile, t);
    if (area.height() < px(4) || piles.wide < px(5) || t >= 60) break;
    put_item(m.items, pile, area, Piece::outline, 1 + t);
  }
  // What is kept, and in red what of it is dropped, which lies right below.
  std::vector<Run> words = {{written(m.items, pile)}};
  if (words[0].text.empty()) return;
  if (dropped > 0) words.push_back({fmt::format(" −{}", dropped), {}, State::wrong});
  const float line = height(Face::mono_note), wide = width(words, Face::mono_note);
  if (wide > piles.pitch - px(2)) return;
  const Point at{(left + right - wide) / 2, std::max(all.y0 - line - px(1), piles.room.y0)};
  say(words, at, Face::mono_note, Ink::muted, id(m.items, pile, 245));
  for (std::size_t n = 1; n <= words.size(); ++n) out_.words[out_.words.size() - n].patch = true;
}

/// What lies in the slots, a cell each; what is left of the last tile is hatched.
void Placer::put_held(const Stacks& m, const Piles& piles, int pile, int held) {
  const int kept = in(m.kept, pile), all = kept + in(m.dropped, pile);
  for (int n = 0; n < all; ++n) {
    const Area area =
        n < kept ? piles.slot(pile, n) : piles.dropped(pile, in(m.tiles, pile), n - kept);
    Piece& made = put_item(m.held, held + n, area);
    made.of.item += m.items.count;
    if (piles.words) say_on(written(m.held, held + n), made.of);
  }
  // Row by row where its first row is a part of one, so that few rectangles are hatched.
  for (int n = kept, end = in(m.tiles, pile) * m.tile; n < end;) {
    const int tile_end = (n / m.tile + 1) * m.tile, column = n % m.tile % piles.across;
    const int to = column > 0 ? std::min(n + piles.across - column, tile_end) : tile_end;
    const Area low = piles.slot(pile, n), high = piles.slot(pile, to - 1);
    put_item(m.items, pile, {low.x0, high.y0, high.x1, low.y1}, Piece::hatch, 62 + n % 170).state =
        State::wasted;
    n = to;
  }
}

/// Bars as long as their counts: kept, padded, dropped.
void Placer::put_bars(const Stacks& m, const Piles& piles, int pile) {
  const int kept = in(m.kept, pile), slots = in(m.tiles, pile) * m.tile;
  const float left = piles.left(pile),
              right = left + piles.wide - (piles.wide >= px(3) ? 1.0f : 0.0f);
  const auto bar = [&](float from, float to, int part, State state, Piece::Kind kind) {
    Piece& made = put_item(m.items, pile, {left, piles.room.y1 - to, right, piles.room.y1 - from},
                           kind, part);
    made.state = state;
    made.entry = Entry::rises;
  };
  const float top = piles.height(kept);
  const State state = m.items.state[pile];
  if (kept > 0) bar(0, std::max(top, 1.0f), 240, state, Piece::fill);
  if (slots > kept && piles.height(slots) - top >= 1)
    bar(top, piles.height(slots), 242, State::wasted, Piece::hatch);
  const float lift = piles.lift(in(m.tiles, pile));
  const float tall = std::max(piles.tall * float(in(m.dropped, pile)), px(2));
  if (in(m.dropped, pile) > 0) bar(lift, lift + tall, 241, State::wrong, Piece::fill);
}

/// A line that no kept one stands above. Where it ends within a row of slots, it steps down.
void Placer::put_limit(const Stacks& m, const Piles& piles) {
  const int limit = static_cast<int>(std::clamp(m.limit.at, 0.0, 1e9));
  const int rest = limit % piles.across;
  const float low = piles.room.y1 - piles.height(limit - rest);
  const float high = rest > 0 ? low - piles.tall : low;
  if (high < piles.room.y0 - 1) return;  // beyond what any pile has
  const float step = piles.wide / float(piles.across) * float(rest);
  Stroke line{.of = id(m.limit.key),
              .points = {{piles.room.x0, high}},
              .width = 1.5f,
              .state = m.limit.state,
              .layer = Layer::over};
  for (int p = 0; p < m.items.count && rest > 0; ++p) {
    if (!piles.shows(p)) continue;
    const float left = piles.left(p);
    for (const Point& point : {Point{left + step, high},
                               {left + step, low},
                               {left + piles.wide, low},
                               {left + piles.wide, high}})
      line.points.push_back(point);
  }
  line.points.push_back({piles.room.x1, high});
  put_stroke(std::move(line));
  if (m.limit.label.full.empty()) return;
  const Area all{piles.room.x0, high - 1, piles.room.x1, low + 1};
  stands(m.limit.key, all);
  out_.said.push_back({m.limit.key, plain(m.limit.label.full), {}, all});
  const float margin = here_->box->left * em_ - px(4);
  const float room = margin > 0 ? margin : piles.room.width();
  put_label(m.limit.label, room, m.limit.key, Ink::text, [&](float length) -> Point {
    const float tall = height(Face::note);
    if (margin > 0) return {piles.room.x0 - px(4) - length, high - tall / 2};
    return {piles.room.x1 - length, high - tall - px(1)};
  });
}

}  // namespace tilestep::picture

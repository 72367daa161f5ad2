// The picture of a rung above shared-tile: which thread has which elements of a block's tile of C, as its
// threads stored it, and how many FMAs a thread's shared-memory reads feed, beside the rungs below.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <utility>

#include "scenes/matmul/tiling/grid.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using tiling::Rung, tiling::Share;
using words::counted, words::significant;

namespace {

constexpr int kWarp = 32;
constexpr int kMmaRows = 16, kMmaColumns = 8;  // of C, by one mma.m16n8k16
constexpr int kHalf = kMmaRows / 2,
              kPairs = kMmaColumns / 2;  // in halves of pairs, as lanes have them
constexpr int kEdge = 128;               // of the largest block: all are drawn at its scale
constexpr double kMostReads = 2;         // for an FMA: both factors

/// A rectangle of C.
struct Piece {
  int row, column, rows, columns;
};

/// The elements of the threads for which `has` is true, in as few rectangles as a row-by-row scan finds.
std::vector<Piece> pieces_of(const Rung& rung, const std::function<bool(int thread)>& has) {
  const int down = rung.rows / rung.unit_rows, across = rung.columns / rung.unit_columns;
  std::vector<bool> taken(rung.owners.size());
  const auto at = [&](int row, int column) {
    return static_cast<std::size_t>(row * across + column);
  };
  const auto is_free = [&](int row, int column) {
    return row < down && column < across && !taken[at(row, column)] &&
           has(rung.owners[at(row, column)]);
  };
  std::vector<Piece> pieces;
  for (int row = 0; row < down; ++row) {
    for (int column = 0; column < across; ++column) {
      if (!is_free(row, column)) continue;
      int wide = 1, tall = 1;
      while (is_free(row, column + wide)) ++wide;
      const auto goes_on = [&](int below) {
        int same = 0;
        while (same < wide && is_free(below, column + same)) ++same;
        return same == wide;
      };
      while (goes_on(row + tall)) ++tall;
      for (int i = 0; i < tall * wide; ++i) taken[at(row + i / wide, column + i % wide)] = true;
      pieces.push_back({row * rung.unit_rows, column * rung.unit_columns, tall * rung.unit_rows,
                        wide * rung.unit_columns});
    }
  }
  return pieces;
}

/// "8 × 8", "4 squares of 4 × 4", "64 pairs".
std::string in_words(const std::vector<Piece>& pieces) {
  if (pieces.empty()) return "nothing";
  const int rows = pieces[0].rows, columns = pieces[0].columns;
  const bool alike = std::all_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return piece.rows == rows && piece.columns == columns;
  });
  const std::string size = fmt::format("{} × {}", rows, columns);
  if (!alike) return counted(std::ssize(pieces), "rectangle");
  if (pieces.size() == 1) return size;
  if (rows * columns == 2) return counted(std::ssize(pieces), "pair");
  return fmt::format("{} {} of {}", pieces.size(), rows == columns ? "squares" : "rectangles",
                     size);
}

/// The rows and the columns of the tile in which a thread has elements.
std::pair<std::vector<int>, std::vector<int>> lines_of(const Rung& rung, int thread) {
  std::set<int> rows, columns;
  for (const Piece& piece : pieces_of(rung, [&](int of) { return of == thread; })) {
    for (int i = 0; i < piece.rows; ++i) rows.insert(piece.row + i);
    for (int i = 0; i < piece.columns; ++i) columns.insert(piece.column + i);
  }
  return {{rows.begin(), rows.end()}, {columns.begin(), columns.end()}};
}

/// The largest rectangles of the tile, found by doubling, that each belong to one warp.
Piece warp_unit(const Rung& rung) {
  const auto whole = [&](int rows, int columns) {
    const int across = rung.columns / rung.unit_columns;
    for (int i = 0; i < static_cast<int>(rung.owners.size()); ++i) {
      const int row = i / across * rung.unit_rows, column = i % across * rung.unit_columns;
      const int first = rung.owner(row / rows * rows, column / columns * columns);
      if (rung.owner(row, column) / kWarp != first / kWarp) return false;
    }
    return true;
  };
  Piece unit{0, 0, rung.unit_rows, rung.unit_columns};
  while (rung.columns % (2 * unit.columns) == 0 && whole(unit.rows, 2 * unit.columns)) {
    unit.columns *= 2;
  }
  while (rung.rows % (2 * unit.rows) == 0 && whole(2 * unit.rows, unit.columns)) unit.rows *= 2;
  return unit;
}

bool is_mma(const Rung& rung) {
  return tiling::k_at_once(rung.variant) > 1 && rung.rows % kMmaRows == 0 &&
         rung.columns % kMmaColumns == 0;
}
/// The cells in which threads are shown: an mma, of which each lane has a few elements, is one.
Piece thread_unit(const Rung& rung) {
  return is_mma(rung) ? Piece{0, 0, kMmaRows, kMmaColumns}
                      : Piece{0, 0, rung.unit_rows, rung.unit_columns};
}

/// The mma that computes the first element of a thread.
Piece first_mma(const std::vector<Piece>& own) {
  const int row = own.empty() ? 0 : own[0].row, column = own.empty() ? 0 : own[0].column;
  return {row / kMmaRows * kMmaRows, column / kMmaColumns * kMmaColumns, kMmaRows, kMmaColumns};
}

/// Where the pair at a place of the drawn fragment begins: its row and column in the tile.
std::pair<int, int> pair_in(const Piece& mma, int row, int place) {
  return {mma.row + row + place / kPairs * kHalf, mma.column + place % kPairs * 2};
}

bool in_tile(int row, int column, const Rung& rung) {
  return row >= 0 && row < rung.rows && column >= 0 && column < rung.columns;
}

/// The share of a k-tile's count that the rung's innermost step has.
double of_step(const Rung& rung, int of_k_tile) {
  return static_cast<double>(of_k_tile) * tiling::k_at_once(rung.variant) / rung.depth;
}
/// "1 for 32"
std::string in_lowest(const Rung& rung) {
  const int common = std::max(std::gcd(rung.reads, rung.fmas()), 1);
  return fmt::format("{} for {}", rung.reads / common, rung.fmas() / common);
}
std::string served(const Rung& rung) {
  return fmt::format("{} for {}", significant(of_step(rung, rung.reads), 3),
                     significant(of_step(rung, rung.fmas()), 4));
}

}  // namespace

void TilingScene::measure_shares() {
  const Piece unit = warp_unit(trace_.rungs.back());
  warp_rows_ = unit.rows;
  warp_columns_ = unit.columns;
  const auto [rows, columns] = lines_of(trace_.rungs.back(), trace_.rungs.back().threads / 3);
  own_rows_ = static_cast<int>(rows.size());
  own_columns_ = static_cast<int>(columns.size());
}

int TilingScene::followed(const View& view) const {
  const int threads = trace_.rungs.back().threads;
  const int thread = view.pick("thread", threads / 3);
  return thread >= 0 && thread < threads ? thread : threads / 3;
}

bool TilingScene::shows(Cursor cursor, Share share) const {
  return cursor.tile > 0 && cursor.phase >= static_cast<int>(share);
}

std::string TilingScene::rung_sentence(Cursor cursor) const {
  const Rung& rung = trace_.rungs.back();
  const std::string tile = fmt::format("{} × {} of C", rung.rows, rung.columns);
  if (!shows(cursor, Share::warps)) {
    return fmt::format("{}: a block of {} computes {}.", name_of(rung.variant),
                       counted(rung.threads, "thread"), tile);
  }
  const int thread = rung.threads / 3;
  const auto warp = pieces_of(rung, [&](int of) { return of / kWarp == thread / kWarp; });
  const auto own = pieces_of(rung, [&](int of) { return of == thread; });
  if (!shows(cursor, Share::thread)) {
    return fmt::format("{} share {}: one has {}.",
                       counted((rung.threads + kWarp - 1) / kWarp, "warp"), tile, in_words(warp));
  }
  const bool squares = own.size() > 1 && own[0].rows > 1;
  const std::string owns =
      fmt::format("One thread owns {}{}", in_words(own), squares ? "" : " of C");
  if (!shows(cursor, Share::reads)) {
    return is_mma(rung) ? fmt::format("{}, some of each {} × {} that an mma makes.", owns, kMmaRows,
                                      kMmaColumns)
                        : owns + ".";
  }
  const std::string fmas = significant(of_step(rung, rung.fmas()), 4) + " FMAs";
  const std::string reads = significant(of_step(rung, rung.reads), 3);
  if (rung.requests == rung.reads) return fmt::format("{}: {} reads for {}.", owns, reads, fmas);
  return fmt::format("{}: {} numbers in {} reads for {}.", owns, reads,
                     significant(of_step(rung, rung.requests), 3), fmas);
}

std::vector<Axis> TilingScene::rung_axes() const {
  const Rung& rung = trace_.rungs.back();
  const int edge = std::max({kEdge, rung.rows, rung.columns});
  // On the scale "plane" elements of C are squares.
  const auto plane = [edge](Name down, Name across, int rows, int columns) {
    const auto axis = [edge](Name name, int elements) {
      return Axis{.name = name,
                  .kind = Axis::band,
                  .high = static_cast<double>(edge),
                  .count = edge / elements,
                  .align = 0,
                  .least_slot = 0};
    };
    return std::array{axis(down, rows), axis(across, columns)};
  };
  const Piece warps{0, 0, warp_rows_, warp_columns_}, threads = thread_unit(rung);
  std::vector<Axis> axes;
  for (const auto& both : {plane("block_down", "block_across", rung.rows, rung.columns),
                           plane("warp_down", "warp_across", warps.rows, warps.columns),
                           plane("thread_down", "thread_across", threads.rows, threads.columns)}) {
    axes.insert(axes.end(), both.begin(), both.end());
  }
  axes.push_back({.name = "mma_down", .kind = Axis::band, .count = kHalf, .least_slot = 0});
  axes.push_back({.name = "mma_across",
                  .kind = Axis::band,
                  .count = 2 * kPairs,
                  .group = kPairs,
                  .least_slot = 0});
  for (const auto& [name, count] :
       {std::pair{Name("mine_down"), own_rows_}, std::pair{Name("mine_across"), own_columns_}}) {
    axes.push_back({.name = name, .kind = Axis::band, .count = count, .align = 0, .least_slot = 0});
  }
  std::vector<std::string> names;
  for (const Rung& each : trace_.rungs) names.emplace_back(name_of(each.variant));
  axes.push_back({.name = "rung",
                  .kind = Axis::band,
                  .count = static_cast<int>(names.size()),
                  .names = std::move(names)});
  axes.push_back({.name = "reads_per_fma", .high = kMostReads, .fixed = true, .ticks = true});
  return axes;
}

std::vector<Symbol> TilingScene::rung_symbols(const View& view) const {
  if (!shows(view.cursor, Share::thread)) return {};
  const int thread = followed(view);
  return {{"One thread",
           {"thread", thread},
           kOfC,
           fmt::format("Thread {}, lane {} of warp {}: it accumulates its elements of C in "
                       "registers, then stores them.",
                       thread, thread % kWarp, thread / kWarp)}};
}

Picture TilingScene::rung_picture(const Extent& extent, const View& view) const {
  const Rung& rung = trace_.rungs.back();
  Box inset = is_mma(rung) ? fragment(view) : products(view);
  return {{marked(rung_sentence(view.cursor), rung_symbols(view)),
           {{std::string(name_of(rung.variant))}}},
          extent.axes,
          column({"all"},
                 {row({"tile"}, {owners(view), std::move(inset)}, {.weight = 1.9f}), reads(view)},
                 {.flow = Layout::tall})};
}

/// The block's tile of C: whole, by warps, by threads.
Box TilingScene::owners(const View& view) const {
  const Rung& rung = trace_.rungs.back();
  const bool by_thread = shows(view.cursor, Share::thread), any = shows(view.cursor, Share::warps);
  const Piece unit = by_thread ? thread_unit(rung)
                     : any     ? Piece{0, 0, warp_rows_, warp_columns_}
                               : Piece{0, 0, rung.rows, rung.columns};
  const Name name = by_thread ? Name("share") : any ? Name("warp") : Name("whole");
  const int down = rung.rows / unit.rows, across = rung.columns / unit.columns;
  Cells grid{items(name, down * across)};
  grid.items.per_row = grid.columns = across;
  grid.items.heat = true;
  grid.scale = "plane";
  grid.x = by_thread ? Name("thread_across") : any ? Name("warp_across") : Name("block_across");
  grid.y = by_thread ? Name("thread_down") : any ? Name("warp_down") : Name("block_down");
  const int thread = followed(view);
  std::vector<int> threads, warps;
  for (int i = 0; i < down * across; ++i) {
    const int row = i / across * unit.rows, column = i % across * unit.columns;
    const int owner = any ? rung.owner(row, column) : -1, warp = owner < 0 ? -1 : owner / kWarp;
    const bool mine = any && warp == thread / kWarp, whole = by_thread && !is_mma(rung);
    const bool own = mine && (!by_thread || (whole && owner == thread));
    grid.items.state.each.push_back(!any        ? State::to_come
                                    : owner < 0 ? State::wrong
                                                : State::plain);
    grid.items.tone.each.push_back(mine ? kOfC : 0);
    grid.items.value.each.push_back(mine ? (own ? 1.0f : 0.0f) : NAN);
    grid.items.names.push_back(owner < 0       ? ""
                               : !by_thread    ? std::to_string(warp)
                               : mine && whole ? std::to_string(owner % kWarp)
                                               : "");
    threads.push_back(whole ? owner : -1);
    warps.push_back(warp);
  }
  grid.items.about = {{"thread", {-1, threads}}, {"warp", {-1, warps}}};
  if (by_thread && !is_mma(rung)) grid.items.act = {Act::pick, "thread"};
  const std::string size = fmt::format("{} × {} of C", rung.rows, rung.columns);
  const std::string what = !any           ? ", a block's"
                           : !by_thread   ? ": by warp"
                           : is_mma(rung) ? ", 16 × 8 a cell"
                                          : fmt::format(": lanes of warp {}", thread / kWarp);
  Box made = box({"own"}, {grid}, text(size + what, size, "C"),
                 {.weight = 1.2f, .least_width = 9, .least_height = 9});
  if (!any) return made;
  const auto frame = [&](Key key, const Piece& of) {
    const Key first{name, of.row / unit.rows, of.column / unit.columns};
    const Key last{name, (of.row + of.rows - 1) / unit.rows,
                   (of.column + of.columns - 1) / unit.columns};
    made.marks.push_back(Frame{key, {first, last}});
  };
  int number = 0;
  for (const Piece& piece :
       pieces_of(rung, [&](int of) { return of >= 0 && of / kWarp == thread / kWarp; })) {
    frame({"warp_frame", number++}, piece);
  }
  if (by_thread && is_mma(rung)) {
    frame({"mma"}, first_mma(pieces_of(rung, [&](int of) { return of == thread; })));
  }
  return made;
}

/// What one mma makes of C: which lane has which pair of elements, of the upper rows and beside them of the lower.
Box TilingScene::fragment(const View& view) const {
  const Rung& rung = trace_.rungs.back();
  const bool any = shows(view.cursor, Share::thread);
  const int thread = followed(view);
  const Piece mma = first_mma(pieces_of(rung, [&](int of) { return of == thread; }));
  Cells grid{items("lane", kHalf * 2 * kPairs)};
  grid.items.per_row = grid.columns = 2 * kPairs;
  grid.x = "mma_across";
  grid.y = "mma_down";
  std::vector<int> threads;
  for (int i = 0; i < grid.items.count; ++i) {
    const auto [row, column] = pair_in(mma, i / grid.columns, i % grid.columns);
    const bool pair = rung.owner(row, column) == rung.owner(row, column + 1);
    const int owner = any && pair ? rung.owner(row, column) : -1;
    const bool own = any && owner == thread;
    grid.items.names.push_back(owner < 0 ? "" : std::to_string(owner % kWarp));
    grid.items.state.each.push_back(!any        ? State::to_come
                                    : owner < 0 ? State::wrong
                                                : State::plain);
    grid.items.tone.each.push_back(own ? kOfC : 0);
    grid.items.flags.each.push_back(own ? kPicked : kNone);
    threads.push_back(owner);
  }
  grid.items.about = {{"thread", {-1, threads}}};
  grid.items.act = {Act::pick, "thread"};
  return box({"fragment"}, {grid},
             text(fmt::format("an mma's {} × {} by lanes, rows 0–{} and {}–{}", kMmaRows,
                              kMmaColumns, kHalf - 1, kHalf, kMmaRows - 1),
                  fmt::format("{} × {} by lanes", kMmaRows, kMmaColumns), "lanes"),
             {.weight = 0.7f, .least_width = 9, .least_height = 9});
}

/// The products that one k adds to the thread's sums: each number that it reads of A times each of B.
Box TilingScene::products(const View& view) const {
  const Rung& rung = trace_.rungs.back();
  const bool any = shows(view.cursor, Share::thread), read = shows(view.cursor, Share::reads);
  const int thread = followed(view);
  auto [rows, columns] = lines_of(rung, thread);
  rows.resize(std::min<std::size_t>(rows.size(), own_rows_));
  columns.resize(std::min<std::size_t>(columns.size(), own_columns_));
  const int down = static_cast<int>(rows.size()), across = static_cast<int>(columns.size());
  const auto strip = [&](Name name, int count, std::uint8_t tone) {
    Cells cells{items(name, read ? count : 0)};
    cells.items.tone.all = tone;
    return cells;
  };
  Cells of_a = strip("of_a", down, kOfA), of_b = strip("of_b", across, kOfB);
  of_a.columns = 1;
  of_a.y = "mine_down";
  of_b.x = "mine_across";
  Cells of_c{items("sum_of", any ? down * across : 0)};
  of_c.items.per_row = of_c.columns = std::max(across, 1);
  of_c.x = "mine_across";
  of_c.y = "mine_down";
  of_c.scale = "mine";
  for (int i = 0; i < of_c.items.count; ++i) {
    const bool own = rung.owner(rows[i / across], columns[i % across]) == thread;
    of_c.items.state.each.push_back(own ? State::plain : State::wrong);
  }
  of_c.items.tone.all = kOfC;
  const Layout thin{.weight = 0, .least_width = 1.2f, .least_height = 1.2f},
      wide{.least_width = 7, .least_height = 1.2f};
  Box made = column(
      {"products"},
      {row({"products_upper"}, {box({"gap", 4}, {}, {}, thin), box({"from_b"}, {of_b}, {}, wide)},
           {.weight = 0}),
       row({"products_lower"},
           {box({"from_a"}, {of_a}, {}, thin), box({"sums"}, {of_c}, {}, wide)})},
      {.close = true, .weight = 0.7f, .least_width = 9});
  made.label = text("each k");
  if (any) made.label = text(fmt::format("a thread's {} × {} sums", down, across), "its sums");
  if (read) {
    made.label = text(fmt::format("each k: {} of A × {} of B", down, across),
                      fmt::format("{} × {}", down, across));
  }
  return made;
}

/// A bar for each rung: reads of shared memory per FMA.
Box TilingScene::reads(const View& view) const {
  SpanList list("reads_of", "reads_per_fma", "rung", "rung");
  Box made = box({"reads_bars"}, {}, {},
                 {.least_width = 3.5f, .least_height = 7, .left = 7, .right = 5.2f});
  for (int i = 0; i < static_cast<int>(trace_.rungs.size()); ++i) {
    const Rung& rung = trace_.rungs[static_cast<std::size_t>(i)];
    const bool shown = rung.variant == trace_.variant;
    if (shown && !shows(view.cursor, Share::reads)) continue;
    list.add({.lane = i,
              .end = rung.reads_per_fma(),
              .tone = shown ? kOfC : std::uint8_t{0},
              .about = i,
              .lanes = 1});
    list.spans.items.value.each.push_back(static_cast<float>(rung.reads_per_fma()));
    made.marks.emplace_back(lane_end({"served", i}, "reads_per_fma", "rung", rung.reads_per_fma(),
                                     text(served(rung), in_lowest(rung)), shown ? kOfC : 0,
                                     {"rung", i}, false));
  }
  made.marks.insert(made.marks.begin(), list.made(kMostReads));
  return labelled({"reads"}, std::move(made), text("shared-memory reads per FMA", "reads per FMA"),
                  {.weight = 0.5f});
}

Question TilingScene::reads_question() const {
  const Rung& rung = trace_.rungs.back();
  const auto reads = std::llround(of_step(rung, rung.reads));
  const auto fmas = std::llround(of_step(rung, rung.fmas()));
  return about(
      {"reads"},
      ask_count(fmt::format("A thread of {} has {} accumulators. How many numbers does it read "
                            "from shared memory for {} FMAs?",
                            name_of(rung.variant), rung.owned, fmas),
                reads, {2 * fmas, fmas, fmas / 2, fmas + 1},
                fmt::format("each number of A is multiplied by each of B: {} numbers feed {} FMAs.",
                            reads, fmas)));
}

std::string TilingScene::rung_explain(const View& view, const Key& key) const {
  const Rung& rung = trace_.rungs.back();
  const auto who = [](int owner) {
    return owner < 0
               ? std::string("no one thread's")
               : fmt::format("thread {}: lane {} of warp {}", owner, owner % kWarp, owner / kWarp);
  };
  if (key.is({"share", "warp"})) {
    const Piece unit =
        key.is({"share"}) ? thread_unit(rung) : Piece{0, 0, warp_rows_, warp_columns_};
    const int row = key.i * unit.rows, column = key.j * unit.columns;
    if (!in_tile(row, column, rung)) return {};
    const int owner = rung.owner(row, column);
    const bool one = key.is({"share"}) && !is_mma(rung);
    return fmt::format("rows {}, columns {} of the tile\n{}", range(row, unit.rows),
                       range(column, unit.columns),
                       one ? who(owner) : fmt::format("warp {}", owner / kWarp));
  }
  if (key.is({"lane"})) {
    const int thread = followed(view);
    const Piece mma = first_mma(pieces_of(rung, [&](int of) { return of == thread; }));
    if (key.i < 0 || key.i >= kHalf || key.j < 0 || key.j >= 2 * kPairs) return {};
    const auto [row, column] = pair_in(mma, key.i, key.j);
    return fmt::format("row {}, columns {} of the tile\n{}", row, range(column, 2),
                       who(rung.owner(row, column)));
  }
  if (key.is({"whole"})) return "the block's tile of C";
  if (key.is({"sum_of", "of_a", "of_b"})) {
    return key.is({"sum_of"}) ? "an accumulator of the followed thread"
           : key.is({"of_a"}) ? "a number of A's tile, read for this k"
                              : "a number of B's tile, read for this k";
  }
  if (!key.is({"reads_of", "served"})) return {};
  const auto i = static_cast<std::size_t>(std::max(key.i, 0));
  if (i >= trace_.rungs.size()) return {};
  const Rung& of = trace_.rungs[i];
  return fmt::format("{}: {} numbers in {} for {} FMAs, a k-tile of {}", name_of(of.variant),
                     of.reads, counted(of.requests, "read"), of.fmas(), of.depth);
}

}  // namespace tilestep::scenes

// The picture of the tiling lesson: the three matrices with the block and its bands, and the bars of global
// loads; beside them the two tiles in shared memory around C's block, and the sum of one thread. Without
// shared memory the same places show how often each element of the k-tile is loaded from global memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/matmul/tiling/grid.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using tiling::KTile, tiling::Phase, tiling::Variant;
using words::number;

namespace {

constexpr Layout kSheet = {.least_width = 3, .least_height = 2.2f};

}  // namespace

// ---- where things stand --------------------------------------------------------------------------

/// Elements along the edge of a cell of the matrices: more than one if they are large, and always
/// a divisor of the tile's edge.
int TilingScene::unit() const {
  constexpr int kMost = 16;
  const int longest = std::max({trace_.m, trace_.n, trace_.k});
  int unit = 1;
  while (unit < trace_.tile && (trace_.tile % unit != 0 || longest > kMost * unit)) ++unit;
  return unit;
}

/// A is left of C and B above it, as close as possible.
Extent TilingScene::extent() const {
  if (is_rung()) return {rung_axes()};
  const int u = unit(), group = trace_.tile > u ? trace_.tile / u : 0;
  const auto band = [](Name name, int count, int groups, float align) {
    return Axis{.name = name,
                .kind = Axis::band,
                .count = count,
                .group = groups,
                .align = align,
                .least_slot = 0};
  };
  const auto matrix = [&](Name name, int elements, float align) {
    return band(name, (elements + u - 1) / u, group, align);
  };
  const double products = 1.0 * trace_.rows() * trace_.columns() * trace_.k;
  std::vector<std::string> kernels = {"naive"};
  if (lanes() > 1) kernels.insert(kernels.begin(), std::string(name_of(trace_.block.variant)));
  return {{matrix("m", trace_.m, 0), matrix("n", trace_.n, 0), matrix("k", trace_.k, 1),
           band("row", trace_.tile, 0, 0), band("column", trace_.tile, 0, 0),
           band("depth", trace_.tile, 0, 1),
           Axis{.name = "bar", .kind = Axis::band, .count = lanes(), .names = std::move(kernels)},
           Axis{.name = "loads", .high = rounded(0, 2 * products).second, .ticks = true}}};
}

std::vector<Symbol> TilingScene::symbols(const View& view) const {
  if (is_rung()) return rung_symbols(view);
  const TilingMoment now = moment(view.cursor);
  const int element = picked(view), thread = thread_of(element);
  const auto code = [&](bool there, const char* word) {
    return there ? std::vector<std::string>{word} : std::vector<std::string>();
  };
  std::vector<Symbol> all = {
      {"global loads",
       {"loads", 0},
       kOfC,
       "Floats of A and B that the block has fetched from global memory so far."},
      {fmt::format("sum of thread {}", thread),
       {"thread", thread},
       0,
       fmt::format("Thread {}'s running sum, in a register: it ends as {}.", thread,
                   name_in_c(element)),
       code(true, "sum")}};
  if (now.k_tile >= 0) {
    all.push_back(
        {fmt::format("K-tile {}", now.k_tile),
         {"k-tile", now.k_tile},
         0,
         fmt::format("A slice of A's columns and B's rows, up to {} of them: number {} of "
                     "{} along k.",
                     trace_.tile, now.k_tile, k_tiles()),
         code(shared(), "k0")});
  }
  return all;
}

Picture TilingScene::picture(const Extent& extent, const View& view) const {
  if (is_rung()) return rung_picture(extent, view);
  const TilingMoment now = moment(view.cursor);
  Box left = column({"left"}, {matrices(now), bars(now)}, {.flow = Box::either});
  Box right = column({"right"}, {tiles(now, view), the_sum(view)}, {.weight = 1.2f});
  return {{marked(sentence(view.cursor), symbols(view)), {{brief(now)}}},
          extent.axes,
          row({"all"}, {std::move(left), std::move(right)}),
          {"tile_a", "tile_b", "sum"}};
}

// ---- the matrices --------------------------------------------------------------------------------

Box TilingScene::matrices(const TilingMoment& now) const {
  const int u = unit(), row0 = trace_.first_row(), column0 = trace_.first_column();
  const auto cells = [&](int elements) { return (elements + u - 1) / u; };
  const auto inside = [&](int at, int first, int count) {
    return at < first + count && at + u > first;
  };
  const auto sheet = [&](Key key, const TilingGrid& grid, int rows, int columns) {
    const std::string letter(grid.items.name.text());
    return box(key, {grid}, text(fmt::format("{} {} × {}", letter, rows, columns), letter), kSheet);
  };
  const auto frame = [&](Box& of, Key key, Name name, int row, int column, int rows, int columns,
                         State state) {
    const Key first{name, row / u, column / u};
    const Key last{name, (row + rows - 1) / u, (column + columns - 1) / u};
    of.marks.push_back(Frame{key, {first, last}, state});
  };
  // The block's rows of A and columns of B, k-tile by k-tile.
  const auto operand = [&](Key key, bool is_a) {
    const int rows = is_a ? trace_.m : trace_.k, columns = is_a ? trace_.k : trace_.n;
    TilingGrid grid = is_a ? TilingGrid("A", cells(rows), cells(columns), "k", "m", "matrix")
                           : TilingGrid("B", cells(rows), cells(columns), "n", "k", "matrix");
    std::vector<int> tiles;
    for (int i = 0; i < grid.items.count; ++i) {
      const int row = i / grid.columns * u, column = i % grid.columns * u;
      const int number = (is_a ? column : row) / trace_.tile;
      const bool within =
          is_a ? inside(row, row0, trace_.rows()) : inside(column, column0, trace_.columns());
      grid.add(!within || number == now.k_tile ? State::plain
               : number < now.k_tile           ? State::done
                                               : State::to_come,
               !within ? 0
               : is_a  ? kOfA
                       : kOfB);
      tiles.push_back(within ? number : -1);
    }
    grid.items.about = {{"k-tile", {-1, tiles}}};
    grid.items.act = {Act::go};
    Box made = sheet(key, grid, rows, columns);
    if (now.k_tile < 0) return made;
    const int k0 = now.k_tile * trace_.tile, deep = depth(now.k_tile);
    is_a ? frame(made, {"a_tile"}, "A", row0, k0, trace_.rows(), deep, State::current)
         : frame(made, {"b_tile"}, "B", k0, column0, deep, trace_.columns(), State::current);
    return made;
  };
  // The sums stay with their threads until the last k-tile.
  const tiling::Races& races = trace_.races;
  TilingGrid grid("C", cells(trace_.m), cells(trace_.n), "n", "m", "matrix");
  for (int i = 0; i < grid.items.count; ++i) {
    const int row = i / grid.columns * u, column = i % grid.columns * u;
    const bool within =
        inside(row, row0, trace_.rows()) && inside(column, column0, trace_.columns());
    const bool wrong = judged(now) && inside(races.row, row, u) && inside(races.column, column, u);
    const Way way{{"c", std::max(row - row0, 0), std::max(column - column0, 0)}, {}, 0, true};
    grid.add(wrong                      ? State::wrong
             : within && !finished(now) ? State::to_come
                                        : State::plain,
             within ? kOfC : 0, NAN, within && finished(now) ? way : Way{});
  }
  Box c = sheet({"matrix_c"}, grid, trace_.m, trace_.n);
  frame(c, {"c_block"}, "C", row0, column0, trace_.rows(), trace_.columns(), State::plain);
  if (judged(now)) frame(c, {"wrong_in_c"}, "C", races.row, races.column, 1, 1, State::wrong);
  return column({"matrices"},
                {row({"upper"}, {naive(now), operand({"matrix_b"}, false)}, {.even = true}),
                 row({"lower"}, {operand({"matrix_a"}, true), c}, {.even = true})},
                {.even = true, .place = Place::device_memory});
}

/// The same tiles as `naive` loads them, each element again for each product; placed as A and B are.
Box TilingScene::naive(const TilingMoment& now) const {
  if (trace_.block.variant == Variant::naive) return box({"naive"}, {});
  const KTile* loaded =
      now.k_tile >= 0 && now.multiplied ? &trace_.naive.k_tiles[now.k_tile] : nullptr;
  const auto pile = [&](Key key, Name name, const KTile::Operand KTile::*of) {
    TilingGrid grid(name, trace_.tile, trace_.tile, {}, {}, "naive");
    for (int i = 0; i < grid.items.count; ++i) {
      const int count = loaded == nullptr ? 0 : (loaded->*of).loads[i];
      grid.add(loaded == nullptr ? State::to_come
               : count == 0      ? State::wasted
                                 : State::plain,
               kOfNaive, count > 0 ? static_cast<float>(count) : NAN);
    }
    return box(key, {grid});
  };
  Box made =
      column({"naive"},
             {row({"naive_upper"}, {box({"gap", 0}, {}), pile({"naive_b"}, "nb", &KTile::b)}),
              row({"naive_lower"}, {pile({"naive_a"}, "na", &KTile::a), box({"gap", 1}, {})})},
             {.rank = 2});
  const int a = loaded == nullptr ? 0 : most(loaded->a.loads),
            b = loaded == nullptr ? 0 : most(loaded->b.loads);
  made.label = text(loaded == nullptr ? "naive"
                    : a == b          ? fmt::format("naive: loads each {}×", a)
                                      : fmt::format("naive: {}× and {}×", a, b),
                    "naive");
  return made;
}

// ---- loads and the sum ---------------------------------------------------------------------------

/// The block's own and that of `naive`; only one if the block runs naive itself.
int TilingScene::lanes() const {
  return trace_.block.variant == Variant::naive ? 1 : 2;
}

/// Each k-tile's trips to memory behind those before it.
Box TilingScene::bars(const TilingMoment& now) const {
  Box both =
      box({"load_bars"}, {}, {},
          {.least_width = 3, .least_height = static_cast<float>(lanes()), .left = 5, .right = 3});
  const auto add = [&](Name name, int lane, const tiling::BlockTrace& of, int tiles,
                       std::uint8_t tone, Name whose) {
    Spans spans{items(name, tiles)};
    spans.x = "loads";
    spans.lanes = "bar";
    spans.lane.assign(tiles, lane);
    spans.items.glyph.all = 1;
    spans.items.tone.all = tone;
    spans.items.format = {Format::integer};
    spans.items.about = {{whose, {0}}};
    double before = 0;
    for (int tile = 0; tile < tiles; ++tile) {
      const auto end = static_cast<double>(of.k_tiles[tile].loads_so_far);
      spans.begin.push_back(before);
      spans.end.push_back(end);
      spans.items.value.each.push_back(static_cast<float>(end - before));
      spans.items.state.each.push_back(tile == now.k_tile ? State::current : State::plain);
      before = end;
    }
    spans.now = before;
    both.marks.emplace_back(std::move(spans));
    both.marks.emplace_back(lane_end({"total", lane}, "loads", "bar", before,
                                     text(fmt::format("{:.0f}", before)), tone, {whose, 0}, false));
  };
  const int naive_tiles = now.multiplied ? now.k_tile + 1 : now.k_tile;
  if (lanes() > 1) add("block_loads", 0, trace_.block, now.k_tile + 1, kOfC, "loads");
  add("naive_loads", lanes() - 1, trace_.naive, std::max(naive_tiles, 0), kOfNaive, "naive loads");
  Box made = column({"loads"}, {std::move(both)}, {.weight = 0.001f});
  made.label = text("global loads so far", "loads so far", "loads");
  if (now.multiplied && now.loads > 0 && now.loads != now.naive_loads) {
    const double share = static_cast<double>(now.naive_loads) / static_cast<double>(now.loads);
    made.label = text(fmt::format("global loads so far: {:.1f}× fewer", share),
                      fmt::format("{:.1f}× fewer loads", share), "loads");
  }
  return made;
}

/// The picked thread's sum with its numbers; the first `terms` products are written out.
std::vector<Run> TilingScene::formula(const View& view, int terms) const {
  const TilingMoment now = moment(view.cursor);
  const int element = picked(view), row = element / trace_.tile, column = element % trace_.tile;
  const auto value = [](float of) { return number(of, 3); };
  const std::string after = value(sum(element, view.cursor));
  if (now.k_tile < 0) return {{"sum = 0"}};
  if (!now.multiplied) return {{"sum = " + after}};
  const Cursor before{view.cursor.tile - 1, steps().phases - 1};
  std::vector<Run> runs = {{now.k_tile == 0 ? "0" : value(sum(element, before))}};
  const auto factor = [](float of) {
    const std::string text = number(of, 2);
    return of < 0 ? "(" + text + ")" : text;
  };
  const int deep = depth(now.k_tile);
  // The kernel's sum, beside the products added to its previous sum.
  double due = now.k_tile == 0 ? 0 : static_cast<double>(sum(element, before));
  double magnitude = std::abs(due);
  for (int i = 0; i < deep; ++i) {
    const int k = now.k_tile * trace_.tile + i;
    const float a = trace_.a_band[row * trace_.k + k];
    const float b = trace_.b_band[k * trace_.columns() + column];
    if (i < terms) runs.push_back({fmt::format(" + {}·{}", factor(a), factor(b))});
    due += static_cast<double>(a) * static_cast<double>(b);
    magnitude += std::abs(static_cast<double>(a) * static_cast<double>(b));
  }
  if (deep > terms) runs.push_back({" + …"});
  if (words::close(static_cast<double>(sum(element, view.cursor)), due, magnitude)) {
    runs.push_back({" = " + after});
  } else {
    runs.push_back({fmt::format(" is {}", number(due, 3))});
    runs.insert(runs.begin(), {"sum = " + after + ", but ", {}, State::wrong});
  }
  return runs;
}

/// Whether an element's sum is complete and differs from the one in double.
bool TilingScene::contradicted(Cursor cursor, int element) const {
  const TilingMoment now = moment(cursor);
  if (now.k_tile + 1 < k_tiles() || !now.multiplied) return false;
  const int at = element / trace_.tile * trace_.columns() + element % trace_.tile;
  return !words::close(static_cast<double>(sum(element, cursor)),
                       trace_.exact[static_cast<std::size_t>(at)], 0.1);
}

Box TilingScene::the_sum(const View& view) const {
  const int element = picked(view), thread = thread_of(element);
  Lines sum = lines("formula", {{formula(view, 1), formula(view, 0)}}, Lines::formula);
  if (contradicted(view.cursor, element)) sum.items.state.all = State::wrong;
  sum.items.about = {{"thread", {thread}}};
  Box made = box({"sum"}, {sum},
                 text(fmt::format("thread {} → {}: its sum", thread, name_in_c(element)),
                      fmt::format("thread {}", thread)),
                 {.rank = 1, .weight = 0, .least_width = 11.5f, .least_height = 1.2f});
  made.place = Place::registers;
  return made;
}

// ---- what the pointer is told --------------------------------------------------------------------

std::string TilingScene::explain(const View& view, const Key& key) const {
  if (is_rung()) return rung_explain(view, key);
  const TilingMoment now = moment(view.cursor);
  const tiling::Races& races = trace_.races;
  const std::string wrong = fmt::format("without the barrier: {} instead of {}",
                                        number(races.got, 4), number(races.want, 4));
  if (key.is({"c"})) {
    const int i = key.i * trace_.tile + key.j;
    if (!within(i)) return "outside C";
    const bool first = judged(now) && trace_.first_row() + key.i == races.row &&
                       trace_.first_column() + key.j == races.column;
    return fmt::format("{}, thread {}\nsum so far {}\n{}", name_in_c(i), thread_of(i),
                       number(sum(i, view.cursor), 4),
                       first ? wrong : "click to follow this thread");
  }
  if (key.is({"wrong_in_c"})) return fmt::format("C[{}][{}], {}", races.row, races.column, wrong);
  if (key.is({"sa", "sb"}) && now.k_tile >= 0) {
    return explain_element(now, key.is({"sa"}), key.i * trace_.tile + key.j);
  }
  if (key.is({"a_tile", "b_tile"})) return fmt::format("k-tile {}", now.k_tile);
  if (key.is({"c_block"})) {
    return fmt::format("block {}, {} of C", trace_.block_row, trace_.block_col);
  }
  if (key.is({"block_loads", "naive_loads"}))
    return fmt::format("global loads of this block for k-tile {}", key.i);
  const bool after_load = key.is({"barrier_after_load"});
  if (!after_load && !key.is({"barrier_after_multiply"})) return {};
  const bool gone = removed(after_load ? Phase::barrier_after_load : Phase::barrier_after_multiply);
  return fmt::format("barrier after {}{}", after_load ? "load" : "multiply",
                     gone ? ": removed" : "");
}

}  // namespace tilestep::scenes

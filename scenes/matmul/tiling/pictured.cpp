// The picture of the tiling lesson: the three matrices with the block and its bands, the bars of global
// loads and the sum of one thread; beside them the two tiles in shared memory around C's block, with the
// barriers as walls between those that load and those that read. Without shared memory the same places
// show how often each element of the k-tile is loaded from global memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/matmul/tiling/scene.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using tiling::KTile, tiling::Phase, tiling::Variant;
using words::number;

namespace {

constexpr std::uint8_t kA = 5, kB = 4, kC = 3,
                       kNaive = 6;  ///< tones: sky, purple, green, vermillion
constexpr float kNothing = NAN;     ///< no numeral

int most(const std::vector<int>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

std::string range(int first, int count) {
  return count == 1 ? std::to_string(first) : fmt::format("{}–{}", first, first + count - 1);
}

State state_of(Phase phase, const TilingMoment& now) {
  return now.k_tile < 0 || now.phase < phase ? State::to_come
         : now.phase == phase                ? State::current
                                             : State::done;
}

Box even(Box made) {
  made.even = true;
  return made;
}
Box thin(Box made) {
  made.weight = 0;
  made.least_width = made.least_height = 0.35f;
  return made;
}

Box words_box(Key key, Name name, Text words) {
  Lines lines;
  lines.items = items(name, words.full.empty() ? 0 : 1);
  if (lines.items.count > 0) lines.rows = {std::move(words)};
  lines.voice = Lines::words;
  return box(key, {lines});
}

}  // namespace

/// A matrix or a tile of one as it is filled in, cell by cell.
struct TilingScene::Grid {
  Cells cells;

  Grid(Name name, int rows, int columns) {
    cells.items = items(name, rows * columns);
    cells.items.per_row = cells.columns = columns;
    cells.items.value.all = kNothing;
    cells.items.format = {Format::integer};
  }
  /// Stands on these axes, in cells of one size with others of `scale`.
  Grid& on(Name x, Name y, Name scale) {
    cells.x = x;
    cells.y = y;
    cells.scale = scale;
    return *this;
  }
  void add(State state, std::uint8_t tone, float value = kNothing, Way way = {},
           bool picked = false) {
    cells.items.state.each.push_back(state);
    cells.items.tone.each.push_back(tone);
    cells.items.value.each.push_back(value);
    cells.items.ways.push_back(way);
    cells.items.flags.each.push_back(picked ? kPicked : kNone);
  }
};

// ---- where things stand --------------------------------------------------------------------------

/// Elements along the edge of a cell of the matrices: more than one where they are large, and always
/// a divisor of the tile's edge.
int TilingScene::unit() const {
  constexpr int kMost = 16;
  const int longest = std::max({trace_.m, trace_.n, trace_.k});
  int unit = 1;
  while (unit < trace_.tile && (trace_.tile % unit != 0 || longest > kMost * unit)) ++unit;
  return std::max(unit, 1);
}

Extent TilingScene::extent() const {
  const int u = unit(), group = trace_.tile > u ? trace_.tile / u : 0;
  const auto matrix = [&](Name name, int elements, float align) {
    return Axis{.name = name,
                .kind = Axis::band,
                .count = (elements + u - 1) / u,
                .group = group,
                .align = align,
                .least_slot = 0};
  };
  const auto tile = [&](Name name, float align) {
    return Axis{
        .name = name, .kind = Axis::band, .count = trace_.tile, .align = align, .least_slot = 0};
  };
  // A stands left of C and B above it, as near as they can.
  const double total = 2.0 * trace_.rows() * trace_.columns() * trace_.k;
  return {{matrix("m", trace_.m, 0),
           matrix("n", trace_.n, 0),
           matrix("k", trace_.k, 1),
           tile("row", 0),
           tile("column", 0),
           tile("depth", 1),
           {.name = "loads", .high = rounded(0, total).second},
           {.name = "bar", .kind = Axis::band, .count = 1}}};
}

Picture TilingScene::picture(const Extent& extent, const View& view) const {
  const TilingMoment now = moment(view.cursor);
  Box left = column({"left"}, {matrices(now), column({"below"}, {bars(now), formula_box(view)})});
  left.flow = Box::either;
  left.boxes[1].weight = 0;
  Box right = shared() ? walled(now, view) : tiles(now, view);
  right.weight = 1.2f;
  return {text(sentence(view.cursor)), extent.axes, row({"all"}, {left, right})};
}

// ---- the matrices --------------------------------------------------------------------------------

Box TilingScene::matrices(const TilingMoment& now) const {
  const int u = unit();
  const auto cells = [&](int elements) { return (elements + u - 1) / u; };
  const auto inside = [&](int cell, int first, int count) {
    return cell * u < first + count && (cell + 1) * u > first;
  };
  const auto band = [&](Grid& grid, bool within, int k, std::uint8_t tone) {
    const int number = k * u / trace_.tile;
    grid.add(!within                ? State::plain
             : number < now.k_tile  ? State::done
             : number == now.k_tile ? State::plain
                                    : State::to_come,
             within ? tone : 0);
  };
  const int m = cells(trace_.m), n = cells(trace_.n), k = cells(trace_.k);
  Grid a("A", m, k), b("B", k, n), c("C", m, n);
  for (int i = 0; i < m * k; ++i) {
    band(a, inside(i / k, trace_.first_row(), trace_.rows()), i % k, kA);
  }
  for (int i = 0; i < k * n; ++i) {
    band(b, inside(i % n, trace_.first_column(), trace_.columns()), i / n, kB);
  }
  const tiling::Races& races = trace_.races;
  const bool judged = finished(now) && races.order >= 0;
  for (int i = 0; i < m * n; ++i) {
    const bool within = inside(i / n, trace_.first_row(), trace_.rows()) &&
                        inside(i % n, trace_.first_column(), trace_.columns());
    const bool wrong = judged && i / n == races.row / u && i % n == races.column / u;
    // The sums stay with their threads until the last k-tile.
    const Key from{"c", i / n * u - trace_.first_row(), i % n * u - trace_.first_column()};
    c.add(wrong                      ? State::wrong
          : within && !finished(now) ? State::to_come
                                     : State::plain,
          within ? kC : 0, kNothing, within && finished(now) ? Way{from, {}, 0, true} : Way{});
  }
  const auto sheet = [&](Key key, Grid& grid, const char* name, int rows, int columns) {
    Box made = box(key, {grid.cells}, text(fmt::format("{} {} × {}", name, rows, columns), name));
    made.least_height = 2.2f;
    return made;
  };
  Box of_a = sheet({"matrix_a"}, a.on("k", "m", "matrix"), "A", trace_.m, trace_.k);
  Box of_b = sheet({"matrix_b"}, b.on("n", "k", "matrix"), "B", trace_.k, trace_.n);
  Box of_c = sheet({"matrix_c"}, c.on("n", "m", "matrix"), "C", trace_.m, trace_.n);
  // From corner to corner.
  const auto frame = [&](Key key, Name name, int row, int column, int rows, int columns) {
    return Frame{
        key,
        {{name, row / u, column / u}, {name, (row + rows - 1) / u, (column + columns - 1) / u}}};
  };
  const int row0 = trace_.first_row(), column0 = trace_.first_column();
  if (now.k_tile >= 0) {
    const int k0 = now.k_tile * trace_.tile, deep = depth(now.k_tile);
    of_a.marks.push_back(frame({"a_tile"}, "A", row0, k0, trace_.rows(), deep));
    of_b.marks.push_back(frame({"b_tile"}, "B", k0, column0, deep, trace_.columns()));
    for (Box* of : {&of_a, &of_b}) std::get<Frame>(of->marks.back()).state = State::current;
  }
  of_c.marks.push_back(frame({"c_block"}, "C", row0, column0, trace_.rows(), trace_.columns()));
  if (judged) {
    of_c.marks.push_back(frame({"wrong_in_c"}, "C", races.row, races.column, 1, 1));
    std::get<Frame>(of_c.marks.back()).state = State::wrong;
  }
  return even(column({"matrices"}, {even(row({"upper"}, {naive(now), of_b})),
                                    even(row({"lower"}, {of_a, of_c}))}));
}

/// The same tiles as `naive` loads them, each element again for each product.
Box TilingScene::naive(const TilingMoment& now) const {
  if (trace_.block.variant == Variant::naive) return box({"naive"}, {});
  const bool loaded = now.k_tile >= 0 && now.multiplied;
  std::string note = "naive";
  const auto pile = [&](Key key, Name name, bool is_a) {
    Grid grid(name, trace_.tile, trace_.tile);
    for (std::size_t i = 0; i < static_cast<std::size_t>(grid.cells.items.count); ++i) {
      int loads = 0;
      if (loaded) {
        const KTile& tile = trace_.naive.k_tiles[static_cast<std::size_t>(now.k_tile)];
        loads = (is_a ? tile.a_loads : tile.b_loads)[i];
      }
      const State state = !loaded ? State::to_come : loads == 0 ? State::wasted : State::plain;
      grid.add(state, kNaive, loads > 0 ? static_cast<float>(loads) : kNothing);
    }
    return box(key, {grid.on({}, {}, "naive").cells});
  };
  if (loaded) {
    const KTile& tile = trace_.naive.k_tiles[static_cast<std::size_t>(now.k_tile)];
    const int a = most(tile.a_loads), b = most(tile.b_loads);
    note =
        a == b ? fmt::format("naive: loads each {}×", a) : fmt::format("naive: {}× and {}×", a, b);
  }
  // They stand as A and B do.
  Box made = column({"naive"},
                    {row({"naive_upper"}, {box({"gap", 2}, {}), pile({"naive_b"}, "nb", false)}),
                     row({"naive_lower"}, {pile({"naive_a"}, "na", true), box({"gap", 3}, {})})});
  made.label = text(note, "naive");
  made.rank = 2;
  return made;
}

// ---- the tiles, and C's block where they meet -----------------------------------------------------

Box TilingScene::tile(const TilingMoment& now, const View& view, bool is_a) const {
  const int edge = trace_.tile, u = unit(), number = std::max(now.k_tile, 0), k0 = number * edge;
  const int thread = thread_of(picked(view));
  Grid grid(is_a ? Name("sa") : Name("sb"), edge, edge);
  std::vector<int> threads, lines;
  for (int i = 0; i < edge * edge; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const int row = is_a ? trace_.first_row() + i / edge : k0 + i / edge;
    const int column = is_a ? k0 + i % edge : trace_.first_column() + i % edge;
    const KTile* tile = now.k_tile < 0 ? nullptr : &k_tile(now.k_tile);
    const std::uint8_t tone = is_a ? kA : kB;
    int loader = -1;
    if (tile == nullptr) {
      grid.add(State::to_come, 0);
    } else if ((is_a ? tile->a_loads : tile->b_loads)[index] == 0) {
      grid.add(State::wasted, 0);
    } else if (shared() && !now.multiplied) {
      loader = (is_a ? tile->a_loader : tile->b_loader)[index];
      const Key from{is_a ? Name("A") : Name("B"), row / u, column / u};
      grid.add(State::plain, tone, static_cast<float>(loader),
               now.phase == Phase::load ? Way{from, {}, is_a ? 0 : 1, true} : Way{},
               loader == thread);
    } else {
      const auto& uses = shared() ? (is_a ? tile->a_reads : tile->b_reads)
                                  : (is_a ? tile->a_loads : tile->b_loads);
      grid.add(State::plain, tone, static_cast<float>(uses[index]));
    }
    threads.push_back(loader);
    lines.push_back(is_a ? i / edge : i % edge);
  }
  grid.cells.items.about = {{is_a ? Name("row") : Name("column"), {-1, lines}},
                            {"thread", {-1, threads}}};
  if (is_a) {
    grid.on("depth", "row", "tile");
  } else {
    grid.on("column", "depth", "tile");
  }
  const std::string k = range(k0, depth(number));
  const std::string name = fmt::format(
      "{}{}", shared() ? "s" : "",
      is_a ? fmt::format("A[{}][{}]", range(trace_.first_row(), trace_.rows()), k)
           : fmt::format("B[{}][{}]", k, range(trace_.first_column(), trace_.columns())));
  const std::string what = !shared()        ? ": global loads"
                           : now.k_tile < 0 ? ""
                           : now.multiplied ? ": reads"
                                            : ": thread";
  Box made = box(is_a ? Key{"tile_a"} : Key{"tile_b"}, {grid.cells},
                 text(name + what, name, name.substr(0, name.find('['))));
  made.label.group = "tile";
  made.least_height = 2.8f;
  // The row and the column that the picked thread multiplies.
  if (now.k_tile >= 0 && now.multiplied) {
    const int line = is_a ? picked(view) / edge : picked(view) % edge;
    const Key first = is_a ? Key{"sa", line, 0} : Key{"sb", 0, line};
    const Key last = is_a ? Key{"sa", line, depth(number) - 1} : Key{"sb", depth(number) - 1, line};
    made.marks.push_back(Frame{is_a ? Key{"picked_row"} : Key{"picked_column"}, {first, last}});
  }
  return made;
}

Box TilingScene::block(const TilingMoment& now, const View& view) const {
  const int edge = trace_.tile;
  const tiling::Races& races = trace_.races;
  const bool judged = finished(now) && races.order >= 0;
  const bool any = now.k_tile > 0 || now.multiplied;
  Grid grid("c", edge, edge);
  std::vector<int> rows, columns, threads;
  for (int i = 0; i < edge * edge; ++i) {
    const bool within = i / edge < trace_.rows() && i % edge < trace_.columns();
    const auto& wrong = races.wrong_elements;
    const bool is_wrong = judged && std::find(wrong.begin(), wrong.end(), i) != wrong.end();
    grid.add(!within    ? State::wasted
             : is_wrong ? State::wrong
             : any      ? State::plain
                        : State::to_come,
             within ? kC : 0, within && any ? sum(i, view.cursor) : kNothing, {},
             i == picked(view));
    rows.push_back(within ? i / edge : -1);
    columns.push_back(within ? i % edge : -1);
    threads.push_back(within ? thread_of(i) : -1);
  }
  Items& items = grid.cells.items;
  items.format = {Format::fixed, 1};
  items.act = {Act::pick, "thread"};
  items.about = {{"thread", {-1, threads}}, {"row", {-1, rows}}, {"column", {-1, columns}}};
  const std::string name = fmt::format("C[{}][{}]", range(trace_.first_row(), trace_.rows()),
                                       range(trace_.first_column(), trace_.columns()));
  Box made = box({"block"}, {grid.on("column", "row", "tile").cells},
                 text(now.k_tile < 0 ? name : name + ": sums", name, "C"));
  made.label.group = "tile";
  made.least_height = 2.8f;
  return made;
}

/// In the corner that the tiles leave free: which k-tile this is, and what the numbers say.
Box TilingScene::corner(const TilingMoment& now) const {
  const std::string here =
      "k = " +
      (now.k_tile < 0 ? range(0, trace_.k) : range(now.k_tile * trace_.tile, depth(now.k_tile)));
  const bool part = now.k_tile >= 0 && k_tiles() > 1;
  std::string note;
  if (!shared()) {
    note = "No shared memory: every product loads both operands. The numbers count global loads.";
  } else if (trace_.block.variant != trace_.variant) {
    note = fmt::format("picture of {}", name_of(trace_.block.variant));
  }
  Lines steps;
  steps.items = items("phase", shared() ? tiling::kPhases : 0);
  steps.voice = Lines::words;
  for (int i = 0; i < steps.items.count; ++i) {
    const auto phase = static_cast<Phase>(i);
    steps.rows.push_back(text(removed(phase)             ? "✕ no barrier"
                              : phase == Phase::load     ? "load"
                              : phase == Phase::multiply ? "multiply"
                                                         : "barrier"));
    steps.items.state.each.push_back(removed(phase) ? State::wrong : state_of(phase, now));
  }
  Box phases = box({"phases"}, {steps});
  phases.least_height = 4.8f;
  phases.rank = 1;
  Box where =
      words_box({"where"}, "k_range",
                part ? text(fmt::format("{} of 0–{}", here, trace_.k - 1), here) : text(here));
  where.weight = 0;
  Box remark = words_box({"remark"}, "note", text(note));
  remark.rank = 2;
  if (!shared()) return column({"corner"}, {where, remark});
  if (note.empty()) return column({"corner"}, {where, phases});
  return column({"corner"}, {where, phases, remark});
}

/// The tiles stand as A and B do, and C's block where a row of one meets a column of the other.
Box TilingScene::tiles(const TilingMoment& now, const View& view) const {
  return even(
      column({"tiles"}, {even(row({"tiles_upper"}, {corner(now), tile(now, view, false)})),
                         even(row({"tiles_lower"}, {tile(now, view, true), block(now, view)}))}));
}

/// A barrier is a wall along both tiles: the inner one between what is stored and those who read,
/// the outer one between those who read and what the next k-tile brings.
Box TilingScene::walled(const TilingMoment& now, const View& view) const {
  const auto wall = [&](Phase phase, Key key, Key of) {
    const State state = removed(phase) ? State::wrong : state_of(phase, now);
    return thin(box(of, {Wall{key, state, removed(phase)}}));
  };
  constexpr Name kInner = "barrier_after_load", kOuter = "barrier_after_multiply";
  Box upper =
      even(row({"tiles_upper"}, {corner(now), thin(box({"gap", 0}, {})), tile(now, view, false)}));
  Box across = row({"across"}, {thin(box({"gap", 1}, {})),
                                wall(Phase::barrier_after_load, {kInner}, {"wall", 0})});
  Box lower = even(row({"tiles_lower"}, {tile(now, view, true),
                                         wall(Phase::barrier_after_load, {kInner, 1}, {"wall", 1}),
                                         block(now, view)}));
  for (Box& half : across.boxes) half.weight = 1;
  across.weight = 0;
  across.least_height = 0.35f;
  const Box inside = even(column({"tiles"}, {upper, across, lower}));
  Box all = column(
      {"right"},
      {wall(Phase::barrier_after_multiply, {kOuter}, {"wall", 2}),
       row({"walled"}, {wall(Phase::barrier_after_multiply, {kOuter, 1}, {"wall", 3}), inside})});
  return all;
}

// ---- loads and sums ------------------------------------------------------------------------------

Box TilingScene::bars(const TilingMoment& now) const {
  const auto bar = [&](Key key, Name name, std::string_view label, std::int64_t loads,
                       std::uint8_t tone, const std::string& fewer) {
    Bars bars{items(name, {static_cast<float>(loads)}, {Format::integer}), "loads", "bar"};
    bars.items.tone.all = tone;
    Box made = box(key, {bars}, text(std::string(label)));
    made.value = text(fmt::format("{}{}", loads, fewer), std::to_string(loads));
    made.left = 5;
    made.right = 8.5f;
    made.least_width = 2;
    return made;
  };
  Box made = column({"loads"}, {});
  std::string fewer;
  if (now.multiplied && now.loads > 0 && now.loads != now.naive_loads) {
    fewer = fmt::format(", {:.1f}× fewer",
                        static_cast<double>(now.naive_loads) / static_cast<double>(now.loads));
  }
  if (trace_.block.variant != Variant::naive) {
    made.boxes.push_back(
        bar({"bar_block"}, "block_loads", name_of(trace_.block.variant), now.loads, kC, fewer));
  }
  made.boxes.push_back(bar({"bar_naive"}, "naive_loads", "naive", now.naive_loads, kNaive, ""));
  made.label = text("global loads so far");
  made.weight = 0;
  return made;
}

/// The picked thread's sum with its numbers; the first `terms` products are written out.
std::vector<Run> TilingScene::formula(const View& view, int terms) const {
  const TilingMoment now = moment(view.cursor);
  const int element = picked(view), row = element / trace_.tile, column = element % trace_.tile;
  const auto value = [](float of) { return number(static_cast<double>(of), 3); };
  const std::string after = value(sum(element, view.cursor));
  if (now.k_tile < 0) return {{"sum = 0"}};
  if (!now.multiplied) return {{"sum = " + after}};
  std::vector<Run> runs = {
      {now.k_tile == 0 ? "0" : value(sum(element, {view.cursor.tile - 1, steps().phases - 1}))}};
  const auto factor = [](float of) {
    const std::string text = number(static_cast<double>(of), 2);
    return of < 0 ? "(" + text + ")" : text;
  };
  const int deep = depth(now.k_tile);
  for (int i = 0; i < std::min(terms, deep); ++i) {
    const int kk = now.k_tile * trace_.tile + i;
    runs.push_back({fmt::format(
        " + {}·{}", factor(trace_.a_band[static_cast<std::size_t>(row * trace_.k + kk)]),
        factor(trace_.b_band[static_cast<std::size_t>(kk * trace_.columns() + column)]))});
  }
  if (deep > terms) runs.push_back({" + …"});
  runs.push_back({" = " + after, {"thread", thread_of(element)}});
  return runs;
}

Box TilingScene::formula_box(const View& view) const {
  const int element = picked(view);
  Lines lines;
  lines.items = items("formula", 1);
  lines.items.about = {{"thread", {thread_of(element)}}};
  lines.rows = {{formula(view, 1), formula(view, 0)}};
  Box made =
      box({"sum"}, {lines},
          text(fmt::format("thread {} → {}: its sum", thread_of(element), name_in_c(element)),
               fmt::format("thread {}", thread_of(element))));
  made.weight = 0;
  return made;
}

// ---- what the pointer is told --------------------------------------------------------------------

std::string TilingScene::explain(const View& view, const Key& key) const {
  const TilingMoment now = moment(view.cursor);
  const int edge = trace_.tile;
  const bool is_a = key.name == Name("sa"), is_b = key.name == Name("sb");
  if (key.name == Name("c")) {
    if (key.i >= trace_.rows() || key.j >= trace_.columns()) return "outside C";
    return explain_sum(key.i * edge + key.j, view);
  }
  if ((is_a || is_b) && now.k_tile >= 0) return explain_element(now, is_a, key.i * edge + key.j);
  if (key.name == Name("wrong_in_c")) {
    const tiling::Races& races = trace_.races;
    return fmt::format("C[{}][{}] without the barrier: {} instead of {}", races.row, races.column,
                       number(static_cast<double>(races.got), 4), number(races.want, 4));
  }
  if (key.name == Name("a_tile") || key.name == Name("b_tile")) {
    return fmt::format("k-tile {}", now.k_tile);
  }
  if (key.name == Name("c_block")) {
    return fmt::format("block {}, {} of C", trace_.block_row, trace_.block_col);
  }
  if (key.name == Name("block_loads") || key.name == Name("naive_loads")) {
    return "global loads of this block so far";
  }
  if (key.name == Name("barrier_after_load")) {
    return removed(Phase::barrier_after_load) ? "barrier after load: removed"
                                              : "barrier after load";
  }
  if (key.name == Name("barrier_after_multiply")) {
    return removed(Phase::barrier_after_multiply) ? "barrier after multiply: removed"
                                                  : "barrier after multiply";
  }
  return {};
}

std::string TilingScene::explain_sum(int element, const View& view) const {
  std::string text =
      fmt::format("{}, thread {}\nsum so far {}\nclick to follow this thread", name_in_c(element),
                  thread_of(element), number(static_cast<double>(sum(element, view.cursor)), 4));
  const tiling::Races& races = trace_.races;
  const bool first_wrong = trace_.first_row() + element / trace_.tile == races.row &&
                           trace_.first_column() + element % trace_.tile == races.column;
  if (finished(moment(view.cursor)) && races.order >= 0 && first_wrong) {
    text += fmt::format("\nwithout the barrier: {} instead of {}",
                        number(static_cast<double>(races.got), 4), number(races.want, 4));
  }
  return text;
}

std::string TilingScene::explain_element(const TilingMoment& now, bool is_a, int i) const {
  const KTile& tile = k_tile(now.k_tile);
  const auto index = static_cast<std::size_t>(i);
  const int edge = trace_.tile, k0 = now.k_tile * edge;
  if ((is_a ? tile.a_loads : tile.b_loads)[index] == 0) {
    return "outside the matrix: a zero, not loaded";
  }
  const int row = is_a ? trace_.first_row() + i / edge : k0 + i / edge;
  const int column = is_a ? k0 + i % edge : trace_.first_column() + i % edge;
  const float value =
      is_a ? trace_.a_band[static_cast<std::size_t>(i / edge * trace_.k + column)]
           : trace_.b_band[static_cast<std::size_t>(row * trace_.columns() + i % edge)];
  const std::string what = fmt::format("{}[{}][{}] = {}\n", is_a ? "A" : "B", row, column,
                                       number(static_cast<double>(value), 3));
  if (!shared()) {
    return what + fmt::format("loaded {} times from global memory",
                              (is_a ? tile.a_loads : tile.b_loads)[index]);
  }
  std::string text = what + fmt::format("loaded by thread {}, kept in float {} of the tile",
                                        (is_a ? tile.a_loader : tile.b_loader)[index],
                                        (is_a ? tile.a_slot : tile.b_slot)[index]);
  const int reads = (is_a ? tile.a_reads : tile.b_reads)[index];
  if (now.multiplied) text += fmt::format("\nread {}", words::times(reads));
  return text;
}

}  // namespace tilestep::scenes

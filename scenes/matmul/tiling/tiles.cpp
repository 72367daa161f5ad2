// The two tiles in shared memory around C's block, with the barriers as walls between loads and reads. Without shared
// memory the same places show how often each element of the k-tile is loaded from global memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/matmul/tiling/grid.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using namespace picture;
using tiling::KTile, tiling::Phase;
using words::number;

namespace {

constexpr Layout kStrip = {.weight = 0, .least_width = 3};
constexpr Layout kWall = {.weight = 0, .least_width = 0.35f, .least_height = 0.35f};

State state_of(Phase phase, const TilingMoment& now) {
  return now.k_tile < 0 || now.phase < phase ? State::to_come
         : now.phase == phase                ? State::current
                                             : State::done;
}
const char* name_of_phase(Phase phase) {
  return phase == Phase::load ? "load" : phase == Phase::multiply ? "multiply" : "barrier";
}

/// A tile shows numbers: where there is no height for them the tiles are put in one line.
Layout tile_of(int edge) {
  return {.least_width = 3, .least_height = 2.8f, .wish = 0.82f * static_cast<float>(edge)};
}

}  // namespace

Box TilingScene::tile(const TilingMoment& now, const View& view, bool is_a) const {
  const int edge = trace_.tile, u = unit(), number = std::max(now.k_tile, 0), k0 = number * edge;
  const int row0 = is_a ? trace_.first_row() : k0, column0 = is_a ? k0 : trace_.first_column();
  const Name name = is_a ? Name("sa") : Name("sb"), matrix = is_a ? Name("A") : Name("B");
  TilingGrid grid = is_a ? TilingGrid(name, edge, edge, "depth", "row", "tile")
                         : TilingGrid(name, edge, edge, "column", "depth", "tile");
  const bool any = now.k_tile >= 0, loading = shared() && !now.multiplied;
  const KTile::Operand& of = is_a ? k_tile(number).a : k_tile(number).b;
  std::vector<int> threads, across;
  for (int i = 0; i < grid.items.count; ++i) {
    across.push_back(is_a ? i / edge : i % edge);
    threads.push_back(-1);
    if (!any || of.loads[i] == 0) {
      grid.add(any ? State::wasted : State::to_come, 0);
    } else if (loading) {
      threads.back() = of.loader[i];
      const Key from{matrix, (row0 + i / edge) / u, (column0 + i % edge) / u};
      grid.add(State::plain, is_a ? kOfA : kOfB, static_cast<float>(threads.back()),
               now.phase == Phase::load ? Way{from, {}, is_a ? 0 : 1, true} : Way{});
    } else {
      const int uses = (shared() ? of.reads : of.loads)[i];
      grid.add(State::plain, is_a ? kOfA : kOfB, static_cast<float>(uses));
    }
    grid.items.flags.each.push_back(threads.back() == thread_of(picked(view)) ? kPicked : kNone);
  }
  grid.items.about = {{is_a ? Name("row") : Name("column"), {-1, across}},
                      {"thread", {-1, threads}}};
  const int deep = depth(number);
  const std::string letter = (shared() ? "s" : "") + std::string(matrix.text());
  const std::string full =
      fmt::format("{}[{}][{}]", letter, range(row0, is_a ? trace_.rows() : deep),
                  range(column0, is_a ? deep : trace_.columns()));
  const char* what = !shared() ? ": global loads" : !any ? "" : loading ? ": thread" : ": reads";
  Box made = box(is_a ? Key{"tile_a"} : Key{"tile_b"}, {grid}, text(full + what, full, letter),
                 tile_of(edge));
  made.place = shared() ? Place::shared_memory : Place::device_memory;
  made.label.group = "tile";
  // The row and the column that the picked thread waits for and then multiplies.
  if (any && (now.multiplied || now.phase == Phase::barrier_after_load)) {
    const int line = is_a ? picked(view) / edge : picked(view) % edge, last = deep - 1;
    made.marks.push_back(is_a ? Frame{{"picked_row"}, {{name, line, 0}, {name, line, last}}}
                              : Frame{{"picked_column"}, {{name, 0, line}, {name, last, line}}});
    // The elements still to read: all of them at the barrier; the last one read once it has multiplied.
    const bool waits = now.phase == Phase::barrier_after_load;
    const int way = waits ? 1 : k_tile(number).along_k, end = way > 0 ? last : 0;
    if (shared() && now.phase <= Phase::multiply && way != 0) {
      const int k = waits ? 0 : end;
      const State state = waits ? State::plain : State::current;
      made.marks.push_back(
          is_a ? Frame{{"one_element"}, {{name, line, k}, {name, line, end}}, state}
               : Frame{{"its_partner"}, {{name, k, line}, {name, end, line}}, state});
    }
  }
  return made;
}

Box TilingScene::block(const TilingMoment& now, const View& view) const {
  const int edge = trace_.tile;
  const bool any = now.k_tile > 0 || now.multiplied;
  const std::vector<int>& wrong = trace_.races.wrong_elements;
  TilingGrid grid("c", edge, edge, "column", "row", "tile");
  std::vector<int> rows, columns, threads;
  for (int i = 0; i < grid.items.count; ++i) {
    const bool is_wrong =
        (judged(now) && std::find(wrong.begin(), wrong.end(), i) != wrong.end()) ||
        (within(i) && contradicted(view.cursor, i));
    grid.add(!within(i) ? State::wasted
             : is_wrong ? State::wrong
             : any      ? State::plain
                        : State::to_come,
             within(i) ? kOfC : 0, within(i) && any ? sum(i, view.cursor) : NAN);
    grid.items.flags.each.push_back(i == picked(view) ? kPicked : kNone);
    rows.push_back(within(i) ? i / edge : -1);
    columns.push_back(within(i) ? i % edge : -1);
    threads.push_back(within(i) ? thread_of(i) : -1);
  }
  grid.items.format = {Format::fixed, 1};
  grid.items.act = {Act::pick, "thread"};
  grid.items.about = {{"thread", {-1, threads}}, {"row", {-1, rows}}, {"column", {-1, columns}}};
  const std::string name = fmt::format("C[{}][{}]", range(trace_.first_row(), trace_.rows()),
                                       range(trace_.first_column(), trace_.columns()));
  Box made = box({"block"}, {grid}, text(now.k_tile < 0 ? name : name + ": sums", name, "C"),
                 tile_of(edge));
  made.place = Place::registers;
  made.label.group = "tile";
  // The threads that read the first element of the picked thread's row of A's tile.
  if (shared() && now.phase == Phase::multiply && now.k_tile >= 0) {
    const int row = picked(view) / edge;
    made.marks.push_back(
        Frame{{"readers"}, {{"c", row, 0}, {"c", row, trace_.columns() - 1}}, State::current});
  }
  return made;
}

/// In the corner that the tiles leave free: the current k-tile and its phases.
Box TilingScene::corner(const TilingMoment& now) const {
  const bool any = now.k_tile >= 0;
  const std::string here =
      "k = " + (any ? range(now.k_tile * trace_.tile, depth(now.k_tile)) : range(0, trace_.k));
  const std::string of_all = fmt::format("{} of 0–{}", here, trace_.k - 1);
  Box made =
      column({"corner"},
             {box({"where"}, {lines("k_range", {text(any && k_tiles() > 1 ? of_all : here, here)})},
                  {}, kStrip)},
             {.least_width = 3});
  if (shared()) {
    Lines phases = lines("phase", {});
    phases.items.count = tiling::kPhases;
    for (const Phase phase :
         {Phase::load, Phase::barrier_after_load, Phase::multiply, Phase::barrier_after_multiply}) {
      phases.rows.push_back(text(removed(phase) ? "✕ no barrier" : name_of_phase(phase)));
      phases.items.state.each.push_back(removed(phase) ? State::wrong : state_of(phase, now));
    }
    made.boxes.push_back(
        box({"phases"}, {phases}, {}, {.rank = 1, .least_width = 3, .least_height = 4.8f}));
  }
  if (shared()) return made;
  const char* remark =
      "No shared memory: every product loads both operands. The numbers count global loads.";
  made.boxes.push_back(box({"remark"}, {lines("note", {text(remark)})}, {}, {.rank = 2}));
  return made;
}

/// The tiles are placed as A and B are, and C's block where a row of one meets a column of the other. A
/// barrier is a wall along both tiles: the inner one between stores and reads, the outer one between
/// reads and the loads of the next k-tile.
Box TilingScene::tiles(const TilingMoment& now, const View& view) const {
  const auto wall = [&](Phase phase, Name name, int part, const Layout& layout) {
    const bool inner = phase == Phase::barrier_after_load;
    Box made = box({"wall", (inner ? 1 : 3) + (part > 0 ? 1 : 0)}, {}, {}, layout);
    const State state = removed(phase) ? State::wrong : state_of(phase, now);
    if (shared()) made.marks = {Wall{{name, part}, state, removed(phase)}};
    return made;
  };
  const auto inner = [&](int part, const Layout& layout = kWall) {
    return wall(Phase::barrier_after_load, "barrier_after_load", part, layout);
  };
  const auto outer = [&](int part) {
    return wall(Phase::barrier_after_multiply, "barrier_after_multiply", part, kWall);
  };
  Layout half = kWall;
  half.weight = 1;
  Box across = row({"across"}, {box({"gap", 2}, {}, {}, half), inner(-1, half)},
                   {.weight = 0, .least_width = 0.7f, .least_height = 0.35f});
  Box upper =
      row({"tiles_upper"}, {corner(now), box({"gap", 3}, {}, {}, kWall), tile(now, view, false)},
          {.even = true});
  Box lower =
      row({"tiles_lower"}, {tile(now, view, true), inner(1), block(now, view)}, {.even = true});
  Box inside = column({"tiles"}, {upper, across, lower}, {.flow = Box::wished, .even = true});
  return column({"in_shared"}, {outer(-1), row({"walled"}, {outer(1), inside})});
}

std::string TilingScene::explain_element(const TilingMoment& now, bool is_a, int i) const {
  const KTile& tile = k_tile(now.k_tile);
  const KTile::Operand& of = is_a ? tile.a : tile.b;
  const int edge = trace_.tile, k0 = now.k_tile * edge;
  if (of.loads[i] == 0) return "outside the matrix: a zero, not loaded";
  const int row = (is_a ? trace_.first_row() : k0) + i / edge,
            column = (is_a ? k0 : trace_.first_column()) + i % edge;
  const float value = is_a ? trace_.a_band[i / edge * trace_.k + column]
                           : trace_.b_band[row * trace_.columns() + i % edge];
  std::string text =
      fmt::format("{}[{}][{}] = {}\n", is_a ? "A" : "B", row, column, number(value, 3));
  if (!shared()) {
    return text + fmt::format("loaded {} from global memory", words::times(of.loads[i]));
  }
  text +=
      fmt::format("loaded by thread {}, kept in float {} of the tile", of.loader[i], of.slot[i]);
  return now.multiplied ? text + "\nread " + words::times(of.reads[i]) : text;
}

}  // namespace tilestep::scenes

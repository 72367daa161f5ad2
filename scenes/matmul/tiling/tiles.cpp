// The picture's right half: the two tiles in shared memory, C's block where they meet, and the
// barriers as walls. Without shared memory the same places show how often each element of the
// k-tile is loaded from global memory.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "scenes/matmul/tiling/layout.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using tiling::KTile, tiling::Phase;
using words::number;

namespace {

constexpr int kWarp = 32;

/// How often something is used, as a place on the heat scale: a step for each doubling, up to the
/// 32 times that a tile allows, and short of the end, where the accent would not be seen.
float heat_of(int uses) {
  return std::min(0.15f + 0.1f * std::log2(static_cast<float>(std::max(uses, 1))), 0.7f);
}

std::string range(int first, int count) {
  return count == 1 ? std::to_string(first) : fmt::format("{}–{}", first, first + count - 1);
}

}  // namespace

void TilingScene::draw_tiles(const Layout& layout, const TilingMoment& now) const {
  draw_tile(layout.tile_a, true, now);
  draw_tile(layout.tile_b, false, now);
}

void TilingScene::draw_tile(const Grid& grid, bool is_a, const TilingMoment& now) const {
  const int edge = trace_.tile;
  const Role role = is_a ? Role::sky : Role::purple;
  const char* prefix = is_a ? "sa" : "sb";
  const KTile* tile = now.k_tile < 0 ? nullptr : &k_tile(now.k_tile);
  for (int i = 0; i < edge * edge; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const CellRect cell = cell_rect(grid.corner(i / edge, i % edge), grid.cell());
    std::string value = "empty";
    if (tile == nullptr) {
      area(cell.min, cell.max, Role::raised);
    } else if ((is_a ? tile->a_loads : tile->b_loads)[index] == 0) {
      value = "outside";
    } else if (shared() && !now.multiplied) {
      const int loader = (is_a ? tile->a_loader : tile->b_loader)[index];
      value = fmt::format("thread {}", loader);
      // Warps take turns in brightness, so that a warp's loads stand out as one run.
      const ImU32 color = ui::color(role, loader / kWarp % 2 == 0 ? 1.0f : 0.78f);
      draw_list()->AddRectFilled(cell.min, cell.max, color);
      draw_inside(cell.min, cell.max, std::to_string(loader), ui::readable_on(ui::color(role)));
    } else {
      const auto& uses = shared() ? (is_a ? tile->a_reads : tile->b_reads)
                                  : (is_a ? tile->a_loads : tile->b_loads);
      value = fmt::format("{} {}", uses[index], shared() ? "reads" : "loads");
      const ImU32 color = ui::heat(heat_of(uses[index]));
      draw_list()->AddRectFilled(cell.min, cell.max, color);
      draw_inside(cell.min, cell.max, std::to_string(uses[index]), ui::readable_on(color));
    }
    const char* name = is_a ? "element of A" : "element of B";
    ui::map(fmt::format("{}_{}_{}", prefix, i / edge, i % edge), name, value, cell.min, cell.max);
  }
  if (tile == nullptr) {
    ui::dashed_rect(grid.min, grid.max, Role::faint, 1);
  } else if (is_a) {
    hatch_outside(grid, trace_.rows(), depth(now.k_tile));
  } else {
    hatch_outside(grid, depth(now.k_tile), trace_.columns());
  }
}

/// What lies beyond the matrix's edge in a tile of which `rows` × `columns` lie inside.
void TilingScene::hatch_outside(const Grid& grid, int rows, int columns) {
  const ImVec2 inner = grid.corner(rows, columns);
  const auto part = [](ImVec2 min, ImVec2 max) {
    area(min, max, Role::raised, 0.6f);
    ui::hatch(min, max, Role::wasted, 6);
  };
  if (columns < grid.columns) part(at(inner.x, grid.min.y), at(grid.max.x, inner.y));
  if (rows < grid.rows) part(at(grid.min.x, inner.y), grid.max);
}

void TilingScene::draw_block(const Layout& layout, Cursor cursor) {
  const TilingMoment now = moment(cursor);
  const Grid& grid = layout.block;
  const int edge = trace_.tile;
  const float done = static_cast<float>(now.multiplied ? now.k_tile + 1 : std::max(now.k_tile, 0)) /
                     static_cast<float>(k_tiles());
  const bool judged = finished(now) && trace_.races.order >= 0;
  const int first_wrong =
      (trace_.races.row - trace_.first_row()) * edge + trace_.races.column - trace_.first_column();
  const auto is_within = [&](int i) {
    return i / edge < trace_.rows() && i % edge < trace_.columns();
  };
  const int pointed = ImGui::IsWindowHovered() ? grid.element_at(ImGui::GetIO().MousePos) : -1;
  if (pointed >= 0 && is_within(pointed) && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    picked_ = pointed;
  }
  for (int i = 0; i < edge * edge; ++i) {
    const CellRect cell = cell_rect(grid.corner(i / edge, i % edge), grid.cell());
    const bool within = is_within(i);
    std::string value = "outside";
    if (within) {
      area(cell.min, cell.max, Role::raised);
      const float partial = sum(i, cursor);
      value = number(static_cast<double>(partial), 3);
      const auto& wrong = trace_.races.wrong_elements;
      const bool is_wrong = judged && std::find(wrong.begin(), wrong.end(), i) != wrong.end();
      const ImU32 color = is_wrong ? ui::color(Role::wrong, i == first_wrong ? 0.9f : 0.35f)
                                   : ui::color(Role::green, 0.75f * done);
      draw_list()->AddRectFilled(cell.min, cell.max, color);
      if (is_wrong) {
        value = i == first_wrong ? "first wrong" : "wrong";
        const float radius = (cell.max.y - cell.min.y) * (i == first_wrong ? 0.36f : 0.2f);
        ui::cross(at((cell.min.x + cell.max.x) / 2, (cell.min.y + cell.max.y) / 2), radius,
                  i == first_wrong ? Role::on_accent : Role::wrong);
      } else if (done > 0) {
        draw_inside(cell.min, cell.max, number(static_cast<double>(partial), 1),
                    ui::color(Role::text));
      }
    }
    ui::map(fmt::format("c_{}_{}", i / edge, i % edge), within ? name_in_c(i) : "outside C", value,
            cell.min, cell.max);
  }
  hatch_outside(grid, trace_.rows(), trace_.columns());
}

/// What the picked thread loads, and the row and the column that it multiplies.
void TilingScene::draw_picked(const Layout& layout, const TilingMoment& now) const {
  const int edge = trace_.tile;
  const int row = picked_ / edge;
  const int column = picked_ % edge;
  const auto frame = [&](const Grid& grid, int row0, int column0, int rows, int columns) {
    const ImVec2 from = grid.corner(row0, column0);
    const ImVec2 to = grid.corner(row0 + rows, column0 + columns);
    // A dark seam round the accent keeps it visible on every heat colour.
    outline(from, to, Role::background, 4.5f);
    outline(from, to, Role::accent, 2);
  };
  frame(layout.block, row, column, 1, 1);
  if (now.k_tile < 0) return;
  if (now.multiplied) {
    frame(layout.tile_a, row, 0, 1, edge);
    frame(layout.tile_b, 0, column, edge, 1);
    return;
  }
  const KTile& tile = k_tile(now.k_tile);
  const int thread = thread_of(picked_);
  for (int i = 0; i < edge * edge; ++i) {
    const auto index = static_cast<std::size_t>(i);
    if (tile.a_loader[index] == thread) frame(layout.tile_a, i / edge, i % edge, 1, 1);
    if (tile.b_loader[index] == thread) frame(layout.tile_b, i / edge, i % edge, 1, 1);
  }
}

/// A barrier is a wall along both tiles: the inner one between what is stored and those who read,
/// the outer one between those who read and what the next k-tile brings.
void TilingScene::draw_barriers(const Layout& layout, const TilingMoment& now) const {
  if (!shared()) return;
  const auto wall = [&](Phase phase, ImVec2 corner, float right, float bottom, const char* id) {
    const bool current = now.phase == phase && now.k_tile >= 0;
    const bool done = now.k_tile >= 0 && now.phase > phase;
    const float w = layout.wall;
    const ImVec2 across_max = at(right, corner.y + w);
    const ImVec2 down_max = at(corner.x + w, bottom);
    std::string state = current ? "current" : done ? "done" : "to come";
    if (removed(phase)) {
      state = "removed";
      const float half = w / 2;
      const ImVec2 from = at(corner.x + half, corner.y + half);
      ui::dashed_line(from, at(right, from.y), Role::wrong, 2);
      ui::dashed_line(from, at(from.x, bottom), Role::wrong, 2);
      const float radius = std::max(w * 0.6f, px(5));
      ui::cross(at((from.x + right) / 2, from.y), radius, Role::wrong);
      ui::cross(at(from.x, (from.y + bottom) / 2), radius, Role::wrong);
    } else {
      const ImU32 color = current
                              ? ui::color(Role::accent)
                              : ui::color(done ? Role::muted : Role::border, done ? 0.8f : 1.0f);
      draw_list()->AddRectFilled(corner, across_max, color, px(2));
      draw_list()->AddRectFilled(corner, down_max, color, px(2));
    }
    ui::map(id,
            phase == Phase::barrier_after_load ? "barrier after load" : "barrier after multiply",
            state, corner, across_max);
  };
  const Grid& block = layout.block;
  const float back = layout.gap + layout.wall;
  wall(Phase::barrier_after_load, at(block.min.x - back, block.min.y - back), block.max.x,
       block.max.y, "barrier_after_load");
  wall(Phase::barrier_after_multiply, at(layout.tile_a.min.x - back, layout.tile_b.min.y - back),
       block.max.x, block.max.y, "barrier_after_multiply");
}

/// What the numbers in the tiles say.
std::string TilingScene::phase_note(const TilingMoment& now) const {
  if (trace_.block.variant != trace_.variant) {
    return fmt::format("picture of {}", name_of(trace_.block.variant));
  }
  if (now.k_tile < 0) return "";
  if (!now.multiplied) return "each element: the number of the thread that loads it";
  const std::vector<int>& reads = k_tile(now.k_tile).a_reads;
  return fmt::format("each element is read {} times",
                     *std::max_element(reads.begin(), reads.end()));
}

/// In the corner that the tiles leave free: which k-tile this is, and the four phases.
void TilingScene::draw_phases(const Layout& layout, const TilingMoment& now) const {
  const ImVec2 min = at(layout.tile_a.min.x + px(4), layout.tile_b.min.y);
  const ImVec2 max = at(layout.tile_a.max.x - px(4), layout.tile_b.max.y);
  const float width = max.x - min.x;
  const bool large = max.y - min.y > px(170) && width > px(120);
  const Font font = large ? Font::body : Font::note;
  const float step = height_of(font) + px(large ? 6 : 1);
  const int lines = static_cast<int>((max.y - min.y) / step);
  const std::string here =
      "k = " +
      (now.k_tile < 0 ? range(0, trace_.k) : range(now.k_tile * trace_.tile, depth(now.k_tile)));
  const std::string of_all = fmt::format("{} of 0–{}", here, trace_.k - 1);
  const bool room_for_all = ui::text_size(of_all, large ? Font::body_bold : font).x <= width;
  const std::string count = now.k_tile >= 0 && k_tiles() > 1 && room_for_all ? of_all : here;
  if (!shared()) {
    const std::string text =
        "No shared memory: every product loads both operands. The numbers count global loads.";
    ui::draw_text(min, ui::fitted(count, Font::body_bold, width), Font::body_bold);
    const float below = min.y + height_of(Font::body_bold) + px(4);
    if (below + ui::wrapped_size(text, width, Font::note).y > max.y) return;
    ui::draw_wrapped(at(min.x, below), text, width, Font::note, Role::muted);
    return;
  }
  static constexpr std::array<const char*, tiling::kPhases> kNames = {"load", "barrier", "multiply",
                                                                      "barrier"};
  float y = min.y;
  if (lines > tiling::kPhases) {
    ui::draw_text(at(min.x, y), ui::fitted(count, large ? Font::body_bold : font, width),
                  large ? Font::body_bold : font, Role::text);
    y += step + px(large ? 6 : 0);
  }
  for (int i = 0; i < tiling::kPhases; ++i) {
    const auto phase = static_cast<Phase>(i);
    const bool current = now.k_tile >= 0 && phase == now.phase;
    if (lines < tiling::kPhases && !current) continue;
    const bool done = now.k_tile >= 0 && phase < now.phase;
    const bool gone = removed(phase);
    const Role role = gone      ? Role::wrong
                      : current ? Role::accent
                      : done    ? Role::muted
                                : Role::faint;
    const float middle = y + height_of(font) / 2;
    const float radius = px(large ? 4 : 3);
    if (gone) {
      ui::cross(at(min.x + px(5), middle), radius, role);
    } else if (current || done) {
      draw_list()->AddCircleFilled(at(min.x + px(5), middle), current ? radius : radius * 0.6f,
                                   ui::color(role));
    } else {
      draw_list()->AddCircle(at(min.x + px(5), middle), radius * 0.8f, ui::color(role), 0,
                             px(1.2f));
    }
    const std::string text = gone ? "no barrier" : kNames[static_cast<std::size_t>(i)];
    ui::draw_text(at(min.x + px(16), y), ui::fitted(text, font, width - px(16)), font, role);
    y += step;
  }
  const std::string note = phase_note(now);
  const float height = ui::wrapped_size(note, width, Font::note).y;
  if (note.empty() || y + height > max.y) return;
  ui::draw_wrapped(at(min.x, max.y - height), note, width, Font::note, Role::muted);
}

void TilingScene::draw_tile_labels(const Layout& layout, const TilingMoment& now) const {
  const int number = std::max(now.k_tile, 0);
  const std::string k = range(number * trace_.tile, depth(number));
  const std::string rows = range(trace_.first_row(), trace_.rows());
  const std::string columns = range(trace_.first_column(), trace_.columns());
  const std::string prefix = shared() ? "s" : "";
  const float above = layout.tile_b.min.y - layout.gap - layout.wall - layout.note - px(3);
  const float below = layout.tile_a.max.y + px(3);
  const char* what = now.multiplied ? ": reads" : ": loading thread";
  const std::string uses = !shared() ? ": global loads" : now.k_tile < 0 ? "" : what;
  struct Label {
    const Grid& grid;
    float y;
    Role role;                         ///< says whose tile it is
    std::array<std::string, 3> texts;  ///< from the longest to the shortest
  };
  const std::string a = fmt::format("{}A[{}][{}]", prefix, rows, k);
  const std::string b = fmt::format("{}B[{}][{}]", prefix, k, columns);
  const std::string c = fmt::format("C[{}][{}]", rows, columns);
  const Label labels[] = {
      {layout.tile_a, below, Role::sky, {a + uses, a, prefix + "A"}},
      {layout.tile_b, above, Role::purple, {b + uses, b, prefix + "B"}},
      {layout.block, below, Role::green, {now.k_tile < 0 ? c : c + ": sums", c, "C"}}};
  const float chip = std::round(layout.note * 0.5f);
  const float indent = chip + px(5);
  const float room = layout.block.max.x - layout.block.min.x - indent;
  // All three are as long as the one with the least room allows.
  std::size_t length = 0;
  const auto fits = [&](const Label& label) {
    return ui::text_size(label.texts[length], Font::note).x <= room;
  };
  while (length < 2 && !std::all_of(std::begin(labels), std::end(labels), fits)) ++length;
  for (const Label& label : labels) {
    const ImVec2 corner = at(label.grid.min.x, std::round(label.y + (layout.note - chip) / 2));
    draw_list()->AddRectFilled(corner, at(corner.x + chip, corner.y + chip), ui::color(label.role),
                               px(2));
    ui::draw_text(at(label.grid.min.x + indent, label.y),
                  ui::fitted(label.texts[length], Font::note, room), Font::note, Role::muted);
  }
}

void TilingScene::draw_tooltip(const Layout& layout, Cursor cursor) const {
  if (!ImGui::IsWindowHovered()) return;
  const TilingMoment now = moment(cursor);
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const int edge = trace_.tile;
  if (const int i = layout.block.element_at(mouse); i >= 0) {
    if (i / edge >= trace_.rows() || i % edge >= trace_.columns()) return;
    std::string text =
        fmt::format("{}, thread {}\nsum so far {}\nclick to follow this thread", name_in_c(i),
                    thread_of(i), number(static_cast<double>(sum(i, cursor)), 4));
    const tiling::Races& races = trace_.races;
    const bool first_wrong = trace_.first_row() + i / edge == races.row &&
                             trace_.first_column() + i % edge == races.column;
    if (finished(now) && races.order >= 0 && first_wrong) {
      text += fmt::format("\nwithout the barrier: {} instead of {}",
                          number(static_cast<double>(races.got), 4), number(races.want, 4));
    }
    ImGui::SetTooltip("%s", text.c_str());
    return;
  }
  if (now.k_tile < 0) return;
  const KTile& tile = k_tile(now.k_tile);
  const auto explain = [&](const Grid& grid, bool is_a) {
    const int i = grid.element_at(mouse);
    if (i < 0) return;
    const auto index = static_cast<std::size_t>(i);
    if ((is_a ? tile.a_loads : tile.b_loads)[index] == 0) {
      ImGui::SetTooltip("outside the matrix: a zero, not loaded");
      return;
    }
    const int k0 = now.k_tile * edge;
    const int row = is_a ? trace_.first_row() + i / edge : k0 + i / edge;
    const int column = is_a ? k0 + i % edge : trace_.first_column() + i % edge;
    const float value =
        is_a ? trace_.a_band[static_cast<std::size_t>(i / edge * trace_.k + column)]
             : trace_.b_band[static_cast<std::size_t>(row * trace_.columns() + i % edge)];
    std::string text = fmt::format("{}[{}][{}] = {}\n", is_a ? "A" : "B", row, column,
                                   number(static_cast<double>(value), 3));
    if (shared()) {
      text += fmt::format("loaded by thread {}, kept in float {} of the tile\nread {} times",
                          (is_a ? tile.a_loader : tile.b_loader)[index],
                          (is_a ? tile.a_slot : tile.b_slot)[index],
                          (is_a ? tile.a_reads : tile.b_reads)[index]);
    } else {
      text += fmt::format("loaded {} times from global memory",
                          (is_a ? tile.a_loads : tile.b_loads)[index]);
    }
    ImGui::SetTooltip("%s", text.c_str());
  };
  explain(layout.tile_a, true);
  explain(layout.tile_b, false);
}

}  // namespace tilestep::scenes

// The picture of the tiling lesson: where everything stands, the three matrices with the block and
// its bands, the bars of global loads, and the sum of the picked thread.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/matmul/tiling/layout.hpp"

namespace tilestep::scenes {

using tiling::Phase;

float TilingScene::bar_height(const Layout& layout) {
  return layout.tight ? layout.note + px(2) : px(23);
}

TilingScene::Layout TilingScene::layout() const {
  Layout to(picture_frame());
  const float top = to.min.y + height_of(to.heading) + px(to.tight ? 2 : 10);
  place_tiles(to, top, to.max.y);
  // Below the matrices: the bars and the sum, side by side where there is room.
  const float right = to.tile_a.min.x - to.gap - to.wall - px(to.tight ? 16 : 36);
  const bool beside = right - to.min.x > px(640);
  const float rows = 2 * bar_height(to);
  const float middle = std::round((to.min.x + right) / 2);
  const float strip = beside ? rows : 2 * rows + px(to.tight ? 0 : 6);
  to.bars_min = at(to.min.x, to.max.y - strip);
  to.bars_max = at(beside ? middle - px(12) : right, to.bars_min.y + rows);
  to.formula_min = at(beside ? middle + px(12) : to.min.x, to.max.y - rows);
  to.formula_max = at(right, to.max.y);
  place_matrices(to, right, top, to.bars_min.y - px(to.tight ? 2 : 12));
  place_naive(to, top);
  return to;
}

/// The tiles stand as A and B do, and C's block where a row of one meets a column of the other:
/// A's tile on the left, B's above, a barrier between them and C, another on their outer side.
void TilingScene::place_tiles(Layout& to, float top, float bottom) const {
  to.wall = std::round(px(to.tight ? 4 : 8));
  to.gap = std::round(px(to.tight ? 2 : 4));
  const float walls = 2 * to.wall + 3 * to.gap;
  const float label = to.note + px(3);
  const float room =
      std::min((bottom - top - 2 * label - walls) / 2, ((to.max.x - to.min.x) * 0.54f - walls) / 2);
  // Whole pixels a cell keep the grid even.
  const float cell = std::floor(room / static_cast<float>(trace_.tile));
  const float edge =
      std::max(cell >= 2 ? cell * static_cast<float>(trace_.tile) : std::floor(room), px(16));
  const float left = std::round(to.max.x - 2 * edge - walls);
  const float upper = std::round(top + label + (bottom - top - 2 * label - 2 * edge - walls) / 2);
  const float first = to.wall + to.gap;
  const float second = first + edge + 2 * to.gap + to.wall;
  const auto grid = [&](float x, float y) {
    return Grid{at(left + x, upper + y), at(left + x + edge, upper + y + edge), trace_.tile,
                trace_.tile};
  };
  to.tile_a = grid(first, second);
  to.tile_b = grid(second, first);
  to.block = grid(second, second);
}

void TilingScene::place_matrices(Layout& to, float right, float top, float bottom) const {
  const float label = to.note + px(3);
  const float left = to.min.x;
  const float gap = px(to.tight ? 5 : 10);
  const float least = px(9);
  const auto text = [&](const char* name, int rows, int columns) {
    return ui::text_size(fmt::format("{} {} × {}", name, rows, columns), Font::note).x;
  };
  const float a_label = text("A", trace_.m, trace_.k);
  const float c_label = std::max(text("B", trace_.k, trace_.n), text("C", trace_.m, trace_.n));
  const auto extent = [&](int elements, float scale) {
    return std::max(static_cast<float>(elements) * scale, least);
  };
  const auto fits = [&](float scale) {
    const float width = std::max(extent(trace_.k, scale), a_label) + gap +
                        std::max(extent(trace_.n, scale), c_label);
    const float height = extent(trace_.k, scale) + gap + extent(trace_.m, scale) + 2 * label;
    return width <= right - left && height <= bottom - top;
  };
  float low = 0;
  float high = px(26);
  for (int i = 0; i < 24; ++i) {
    const float scale = (low + high) / 2;
    (fits(scale) ? low : high) = scale;
  }
  const float k = extent(trace_.k, low), m = extent(trace_.m, low), n = extent(trace_.n, low);
  const float width = std::max(k, a_label) + gap + std::max(n, c_label);
  const float x =
      std::round(left + std::max(0.0f, right - left - width) / 2 + std::max(k, a_label));
  const float y = std::round((top + bottom - k - gap - m) / 2 + k);
  to.a = {at(x - k, y + gap), at(x, y + gap + m), trace_.m, trace_.k};
  to.b = {at(x + gap, y - k), at(x + gap + n, y), trace_.k, trace_.n};
  to.c = {at(x + gap, y + gap), at(x + gap + n, y + gap + m), trace_.m, trace_.n};
}

void TilingScene::draw_picture(Cursor cursor) {
  if (k_tiles() == 0) return;
  const Layout where = layout();
  const TilingMoment now = moment(cursor);
  draw_sentence(where, sentence(cursor));
  draw_matrices(where, cursor);
  draw_naive(where, now);
  draw_tiles(where, now);
  draw_block(where, cursor);
  draw_picked(where, now);
  draw_barriers(where, now);
  draw_phases(where, now);
  draw_tile_labels(where, now);
  draw_bars(where, now);
  draw_formula(where, cursor);
  draw_tooltip(where, cursor);
}

void TilingScene::draw_matrices(const Layout& layout, Cursor cursor) const {
  const TilingMoment now = moment(cursor);
  const auto sheet = [&](const Grid& grid, const char* id, const char* name, bool above,
                         Align align) {
    area(grid.min, grid.max, Role::raised);
    const ImVec2 cell = grid.cell();
    const auto step = static_cast<float>(trace_.tile);
    const auto grid_lines = [&](float each_x, float each_y, Role role, float alpha) {
      if (std::min(each_x, each_y) < px(4)) return;
      for (float x = grid.min.x + each_x; x < grid.max.x - 1; x += each_x) {
        line(at(x, grid.min.y), at(x, grid.max.y), role, 1, alpha);
      }
      for (float y = grid.min.y + each_y; y < grid.max.y - 1; y += each_y) {
        line(at(grid.min.x, y), at(grid.max.x, y), role, 1, alpha);
      }
    };
    if (cell.x >= px(6) && cell.y >= px(6)) grid_lines(cell.x, cell.y, Role::border, 0.5f);
    grid_lines(cell.x * step, cell.y * step, Role::faint, 0.8f);
    const std::string text = fmt::format("{} {} × {}", name, grid.rows, grid.columns);
    const float y = above ? grid.min.y - layout.note - px(3) : grid.max.y + px(3);
    ui::draw_text(at(align == Align::left ? grid.min.x : grid.max.x, y), text, Font::note,
                  Role::muted, align);
    ui::map(id, text, "", grid.min, grid.max);
  };
  sheet(layout.a, "matrix_a", "A", false, Align::right);
  sheet(layout.b, "matrix_b", "B", true, Align::left);
  sheet(layout.c, "matrix_c", "C", false, Align::left);
  draw_bands(layout, now);

  const tiling::Races& races = trace_.races;
  if (races.order < 0 || !finished(now)) return;
  const ImVec2 corner = layout.c.corner(races.row, races.column);
  const ImVec2 cell = layout.c.cell();
  const ImVec2 center = at(corner.x + cell.x / 2, corner.y + cell.y / 2);
  ui::cross(center, std::max(std::min(cell.x, cell.y) * 0.35f, px(4)), Role::wrong);
  ui::map("wrong_in_c", fmt::format("C[{}][{}]", races.row, races.column), "wrong", corner,
          at(corner.x + cell.x, corner.y + cell.y));
}

/// The block's rows of A and columns of B, k-tile by k-tile.
void TilingScene::draw_bands(const Layout& layout, const TilingMoment& now) const {
  const int row = trace_.first_row();
  const int column = trace_.first_column();
  const auto mark = [&](const Grid& grid, int row0, int column0, int rows, int columns, Role role,
                        int number, const char* id) {
    const ImVec2 from = grid.corner(row0, column0);
    const ImVec2 to = grid.corner(row0 + rows, column0 + columns);
    const bool current = number == now.k_tile;
    const bool done = number < now.k_tile;
    area(from, to, role, current ? 1.0f : done ? 0.6f : 0.22f);
    if (number == lit_step_) outline(from, to, Role::text, 2);
    if (current) outline(from, to, Role::accent, 2.5f);
    if (current) ui::map(id, fmt::format("k-tile {}", number), "current", from, to);
  };
  // The current one is drawn last, so that its frame is whole.
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < k_tiles(); ++i) {
      if ((i == now.k_tile) != (pass == 1)) continue;
      const int k0 = i * trace_.tile;
      mark(layout.a, row, k0, trace_.rows(), depth(i), Role::sky, i, "a_tile");
      mark(layout.b, k0, column, depth(i), trace_.columns(), Role::purple, i, "b_tile");
    }
  }
  const ImVec2 from = layout.c.corner(row, column);
  const ImVec2 to = layout.c.corner(row + trace_.rows(), column + trace_.columns());
  const float share =
      static_cast<float>(now.multiplied ? now.k_tile + 1 : std::max(now.k_tile, 0)) /
      static_cast<float>(k_tiles());
  area(from, to, Role::green, 0.2f + 0.8f * share);
  outline(from, to, Role::green, 2);
  ui::map("c_block", fmt::format("block {}, {} of C", trace_.block_row, trace_.block_col), "", from,
          to);
  const ImVec2 a_end = layout.a.corner(row + trace_.rows(), trace_.k);
  ui::map("a_band", "the block's rows of A", "", layout.a.corner(row, 0), a_end);
  const ImVec2 b_end = layout.b.corner(trace_.k, column + trace_.columns());
  ui::map("b_band", "the block's columns of B", "", layout.b.corner(0, column), b_end);
}

void TilingScene::draw_bars(const Layout& layout, const TilingMoment& now) const {
  float y = layout.bars_min.y;
  const bool naive_alone = trace_.block.variant == tiling::Variant::naive;
  const auto name = name_of(trace_.block.variant);
  const float names =
      std::max(ui::text_size(name, Font::note).x, ui::text_size("coalesced", Font::note).x) +
      px(10);
  std::int64_t total = 0;  // the scale: how many it will be follows from the shape
  for (const auto& tile : trace_.naive.k_tiles) total = std::max(total, tile.loads_so_far);
  std::string fewer;
  if (now.multiplied && now.loads > 0 && now.loads != now.naive_loads) {
    fewer = fmt::format("{:.1f}× fewer",
                        static_cast<double>(now.naive_loads) / static_cast<double>(now.loads));
  }
  std::string what = "global loads so far";
  float numbers = ui::text_size(std::to_string(total), Font::mono_note).x + px(20);
  const float with_words = numbers + ui::text_size(what, Font::note).x;
  if (!fewer.empty()) numbers += ui::text_size(fewer, Font::note).x;
  const float whole = layout.bars_max.x - layout.bars_min.x - names;
  if (with_words < whole * 0.75f) {
    numbers = std::max(numbers, with_words);
  } else {
    what.clear();
  }
  const float left = layout.bars_min.x + names;
  const float room = std::max(layout.bars_max.x - numbers - left, px(8));
  const float row = bar_height(layout);
  const auto bar = [&](const char* id, std::string_view label, std::int64_t loads, Role role,
                       const std::string& note, Role note_role) {
    const float thick = std::min(row - px(4), px(16));
    const float top = y + (row - thick) / 2;
    const float text = y + (row - layout.note) / 2;
    ui::draw_text(at(layout.bars_min.x, text), label, Font::note, Role::text);
    line(at(left, top), at(left, top + thick), Role::muted);
    const float share =
        static_cast<float>(loads) / static_cast<float>(std::max<std::int64_t>(1, total));
    const float end = left + room * share;
    if (loads > 0) fill(at(left, top), at(std::max(end, left + px(2)), top + thick), role);
    const std::string value = std::to_string(loads);
    const ImVec2 size = ui::draw_text(at(end + px(6), text), value, Font::mono_note, Role::text);
    ui::draw_text(at(end + size.x + px(14), text), note, Font::note, note_role);
    ui::map(id, label, value, at(layout.bars_min.x, y), at(layout.bars_max.x, y + row),
            {px(60), px(12)});
    y += row;
  };
  if (!naive_alone) bar("bar_block", name, now.loads, Role::green, fewer, Role::accent);
  bar("bar_naive", "naive", now.naive_loads, Role::vermillion, what, Role::muted);
}

void TilingScene::draw_formula(const Layout& layout, Cursor cursor) const {
  const float width = layout.formula_max.x - layout.formula_min.x;
  const std::string who =
      fmt::format("thread {} → {}: its sum", thread_of(picked_), name_in_c(picked_));
  const Font who_font = Font::note;
  ui::draw_text(layout.formula_min, ui::fitted(who, who_font, width), who_font, Role::muted);
  const float y = layout.formula_min.y + layout.note + px(layout.tight ? 1 : 5);
  // Two products in the larger type, else as many as fit in the smaller one.
  const bool products = moment(cursor).multiplied;
  const auto fits = [&](int terms, Font font) {
    return ui::text_size(formula(cursor, terms), font).x <= width;
  };
  Font font = Font::mono_note;
  int terms = 3;
  if (!layout.tight && fits(products ? 2 : 0, Font::mono)) {
    font = Font::mono;
  }
  while (terms > 0 && !fits(terms, font)) --terms;
  const std::string shown = ui::fitted(formula(cursor, terms), font, width);
  const ImVec2 size = ui::draw_text(at(layout.formula_min.x, y), shown, font);
  ui::map("formula", who, shown, at(layout.formula_min.x, y),
          at(layout.formula_min.x + size.x, y + size.y));
}

}  // namespace tilestep::scenes

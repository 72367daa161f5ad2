// The same block of C in `naive`, in lock step: how often it loads each element of the two tiles.
#include <fmt/format.h>

#include <algorithm>

#include "scenes/matmul/tiling/layout.hpp"

namespace tilestep::scenes {

using tiling::KTile;

namespace {

int most(const std::vector<int>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

}  // namespace

/// In the corner that A and B leave free; the tiles stand as A and B do.
void TilingScene::place_naive(Layout& to, float top) const {
  const float gap = px(to.tight ? 2 : 3);
  const float left = to.min.x;
  const float right = to.b.min.x - px(12);
  const float bottom = std::min(to.a.min.y, to.b.max.y) - px(to.tight ? 2 : 6);
  const float label = to.note + px(4);
  const float edge = std::floor((std::min(bottom - top - label, right - left) - gap) / 2);
  // The longest note it will carry must fit beside B.
  const float words = ui::text_size("naive: loads each 32×", Font::note).x;
  to.naive_shown = trace_.block.variant != tiling::Variant::naive && edge >= px(20) &&
                   edge >= static_cast<float>(trace_.tile) && words <= right - left;
  to.naive_label = at(left, top);
  const float y = top + label;
  const auto grid = [&](float from_x, float from_y) {
    return Grid{at(from_x, from_y), at(from_x + edge, from_y + edge), trace_.tile, trace_.tile};
  };
  to.naive_a = grid(left, y + edge + gap);
  to.naive_b = grid(left + edge + gap, y);
}

std::string TilingScene::naive_note(const TilingMoment& now) const {
  if (now.k_tile < 0 || !now.multiplied) return "naive";
  const KTile& tile = trace_.naive.k_tiles[static_cast<std::size_t>(now.k_tile)];
  const int a = most(tile.a_loads);
  const int b = most(tile.b_loads);
  return a == b ? fmt::format("naive: loads each {}×", a) : fmt::format("naive: {}× and {}×", a, b);
}

void TilingScene::draw_naive(const Layout& layout, const TilingMoment& now) const {
  if (!layout.naive_shown) return;
  ui::draw_text(layout.naive_label, naive_note(now), Font::note, Role::muted);
  const bool loaded = now.k_tile >= 0 && now.multiplied;
  const int all = std::max(1, trace_.tile);
  const auto draw = [&](const Grid& grid, bool is_a, const char* id) {
    std::string value = "to come";
    fill(grid.min, grid.max, Role::raised);
    if (loaded) {
      const KTile& tile = trace_.naive.k_tiles[static_cast<std::size_t>(now.k_tile)];
      const std::vector<int>& loads = is_a ? tile.a_loads : tile.b_loads;
      value = fmt::format("{} loads", most(loads));
      for (int i = 0; i < grid.rows * grid.columns; ++i) {
        const int count = loads[static_cast<std::size_t>(i)];
        if (count == 0) continue;
        const CellRect cell =
            cell_rect(grid.corner(i / grid.columns, i % grid.columns), grid.cell());
        const float share = static_cast<float>(count) / static_cast<float>(all);
        area(cell.min, cell.max, Role::vermillion, 0.25f + 0.75f * share);
      }
    } else {
      ui::dashed_rect(grid.min, grid.max, Role::faint, 1);
    }
    ui::map(id, is_a ? "the tile of A in naive" : "the tile of B in naive", value, grid.min,
            grid.max);
  };
  draw(layout.naive_a, true, "naive_a");
  draw(layout.naive_b, false, "naive_b");
}

}  // namespace tilestep::scenes

// The experts' columns of the MoE picture: how many want each expert, its slots in tiles with what
// lies in them, what it dropped, the capacity line and the busiest expert.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/experts/moe_routing/layout.hpp"

namespace tilestep::scenes {

using moe_routing::ExpertTrace, moe_routing::Step, moe_routing::TileTrace;

void MoeRoutingScene::draw_lanes(const Layout& layout) const {
  const Columns& columns = layout.columns;
  for (int e = 0; e < experts() && columns.width >= px(8); ++e) {
    const float beside = px(3);
    draw_list()->AddRectFilled(at(columns.left(e) - beside, columns.min.y),
                               at(columns.left(e) + columns.width + beside, columns.max.y),
                               ui::color(Role::raised, 0.3f), px(3));
  }
  if (lit_expert_ >= 0) {
    const Rect lane = columns.lane(lit_expert_);
    draw_list()->AddRectFilled(lane.min, lane.max, ui::color(Role::raised, 0.55f), px(3));
  }
}

void MoeRoutingScene::draw_columns(const Layout& layout, Cursor cursor) const {
  const Columns& columns = layout.columns;
  line(at(columns.min.x, columns.max.y + px(1)), at(columns.max.x, columns.max.y + px(1)),
       Role::border, 1.5f);
  if (!done(Step::count, cursor)) {
    draw_contest(layout, cursor);
  } else if (!done(Step::offset, cursor)) {
    draw_demand(layout, cursor);
  } else {
    for (int e = 0; e < experts(); ++e) {
      if (columns.cells) {
        draw_column_cells(layout, e, cursor);
      } else {
        draw_column_bar(layout, e, cursor);
      }
      draw_tiles(layout, e, cursor);
      const ExpertTrace& here = expert(e);
      const float height = here.dropped() > 0
                               ? columns.max.y - columns.pile_foot(here.tiles)
                               : columns.height(static_cast<double>(here.tiles) * columns.tile);
      ui::map(fmt::format("expert_{}", e), fmt::format("E{}", e),
              fmt::format("kept {}, padded {}, dropped {}", here.kept, here.padded, here.dropped()),
              at(columns.left(e), columns.max.y - std::max(height, 1.0f)),
              at(columns.left(e) + columns.width, columns.max.y));
    }
    draw_capacity(layout, cursor);
  }
  draw_busiest(layout, cursor);
}

/// How many want each expert, before there are slots for them.
void MoeRoutingScene::draw_demand(const Layout& layout, Cursor) const {
  const Columns& columns = layout.columns;
  for (int e = 0; e < experts(); ++e) {
    const int wanted = expert(e).wanted;
    const float tall = columns.cells ? columns.cell.y * static_cast<float>(wanted) /
                                           static_cast<float>(columns.across)
                                     : columns.scale * static_cast<float>(wanted);
    const ImVec2 min = at(columns.left(e), columns.max.y - std::max(tall, 1.0f));
    const ImVec2 max = at(columns.left(e) + columns.width, columns.max.y);
    area(min, max, expert_role(e), 0.3f);
    if (columns.width > px(8) && wanted > 0) outline(min, max, expert_role(e), 1.5f);
    draw_inside(min, max, std::to_string(wanted), ui::color(Role::text));
    ui::map(fmt::format("demand_{}", e), fmt::format("E{}", e), std::to_string(wanted), min, max);
  }
}

/// A padded part of a tile, row by row where its first row is a part of one.
void MoeRoutingScene::draw_padding(const Columns& columns, int e, int from, int to) {
  const auto part = [&](int first, int last) {
    const Rect low = columns.slot(e, first);
    const Rect high = columns.slot(e, last);
    ui::hatch(at(low.min.x, high.min.y), at(high.max.x, low.max.y), Role::wasted, columns.hatch);
  };
  const int start = from % columns.across;
  const int row_end = std::min(to, start == 0 ? from : from + columns.across - start);
  for (int i = from; i < to; ++i) {
    const Rect place = columns.slot(e, i);
    area(place.min, place.max, Role::raised);
  }
  if (row_end > from) part(from, row_end - 1);
  if (to > row_end) part(row_end, to - 1);
}

void MoeRoutingScene::draw_column_cells(const Layout& layout, int e, Cursor cursor) const {
  const Columns& columns = layout.columns;
  const ExpertTrace& here = expert(e);
  const bool moved_in = done(Step::permute, cursor);
  // Tokens travel from their place in the grid; in a still picture they have arrived.
  const float way = ui::animate("moe_permuted", moved_in ? 1.0f : 0.0f, 0.7f);
  const Role role = expert_role(e);
  // All tokens' numbers fit, or none is drawn.
  const ImVec2 widest = ui::text_size(std::to_string(trace_.tokens - 1), Font::mono_note);
  const bool numbers = widest.x <= columns.cell.x - px(3);
  for (int n = 0; n < here.tiles; ++n) {
    // Nothing behind the cells shows through their seams.
    const Rect whole = columns.tile_rect(e, n);
    area(whole.min, whole.max, Role::panel);
    const int from = std::max(here.kept, n * columns.tile);
    draw_padding(columns, e, from, std::max(from, (n + 1) * columns.tile));
  }
  for (int i = 0; i < here.tiles * columns.tile; ++i) {
    const Rect place = columns.slot(e, i);
    std::string value = "padded";
    if (i < here.kept && !moved_in) {
      value = "free";
      if (place.height() >= px(14) && !columns.plain) {
        ui::dashed_rect(place.min, place.max, role, 1);
      } else {
        area(place.min, place.max, role, 0.25f);
      }
    } else if (i < here.kept) {
      const int number = kept_[static_cast<std::size_t>(e)][static_cast<std::size_t>(i)].token;
      value = fmt::format("token {}", number);
      const Rect cell = layout.tokens.at_token(std::max(number, 0)).towards(place, way);
      area(cell.min, cell.max, role);
      if (numbers) {
        draw_inside(cell.min, cell.max, std::to_string(number), ui::readable_on(ui::color(role)));
      }
    }
    ui::map(fmt::format("slot_{}_{}", e, i), fmt::format("slot {} of E{}", i, e), value, place.min,
            place.max);
  }
  draw_pile(columns, e);
}

/// What the expert dropped, above its tiles.
void MoeRoutingScene::draw_pile(const Columns& columns, int e) const {
  const auto& pile = dropped_[static_cast<std::size_t>(e)];
  for (int i = 0; i < static_cast<int>(pile.size()); ++i) {
    const Rect place = columns.dropped(e, expert(e).tiles, i);
    area(place.min, place.max, Role::wrong, 0.22f);
    if (!columns.plain) outline(place.min, place.max, Role::wrong, 1);
    ui::cross(place.center(), std::min(place.width(), place.height()) * 0.26f, Role::wrong);
    ui::map(fmt::format("dropped_{}_{}", e, i), fmt::format("dropped by E{}", e),
            fmt::format("token {}", pile[static_cast<std::size_t>(i)].token), place.min, place.max);
  }
}

void MoeRoutingScene::draw_column_bar(const Layout& layout, int e, Cursor cursor) const {
  const Columns& columns = layout.columns;
  const ExpertTrace& here = expert(e);
  const float left = columns.left(e);
  const float right = left + columns.width - (columns.width >= px(3) ? std::min(1.0f, px(1)) : 0);
  const float top_of_kept = columns.max.y - columns.height(here.kept);
  const float top_of_tiles = columns.pile_foot(here.tiles) + columns.pile_gap;
  const bool moved_in = done(Step::permute, cursor);
  if (here.kept > 0) {
    area(at(left, std::min(top_of_kept, columns.max.y - 1)), at(right, columns.max.y),
         expert_role(e), moved_in ? 1.0f : 0.35f);
    if (moved_in) {
      const std::string text = std::to_string(here.kept);
      draw_inside(at(left, std::max(top_of_kept, columns.max.y - layout.note - px(8))),
                  at(right, columns.max.y - px(4)), text,
                  ui::readable_on(ui::color(expert_role(e))));
    }
  }
  if (here.padded > 0 && top_of_kept - top_of_tiles >= 1) {
    const ImVec2 min = at(left, top_of_tiles);
    const ImVec2 max = at(right, top_of_kept);
    area(min, max, Role::raised, 0.9f);
    ui::hatch(min, max, Role::wasted, columns.hatch);
    if (columns.width > px(6)) outline(min, max, Role::wasted, 1, 0.8f);
  }
  if (here.dropped() == 0) return;
  const float foot = columns.pile_foot(here.tiles);
  const float tall = std::max(columns.scale * static_cast<float>(here.dropped()), px(2));
  const ImVec2 min = at(left, std::max(foot - tall, columns.min.y));
  const ImVec2 max = at(right, foot);
  area(min, max, Role::wrong, 0.3f);
  outline(min, max, Role::wrong, 1);
  const float radius = std::min({px(5), (max.x - min.x) * 0.35f, (max.y - min.y) * 0.35f});
  if (radius >= px(1.5f))
    ui::cross(at((min.x + max.x) / 2, (min.y + max.y) / 2), radius, Role::wrong);
  ui::map(fmt::format("dropped_{}", e), fmt::format("dropped by E{}", e),
          std::to_string(here.dropped()), min, max);
}

/// The tiles' outlines; at the product each is lit, with the block that ran it beside it.
void MoeRoutingScene::draw_tiles(const Layout& layout, int e, Cursor cursor) const {
  const Columns& columns = layout.columns;
  const bool ran = done(Step::multiply, cursor);
  const float beside = (columns.pitch - columns.width) / 2;
  for (int n = 0; n < expert(e).tiles; ++n) {
    const Rect place = columns.tile_rect(e, n);
    if (place.height() < px(4) || columns.width < px(5)) return;  // the next is as thin
    const TileTrace* tile_trace = tile(e, n);
    const ImVec2 min = at(place.min.x - px(1), place.min.y);
    const ImVec2 max = at(place.max.x, place.max.y + px(columns.cells ? 1 : 0));
    const bool lit = tile_trace != nullptr && tile_trace - trace_.tiles.data() == lit_tile_;
    if (lit) {
      outline(min, max, Role::text, 2.5f);
    } else if (ran) {
      outline(min, max, Role::accent, now(Step::multiply, cursor) ? 2 : 1.2f,
              now(Step::multiply, cursor) ? 1 : 0.7f);
    } else {
      outline(min, max, Role::muted, 1.2f);
    }
    std::string value = "to come";
    if (ran) {
      value = tile_trace == nullptr ? "not recorded" : fmt::format("block {}", tile_trace->block);
    }
    if (ran && tile_trace != nullptr && place.height() >= layout.note) {
      for (const char* prefix : {"block ", "b"}) {
        const std::string text = fmt::format("{}{}", prefix, tile_trace->block);
        if (ui::text_size(text, Font::note).x > beside - px(6)) continue;
        ui::draw_text(at(place.max.x + px(5), place.center().y - layout.note / 2), text, Font::note,
                      lit ? Role::text : Role::muted);
        break;
      }
    }
    ui::map(fmt::format("tile_{}_{}", e, n), fmt::format("tile {} of E{}", n, e), value, place.min,
            place.max);
  }
}

/// A line that no kept token stands above. Where it ends within a row of cells, it steps down.
void MoeRoutingScene::draw_capacity(const Layout& layout, Cursor) const {
  if (trace_.capacity < 0) return;
  const Columns& columns = layout.columns;
  const int rest = columns.cells ? trace_.capacity % columns.across : 0;
  const double whole = static_cast<double>(trace_.capacity - rest);
  const float low = columns.max.y - columns.height(whole);
  const float high = rest > 0 ? low - columns.cell.y : low;
  if (high < columns.min.y - 1) return;  // beyond what any expert has
  const float step = columns.cell.x * static_cast<float>(rest);
  if (columns.width < px(8)) {
    ui::dashed_line(at(columns.min.x, low), at(columns.max.x, low), Role::text, 1.5f);
  }
  for (int e = 0; e < experts() && columns.width >= px(8); ++e) {
    const Rect lane = columns.lane(e);
    const float left = columns.left(e);
    line(at(lane.min.x, high), at(left + step, high), Role::text, 1.5f);
    line(at(left + step, high), at(left + step, low), Role::text, 1.5f);
    line(at(left + step, low), at(left + columns.width, low), Role::text, 1.5f);
    if (rest > 0)
      line(at(left + columns.width, low), at(left + columns.width, high), Role::text, 1.5f);
    line(at(left + columns.width, high), at(lane.max.x, high), Role::text, 1.5f);
  }
  const std::string text = fmt::format("capacity {}", trace_.capacity);
  const float room = columns.min.x - layout.left_end - px(12);
  const ImVec2 size = ui::text_size(text, Font::note);
  if (size.x <= room) {
    const ImVec2 corner = at(columns.min.x - px(4), high - size.y / 2);
    area(at(corner.x - size.x - px(3), corner.y), at(corner.x, corner.y + size.y), Role::panel);
    ui::draw_text(corner, text, Font::note, Role::text, Align::right);
  }
  ui::map("capacity", text, std::to_string(trace_.capacity), at(columns.min.x, high - px(2)),
          at(columns.max.x, low + px(2)));
}

/// Who alone has the most to do. That is not yet a straggler: whether others wait for it hangs on
/// who runs its tiles.
void MoeRoutingScene::draw_busiest(const Layout& layout, Cursor cursor) const {
  const std::vector<int> busiest = trace_.with_most(&ExpertTrace::kept);
  if (!done(Step::offset, cursor) || busiest.size() > 1) return;
  const Columns& columns = layout.columns;
  const int e = busiest.front();
  const ExpertTrace& here = expert(e);
  float top = columns.max.y - columns.height(static_cast<double>(here.tiles) * columns.tile);
  if (here.dropped() > 0) {
    const float pile = columns.cells
                           ? columns.cell.y * std::ceil(static_cast<float>(here.dropped()) /
                                                        static_cast<float>(columns.across))
                           : std::max(columns.scale * static_cast<float>(here.dropped()), px(2));
    top = columns.pile_foot(here.tiles) - pile;
  }
  const std::string text = fmt::format("busiest, E{}: {}", e, here.kept);
  const ImVec2 size = ui::text_size(text, Font::note);
  const float middle = columns.left(e) + columns.width / 2;
  const float x = std::clamp(middle - size.x / 2, columns.min.x - px(20),
                             std::max(columns.min.x, layout.max.x - size.x));
  const float y = std::max(top, columns.min.y) - size.y - px(3);
  ui::draw_text(at(x, y), text, Font::note, Role::accent);
  ui::map("busiest", fmt::format("E{}", e), std::to_string(here.kept), at(x, y),
          at(x + size.x, y + size.y));
}

}  // namespace tilestep::scenes

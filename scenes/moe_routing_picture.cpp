// The picture of the MoE lesson: where everything stands, what the pointer is on, and the experts'
// columns.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "moe_routing_layout.hpp"

namespace tilestep::scenes {

using moe_routing::ExpertTrace;
using moe_routing::Step;
using moe_routing::TileTrace;
using ui::Align;
using ui::Font;
using ui::px;
using ui::Role;

namespace {

constexpr float kLeastCell = 6;  ///< design pixels; smaller cells become a bar
constexpr float kMostCell = 34;  ///< cells do not grow beyond this
constexpr float kCellAspect = 1.5f;

}  // namespace

// ---- where everything stands --------------------------------------------------------------------

MoeRoutingScene::Layout MoeRoutingScene::layout(Cursor cursor) const {
  Layout to;
  to.min = ImGui::GetCursorScreenPos();
  const ImVec2 size = ImGui::GetContentRegionAvail();
  to.max = at(to.min.x + size.x, to.min.y + size.y);
  to.tight = size.y < px(360);
  to.heading = to.tight ? Font::body_bold : Font::section;
  to.note = height_of(Font::note);
  const float top = to.min.y + height_of(to.heading) + px(to.tight ? 2 : 10);
  const float room = to.max.y - top;

  // Left: the tokens over the followed token's numbers.
  to.left_end = to.min.x + std::round(size.x * (shown_tokens() > 64 ? 0.3f : 0.26f));
  const int lines = room > px(330) ? 5 : room > px(150) ? 3 : room > px(100) ? 2 : 0;
  const float details = static_cast<float>(lines) * (to.note + px(2));
  to.details = {at(to.min.x, to.max.y - details), at(to.left_end, to.max.y)};
  to.caption = at(to.min.x, top);
  const float grid_top = top + to.note + px(4);
  const float width = to.left_end - to.min.x;
  const float height = to.details.min.y - px(lines > 0 ? 8 : 0) - grid_top;
  to.tokens.min = at(to.min.x, grid_top);
  place_tokens(to.tokens, width, height);

  // Right: the columns, their rows of values, the blocks over time.
  const float names = ui::text_size("first slot", Font::note).x + px(12);
  to.labels = size.x > px(470);
  const float left = to.left_end + px(to.tight ? 14 : 24) + (to.labels ? names : 0);
  float foot = to.max.y;
  const bool running = done(Step::multiply, cursor);
  if (room > px(300) || (running && room > px(130))) {
    const float share = room > px(300) ? 0.29f : 0.42f;
    const int blocks = static_cast<int>(gantt_blocks(64).size());
    const float enough = 2 * (to.note + px(4)) + static_cast<float>(std::max(blocks, 2)) * px(22);
    const float tall = std::min(std::round(room * share), enough);
    to.gantt = {at(to.left_end + px(to.tight ? 14 : 24), to.max.y - tall), to.max};
    foot = to.gantt.min.y - px(to.tight ? 4 : 14);
  } else {
    to.gantt = {to.max, to.max};
  }
  to.row_height = to.note + px(to.tight ? 2 : 4);
  to.rows = room > px(300) ? 4 : room > px(80) && !(running && to.gantt.height() > 0) ? 1 : 0;
  to.rows_top = foot - static_cast<float>(to.rows) * to.row_height;
  to.names_top = to.rows_top - to.row_height;
  to.columns = columns(at(left, top + to.note + px(6)), at(to.max.x, to.names_top - px(3)));
  return to;
}

/// The largest cells that fit; a full last row is worth a little of their size.
void MoeRoutingScene::place_tokens(Grid& grid, float width, float height) const {
  const int count = shown_tokens();
  const auto cell_of = [&](int columns) {
    const int rows = (count + columns - 1) / columns;
    return std::min(
        {width / static_cast<float>(columns), height / static_cast<float>(rows), px(kMostCell)});
  };
  grid.cell = 0;
  for (int columns = 1; columns <= count; ++columns) {
    if (cell_of(columns) < grid.cell) continue;
    grid.cell = cell_of(columns);
    grid.columns = columns;
  }
  const float least = grid.cell * 0.9f;
  for (int columns = 1; columns <= count && count % grid.columns != 0; ++columns) {
    if (columns < 6 || count % columns != 0 || cell_of(columns) < least) continue;
    grid.cell = cell_of(columns);
    grid.columns = columns;
  }
  if (grid.cell > px(8)) grid.cell = std::floor(grid.cell);
}

MoeRoutingScene::Columns MoeRoutingScene::columns(ImVec2 min, ImVec2 max) const {
  Columns to;
  to.min = min;
  to.max = at(max.x, std::max(max.y, min.y + px(10)));
  to.tile = std::max(1, trace_.tile);
  to.pitch = (to.max.x - to.min.x) / static_cast<float>(std::max(1, experts()));
  const float height = to.max.y - to.min.y;
  to.pile_gap = trace_.dropped() > 0 ? std::round(std::min(px(5), height * 0.03f)) : 0;
  to.tile_gap = std::round(px(4));
  // Wide columns leave room for the number of a tile's block on their right.
  const float tag = ui::text_size("b00", Font::note).x + px(8);
  const float beside = to.pitch > 5 * tag ? 2 * tag : std::max(px(6), to.pitch * 0.16f);
  const float usable = to.pitch - beside;
  // The largest cells that any number of them side by side allows.
  ImVec2 best = at(0, 0);
  for (int across = 1; across <= to.tile && all_shown(); across *= 2) {
    float tall = px(kMostCell);
    for (const ExpertTrace& each : trace_.expert) {
      const int rows = each.tiles * (to.tile / across) + (each.dropped() + across - 1) / across;
      if (rows == 0) continue;
      const float gaps = static_cast<float>(each.tiles) * to.tile_gap + to.pile_gap;
      tall = std::min(tall, (height - gaps) / static_cast<float>(rows));
    }
    const float wide = std::min(usable / static_cast<float>(across), tall * kCellAspect);
    if (std::min(wide, tall) <= std::min(best.x, best.y)) continue;
    best = at(wide, std::min(tall, wide * kCellAspect));
    to.across = across;
  }
  to.cells = std::min(best.x, best.y) >= px(kLeastCell);
  if (to.cells) {
    to.cell = best;
    to.width = best.x * static_cast<float>(to.across);
    return to;
  }
  to.width = to.pitch < px(4) ? to.pitch : std::min(std::max(usable, to.pitch * 0.6f), px(64));
  to.tile_gap = 0;
  double most = 1;
  for (const ExpertTrace& each : trace_.expert) {
    most = std::max(most, static_cast<double>(each.tiles) * to.tile + each.dropped());
  }
  to.scale = (height - to.pile_gap) / static_cast<float>(most);
  return to;
}

void MoeRoutingScene::draw_picture(Cursor cursor) {
  if (shown_tokens() == 0 || trace_.expert.empty()) return;
  const Layout where = layout(cursor);
  follow_pointer(where, cursor);
  const std::string text = ui::fitted(sentence(cursor), where.heading, where.max.x - where.min.x);
  const ImVec2 size = ui::draw_text(where.min, text, where.heading);
  ui::map("sentence", text, "", where.min, at(where.min.x + size.x, where.min.y + size.y));
  draw_names(where, cursor);
  draw_rows(where, cursor);
  draw_lanes(where);
  draw_ways(where, cursor);
  draw_columns(where, cursor);
  draw_tokens(where, cursor);
  draw_followed(where, cursor);
  draw_details(where, cursor);
  draw_gantt(where, cursor);
  draw_dragged(where);
  draw_tooltip(where, cursor);
}

// ---- the pointer --------------------------------------------------------------------------------

MoeRoutingScene::Hit MoeRoutingScene::hit(const Layout& layout, Cursor cursor) const {
  Hit hit;
  if (!ImGui::IsWindowHovered()) return hit;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  for (int t = 0; t < shown_tokens(); ++t) {
    if (layout.tokens.at_token(t).holds(mouse)) hit.token = t;
  }
  const Columns& columns = layout.columns;
  const float foot = layout.rows_top + static_cast<float>(layout.rows) * layout.row_height;
  if (!inside(mouse, columns.min, at(columns.max.x, foot))) return hit;
  hit.expert = std::min(experts() - 1, static_cast<int>((mouse.x - columns.min.x) / columns.pitch));
  if (!done(Step::offset, cursor) || mouse.y >= columns.max.y) return hit;
  const ExpertTrace& here = expert(hit.expert);
  for (int n = 0; n < here.tiles; ++n) {
    if (columns.tile_rect(hit.expert, n).holds(mouse)) hit.tile = n;
  }
  if (!columns.cells) return hit;
  const auto e = static_cast<std::size_t>(hit.expert);
  for (int i = 0; i < here.tiles * columns.tile; ++i) {
    if (!columns.slot(hit.expert, i).holds(mouse)) continue;
    hit.slot = i;
    if (i < here.kept && done(Step::permute, cursor)) {
      hit.token = kept_[e][static_cast<std::size_t>(i)].token;
    }
  }
  for (int i = 0; i < here.dropped(); ++i) {
    if (!columns.dropped(hit.expert, here.tiles, i).holds(mouse)) continue;
    hit.dropped = true;
    hit.token = dropped_[e][static_cast<std::size_t>(i)].token;
  }
  return hit;
}

void MoeRoutingScene::follow_pointer(const Layout& layout, Cursor cursor) {
  const Hit here = hit(layout, cursor);
  lit_token_ = here.token >= 0 ? here.token : table_token_;
  lit_expert_ = here.expert >= 0 ? here.expert : table_expert_;
  lit_tile_ = table_tile_;
  if (here.expert >= 0 && here.tile >= 0) {
    const TileTrace* ran = tile(here.expert, here.tile);
    if (ran != nullptr) lit_tile_ = static_cast<int>(ran - trace_.tiles.data());
  }
  if (ImGui::IsWindowHovered() && ImGui::IsMouseClicked(ImGuiMouseButton_Left) && here.token >= 0) {
    picked_ = here.token;
    dragged_ = custom() ? here.token : -1;
    dragged_from_ = ImGui::GetIO().MousePos;
  }
  if (dragged_ < 0) return;
  lit_token_ = dragged_;
  if (ImGui::IsMouseDown(ImGuiMouseButton_Left)) return;
  const int from = token(dragged_).expert.front();
  if (here.expert >= 0 && here.expert != from) {
    request_ = lab::Settings{{"custom", moved(dragged_, here.expert)}};
    ui::request_redraw();
  }
  dragged_ = -1;
}

// ---- the columns --------------------------------------------------------------------------------

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
  draw_straggler(layout, cursor);
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
    draw_list()->AddRectFilled(min, max, ui::color(expert_role(e), 0.3f));
    if (columns.width > px(8) && wanted > 0) outline(min, max, expert_role(e), 1.5f);
    draw_inside(min, max, std::to_string(wanted), ui::color(Role::text));
    ui::map(fmt::format("demand_{}", e), fmt::format("E{}", e), std::to_string(wanted), min, max);
  }
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
  // Nothing behind the cells shows through their seams.
  for (int n = 0; n < here.tiles; ++n) {
    const Rect whole = columns.tile_rect(e, n);
    draw_list()->AddRectFilled(whole.min, whole.max, ui::color(Role::panel));
  }
  for (int i = 0; i < here.tiles * columns.tile; ++i) {
    const Rect place = columns.slot(e, i);
    std::string value = "padded";
    if (i >= here.kept) {
      draw_list()->AddRectFilled(place.min, place.max, ui::color(Role::raised, 0.7f));
      ui::hatch(place.min, place.max, Role::wasted, 5);
      outline(place.min, place.max, Role::wasted, 1, 0.8f);
    } else if (!moved_in) {
      value = "free";
      if (place.height() >= px(14)) {
        ui::dashed_rect(place.min, place.max, role, 1);
      } else {
        outline(place.min, place.max, role, 1, 0.7f);
      }
    } else {
      const int number = kept_[static_cast<std::size_t>(e)][static_cast<std::size_t>(i)].token;
      value = fmt::format("token {}", number);
      const Rect cell = layout.tokens.at_token(std::max(number, 0)).towards(place, way);
      draw_list()->AddRectFilled(cell.min, cell.max, ui::color(role));
      if (numbers) {
        draw_inside(cell.min, cell.max, std::to_string(number), ui::readable_on(ui::color(role)));
      }
    }
    ui::map(fmt::format("slot_{}_{}", e, i), fmt::format("slot {} of E{}", i, e), value, place.min,
            place.max);
  }
  const auto& pile = dropped_[static_cast<std::size_t>(e)];
  for (int i = 0; i < static_cast<int>(pile.size()); ++i) {
    const Rect place = columns.dropped(e, here.tiles, i);
    const int number = pile[static_cast<std::size_t>(i)].token;
    draw_list()->AddRectFilled(place.min, place.max, ui::color(Role::wrong, 0.22f));
    outline(place.min, place.max, Role::wrong, 1);
    ui::cross(place.center(), std::min(place.width(), place.height()) * 0.26f, Role::wrong);
    ui::map(fmt::format("dropped_{}_{}", e, i), fmt::format("dropped by E{}", e),
            fmt::format("token {}", number), place.min, place.max);
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
    draw_list()->AddRectFilled(at(left, std::min(top_of_kept, columns.max.y - 1)),
                               at(right, columns.max.y),
                               ui::color(expert_role(e), moved_in ? 1.0f : 0.35f));
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
    draw_list()->AddRectFilled(min, max, ui::color(Role::raised, 0.9f));
    ui::hatch(min, max, Role::wasted, 5);
    if (columns.width > px(6)) outline(min, max, Role::wasted, 1, 0.8f);
  }
  if (here.dropped() == 0) return;
  const float foot = columns.pile_foot(here.tiles);
  const float tall = std::max(columns.scale * static_cast<float>(here.dropped()), px(2));
  const ImVec2 min = at(left, std::max(foot - tall, columns.min.y));
  const ImVec2 max = at(right, foot);
  draw_list()->AddRectFilled(min, max, ui::color(Role::wrong, 0.3f));
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
    draw_list()->AddRectFilled(at(corner.x - size.x - px(3), corner.y),
                               at(corner.x, corner.y + size.y), ui::color(Role::panel));
    ui::draw_text(corner, text, Font::note, Role::text, Align::right);
  }
  ui::map("capacity", text, std::to_string(trace_.capacity), at(columns.min.x, high - px(2)),
          at(columns.max.x, low + px(2)));
}

void MoeRoutingScene::draw_straggler(const Layout& layout, Cursor cursor) const {
  if (!done(Step::offset, cursor) || !has_straggler()) return;
  const Columns& columns = layout.columns;
  const int e = trace_.busiest();
  const ExpertTrace& here = expert(e);
  float top = columns.max.y - columns.height(static_cast<double>(here.tiles) * columns.tile);
  if (here.dropped() > 0) {
    const float pile = columns.cells
                           ? columns.cell.y * std::ceil(static_cast<float>(here.dropped()) /
                                                        static_cast<float>(columns.across))
                           : std::max(columns.scale * static_cast<float>(here.dropped()), px(2));
    top = columns.pile_foot(here.tiles) - pile;
  }
  const std::string text = fmt::format("straggler E{}: {}", e, here.kept);
  const ImVec2 size = ui::text_size(text, Font::note);
  const float middle = columns.left(e) + columns.width / 2;
  const float x = std::clamp(middle - size.x / 2, columns.min.x - px(20),
                             std::max(columns.min.x, layout.max.x - size.x));
  const float y = std::max(top, columns.min.y) - size.y - px(3);
  ui::draw_text(at(x, y), text, Font::note, Role::accent);
  ui::map("straggler", fmt::format("E{}", e), std::to_string(here.kept), at(x, y),
          at(x + size.x, y + size.y));
}

void MoeRoutingScene::draw_tooltip(const Layout& layout, Cursor cursor) const {
  if (dragged_ >= 0) return;
  const Hit here = hit(layout, cursor);
  std::string text;
  if (here.token >= 0) {
    text = fmt::format("token {}", here.token);
    const moe_routing::TokenTrace& each = token(here.token);
    for (std::size_t c = 0; c < each.expert.size() && done(Step::top_k, cursor); ++c) {
      text += fmt::format("\nE{}, gate {:.3f}", each.expert[c], static_cast<double>(each.gate[c]));
      if (done(Step::offset, cursor)) {
        text += each.slot[c] < 0 ? ", dropped" : fmt::format(", slot {}", each.slot[c]);
      }
    }
    text += custom() ? "\ndrag it to another expert" : "\nclick to follow it";
  } else if (here.expert >= 0) {
    const ExpertTrace& each = expert(here.expert);
    text = fmt::format("E{}", here.expert);
    if (done(Step::count, cursor)) text += fmt::format("\nwanted {} times", each.wanted);
    if (done(Step::offset, cursor)) {
      text += fmt::format("\nkept {}, dropped {}\n{} tiles, {} padded slots", each.kept,
                          each.dropped(), each.tiles, each.padded);
    }
    const TileTrace* ran = here.tile >= 0 ? tile(here.expert, here.tile) : nullptr;
    if (ran != nullptr && done(Step::multiply, cursor)) {
      text += fmt::format("\ntile {}: {} of {} slots real, block {}", ran->number, ran->kept,
                          trace_.tile, ran->block);
    }
  }
  if (!text.empty()) ImGui::SetTooltip("%s", text.c_str());
}

}  // namespace tilestep::scenes

// The picture of the MoE lesson: where everything stands, and what the pointer is on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/experts/moe_routing/layout.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using moe_routing::ExpertTrace, moe_routing::Step, moe_routing::TileTrace;

namespace {

constexpr float kLeastCell = 6;  ///< design pixels; smaller cells become a bar
constexpr float kMostCell = 34;  ///< cells do not grow beyond this
constexpr float kCellAspect = 1.5f;
constexpr int kManyCells = 400;   ///< more cells than this are drawn with few strokes
constexpr int kMostCells = 4096;  ///< more become bars
constexpr int kMostHatchLines = 1500;

}  // namespace

// ---- where everything stands --------------------------------------------------------------------

MoeRoutingScene::Layout MoeRoutingScene::layout(Cursor cursor) const {
  Layout to(picture_frame());
  const float top = to.min.y + height_of(to.heading) + px(to.tight ? 2 : 10);
  const float room = to.max.y - top;

  // Left: the tokens over the followed token's numbers.
  to.left_end = to.min.x + std::round(to.width() * (shown_tokens() > 64 ? 0.3f : 0.26f));
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
  to.labels = to.width() > px(470);
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
  const std::int64_t count = trace_.slots() + trace_.dropped();
  to.cells = std::min(best.x, best.y) >= px(kLeastCell) && count <= kMostCells;
  to.plain = count > kManyCells;
  // A draw list holds some 65000 corners: the more there is to hatch, the wider its lines stand.
  float edges = 0;
  for (const ExpertTrace& each : trace_.expert) {
    if (each.padded > 0) edges += to.pitch + height;
  }
  to.hatch = std::max(5.0f, edges / px(1) / static_cast<float>(kMostHatchLines));
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
  draw_sentence(where, sentence(cursor));
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
    if (done(Step::count, cursor)) text += "\nwanted " + words::times(each.wanted);
    if (done(Step::offset, cursor)) {
      text += fmt::format("\nkept {}, dropped {}\n{}, {}", each.kept, each.dropped(),
                          words::counted(each.tiles, "tile"),
                          words::counted(each.padded, "padded slot"));
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

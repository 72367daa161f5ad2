#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "scenes/experts/moe_routing/scene.hpp"
#include "scenes/shared/strokes.hpp"

/// Where the parts of the MoE picture stand; shared by the files that draw it.
namespace tilestep::scenes {

/// An expert's colour. Six take turns: the number beside it tells experts apart.
inline ui::Role expert_role(int expert) {
  static constexpr std::array kRoles = {ui::Role::blue,   ui::Role::orange, ui::Role::green,
                                        ui::Role::purple, ui::Role::sky,    ui::Role::yellow};
  return kRoles[static_cast<std::size_t>(expert) % kRoles.size()];
}

struct MoeRoutingScene::Rect {
  ImVec2 min, max;
  float width() const { return max.x - min.x; }
  float height() const { return max.y - min.y; }
  ImVec2 center() const { return at((min.x + max.x) / 2, (min.y + max.y) / 2); }
  bool holds(ImVec2 point) const { return inside(point, min, max); }
  /// Between this one (0) and `to` (1).
  Rect towards(const Rect& to, float t) const {
    const auto mix = [t](float a, float b) { return a + (b - a) * t; };
    return {at(mix(min.x, to.min.x), mix(min.y, to.min.y)),
            at(mix(max.x, to.max.x), mix(max.y, to.max.y))};
  }
};

/// The tokens on the left.
struct MoeRoutingScene::Grid {
  ImVec2 min;
  int columns = 1;
  float cell = 1;
  Rect at_token(int token) const {
    const float seam = seam_of(cell);
    const float x = min.x + cell * static_cast<float>(token % columns);
    const float y = min.y + cell * static_cast<float>(token / columns);
    return {at(x, y), at(x + cell - seam, y + cell - seam)};
  }
};

/// The experts' columns. They grow upwards: tiles of slots first, then what was dropped.
struct MoeRoutingScene::Columns {
  ImVec2 min, max;     ///< of all stacks
  float pitch = 1;     ///< from column to column
  float width = 1;     ///< of a stack
  bool cells = false;  ///< every token has a cell; else a bar a column
  int across = 1;      ///< cells side by side, a divisor of the tile
  int tile = 8;
  ImVec2 cell;         ///< of cells
  float tile_gap = 0;  ///< between tiles, of cells
  float pile_gap = 0;  ///< below what was dropped
  float scale = 1;     ///< height of a slot, of bars
  float hatch = 5;     ///< design pixels between hatch lines
  bool plain = false;  ///< so many cells that each is drawn with few strokes

  float left(int expert) const {
    const float x = min.x + pitch * static_cast<float>(expert) + (pitch - width) / 2;
    return width >= ui::px(4) ? std::round(x) : x;
  }
  /// The whole lane of an expert, wider than its stack.
  Rect lane(int expert) const {
    const float x = min.x + pitch * static_cast<float>(expert);
    return {at(x, min.y), at(x + pitch, max.y)};
  }
  int rows() const { return std::max(1, tile / across); }
  /// How high `slots` slots stand above the foot.
  float height(double slots) const {
    if (!cells) return static_cast<float>(slots) * scale;
    const int whole = static_cast<int>(slots) / tile;
    const double rest = slots - static_cast<double>(whole) * tile;
    const float tiles =
        static_cast<float>(whole) * (cell.y * static_cast<float>(rows()) + tile_gap);
    return tiles + static_cast<float>(rest / across) * cell.y;
  }
  Rect cell_at(float x, float foot, int place) const {
    const float seam = seam_of(cell.y);
    const float left_edge = x + cell.x * static_cast<float>(place % across);
    const float bottom = foot - cell.y * static_cast<float>(place / across);
    return {at(left_edge, bottom - cell.y + seam), at(left_edge + cell.x - seam, bottom)};
  }
  /// Place `place` of an expert's column, from its first slot on; of cells.
  Rect slot(int expert, int place) const {
    const int number = place / tile;
    return cell_at(left(expert), max.y - height(static_cast<double>(number) * tile), place % tile);
  }
  Rect tile_rect(int expert, int number) const {
    const float foot = max.y - height(static_cast<double>(number) * tile);
    const float tall =
        cells ? cell.y * static_cast<float>(rows()) : scale * static_cast<float>(tile);
    const float x = left(expert);
    return {at(x, foot - tall), at(x + width, foot)};
  }
  /// Number `place` of what the expert dropped, above its `tiles` tiles; of cells.
  Rect dropped(int expert, int tiles, int place) const {
    return cell_at(left(expert), pile_foot(tiles), place);
  }
  float pile_foot(int tiles) const {
    return max.y - height(static_cast<double>(tiles) * tile) - pile_gap;
  }
};

/// A row of values under the columns, one an expert.
struct MoeRoutingScene::Row {
  std::string id, label;
  bool known = false;    ///< its step is done
  bool current = false;  ///< its step is the one shown
  std::string missing;   ///< why there are no values, although the step is done
  struct Value {
    std::string text;     ///< empty: nothing to say for this expert
    float share = -1;     ///< 0–1, as a heat colour; −1: none
    bool chosen = false;  ///< in the expert's own colour
  };
  std::vector<Value> values;
};

struct MoeRoutingScene::Layout : Frame {
  explicit Layout(const Frame& frame) : Frame(frame) {}

  Grid tokens;
  ImVec2 caption;      ///< of the tokens
  float left_end = 0;  ///< right edge of what stands on the left
  Rect details;        ///< the followed token's numbers; empty where there is no room
  Columns columns;
  bool labels = true;  ///< the rows have room for their names
  float names_top = 0, rows_top = 0, row_height = 0;
  int rows = 0;  ///< 4: all; 1: that of the step; 0: none
  Rect gantt;    ///< empty where there is no room
};

/// What the pointer is on; −1: nothing of the kind.
struct MoeRoutingScene::Hit {
  int token = -1, expert = -1, slot = -1, tile = -1;
  bool dropped = false;
};

}  // namespace tilestep::scenes

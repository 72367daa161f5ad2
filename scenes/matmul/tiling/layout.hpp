#pragma once

#include "scenes/matmul/tiling/scene.hpp"
#include "scenes/shared/strokes.hpp"

/// Where the parts of the tiling picture stand; shared by the files that draw it.
namespace tilestep::scenes {

struct CellRect {
  ImVec2 min, max;
};
/// A cell with its seam; cells of few pixels have none.
inline CellRect cell_rect(ImVec2 corner, ImVec2 size) {
  const float seam = seam_of(size.x);
  return {corner, at(corner.x + size.x - seam, corner.y + size.y - seam)};
}

/// A matrix, or a tile of one, on screen.
struct TilingScene::Grid {
  ImVec2 min, max;
  int rows = 1, columns = 1;

  ImVec2 cell() const {
    return at((max.x - min.x) / static_cast<float>(columns),
              (max.y - min.y) / static_cast<float>(rows));
  }
  /// Top left corner of an element.
  ImVec2 corner(int row, int column) const {
    return at(min.x + cell().x * static_cast<float>(column),
              min.y + cell().y * static_cast<float>(row));
  }
  /// The element under `point`, as row·columns + column; −1: none.
  int element_at(ImVec2 point) const {
    if (!inside(point, min, max)) return -1;
    const int column = static_cast<int>((point.x - min.x) / cell().x);
    const int row = static_cast<int>((point.y - min.y) / cell().y);
    return (row < rows ? row : rows - 1) * columns + (column < columns ? column : columns - 1);
  }
};

struct TilingScene::Layout : Frame {
  explicit Layout(const Frame& frame) : Frame(frame) {}

  Grid a, b, c;           ///< the matrices
  Grid tile_a, tile_b;    ///< the tiles in shared memory
  Grid block;             ///< C's block
  Grid naive_a, naive_b;  ///< the same tiles as `naive` loads them, small
  ImVec2 naive_label;
  bool naive_shown = false;   ///< false where there is no room, or the picture is naive's own
  float wall = 0, gap = 0;    ///< a barrier's thickness, and what is free on either side of it
  ImVec2 bars_min, bars_max;  ///< global loads so far
  ImVec2 formula_min, formula_max;
};

}  // namespace tilestep::scenes

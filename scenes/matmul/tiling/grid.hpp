#pragma once

#include <cmath>
#include <cstdint>

#include "scenes/matmul/tiling/scene.hpp"
#include "scenes/picture/parts.hpp"

namespace tilestep::scenes {

/// Tones of A, B, C and `naive`: sky, purple, green, magenta.
inline constexpr std::uint8_t kOfA = 5, kOfB = 4, kOfC = 3, kOfNaive = 10;

/// A matrix or a tile of one, filled in cell by cell.
struct TilingGrid : picture::Cells {
  TilingGrid(picture::Name name, int rows, int columns_, picture::Name x_ = {},
             picture::Name y_ = {}, picture::Name scale_ = {}) {
    items = picture::items(name, rows * columns_);
    items.per_row = columns = columns_;
    items.format = {picture::Format::integer};
    x = x_;
    y = y_;
    scale = scale_;
    widest = 5;
  }
  void add(picture::State state, std::uint8_t tone, float value = NAN,
           const picture::Way& way = {}) {
    items.state.each.push_back(state);
    items.tone.each.push_back(tone);
    items.value.each.push_back(value);
    items.ways.push_back(way);
  }
};

}  // namespace tilestep::scenes

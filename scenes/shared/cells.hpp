#pragma once

#include <fmt/format.h>

#include <span>
#include <string>

#include "scenes/shared/strokes.hpp"

namespace tilestep::scenes {

/// A row of cells that fills `frame`: the numbers that threads, lanes or slots hold, written where there
/// is room; the first `lit` are current. In the map they are `cell_0`, `cell_1`, …
inline void draw_cells(const Frame& frame, std::span<const float> numbers, int lit) {
  const float width = frame.width() / static_cast<float>(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const ImVec2 min = at(frame.min.x + width * static_cast<float>(i), frame.min.y);
    const ImVec2 max = at(min.x + width - seam_of(width), frame.max.y);
    const ui::Role role = static_cast<int>(i) < lit ? ui::Role::accent : ui::Role::raised;
    const std::string text = fmt::format("{}", numbers[i]);
    fill(min, max, role);
    draw_inside(min, max, text, ui::readable_on(ui::color(role)));
    ui::map(fmt::format("cell_{}", i), "", text, min, max, {0, frame.note});
  }
}

}  // namespace tilestep::scenes

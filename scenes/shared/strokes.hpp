#pragma once

#include <cmath>

#include "scenes/ui/ui.hpp"

/// The few strokes that every picture is made of, in roles.
namespace tilestep::scenes {

inline ImVec2 at(float x, float y) {
  return {x, y};
}

inline ImDrawList* draw_list() {
  return ImGui::GetWindowDrawList();
}

/// A broken algorithm's numbers may have no place; ImGui draws no such thing.
inline bool has_place(ImVec2 min, ImVec2 max) {
  return std::isfinite(min.x + min.y + max.x + max.y);
}

inline void fill(ImVec2 min, ImVec2 max, ui::Role role, float alpha = 1.0f) {
  if (!has_place(min, max)) return;
  draw_list()->AddRectFilled(min, max, ui::color(role, alpha), ui::px(2));
}

inline void outline(ImVec2 min, ImVec2 max, ui::Role role, float thickness = 1.0f,
                    float alpha = 1.0f) {
  if (!has_place(min, max)) return;
  draw_list()->AddRect(min, max, ui::color(role, alpha), ui::px(2), 0, ui::px(thickness));
}

inline void line(ImVec2 from, ImVec2 to, ui::Role role, float thickness = 1.0f,
                 float alpha = 1.0f) {
  draw_list()->AddLine(from, to, ui::color(role, alpha), ui::px(thickness));
}

inline bool inside(ImVec2 point, ImVec2 min, ImVec2 max) {
  return point.x >= min.x && point.x < max.x && point.y >= min.y && point.y < max.y;
}

}  // namespace tilestep::scenes

#pragma once

#include <cmath>
#include <string>

#include "scenes/ui/ui.hpp"

/// The few strokes of the plots that a lesson draws itself under Measured, in roles.
namespace tilestep::scenes {

inline ImVec2 at(float x, float y) {
  return {x, y};
}

inline ImDrawList* draw_list() {
  return ImGui::GetWindowDrawList();
}

inline void area(ImVec2 min, ImVec2 max, ui::Role role, float alpha = 1.0f) {
  draw_list()->AddRectFilled(min, max, ui::color(role, alpha));
}

inline void fill(ImVec2 min, ImVec2 max, ui::Role role) {
  draw_list()->AddRectFilled(min, max, ui::color(role), ui::px(2));
}

inline void outline(ImVec2 min, ImVec2 max, ui::Role role) {
  draw_list()->AddRect(min, max, ui::color(role), ui::px(2), 0, ui::px(1));
}

inline float height_of(ui::Font font) {
  return ui::text_size("0", font).y;
}

/// Text in the middle of a rectangle if it fits.
inline void draw_inside(ImVec2 min, ImVec2 max, const std::string& text, ImU32 ink) {
  const ImVec2 size = ui::text_size(text, ui::Font::mono_note);
  if (size.x > max.x - min.x - ui::px(2) || size.y > max.y - min.y + ui::px(3)) return;
  draw_list()->AddText(
      ui::font(ui::Font::mono_note), size.y,
      at(std::round((min.x + max.x - size.x) / 2), std::round((min.y + max.y - size.y) / 2)), ink,
      text.data(), text.data() + text.size());
}

}  // namespace tilestep::scenes

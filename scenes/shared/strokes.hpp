#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "scenes/ui/ui.hpp"

/// The few strokes that every picture is made of, in roles.
namespace tilestep::scenes {

inline ImVec2 at(float x, float y) {
  return {x, y};
}

inline ImDrawList* draw_list() {
  return ImGui::GetWindowDrawList();
}

/// Without rounded corners: what stands close to its neighbours.
inline void area(ImVec2 min, ImVec2 max, ui::Role role, float alpha = 1.0f, float corner = 0) {
  draw_list()->AddRectFilled(min, max, ui::color(role, alpha), ui::px(corner));
}

inline void fill(ImVec2 min, ImVec2 max, ui::Role role, float alpha = 1.0f) {
  area(min, max, role, alpha, 2);
}

inline void outline(ImVec2 min, ImVec2 max, ui::Role role, float thickness = 1.0f,
                    float alpha = 1.0f) {
  draw_list()->AddRect(min, max, ui::color(role, alpha), ui::px(2), 0, ui::px(thickness));
}

inline void line(ImVec2 from, ImVec2 to, ui::Role role, float thickness = 1.0f,
                 float alpha = 1.0f) {
  draw_list()->AddLine(from, to, ui::color(role, alpha), ui::px(thickness));
}

/// What is followed: a dark seam round the accent keeps it visible on every colour.
inline void draw_frame(ImVec2 min, ImVec2 max) {
  outline(min, max, ui::Role::background, 4.5f);
  outline(min, max, ui::Role::accent, 2);
}

inline bool inside(ImVec2 point, ImVec2 min, ImVec2 max) {
  return point.x >= min.x && point.x < max.x && point.y >= min.y && point.y < max.y;
}

inline float height_of(ui::Font font) {
  return ui::text_size("0", font).y;
}

/// What is left free between cells of this size; small ones have no seam.
inline float seam_of(float cell) {
  return cell >= ui::px(7) ? std::max(1.0f, std::round(ui::px(1))) : 0.0f;
}

/// Text in the middle of a rectangle if it fits. Returns true if it did.
inline bool draw_inside(ImVec2 min, ImVec2 max, const std::string& text, ImU32 ink) {
  const ImVec2 size = ui::text_size(text, ui::Font::mono_note);
  if (size.x > max.x - min.x - ui::px(2) || size.y > max.y - min.y + ui::px(3)) return false;
  draw_list()->AddText(
      ui::font(ui::Font::mono_note), size.y,
      at(std::round((min.x + max.x - size.x) / 2), std::round((min.y + max.y - size.y) / 2)), ink,
      text.data(), text.data() + text.size());
  return true;
}

/// The room that a picture has, and what follows from its height.
struct Frame {
  ImVec2 min, max;
  bool tight = false;  ///< little height: small type, small gaps
  ui::Font heading = ui::Font::section;
  float note = 0;  ///< height of a line of notes

  float width() const { return max.x - min.x; }
  float height() const { return max.y - min.y; }
};

/// What is left of the current window; tight below `tight_below` design pixels.
inline Frame picture_frame(float tight_below = 360) {
  Frame frame;
  frame.min = ImGui::GetCursorScreenPos();
  const ImVec2 size = ImGui::GetContentRegionAvail();
  frame.max = at(frame.min.x + size.x, frame.min.y + size.y);
  frame.tight = size.y < ui::px(tight_below);
  frame.heading = frame.tight ? ui::Font::body_bold : ui::Font::section;
  frame.note = height_of(ui::Font::note);
  return frame;
}

/// What happens, in one sentence above the picture, in the largest type from the heading's down in
/// which it fits. Returns its height.
inline float draw_sentence(const Frame& frame, const std::string& text) {
  ui::Font font = frame.heading;
  for (const ui::Font smaller : {ui::Font::body_bold, ui::Font::note}) {
    if (ui::text_size(text, font).x > frame.width()) font = smaller;
  }
  const std::string shown = ui::fitted(text, font, frame.width());
  const float height = height_of(frame.heading);
  const ImVec2 place = at(frame.min.x, frame.min.y + (height - height_of(font)) / 2);
  const ImVec2 size = ui::draw_text(place, shown, font);
  ui::map("sentence", shown, "", place, at(place.x + size.x, place.y + size.y));
  return height;
}

}  // namespace tilestep::scenes

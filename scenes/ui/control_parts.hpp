#pragma once

#include <optional>
#include <string_view>

/// Pieces that the controls of this folder share.
namespace tilestep::ui {

/// Shows the hand pointer while the last item is hovered.
void use_hand();

struct SliderLook {
  int ticks = 0;  ///< marks at whole steps; drawn while there is room
  float knob_radius = 7;
  bool nudges = true;  ///< ← and → are its own while it has the focus
};
struct SliderMove {
  std::optional<float> to;  ///< while it is dragged
  int nudges = 0;           ///< by keys, to the right; −n: to the left
};
/// A slider over 0–1, `width` real pixels wide.
SliderMove slider(std::string_view id, float share, float width, const SliderLook& look = {});
/// An on-off switch; returns true when pressed.
bool toggle_switch(std::string_view id, bool on);

}  // namespace tilestep::ui

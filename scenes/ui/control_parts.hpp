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
};
/// A slider over 0–1, `width` real pixels wide. Returns the new place while it is dragged.
std::optional<float> slider(std::string_view id, float share, float width,
                            const SliderLook& look = {});
/// An on-off switch; returns true when pressed.
bool toggle_switch(std::string_view id, bool on);

}  // namespace tilestep::ui

#pragma once

#include "scenes/ui/ui.hpp"

/// The one place that holds the visual language: colours, type sizes, spacing.
namespace tilestep::ui {

using picture::kRoleCount;
inline constexpr int kFontCount = static_cast<int>(Font::mono_large) + 1;

// The 8-pixel grid, in design pixels.
inline constexpr float kGapSmall = 8;
inline constexpr float kGap = 16;
inline constexpr float kGapLarge = 24;
inline constexpr float kCorner = 8;         ///< of panels
inline constexpr float kControlCorner = 6;  ///< of buttons and fields
inline constexpr float kControlHeight = 32;
/// How much larger everything is in presenter mode.
inline constexpr float kPresenterScale = 1.5f;

/// The colour of `role` in a theme, opaque.
ImU32 palette(ThemeKind theme, Role role);
/// The colour of text in `role`: `palette`'s, moved towards the text's own until it has 4.5:1 on panels, on
/// controls and, but for what is to come, on the tint of what is current.
ImU32 ink(ThemeKind theme, Role role);
/// In the current theme, at the current opacity.
ImU32 ink(Role role, float alpha = 1.0f);
/// The contrast ratio of two opaque colours, 1–21 (WCAG 2.1, relative luminance of sRGB).
float contrast(ImU32 a, ImU32 b);
/// `a` and `b` mixed; t = 0 gives `a`. Alpha is mixed too.
ImU32 mixed(ImU32 a, ImU32 b, float t);
/// `color` with its alpha multiplied.
ImU32 faded(ImU32 color, float alpha);
/// The em size of a font in design pixels.
float em_size(Font font);
bool is_mono(Font font);
/// Sets Dear ImGui's own style (scrollbars, popups, text fields) to the theme.
void apply_style(ThemeKind theme, float scale);

}  // namespace tilestep::ui

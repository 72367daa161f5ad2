#pragma once

#include <cstdint>

namespace tilestep::picture {

/// What a colour is for. Who draws has one for each; nobody else names colours.
enum class Role : std::uint8_t {
  background,  ///< behind everything
  panel,       ///< the panels
  raised,      ///< controls, cells
  border,      ///< hairlines round panels and cells
  grid,        ///< grid lines of plots
  text,
  muted,   ///< labels, notes: still readable at 4.5:1
  faint,   ///< what is to come
  accent,  ///< current, the one accent colour
  on_accent,
  good,
  wrong,   ///< red, always with a cross
  wasted,  ///< hatched
  // Okabe–Ito, for categories: the tones 1–7
  blue,
  orange,
  green,
  purple,
  sky,
  vermillion,
  yellow,
};
inline constexpr int kRoleCount = static_cast<int>(Role::yellow) + 1;

}  // namespace tilestep::picture

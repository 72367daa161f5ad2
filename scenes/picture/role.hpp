#pragma once

#include <cstdint>

namespace tilestep::picture {

/// The purpose of a colour. Each renderer has a colour per role; nothing else names colours.
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
  // The tones 1–11: Okabe–Ito, and four more for categories
  blue,
  orange,
  green,
  purple,
  sky,
  vermillion,
  yellow,
  olive,
  brown,
  magenta,
  stark,  ///< the lightest on dark panels, the darkest on white ones
};
inline constexpr int kRoleCount = static_cast<int>(Role::stark) + 1;
inline constexpr int kToneCount = kRoleCount - static_cast<int>(Role::blue);

/// Up to this many numbered things (requests, experts, k-tiles) have a tone each. The tones can be told apart with
/// red-green colour blindness too; none resembles `current` or `wrong`.
inline constexpr int kCategories = 8;
/// The tone of thing `number` of `of`; none if `of` exceeds eight, since tones would repeat.
constexpr std::uint8_t category_tone(int number, int of = kCategories) {
  // The last two are those of m and ℓ.
  constexpr std::uint8_t kTones[kCategories] = {3, 10, 1, 11, 8, 9, 5, 4};
  return of > kCategories || number < 0 || number >= kCategories ? std::uint8_t{0} : kTones[number];
}

}  // namespace tilestep::picture

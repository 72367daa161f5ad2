#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scenes/ui/theme.hpp"

/// The font files that the window's fonts are made from.
namespace tilestep::ui {

/// A font file in memory.
struct FontFace {
  std::string_view bytes;
  /// Line height by em size. ImGui sizes a font by its line height, designers by its em.
  float line_per_em = 1;
};

/// The face of `font`: from the folder that the environment variable TILESTEP_FONTS names, where it
/// holds a usable file of that name (Inter-Regular, Inter-SemiBold, InterDisplay-SemiBold or
/// JetBrainsMono-Regular, .otf or .ttf), else the one built into the program. No other font of the
/// system is looked at, so that the window looks the same everywhere.
const FontFace& font_face(Font font);

/// Whether `bytes` are an OpenType font by their tables; says why not in `reason`.
std::optional<FontFace> checked_face(std::string_view bytes, std::string& reason);
/// The same, and the rasterizer takes it too.
std::optional<FontFace> usable_face(std::string_view bytes, std::string& reason);

}  // namespace tilestep::ui

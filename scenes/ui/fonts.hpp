#pragma once

#include <array>
#include <string>

#include "scenes/ui/theme.hpp"
#include "scenes/ui/ui.hpp"

namespace tilestep::ui {

/// The fonts of one atlas, one ImFont for each ui::Font.
class FontSet {
 public:
  /// (Re)builds the fonts for `scale` real pixels a design pixel. Inter and JetBrains Mono are
  /// looked for in the folders of TILESTEP_FONTS and in the usual ones; where they are missing,
  /// Dear ImGui's own font stands in. Returns true if the atlas changed.
  bool build(ImFontAtlas& atlas, float scale);
  ImFont* font(Font font) const { return fonts_[static_cast<std::size_t>(font)]; }
  /// Line height in real pixels, the size that ImDrawList::AddText takes.
  float pixels(Font font) const { return pixels_[static_cast<std::size_t>(font)]; }

 private:
  std::array<ImFont*, kFontCount> fonts_{};
  std::array<float, kFontCount> pixels_{};
  const ImFontAtlas* atlas_ = nullptr;
  float scale_ = 0;
};

}  // namespace tilestep::ui

#pragma once

#include <array>
#include <string>
#include <vector>

#include "scenes/ui/theme.hpp"
#include "scenes/ui/ui.hpp"

namespace tilestep::ui {

/// The fonts of one atlas, one ImFont for each ui::Font.
class FontSet {
 public:
  /// (Re)builds the fonts for `scale` real pixels per design pixel from the faces of
  /// font_faces.hpp. Returns true if the atlas changed.
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

/// The source of a font family in use.
struct FontSource {
  std::string family;   ///< "Inter SemiBold"
  std::string path;     ///< of the user's own file; empty if it is the one built in
  std::string refused;  ///< why the user's own file is not used, in a sentence; else empty
};
std::vector<FontSource> font_sources();

}  // namespace tilestep::ui

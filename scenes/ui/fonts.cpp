#include "scenes/ui/fonts.hpp"

#include <cmath>

#include "scenes/ui/font_faces.hpp"

#ifdef TILESTEP_IMGUI_FREETYPE
#include <imgui_freetype.h>
#endif

namespace tilestep::ui {
namespace {

// Latin, Greek, and the signs that formulas use: super- and subscripts, arrows, operators.
constexpr ImWchar kGlyphs[] = {
    0x0020, 0x007E, 0x00A0, 0x00FF, 0x0100, 0x017F, 0x02C6, 0x02C6, 0x02DC, 0x02DC, 0x0391,
    0x03C9, 0x1D40, 0x1D40, 0x1D48, 0x1D48, 0x1D62, 0x1D65, 0x2010, 0x2015, 0x2018, 0x201E,
    0x2020, 0x2022, 0x2026, 0x2026, 0x2030, 0x2033, 0x2039, 0x203A, 0x2070, 0x2071, 0x2074,
    0x208E, 0x2090, 0x209C, 0x20AC, 0x20AC, 0x2113, 0x2113, 0x2190, 0x2195, 0x21A6, 0x21A6,
    0x21D0, 0x21D4, 0x2200, 0x2200, 0x2202, 0x2203, 0x2205, 0x2209, 0x220F, 0x220F, 0x2211,
    0x2213, 0x2218, 0x221A, 0x221D, 0x221E, 0x2225, 0x222B, 0x2248, 0x2248, 0x2260, 0x2261,
    0x2264, 0x2265, 0x226A, 0x226B, 0x2282, 0x2283, 0x2295, 0x2299, 0x22C5, 0x22C5, 0x2308,
    0x230B, 0x2500, 0x2502, 0x25A0, 0x25A1, 0x25B2, 0x25B6, 0x25BC, 0x25C0, 0x25CB, 0x25CF,
    0x2605, 0x2606, 0x2713, 0x2717, 0x27E8, 0x27E9, 0x2C7C, 0x2C7C, 0};

ImFont* add_face(ImFontAtlas& atlas, const FontFace& face, float size, bool merge) {
  ImFontConfig config;
  config.MergeMode = merge;
  config.FontDataOwnedByAtlas = false;
  config.OversampleH = 2;
  config.OversampleV = 1;
  config.PixelSnapH = true;
  config.GlyphRanges = kGlyphs;
#if defined(TILESTEP_IMGUI_FREETYPE)
  config.FontBuilderFlags = ImGuiFreeTypeBuilderFlags_LightHinting;
#endif
  // With FontDataOwnedByAtlas off the atlas only reads the bytes.
  return atlas.AddFontFromMemoryTTF(const_cast<char*>(face.bytes.data()),
                                    static_cast<int>(face.bytes.size()), size, &config);
}

ImFont* add_font(ImFontAtlas& atlas, Font font, float scale, float& pixels) {
  const float em = em_size(font) * scale;
  const FontFace& face = font_face(font);
  pixels = std::round(em * face.line_per_em);
  ImFont* added = add_face(atlas, face, pixels, false);
  // Signs that the face lacks come from the other family, with the same em.
  const FontFace& spare = font_face(is_mono(font) ? Font::body : Font::mono);
  add_face(atlas, spare, std::round(em * spare.line_per_em), true);
  return added;
}

/// FreeType's rasterizer, where the program was built with it.
void use_font_builder(ImFontAtlas& atlas) {
#if defined(TILESTEP_IMGUI_FREETYPE)
  atlas.FontBuilderIO = ImGuiFreeType::GetBuilderForFreeType();
#else
  (void)atlas;
#endif
}

}  // namespace

bool FontSet::build(ImFontAtlas& atlas, float scale) {
  if (atlas_ == &atlas && scale_ == scale && atlas.Fonts.Size > 0) return false;
  atlas.Clear();
  use_font_builder(atlas);
  atlas.Flags |= ImFontAtlasFlags_NoMouseCursors;
#if IMGUI_VERSION_NUM < 19200
  atlas.TexDesiredWidth = scale > 1.4f ? 4096 : 2048;
#endif
  // The text font comes first: ImGui takes the first as its default.
  for (const Font font : {Font::body, Font::note, Font::body_bold, Font::section, Font::title,
                          Font::mono_note, Font::mono, Font::mono_large}) {
    const auto index = static_cast<std::size_t>(font);
    fonts_[index] = add_font(atlas, font, scale, pixels_[index]);
  }
#if IMGUI_VERSION_NUM < 19200
  atlas.Build();
#endif
  atlas_ = &atlas;
  scale_ = scale;
  return true;
}

}  // namespace tilestep::ui

#include "scenes/ui/fonts.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#ifdef TILESTEP_IMGUI_FREETYPE
#include <imgui_freetype.h>
#endif

namespace tilestep::ui {
namespace {

namespace fs = std::filesystem;

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

std::vector<fs::path> font_folders() {
  std::vector<fs::path> folders;
  if (const char* own = std::getenv("TILESTEP_FONTS")) folders.emplace_back(own);
  if (const char* home = std::getenv("HOME")) {
    folders.push_back(fs::path(home) / ".local/share/fonts");
    folders.push_back(fs::path(home) / ".fonts");
    folders.push_back(fs::path(home) / "Library/Fonts");
  }
  for (const char* shared : {"/usr/share/fonts", "/usr/local/share/fonts", "/Library/Fonts"}) {
    folders.emplace_back(shared);
  }
  return folders;
}

/// Paths of all font files of the folders by file name; the first folder that has a name wins.
std::map<std::string, fs::path> find_font_files() {
  std::map<std::string, fs::path> files;
  for (const fs::path& folder : font_folders()) {
    std::error_code failed;
    const auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator entry(folder, options, failed), end;
         !failed && entry != end; entry.increment(failed)) {
      const fs::path& path = entry->path();
      const std::string kind = path.extension().string();
      if (kind == ".ttf" || kind == ".otf") files.emplace(path.filename().string(), path);
    }
  }
  return files;
}

std::uint32_t big_endian(const std::string& bytes, std::size_t at, std::size_t count) {
  if (at + count > bytes.size()) return 0;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    value = (value << 8) | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

/// A font file in memory.
struct Face {
  std::string path;
  std::string bytes;
  /// Line height by em size. ImGui sizes a font by its line height, designers by its em.
  float line_per_em = 1;
};

/// The offset of a table of an OpenType file (OpenType 1.9, "Font file"), or 0.
std::size_t table_offset(const std::string& bytes, std::string_view tag) {
  const std::size_t tables = big_endian(bytes, 4, 2);
  for (std::size_t i = 0; i < tables; ++i) {
    const std::size_t record = 12 + 16 * i;
    if (bytes.compare(record, 4, tag) == 0) return big_endian(bytes, record + 8, 4);
  }
  return 0;
}

std::optional<Face> load_face(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  Face face{path.string(), std::string(std::istreambuf_iterator<char>(file), {}), 1};
  if (face.bytes.size() < 12) return std::nullopt;
  const std::size_t head = table_offset(face.bytes, "head");
  const std::size_t hhea = table_offset(face.bytes, "hhea");
  const std::uint32_t units = head == 0 ? 0 : big_endian(face.bytes, head + 18, 2);
  if (units == 0 || hhea == 0) return std::nullopt;
  const auto ascent = static_cast<std::int16_t>(big_endian(face.bytes, hhea + 4, 2));
  const auto descent = static_cast<std::int16_t>(big_endian(face.bytes, hhea + 6, 2));
  face.line_per_em = static_cast<float>(ascent - descent) / static_cast<float>(units);
  return face;
}

/// The faces in use, loaded once a process.
struct Faces {
  std::optional<Face> text, bold, title, mono, spare, spare_mono;
};

const Faces& faces() {
  static const Faces loaded = [] {
    const auto files = find_font_files();
    const auto first = [&](std::initializer_list<const char*> names) -> std::optional<Face> {
      for (const char* name : names) {
        const auto found = files.find(name);
        if (found == files.end()) continue;
        if (auto face = load_face(found->second)) return face;
      }
      return std::nullopt;
    };
    Faces all;
    all.text = first({"Inter-Regular.otf", "Inter-Regular.ttf"});
    all.bold = first({"Inter-SemiBold.otf", "Inter-SemiBold.ttf", "Inter-Bold.otf",
                      "Inter-Bold.ttf", "Inter-Regular.otf", "Inter-Regular.ttf"});
    all.title = first({"InterDisplay-SemiBold.otf", "InterDisplay-SemiBold.ttf",
                       "Inter-SemiBold.otf", "Inter-SemiBold.ttf"});
    if (!all.title) all.title = all.bold;
    all.mono = first({"JetBrainsMono-Regular.ttf", "JetBrainsMono-Regular.otf",
                      "DejaVuSansMono.ttf", "LiberationMono-Regular.ttf"});
    all.spare = first({"DejaVuSans.ttf", "NotoSans-Regular.ttf", "LiberationSans-Regular.ttf"});
    all.spare_mono = first({"DejaVuSansMono.ttf"});
    return all;
  }();
  return loaded;
}

const std::optional<Face>& face_of(Font font) {
  const Faces& all = faces();
  if (is_mono(font)) return all.mono;
  if (font == Font::title) return all.title ? all.title : all.spare;
  if (font == Font::body_bold || font == Font::section) return all.bold ? all.bold : all.spare;
  return all.text ? all.text : all.spare;
}

ImFont* add_face(ImFontAtlas& atlas, const Face& face, float size, bool merge) {
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
  const std::optional<Face>& face = face_of(font);
  if (!face) {
    ImFontConfig config;
    config.SizePixels = std::round(em);
    pixels = config.SizePixels;
    return atlas.AddFontDefault(&config);
  }
  pixels = std::round(em * face->line_per_em);
  ImFont* added = add_face(atlas, *face, pixels, false);
  // Signs that the face lacks come from another one of the same em.
  const Faces& all = faces();
  for (const std::optional<Face>* spare :
       {is_mono(font) ? &all.spare_mono : &all.mono, &all.spare}) {
    if (*spare && &*spare != &face) {
      add_face(atlas, **spare, std::round(em * (*spare)->line_per_em), true);
    }
  }
  return added;
}

std::string line_for(std::string_view family, const std::optional<Face>& face,
                     std::string_view file_start) {
  if (face && fs::path(face->path).filename().string().starts_with(file_start)) {
    return fmt::format("{}: {}", family, face->path);
  }
  return fmt::format("{}: not found, {} stands in; install it or name its folder in TILESTEP_FONTS",
                     family,
                     face ? fs::path(face->path).filename().string() : "Dear ImGui's own font");
}

}  // namespace

bool FontSet::build(ImFontAtlas& atlas, float scale) {
  if (atlas_ == &atlas && scale_ == scale && atlas.Fonts.Size > 0) return false;
  atlas.Clear();
#if defined(TILESTEP_IMGUI_FREETYPE)
  atlas.FontBuilderIO = ImGuiFreeType::GetBuilderForFreeType();
#endif
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

std::string font_report() {
  return line_for("Inter", faces().text ? faces().text : faces().spare, "Inter") + "\n" +
         line_for("JetBrains Mono", faces().mono, "JetBrainsMono");
}

}  // namespace tilestep::ui

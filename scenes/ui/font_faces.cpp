#include "scenes/ui/font_faces.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <ft2build.h>
#include <sys/stat.h>
#include <unistd.h>
#include FT_FREETYPE_H

#include <array>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <type_traits>

#include "scenes/ui/fonts.hpp"

// The files themselves, embedded by fonts.cmake.
extern "C" {
extern const char tilestep_inter_regular[], tilestep_inter_regular_end[];
extern const char tilestep_inter_semibold[], tilestep_inter_semibold_end[];
extern const char tilestep_inter_title[], tilestep_inter_title_end[];
extern const char tilestep_mono[], tilestep_mono_end[];
}

namespace tilestep::ui {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderVariable = "TILESTEP_FONTS";
constexpr std::size_t kMostBytes = 32 << 20;
constexpr float kMostLinePerEm = 4;  ///< the built-in ones have 1.2 and 1.3

std::uint32_t big_endian(std::string_view bytes, std::size_t at, std::size_t count) {
  if (at > bytes.size() || count > bytes.size() - at) return 0;
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    value = (value << 8) | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

/// A table of an OpenType file (OpenType 1.9, "Font file"); empty if it is not there or reaches
/// beyond the end.
std::string_view table_of(std::string_view bytes, std::string_view tag) {
  const std::size_t tables = big_endian(bytes, 4, 2);
  for (std::size_t i = 0; i < tables; ++i) {
    const std::size_t record = 12 + 16 * i;
    if (record + 16 > bytes.size()) break;
    if (bytes.substr(record, 4) != tag) continue;
    const std::size_t offset = big_endian(bytes, record + 8, 4);
    const std::size_t length = big_endian(bytes, record + 12, 4);
    if (offset > bytes.size() || length > bytes.size() - offset) return {};
    return bytes.substr(offset, length);
  }
  return {};
}

/// Why the letters cannot be drawn: the header may be right and the glyphs broken or not there, for which
/// Dear ImGui has only assertions. Empty if they can.
std::string fault_of_letters(std::string_view bytes) {
  constexpr int kPixels = 16, kMostPixels = 8 * kPixels;
  using Library = std::unique_ptr<std::remove_pointer_t<FT_Library>, decltype(&FT_Done_FreeType)>;
  using Face = std::unique_ptr<std::remove_pointer_t<FT_Face>, decltype(&FT_Done_Face)>;
  FT_Library made = nullptr;
  if (FT_Init_FreeType(&made) != 0) return "FreeType cannot be started";
  const Library library(made, &FT_Done_FreeType);
  FT_Face opened = nullptr;
  if (FT_New_Memory_Face(made, reinterpret_cast<const FT_Byte*>(bytes.data()),
                         static_cast<FT_Long>(bytes.size()), 0, &opened) != 0) {
    return "FreeType rejects it";
  }
  const Face face(opened, &FT_Done_Face);
  if (FT_Select_Charmap(opened, FT_ENCODING_UNICODE) != 0) return "it names no Unicode letters";
  if (FT_Set_Pixel_Sizes(opened, 0, kPixels) != 0) return "it has no outlines";
  for (char letter = '!'; letter <= '~'; ++letter) {
    const FT_UInt index = FT_Get_Char_Index(opened, static_cast<FT_ULong>(letter));
    if (index == 0) return fmt::format("it has no '{}'", letter);
    if (FT_Load_Glyph(opened, index, FT_LOAD_NO_BITMAP) != 0 ||
        FT_Render_Glyph(opened->glyph, FT_RENDER_MODE_NORMAL) != 0) {
      return fmt::format("its '{}' cannot be drawn", letter);
    }
    const FT_Bitmap& bitmap = opened->glyph->bitmap;
    if (bitmap.width > kMostPixels || bitmap.rows > kMostPixels) {
      return fmt::format("its '{}' is larger than a letter", letter);
    }
  }
  return {};
}

/// A whole regular file. Nothing is read from anything else: a pipe would block for ever.
std::optional<std::string> read_font_file(const fs::path& path, std::string& reason) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    reason = std::strerror(errno);
    return std::nullopt;
  }
  struct ::stat status {};
  std::string bytes;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    reason = "it is not a file";
  } else if (static_cast<std::uintmax_t>(status.st_size) > kMostBytes) {
    reason = fmt::format("it is larger than {} MiB", kMostBytes >> 20);
  } else {
    bytes.resize(static_cast<std::size_t>(status.st_size));
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t count = ::read(fd, bytes.data() + done, bytes.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      done += static_cast<std::size_t>(count);
    }
    if (done < bytes.size()) reason = "it cannot be read to its end";
  }
  ::close(fd);
  if (!reason.empty()) return std::nullopt;
  return bytes;
}

/// One of the four files, as it is used in this process.
struct LoadedFace {
  std::string family;
  std::string read;     ///< the bytes of a named file
  std::string source;   ///< path of the named file; empty if built in
  std::string refused;  ///< why a named file is not used; empty if there is none
  FontFace face;
};

LoadedFace load(std::string_view family, std::string_view name, std::string_view built_in) {
  LoadedFace loaded;
  loaded.family = family;
  std::string reason;
  const auto own = checked_face(built_in, reason);
  assert(own);
  loaded.face = *own;
  const char* folder = std::getenv(kFolderVariable);
  if (folder == nullptr || *folder == '\0') return loaded;
  for (const char* kind : {".otf", ".ttf"}) {
    const fs::path path = fs::path(folder) / (std::string(name) + kind);
    std::error_code failed;
    if (!fs::exists(path, failed)) continue;
    reason.clear();
    auto bytes = read_font_file(path, reason);
    const auto face = bytes ? usable_face(*bytes, reason) : std::nullopt;
    if (!face) {
      loaded.refused = fmt::format("{} cannot be used: {}", path.string(), reason);
      continue;
    }
    loaded.read = std::move(*bytes);
    loaded.face = {loaded.read, face->line_per_em};
    loaded.source = path.string();
    loaded.refused.clear();
    return loaded;
  }
  return loaded;
}

/// In the order regular, semibold, title, mono; loaded once a process.
const std::array<LoadedFace, 4>& faces() {
  const auto between = [](const char* begin, const char* end) {
    return std::string_view(begin, static_cast<std::size_t>(end - begin));
  };
  static const std::array<LoadedFace, 4> loaded = {
      load("Inter", "Inter-Regular", between(tilestep_inter_regular, tilestep_inter_regular_end)),
      load("Inter SemiBold", "Inter-SemiBold",
           between(tilestep_inter_semibold, tilestep_inter_semibold_end)),
      load("Inter Display SemiBold", "InterDisplay-SemiBold",
           between(tilestep_inter_title, tilestep_inter_title_end)),
      load("JetBrains Mono", "JetBrainsMono-Regular", between(tilestep_mono, tilestep_mono_end))};
  return loaded;
}

}  // namespace

std::optional<FontFace> checked_face(std::string_view bytes, std::string& reason) {
  const std::uint32_t kind = big_endian(bytes, 0, 4);
  constexpr std::uint32_t kTrueType = 0x00010000, kOpenType = 0x4F54544F;  // "OTTO"
  if (kind != kTrueType && kind != kOpenType) {
    reason = "it is no OpenType font";
    return std::nullopt;
  }
  const std::string_view head = table_of(bytes, "head"), hhea = table_of(bytes, "hhea");
  const std::string_view outlines = table_of(bytes, kind == kTrueType ? "glyf" : "CFF ");
  const std::uint32_t units = big_endian(head, 18, 2);
  const auto ascent = static_cast<std::int16_t>(big_endian(hhea, 4, 2));
  const auto descent = static_cast<std::int16_t>(big_endian(hhea, 6, 2));
  if (units == 0 || ascent <= descent || outlines.empty() || table_of(bytes, "cmap").empty() ||
      table_of(bytes, "hmtx").empty() || table_of(bytes, "maxp").empty()) {
    reason = "it is damaged or cut short";
    return std::nullopt;
  }
  const FontFace face{bytes, static_cast<float>(ascent - descent) / static_cast<float>(units)};
  if (face.line_per_em > kMostLinePerEm) {
    reason = "its lines are too high for its letters";
    return std::nullopt;
  }
  return face;
}

std::optional<FontFace> usable_face(std::string_view bytes, std::string& reason) {
  auto face = checked_face(bytes, reason);
  if (!face) return face;
  reason = fault_of_letters(bytes);
  if (!reason.empty()) face.reset();
  return face;
}

const FontFace& font_face(Font font) {
  if (is_mono(font)) return faces()[3].face;
  if (font == Font::title) return faces()[2].face;
  if (font == Font::body_bold || font == Font::section) return faces()[1].face;
  return faces()[0].face;
}

std::vector<FontSource> font_sources() {
  std::vector<FontSource> sources;
  for (const LoadedFace& face : faces()) {
    sources.push_back({face.family, face.source, face.refused});
  }
  return sources;
}

}  // namespace tilestep::ui

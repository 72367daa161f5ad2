#include <set>
#include <string>

#include "kernels/base/lab/assets.hpp"
#include "scenes/ui/font_faces.hpp"
#include "tests/catch.hpp"
#include "tests/scenes/scene_frame.hpp"

using namespace tilestep;
using ui::Font;

namespace {

std::string refusal(std::string_view bytes) {
  std::string reason;
  const auto face = ui::usable_face(bytes, reason);
  CHECK(face.has_value() == reason.empty());
  return reason;
}

/// The signs beyond ASCII of a UTF-8 text.
void add_signs(std::set<ImWchar>& signs, std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    unsigned point = lead & (0xFFu >> (length + 1));
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k) {
      point = point << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3Fu);
    }
    if (length > 1) signs.insert(static_cast<ImWchar>(point));
    i += length;
  }
}

bool has_glyph(ImFont* font, ImWchar sign) {
#if IMGUI_VERSION_NUM < 19200
  return font->FindGlyphNoFallback(sign) != nullptr;
#else
  return font->IsGlyphInFont(sign);
#endif
}

}  // namespace

TEST_CASE("the built-in fonts have every sign of the texts and of the kernels' sources", "[ui]") {
  std::set<ImWchar> signs;
  for (const lab::Asset& asset : lab::assets()) {
    if (asset.path.ends_with(".hpp")) continue;  // nobody sees them
    if (!asset.path.ends_with(".json")) add_signs(signs, asset.text);
  }
  REQUIRE(signs.contains(0x00B7));  // ·
  tests::SceneFrame frame;
  frame.draw({640, 480}, [&signs] {
    for (const Font font : {Font::body, Font::body_bold, Font::title, Font::mono}) {
      for (const ImWchar sign : signs) {
        INFO("U+" << std::hex << static_cast<unsigned>(sign));
        CHECK(has_glyph(ui::font(font), sign));
      }
    }
  });
}

TEST_CASE("a font file is checked before it is drawn with", "[ui]") {
  const std::string_view good = ui::font_face(Font::body).bytes;
  CHECK(refusal(good).empty());
  CHECK(refusal(ui::font_face(Font::mono).bytes).empty());
  CHECK(!refusal("").empty());
  CHECK(!refusal("OTTO").empty());
  CHECK(!refusal(std::string(100'000, 'x')).empty());
  // Wherever it is cut, some table is not whole any more.
  for (std::size_t length = 0; length < good.size() - 4; length += good.size() / 97) {
    INFO(length);
    CHECK(!refusal(good.substr(0, length)).empty());
  }
  // Tables that claim to lie beyond the end.
  std::string damaged(good);
  for (std::size_t i = 12; i < 12 + 16 * 8; ++i) damaged[i] = '\xFF';
  CHECK(!refusal(damaged).empty());
}

TEST_CASE("a font whose letters cannot be drawn is refused with the reason", "[ui]") {
  const std::string_view good = ui::font_face(Font::body).bytes;
  const auto table = [&](const char* tag) {
    const std::size_t record = good.find(tag);
    std::size_t offset = 0;
    for (std::size_t i = 8; i < 12; ++i) {
      offset = offset << 8 | static_cast<unsigned char>(good[record + i]);
    }
    return offset;
  };
  std::string scrambled(good);  // its outlines are noise
  for (std::size_t i = table("CFF ") + 200; i < table("CFF ") + 20'000; ++i) scrambled[i] = '\x8B';
  INFO(refusal(scrambled));
  CHECK(!refusal(scrambled).empty());
  std::string high(good);  // lines of 32,767 units
  high[table("hhea") + 4] = '\x7F';
  CHECK(refusal(high) == "its lines are too high for its letters");
}

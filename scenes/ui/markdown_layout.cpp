#include "scenes/ui/markdown_layout.hpp"

#include <algorithm>
#include <cmath>

#include "scenes/ui/context.hpp"
#include "scenes/ui/syntax.hpp"

namespace tilestep::ui::markdown_layout {
namespace {

/// How many bytes of `text` fit `width`: up to a sign after which a name may break, where there is one.
std::size_t fitting(std::string_view text, Font font, float width) {
  std::size_t fits = 0, at = 0;
  while (at < text.size()) {
    std::size_t next = at + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0u) == 0x80u) ++next;
    if (fits > 0 && text_size(text.substr(0, next), font).x > width) break;
    fits = at = next;
  }
  if (fits == text.size()) return fits;
  const std::size_t sign = text.substr(0, fits).find_last_of(" _-./");
  return sign == std::string_view::npos || sign == 0 ? fits : sign + 1;
}

}  // namespace

float measure(int characters) {
  constexpr std::string_view kSample =
      "the lanes of a warp ask for their sectors with one request, ";
  return text_size(kSample).x * static_cast<float>(characters) / static_cast<float>(kSample.size());
}

Font font_of(const MarkdownPiece& piece, Font base) {
  if (piece.code) return base == Font::body ? Font::mono : Font::mono_note;
  if (piece.bold && base == Font::body) return Font::body_bold;
  return base;
}

float padding(const MarkdownPiece& piece) {
  return piece.code ? px(6) : 0;
}

float piece_width(const MarkdownPiece& piece, Font base) {
  return text_size(piece.text, font_of(piece, base)).x + padding(piece);
}

bool chip(const MarkdownPiece& piece) {
  return is_chip(piece.link);
}

float chip_padding() {
  return px(10);
}

float word_width(const MarkdownWord& word, Font base) {
  float width = 0;
  for (std::size_t i = 0; i < word.size(); ++i) {
    width += piece_width(word[i], base);
    if (chip(word[i]) && (i == 0 || word[i - 1].link_number != word[i].link_number)) {
      width += 2 * chip_padding();
    }
  }
  return width;
}

MarkdownText breakable(const MarkdownText& text, float width, Font base) {
  MarkdownText made;
  for (const MarkdownWord& word : text) {
    made.emplace_back();
    const bool wide = word_width(word, base) > width;
    for (const MarkdownPiece& piece : word) {
      std::string_view rest = piece.text;
      while (wide && !chip(piece)) {
        const std::size_t fits = fitting(rest, font_of(piece, base), width - padding(piece));
        if (fits == rest.size()) break;
        made.back().push_back(piece);
        made.back().back().text = rest.substr(0, fits);
        made.emplace_back();
        rest.remove_prefix(fits);
      }
      made.back().push_back(piece);
      made.back().back().text = wide && chip(piece)
                                    ? fitted(rest, font_of(piece, base), width - 2 * chip_padding())
                                    : std::string(rest);
    }
  }
  return made;
}

std::vector<Line> lines_of(const MarkdownText& text, float width, int characters, Font base) {
  const float plain = std::round(font_pixels(base) * 1.25f), space = text_size(" ", base).x;
  std::vector<Line> lines = {{}};
  float x = 0;
  int count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const MarkdownWord& word = text[i];
    const float wide = word_width(word, base);
    int letters = 0;
    for (const MarkdownPiece& piece : word) letters += ui::characters(piece.text);
    if (word.empty() || (x > 0 && (x + wide > width || count + letters > characters))) {
      lines.push_back({i, i});
      x = 0;
      count = 0;
    }
    lines.back().end = i + 1;
    if (!word.empty()) x += wide + space;
    count += letters + 1;
  }
  float y = 0;
  for (Line& line : lines) {
    const auto holds_chip = [](const MarkdownWord& word) {
      return std::any_of(word.begin(), word.end(), chip);
    };
    const auto first = text.begin() + static_cast<std::ptrdiff_t>(line.begin);
    const auto last = text.begin() + static_cast<std::ptrdiff_t>(line.end);
    line.top = y;
    line.height = plain + (std::any_of(first, last, holds_chip) ? px(8) : 0);
    y += line.height;
  }
  return lines;
}

}  // namespace tilestep::ui::markdown_layout

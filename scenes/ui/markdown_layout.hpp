#pragma once

#include <cstddef>
#include <vector>

#include "scenes/ui/markdown_document.hpp"
#include "scenes/ui/ui.hpp"

/// Where the words of a Markdown text stand. Widths are real pixels.
namespace tilestep::ui::markdown_layout {

/// What a line of so many characters may hold, by the body font's average letter.
float measure(int characters);
Font font_of(const MarkdownPiece& piece, Font base);
/// Of a piece of code, both sides together.
float padding(const MarkdownPiece& piece);
float piece_width(const MarkdownPiece& piece, Font base);
bool chip(const MarkdownPiece& piece);
/// Of the pill round what a chip says, on each side.
float chip_padding();
float word_width(const MarkdownWord& word, Font base);

/// `text` with words that are wider than a line cut into several: code at its blanks, names at their signs; chips
/// are shortened.
MarkdownText breakable(const MarkdownText& text, float width, Font base);

/// Words of a text that stand on one line.
struct Line {
  std::size_t begin = 0, end = 0;
  float top = 0, height = 0;
};
/// Where the lines of `text` break at `width`, or after so many characters.
std::vector<Line> lines_of(const MarkdownText& text, float width, int characters, Font base);

}  // namespace tilestep::ui::markdown_layout

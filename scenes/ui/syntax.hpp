#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace tilestep::ui {

enum class Syntax { plain, keyword, cuda, number, string, comment };

/// Bytes `begin` to `end` of a source, on one line.
struct SyntaxSpan {
  std::size_t begin = 0, end = 0;
  int columns = 0;  ///< characters, not bytes
  Syntax kind = Syntax::plain;
};
struct SyntaxLine {
  std::size_t begin = 0, end = 0;
  int columns = 0;
  std::vector<SyntaxSpan> spans;  ///< cover the line
};

/// How many characters a text has.
int characters(std::string_view text);

/// Splits C++ or CUDA source into lines of spans: keywords, CUDA's own words, numbers, strings,
/// comments. A tint for reading, not a parser.
std::vector<SyntaxLine> tinted(std::string_view source);

}  // namespace tilestep::ui

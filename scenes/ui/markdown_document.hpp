#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilestep::ui {

/// A piece of text in one style.
struct MarkdownPiece {
  std::string text;
  bool bold = false, code = false, link = false;
  bool operator==(const MarkdownPiece&) const = default;
};
/// Pieces that stay together when a line wraps.
using MarkdownWord = std::vector<MarkdownPiece>;
/// An empty word is a forced line break.
using MarkdownText = std::vector<MarkdownWord>;

struct MarkdownBlock {
  enum class Kind { heading, paragraph, item, code, table, rule };
  Kind kind = Kind::paragraph;
  int level = 0;       ///< of a heading: 1–6
  int depth = 0;       ///< how many lists or quotes it stands in
  std::string marker;  ///< of an item: "•" or "2."
  MarkdownText text;
  std::string code;
  std::vector<std::vector<MarkdownText>> rows;  ///< of a table, the heading row first
  std::vector<bool> right;                      ///< of a table: columns aligned right
};

/// CommonMark with tables (md4c), as blocks that follow each other.
std::vector<MarkdownBlock> parse_markdown(std::string_view text);

}  // namespace tilestep::ui

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilestep::ui {

/// A piece of text in one style.
struct MarkdownPiece {
  std::string text;
  bool bold = false, code = false;
  std::string link = {};  ///< its target: "https://…", "try:stride=2", "light:m"; empty: none
  int link_number = -1;   ///< which link of the document it is part of
  int term = -1;  ///< of a term's first use: which of the phrases that `mark_terms` was given
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

/// CommonMark with tables (md4c), as consecutive blocks. Comments are omitted. The label of a `try:` link is
/// one word, which never breaks.
std::vector<MarkdownBlock> parse_markdown(std::string_view text);

/// Whether a link is drawn as a chip.
inline bool is_chip(std::string_view target) {
  return target.starts_with("try:");
}

/// Marks the first use of each phrase: whole words, a plural's s included, whatever their case; not in
/// headings, code or links. Where phrases overlap the longer one stands.
void mark_terms(std::vector<MarkdownBlock>& blocks, const std::vector<std::string>& phrases);

}  // namespace tilestep::ui

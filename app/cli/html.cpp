#include "app/cli/html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenes/ui/markdown_document.hpp"

namespace tilestep::app {
namespace {

using Block = ui::MarkdownBlock;

std::string styled(const ui::MarkdownPiece& piece) {
  std::string html = html_escaped(piece.text);
  if (piece.code) html = "<code>" + html + "</code>";
  if (piece.bold) html = "<strong>" + html + "</strong>";
  return html;
}

/// The pieces of a text one after the other; those of one link become one.
std::string text_html(const ui::MarkdownText& text, const HtmlLink& link) {
  std::string html, words, target;
  int open = -1;
  const auto close = [&] {
    if (open >= 0) html += link(target, words);
    words.clear();
    open = -1;
  };
  for (std::size_t w = 0; w < text.size(); ++w) {
    const ui::MarkdownWord& word = text[w];
    if (word.empty()) {
      close();
      html += "<br>\n";
      continue;
    }
    const bool space = w > 0 && !text[w - 1].empty();
    for (std::size_t p = 0; p < word.size(); ++p) {
      const ui::MarkdownPiece& piece = word[p];
      const bool goes_on = open >= 0 && piece.link_number == open;
      if (!goes_on) close();
      if (space && p == 0) (goes_on ? words : html) += ' ';
      if (piece.link.empty()) {
        html += styled(piece);
        continue;
      }
      open = piece.link_number;
      target = piece.link;
      words += styled(piece);
    }
  }
  close();
  return html;
}

std::string table_html(const Block& block, const HtmlLink& link) {
  std::string html = "<div class=\"scroll\"><table>\n";
  for (std::size_t r = 0; r < block.rows.size(); ++r) {
    html += "<tr>";
    for (std::size_t c = 0; c < block.rows[r].size(); ++c) {
      const bool right = c < block.right.size() && block.right[c];
      html += fmt::format("<{0}{1}>{2}</{0}>", r == 0 ? "th" : "td", right ? " class=\"n\"" : "",
                          text_html(block.rows[r][c], link));
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string item_html(const Block& block, const HtmlLink& link) {
  return fmt::format("<p class=\"item d{}\"><span>{}</span>{}</p>\n", std::max(block.depth, 1),
                     html_escaped(block.marker), text_html(block.text, link));
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string markdown_html(std::string_view markdown, int heading, const HtmlLink& link) {
  std::string html;
  for (const Block& block : ui::parse_markdown(markdown)) {
    switch (block.kind) {
      case Block::Kind::heading:
        html += fmt::format("<h{0}>{1}</h{0}>\n", std::clamp(block.level - 1 + heading, 1, 6),
                            text_html(block.text, link));
        break;
      case Block::Kind::paragraph:
        html += fmt::format("<p>{}</p>\n", text_html(block.text, link));
        break;
      case Block::Kind::item:
        html += item_html(block, link);
        break;
      case Block::Kind::code:
        html += fmt::format("<pre><code>{}</code></pre>\n", html_escaped(block.code));
        break;
      case Block::Kind::table:
        html += table_html(block, link);
        break;
      case Block::Kind::rule:
        html += "<hr>\n";
        break;
    }
  }
  return html;
}

}  // namespace tilestep::app

#include <algorithm>
#include <cmath>
#include <numeric>

#include "scenes/ui/context.hpp"
#include "scenes/ui/markdown_document.hpp"

namespace tilestep::ui {
namespace {

ImDrawList& list() {
  return *ImGui::GetWindowDrawList();
}

/// Lines longer than this are hard to read (about 90 characters).
constexpr float kMeasure = 760;

struct Kept {
  const char* data = nullptr;
  std::size_t size = 0;
  std::vector<MarkdownBlock> blocks;
};

Font font_of(const MarkdownPiece& piece, Font base) {
  if (piece.code) return base == Font::body ? Font::mono : Font::mono_note;
  if (piece.bold && base == Font::body) return Font::body_bold;
  return base;
}

float word_width(const MarkdownWord& word, Font base) {
  float width = 0;
  for (const MarkdownPiece& piece : word) {
    width += text_size(piece.text, font_of(piece, base)).x + (piece.code ? px(6) : 0);
  }
  return width;
}

void draw_piece(const MarkdownPiece& piece, ImVec2 at, float line, Font base) {
  const Font font = font_of(piece, base);
  const ImVec2 size = text_size(piece.text, font);
  const float y = std::round(at.y + (line - size.y) / 2);
  if (piece.code) {
    list().AddRectFilled({at.x, y}, {at.x + size.x + px(6), y + size.y}, color(Role::raised),
                         px(4));
    draw_text({at.x + px(3), y}, piece.text, font);
    return;
  }
  draw_text({at.x, y}, piece.text, font);
  if (piece.link) {
    list().AddLine({at.x, y + size.y}, {at.x + size.x, y + size.y}, color(Role::muted), px(1));
  }
}

/// Wraps `text` at `width`. Returns its height; draws it if `draw`.
float flow(const MarkdownText& text, ImVec2 at, float width, Font base, bool draw = true) {
  const float line = std::round(font_pixels(base) * 1.25f);
  const float space = text_size(" ", base).x;
  float x = 0, y = 0;
  for (const MarkdownWord& word : text) {
    const float wide = word_width(word, base);
    if (word.empty() || (x > 0 && x + wide > width)) {
      x = 0;
      y += line;
    }
    for (const MarkdownPiece& piece : word) {
      if (draw) draw_piece(piece, {at.x + x, at.y + y}, line, base);
      x += word_width({piece}, base);
    }
    if (!word.empty()) x += space;
  }
  return y + line;
}

float natural_width(const MarkdownText& text, Font base) {
  float width = 0;
  for (const MarkdownWord& word : text) width += word_width(word, base) + text_size(" ", base).x;
  return width;
}

void item_text(const MarkdownBlock& block, float width) {
  const float indent = px(24) * static_cast<float>(block.depth);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (block.kind == MarkdownBlock::Kind::item) {
    const float line = std::round(font_pixels(Font::body) * 1.25f);
    const float y = at.y + (line - text_size(block.marker).y) / 2;
    draw_text({at.x + indent - px(10), y}, block.marker, Font::body, Role::muted, Align::right);
  }
  ImGui::Dummy({width, flow(block.text, {at.x + indent, at.y}, width - indent, Font::body)});
}

void heading(const MarkdownBlock& block, float width, bool first) {
  if (!first) space(block.level <= 2 ? 16 : 8);
  const Font font = block.level <= 2 ? Font::section : Font::body_bold;
  ImGui::Dummy({width, flow(block.text, ImGui::GetCursorScreenPos(), width, font)});
}

void code_block(const MarkdownBlock& block, float width) {
  std::string_view code = block.code;
  while (!code.empty() && code.back() == '\n') code.remove_suffix(1);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size = text_size(code, Font::mono_note);
  const float height = size.y + 2 * px(12);
  const ImVec2 max(at.x + width, at.y + height);
  list().AddRectFilled(at, max, color(Role::raised), px(kControlCorner));
  list().PushClipRect(at, max, true);
  draw_text({at.x + px(12), at.y + px(12)}, code, Font::mono_note);
  list().PopClipRect();
  ImGui::Dummy({width, height});
}

std::vector<float> table_widths(const MarkdownBlock& table, float width) {
  std::vector<float> widths(table.right.size(), 0.0f);
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size() && c < widths.size(); ++c) {
      widths[c] = std::max(widths[c], natural_width(row[c], Font::body) + px(kGapLarge));
    }
  }
  const float total = std::accumulate(widths.begin(), widths.end(), 0.0f);
  if (total <= width) return widths;
  // Narrow columns keep their width; the wide ones share what is left.
  const float fair = width / static_cast<float>(widths.size());
  float narrow = 0, wide = 0;
  for (const float each : widths) (each <= fair ? narrow : wide) += each;
  for (float& each : widths) {
    if (each > fair) each *= (width - narrow) / wide;
  }
  return widths;
}

void table_block(const MarkdownBlock& table, float width) {
  const std::vector<float> widths = table_widths(table, width);
  const float total = std::accumulate(widths.begin(), widths.end(), 0.0f);
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    float height = 0, x = at.x;
    for (std::size_t c = 0; c < table.rows[r].size() && c < widths.size(); ++c) {
      const MarkdownText& cell = table.rows[r][c];
      const Font font = r == 0 ? Font::body_bold : Font::body;
      const float room = widths[c] - px(12);
      const float spare = table.right[c] ? std::max(0.0f, room - natural_width(cell, font)) : 0;
      height = std::max(height, flow(cell, {x + spare, at.y + px(4)}, room, font));
      x += widths[c];
    }
    height += px(8);
    list().AddLine({at.x, at.y + height}, {at.x + total, at.y + height},
                   color(r == 0 ? Role::border : Role::grid));
    ImGui::Dummy({total, height});
  }
}

void draw_block(const MarkdownBlock& block, float width, bool first) {
  using Kind = MarkdownBlock::Kind;
  switch (block.kind) {
    case Kind::heading:
      heading(block, width, first);
      break;
    case Kind::paragraph:
    case Kind::item:
      item_text(block, width);
      break;
    case Kind::code:
      code_block(block, width);
      break;
    case Kind::table:
      table_block(block, width);
      break;
    case Kind::rule: {
      const ImVec2 at = ImGui::GetCursorScreenPos();
      list().AddLine({at.x, at.y + px(8)}, {at.x + width, at.y + px(8)}, color(Role::border));
      ImGui::Dummy({width, px(16)});
      break;
    }
  }
}

}  // namespace

void markdown(std::string_view text) {
  Kept& kept = Context::current().kept<Kept>(kept_name("markdown", "document"));
  if (kept.data != text.data() || kept.size != text.size()) {
    kept = {text.data(), text.size(), parse_markdown(text)};
  }
  const float width = std::min(ImGui::GetContentRegionAvail().x, px(kMeasure));
  bool first = true;
  for (const MarkdownBlock& block : kept.blocks) {
    const bool item = block.kind == MarkdownBlock::Kind::item;
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing,
                        {0, block.kind == MarkdownBlock::Kind::table ? 0 : px(item ? 4 : 10)});
    draw_block(block, width, first);
    ImGui::PopStyleVar();
    if (block.kind == MarkdownBlock::Kind::table) space(16);
    first = false;
  }
}

}  // namespace tilestep::ui

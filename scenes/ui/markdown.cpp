#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "scenes/ui/context.hpp"
#include "scenes/ui/control_parts.hpp"
#include "scenes/ui/markdown_document.hpp"
#include "scenes/ui/markdown_layout.hpp"

namespace tilestep::ui {

using namespace markdown_layout;

namespace {

void dots(float left, float right, float y, Role role) {
  for (float x = left; x < right; x += px(4))
    list().AddRectFilled({x, y}, {x + px(2), y + px(1.5f)}, color(role));
}

/// Draws one document and keeps what happens to its links.
class Page {
 public:
  explicit Page(const MarkdownLook& look) : look_(look) {}

  MarkdownEvents take() { return std::move(events_); }

  /// Wraps `text` at `width`. Returns its height.
  float flow(const MarkdownText& whole, ImVec2 at, float width, Font base) {
    const bool fits = std::all_of(whole.begin(), whole.end(), [&](const MarkdownWord& word) {
      return word_width(word, base) <= width;
    });
    const MarkdownText broken = fits ? MarkdownText() : breakable(whole, width - px(16), base);
    const MarkdownText& text = fits ? whole : broken;
    const std::vector<Line> lines = lines_of(text, width, look_.max_characters, base);
    for (const Line& line : lines) draw_line(text, line, at, base);
    first_line_ = lines.front().height;
    ImGui::SetCursorScreenPos(at);
    return lines.back().top + lines.back().height;
  }
  /// How high the first line of the last text was.
  float first_line() const { return first_line_; }

 private:
  /// Pieces of one link, or of one term, that stand side by side on a line.
  struct Run {
    const MarkdownPiece* first = nullptr;
    float left = 0, right = 0;
    std::string words;
    std::vector<std::pair<const MarkdownPiece*, float>> pieces;

    bool takes(const MarkdownPiece& piece) const {
      return first != nullptr && first->link_number == piece.link_number &&
             first->term == piece.term;
    }
    bool plain() const { return first->link.empty() && first->term < 0; }
  };

  void draw_line(const MarkdownText& text, const Line& line, ImVec2 at, Font base) {
    const float space = text_size(" ", base).x;
    const ImVec2 origin(at.x, at.y + line.top);
    float x = at.x;
    Run run;
    for (std::size_t i = line.begin; i < line.end; ++i) {
      for (const MarkdownPiece& piece : text[i]) {
        if (!run.takes(piece)) {
          finish(run, origin.y, line.height, base, x);
          run = Run{&piece, x, x, {}, {}};
          if (chip(piece)) x += chip_padding();
        } else if (&piece == text[i].data()) {
          run.words += ' ';
        }
        run.pieces.emplace_back(&piece, x);
        run.words += piece.text;
        x += piece_width(piece, base);
        run.right = x;
      }
      if (!text[i].empty()) x += space;
      if (run.first != nullptr && chip(*run.first)) {
        // The pill of a chip ends the word.
        x -= space;
        finish(run, origin.y, line.height, base, x);
        x += space;
        run = {};
      }
    }
    finish(run, origin.y, line.height, base, x);
  }

  /// Draws a run; `x` goes past the end of a chip.
  void finish(const Run& run, float top, float height, Font base, float& x) {
    if (run.first == nullptr) return;
    ImVec2 min(run.left, top), max(run.right, top + height);
    if (chip(*run.first)) {
      max.x += chip_padding();
      x += chip_padding();
      min.y += px(1);
      max.y -= px(1);
    }
    const bool lit = !run.plain() && item(run, min, max);
    if (chip(*run.first)) pill(run, min, max, lit);
    for (const auto& [piece, left] : run.pieces) draw_piece(*piece, {left, top}, height, base);
    if (run.plain() || chip(*run.first)) return;
    const float low = std::round(top + (height + text_size("x", base).y) / 2);
    if (run.first->term >= 0) {
      dots(min.x, max.x, low, lit ? Role::text : Role::muted);
    } else if (run.first->link.starts_with("light:")) {
      dots(min.x, max.x, low, lit ? Role::text : Role::sky);
    } else {
      list().AddLine({min.x, low}, {max.x, low}, color(lit ? Role::text : Role::muted), px(1));
    }
  }

  void pill(const Run& run, ImVec2 min, ImVec2 max, bool lit) {
    const bool active = run.first->link == look_.active;
    const float corner = (max.y - min.y) / 2;
    list().AddRectFilled(min, max, color(lit ? Role::border : Role::raised), corner);
    list().AddRect(min, max, color(active ? Role::text : Role::border), corner, 0,
                   px(active ? 2 : 1));
  }

  void draw_piece(const MarkdownPiece& piece, ImVec2 at, float line, Font base) {
    const Font font = font_of(piece, base);
    const ImVec2 size = text_size(piece.text, font);
    const float y = std::round(at.y + (line - size.y) / 2);
    if (piece.code && !chip(piece)) {
      list().AddRectFilled({at.x, y}, {at.x + size.x + px(6), y + size.y}, color(Role::raised),
                           px(4));
    }
    draw_text({at.x + padding(piece) / 2, y}, piece.text, font);
  }

  /// The part of the window that a link or a term is. Returns whether it is pointed at.
  bool item(const Run& run, ImVec2 min, ImVec2 max) {
    const bool term = run.first->term >= 0;
    const MarkdownTerm* of =
        term ? &look_.terms[static_cast<std::size_t>(run.first->term)] : nullptr;
    const std::string target = term ? "term:" + of->phrase : run.first->link;
    const std::string id = name(run);
    ImGui::SetCursorScreenPos(min);
    ImGui::PushID(id.c_str());
    const bool pressed = ImGui::InvisibleButton("link", {max.x - min.x, max.y - min.y});
    ImGui::PopID();
    use_hand();
    const Focused keys = Context::current().focus().control(id, min, max);
    const bool lit = ImGui::IsItemHovered() || keys.shown;
    if (pressed || keys.pressed) events_.clicked = target;
    if (lit) events_.hovered = target;
    if (term) tooltip(of->sentence);
    map(id, run.words, target, min, max);
    return lit;
  }

  /// "try_0"; "light_2_1" for the part of a link that stands on its second line.
  std::string name(const Run& run) {
    const MarkdownPiece& piece = *run.first;
    const std::string kind = piece.term >= 0                    ? "term_"
                             : chip(piece)                      ? "try_"
                             : piece.link.starts_with("light:") ? "light_"
                                                                : "link_";
    const std::string key = kind + std::to_string(piece.term >= 0 ? piece.term : piece.link_number);
    const auto [known, fresh] = names_.try_emplace(key);
    if (fresh) known->second = kind + std::to_string(counts_[kind]++);
    const int part = parts_[key]++;
    return look_.id + known->second + (part > 0 ? "_" + std::to_string(part) : "");
  }

  const MarkdownLook& look_;
  MarkdownEvents events_;
  float first_line_ = 0;
  std::map<std::string, std::string> names_;  ///< of each link and term that was met, its id
  std::map<std::string, int> counts_, parts_;
};

float natural_width(const MarkdownText& text, Font base) {
  float width = 0;
  for (const MarkdownWord& word : text) width += word_width(word, base) + text_size(" ", base).x;
  return width;
}

void item_text(Page& page, const MarkdownBlock& block, float width) {
  const float indent = px(28) * static_cast<float>(block.depth);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = page.flow(block.text, {at.x + indent, at.y}, width - indent, Font::body);
  if (block.kind == MarkdownBlock::Kind::item) {
    const float y = at.y + (page.first_line() - text_size(block.marker).y) / 2;
    draw_text({at.x + indent - px(10), y}, block.marker, Font::body, Role::muted, Align::right);
  }
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({width, height});
}

void heading(Page& page, const MarkdownBlock& block, float width, bool first) {
  if (!first) space(block.level <= 2 ? 16 : 8);
  const Font font = block.level <= 2 ? Font::section : Font::body_bold;
  ImGui::Dummy({width, page.flow(block.text, ImGui::GetCursorScreenPos(), width, font)});
}

void code_block(const MarkdownBlock& block, float width) {
  std::string_view rest = block.code;
  while (!rest.empty() && rest.back() == '\n') rest.remove_suffix(1);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  // Where a line is too long it goes on, set in, on the next one.
  const auto letters = static_cast<std::size_t>(
      std::max(8.0f, std::floor((width - 2 * px(12)) / text_size("0", Font::mono_note).x) - 2));
  std::string code;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    bool goes_on = false;
    do {
      std::size_t bytes = 0, count = 0;
      while (bytes < line.size() && (count < letters || (line[bytes] & 0xC0) == 0x80)) {
        count += (line[bytes] & 0xC0) != 0x80 ? 1 : 0;
        ++bytes;
      }
      code += (code.empty() ? "" : "\n") + std::string(goes_on ? "  " : "");
      code += line.substr(0, bytes);
      line.remove_prefix(bytes);
      goes_on = true;
    } while (!line.empty());
  }
  const ImVec2 size = text_size(code, Font::mono_note);
  const float height = size.y + 2 * px(12);
  const ImVec2 max(at.x + width, at.y + height);
  list().AddRectFilled(at, max, color(Role::raised), px(kControlCorner));
  list().PushClipRect(at, max, true);
  draw_text({at.x + px(12), at.y + px(12)}, code, Font::mono_note);
  list().PopClipRect();
  ImGui::Dummy({width, height});
}

/// The widths of the columns in which no word need be cut.
std::vector<float> least_widths(const MarkdownBlock& table) {
  std::vector<float> widths(table.right.size(), 0.0f);
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size() && c < widths.size(); ++c) {
      for (const MarkdownWord& word : row[c]) {
        widths[c] = std::max(widths[c], word_width(word, Font::body_bold) + px(12));
      }
    }
  }
  return widths;
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
  // Each keeps what its longest word needs; what is left goes where more is wanted.
  const std::vector<float> least = least_widths(table);
  const float needed = std::accumulate(least.begin(), least.end(), 0.0f);
  const float share = std::clamp((width - needed) / std::max(total - needed, 1.0f), 0.0f, 1.0f);
  for (std::size_t c = 0; c < widths.size(); ++c) {
    widths[c] = least[c] + share * std::max(widths[c] - least[c], 0.0f);
  }
  return widths;
}

/// A table that has no room: row by row, each cell after the name of its column.
void rows_block(Page& page, const MarkdownBlock& table, float width) {
  for (std::size_t r = 1; r < table.rows.size(); ++r) {
    for (std::size_t c = 0; c < table.rows[r].size() && c < table.rows[0].size(); ++c) {
      MarkdownText text = c == 0 ? MarkdownText() : table.rows[0][c];
      if (!text.empty()) text.push_back({MarkdownPiece{.text = "–"}});
      text.insert(text.end(), table.rows[r][c].begin(), table.rows[r][c].end());
      if (text.empty()) continue;
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const float in = c == 0 ? 0 : px(12);
      const float height =
          page.flow(text, {at.x + in, at.y}, width - in, c == 0 ? Font::body_bold : Font::body);
      ImGui::SetCursorScreenPos(at);
      ImGui::Dummy({width, height});
    }
    space(8);
  }
}

void table_block(Page& page, const MarkdownBlock& table, float width) {
  const std::vector<float> least = least_widths(table);
  if (std::accumulate(least.begin(), least.end(), 0.0f) > width) {
    return rows_block(page, table, width);
  }
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
      height = std::max(height, page.flow(cell, {x + spare, at.y + px(4)}, room, font));
      x += widths[c];
    }
    height += px(8);
    list().AddLine({at.x, at.y + height}, {at.x + total, at.y + height},
                   color(r == 0 ? Role::border : Role::grid));
    ImGui::SetCursorScreenPos(at);
    ImGui::Dummy({total, height});
  }
}

/// `width`: of text; `full`: of what may fill the window.
void draw_block(Page& page, const MarkdownBlock& block, float width, float full, bool first) {
  switch (block.kind) {
    case MarkdownBlock::Kind::heading:
      heading(page, block, width, first);
      break;
    case MarkdownBlock::Kind::paragraph:
    case MarkdownBlock::Kind::item:
      item_text(page, block, width);
      break;
    case MarkdownBlock::Kind::code:
      code_block(block, full);
      break;
    case MarkdownBlock::Kind::table:
      table_block(page, block, full);
      break;
    case MarkdownBlock::Kind::rule: {
      const ImVec2 at = ImGui::GetCursorScreenPos();
      list().AddLine({at.x, at.y + px(8)}, {at.x + width, at.y + px(8)}, color(Role::border));
      ImGui::Dummy({width, px(16)});
      break;
    }
  }
}

/// A document as it was read, and how high its blocks are, so that those out of sight need not be laid out.
struct Document {
  std::vector<MarkdownBlock> blocks;
  std::vector<bool> linked;  ///< blocks with parts that can be reached by keys: always laid out
  std::vector<float> heights;
  ImVec2 laid_out;  ///< for this width and size of type
};

/// Documents by their text: a reader shows a lesson as one for each of its stops.
struct KeptPage {
  std::vector<MarkdownTerm> terms;
  std::map<std::string, Document, std::less<>> documents;
};

bool has_links(const MarkdownText& text) {
  return std::any_of(text.begin(), text.end(), [](const MarkdownWord& word) {
    return std::any_of(word.begin(), word.end(), [](const MarkdownPiece& piece) {
      return !piece.link.empty() || piece.term >= 0;
    });
  });
}

bool has_links(const MarkdownBlock& block) {
  bool found = has_links(block.text);
  for (const auto& row : block.rows) {
    for (const MarkdownText& cell : row) found = found || has_links(cell);
  }
  return found;
}

Document& document(std::string_view text, const MarkdownLook& look) {
  constexpr std::size_t kMost = 64;
  KeptPage& kept = Context::current().kept<KeptPage>(kept_name("markdown", look.id));
  if (kept.documents.size() > kMost || kept.terms != look.terms) kept = {look.terms, {}};
  const auto known = kept.documents.find(text);
  if (known != kept.documents.end()) return known->second;
  Document made{parse_markdown(text), {}, {}, {}};
  std::vector<std::string> phrases;
  for (const MarkdownTerm& term : look.terms) phrases.push_back(term.phrase);
  mark_terms(made.blocks, phrases);
  for (const MarkdownBlock& block : made.blocks) made.linked.push_back(has_links(block));
  return kept.documents.emplace(text, std::move(made)).first->second;
}

/// Leaves the room of a block that is out of sight. False: it is in sight, or nobody knows how high it is.
bool passed(const Document& page, std::size_t block, float width) {
  if (page.linked[block] || block >= page.heights.size()) return false;
  const ImVec2 size(width, page.heights[block]);
  if (ImGui::IsRectVisible(size) || Context::current().records_texts()) return false;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGui::Dummy(size);
  ImGui::PopStyleVar();
  return true;
}

}  // namespace

MarkdownEvents markdown(std::string_view text, const MarkdownLook& look) {
  if (ImGui::GetCurrentWindowRead()->SkipItems) return {};  // nothing of the window is in sight
  const float full = ImGui::GetContentRegionAvail().x;
  const float width = std::min(full, measure(look.max_characters));
  Document& shown = document(text, look);
  const ImVec2 laid_out(full, font_pixels(Font::body));
  if (shown.laid_out.x != laid_out.x || shown.laid_out.y != laid_out.y) shown.heights.clear();
  shown.laid_out = laid_out;
  Page page(look);
  std::vector<float> heights;
  for (std::size_t i = 0; i < shown.blocks.size(); ++i) {
    const MarkdownBlock& block = shown.blocks[i];
    const bool table = block.kind == MarkdownBlock::Kind::table;
    const bool item = block.kind == MarkdownBlock::Kind::item;
    const float top = ImGui::GetCursorPosY();
    if (!passed(shown, i, width)) {
      ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, table ? 0 : px(item ? 4 : 10)});
      draw_block(page, block, width, full, i == 0);
      ImGui::PopStyleVar();
      if (table) space(16);
    }
    heights.push_back(ImGui::GetCursorPosY() - top);
  }
  shown.heights = std::move(heights);
  return page.take();
}

}  // namespace tilestep::ui

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/ui/context.hpp"

namespace tilestep::ui {
namespace {

std::string heading(const lab::Column& column) {
  return column.unit.empty() ? column.label : fmt::format("{} ({})", column.label, column.unit);
}

bool is_number(const lab::Cell& cell) {
  return std::holds_alternative<double>(cell);
}

/// How a table is laid out in the room it has.
struct Columns {
  std::vector<float> widths;
  std::vector<bool> numeric;
  float total = 0;
};

/// A table may have tens of thousands of rows: widths are taken from an even sample of them.
std::vector<std::size_t> sampled_rows(std::size_t count) {
  constexpr std::size_t kSample = 96;
  std::vector<std::size_t> rows;
  const std::size_t step = std::max<std::size_t>(1, count / kSample);
  for (std::size_t row = 0; row < count; row += step) rows.push_back(row);
  if (count > 0 && rows.back() != count - 1) rows.push_back(count - 1);
  return rows;
}

Columns natural_columns(const lab::Table& table) {
  Columns columns;
  const auto rows = sampled_rows(table.rows.size());
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    float width = text_size(heading(table.columns[c]), Font::note).x;
    bool numeric = false;
    for (const std::size_t row : rows) {
      width = std::max(width, text_size(table.text(row, c), Font::mono).x);
      // The first column names the row, so it stands at the edge like a name.
      if (c > 0 && c < table.rows[row].size() && is_number(table.rows[row][c])) numeric = true;
    }
    columns.widths.push_back(std::ceil(std::min(width, px(420))) + px(kGapLarge));
    columns.numeric.push_back(numeric);
    columns.total += columns.widths.back();
  }
  return columns;
}

/// What is kept between frames, for one table.
struct KeptTable {
  std::string rows;  ///< the widths belong to a table with these first and last rows …
  float scale = 0;   ///< … at this scale
  Columns natural;
  int current = -1;
  float scroll_x = 0;
};

Columns laid_out(const lab::Table& table, KeptTable& kept, float room) {
  const float scale = Context::current().scale();
  std::string rows = std::to_string(table.rows.size());
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    rows += table.text(0, c) + '|' + table.text(table.rows.size() - 1, c) + '|';
  }
  if (kept.rows != rows || kept.scale != scale) {
    kept = {std::move(rows), scale, natural_columns(table), -1, 0};
  }
  Columns columns = kept.natural;
  if (columns.total < room && !columns.widths.empty()) {
    // Spare room is shared, but numbers a hand apart are hard to read along a row.
    const float share = (room - columns.total) / static_cast<float>(columns.widths.size());
    for (float& width : columns.widths) width = std::floor(width + std::min(share, px(120)));
    columns.total = 0;
    for (const float width : columns.widths) columns.total += width;
  }
  return columns;
}

class TableView {
 public:
  TableView(const lab::Table& table, const TableLook& look, const Columns& columns)
      : table_(table), look_(look), columns_(columns), row_height_(std::round(px(24))) {}

  float row_height() const { return row_height_; }

  /// Returns the column whose head the pointer is on, or −1.
  int draw_header(ImVec2 at, float width, float scroll_x) const {
    list().PushClipRect(at, {at.x + width, at.y + row_height_}, true);
    // It scrolls sideways with the rows, which stand in a window of their own.
    Context& context = Context::current();
    const bool records = context.records_texts();
    context.record_texts(records && columns_.total <= width);
    float x = at.x - scroll_x;
    int hovered = -1;
    for (std::size_t c = 0; c < table_.columns.size(); ++c) {
      const int index = static_cast<int>(c);
      const float end = x + columns_.widths[c];
      if (ImGui::IsWindowHovered() &&
          ImGui::IsMouseHoveringRect({std::max(x, at.x), at.y}, {end, at.y + row_height_})) {
        hovered = index;
      }
      const std::string label =
          fitted(heading(table_.columns[c]), Font::note, columns_.widths[c] - px(8));
      const float y = at.y + (row_height_ - text_size(label, Font::note).y) / 2;
      const bool right = columns_.numeric[c];
      const Role sign = look_.sign ? look_.sign(index) : Role::muted;
      const ImVec2 said = draw_text({right ? end - px(12) : x + px(12), y}, label, Font::note, sign,
                                    right ? Align::right : Align::left);
      const bool lit = look_.lit_column && look_.lit_column(index);
      if (sign != Role::muted && x >= at.x && end <= at.x + width) {
        map("head_" + table_.columns[c].id, label, lit ? "lit" : "", {x, at.y},
            {end, at.y + row_height_});
      }
      if (lit) {
        const float left = right ? end - px(12) - said.x : x + px(12);
        list().AddRect({left - px(4), at.y + px(2)},
                       {left + said.x + px(4), at.y + row_height_ - px(2)}, color(Role::text),
                       px(4), 0, px(1));
      }
      x = end;
    }
    context.record_texts(records);
    list().PopClipRect();
    list().AddLine({at.x, at.y + row_height_}, {at.x + width, at.y + row_height_},
                   color(Role::border));
    return hovered;
  }

  /// Returns true if the pointer is on the row.
  bool draw_row(std::size_t row, ImVec2 at, float width) const {
    const int index = static_cast<int>(row);
    const ImVec2 max(at.x + width, at.y + row_height_);
    const bool current = index == look_.current_row;
    const bool hovered = ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(at, max);
    if (current) {
      list().AddRectFilled(at, max, color(Role::accent, 0.16f), px(4));
      list().AddRectFilled(at, {at.x + px(3), max.y}, color(Role::accent), px(2));
    } else if (hovered || index == look_.lit_row) {
      list().AddRectFilled(at, max, color(Role::raised), px(4));
    }
    if (index == look_.lit_row) list().AddRect(at, max, color(Role::text), px(4), 0, px(1));
    float x = at.x;
    for (std::size_t c = 0; c < table_.columns.size(); ++c) {
      draw_cell(row, c, x, at.y);
      x += columns_.widths[c];
    }
    if (current || row % 64 == 0) {
      map(fmt::format("row_{}", row), shown(row, 0), current ? "current" : "", at, max);
    }
    return hovered;
  }

 private:
  bool hidden(std::size_t row, std::size_t c) const {
    return look_.hidden && look_.hidden(static_cast<int>(row), static_cast<int>(c));
  }
  /// The numbers of what is to come would give the answer away.
  std::string shown(std::size_t row, std::size_t c) const {
    return hidden(row, c) ? "·" : table_.text(row, c);
  }
  void draw_cell(std::size_t row, std::size_t c, float x, float y) const {
    const std::string text = shown(row, c);
    // What names the row is as dim as what comes first of the rest.
    const bool to_come = hidden(row, c > 0 || table_.columns.size() < 2 ? c : 1);
    const float width = columns_.widths[c];
    const std::string shown = fitted(text, Font::mono, width - px(16));
    const float top = y + (row_height_ - font_pixels(Font::mono)) / 2;
    const bool right = columns_.numeric[c];
    draw_text({right ? x + width - px(12) : x + px(12), top}, shown, Font::mono,
              !to_come                                     ? Role::text
              : static_cast<int>(row) == look_.current_row ? Role::muted
                                                           : Role::faint,
              right ? Align::right : Align::left);
  }

  const lab::Table& table_;
  const TableLook& look_;
  const Columns& columns_;
  float row_height_;
};

void scroll_to(KeptTable& kept, int current, float row_height) {
  if (kept.current == current) return;
  kept.current = current;
  if (current < 0) return;
  const float top = static_cast<float>(current) * row_height;
  const float view = ImGui::GetWindowHeight();
  const float scroll = ImGui::GetScrollY();
  if (top < scroll || top + 2 * row_height > scroll + view) {
    ImGui::SetScrollY(std::max(0.0f, top - view / 2));
  }
}

}  // namespace

TableHover data_table(const lab::Table& table, const TableLook& look) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  if (table.columns.empty() || table.rows.empty()) {
    empty_state("No rows", "This table has nothing to show for the current knobs.");
    return {};
  }
  KeptTable& kept = Context::current().kept<KeptTable>(kept_name("table", table.id));
  const Columns columns = laid_out(table, kept, room.x - ImGui::GetStyle().ScrollbarSize);
  const TableView view(table, look, columns);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  TableHover hovered;
  hovered.head = view.draw_header(at, room.x, kept.scroll_x);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGui::Dummy({1, view.row_height() + 1});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
  const float height = std::max(room.y - view.row_height() - 1, view.row_height());
  ImGui::BeginChild(table.id.c_str(), {room.x, height}, false,
                    ImGuiWindowFlags_HorizontalScrollbar);
  scroll_stop("table_" + table.id);
  scroll_to(kept, look.current_row, view.row_height());
  kept.scroll_x = ImGui::GetScrollX();
  const float row_width = std::max(columns.total, ImGui::GetContentRegionAvail().x);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(table.rows.size()), view.row_height());
  while (clipper.Step()) {
    for (int row = clipper.DisplayStart; row < clipper.DisplayEnd; ++row) {
      const ImVec2 place = ImGui::GetCursorScreenPos();
      if (view.draw_row(static_cast<std::size_t>(row), place, row_width)) hovered.row = row;
      ImGui::Dummy({columns.total, view.row_height()});
    }
  }
  ImGui::EndChild();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  map("table_" + table.id, table.title, fmt::format("{} rows", table.rows.size()), at,
      {at.x + room.x, at.y + room.y});
  return hovered;
}

}  // namespace tilestep::ui

#include "scenes/ui/code_editor.hpp"

#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "scenes/ui/code_lines.hpp"
#include "scenes/ui/context.hpp"
#include "scenes/ui/control_parts.hpp"

namespace tilestep::ui {
namespace {

/// The clipboard's text; empty where there is none.
std::string pasted() {
  const char* text = ImGui::GetClipboardText();
  return text == nullptr ? std::string() : std::string(text);
}

std::optional<TextMove> move_of(const EditorPress& press) {
  switch (press.key) {
    case EditorKey::left:
      return press.by_words ? TextMove::word_left : TextMove::left;
    case EditorKey::right:
      return press.by_words ? TextMove::word_right : TextMove::right;
    case EditorKey::up:
    case EditorKey::page_up:
      return TextMove::up;
    case EditorKey::down:
    case EditorKey::page_down:
      return TextMove::down;
    case EditorKey::home:
      return press.by_words ? TextMove::text_start : TextMove::line_start;
    case EditorKey::end:
      return press.by_words ? TextMove::text_end : TextMove::line_end;
    default:
      return std::nullopt;
  }
}

}  // namespace

// ---- keys ------------------------------------------------------------------------------------------

void CodeEditor::replace(std::string_view text) {
  buffer_.replace_all(text);
}

void CodeEditor::take_keys() {
  has_keys_ = true;
  find_has_keys_ = false;
}

void CodeEditor::leave() {
  has_keys_ = find_has_keys_ = drags_ = false;
}

void CodeEditor::open_find() {
  const std::string_view words = buffer_.selected();
  if (!words.empty() && words.find('\n') == words.npos) query_ = TextBuffer(words);
  query_.select_all();
  finds_ = has_keys_ = find_has_keys_ = true;
}

void CodeEditor::close_find() {
  finds_ = find_has_keys_ = false;
  reveals_ = true;
}

void CodeEditor::go_to_line(int line) {
  buffer_.go_to(buffer_.offset_of({line - 1, 0}), false);
  reveals_ = centres_ = true;
}

void CodeEditor::find(bool on, bool here) {
  buffer_.find(query_.text(), on, here);
  reveals_ = true;
}

void CodeEditor::type(char32_t character) {
  if (find_has_keys_) {
    query_.type(character);
    return find(true, true);
  }
  buffer_.type(character);
  reveals_ = true;
}

void CodeEditor::press(const EditorPress& press) {
  if (press.key == EditorKey::find) return open_find();
  if (press.key == EditorKey::escape) {
    finds_ ? close_find() : leave();
    return;
  }
  find_has_keys_ ? press_in_find(press) : press_in_text(press);
}

void CodeEditor::press_in_find(const EditorPress& press) {
  const auto revision = query_.revision();
  if (press.key == EditorKey::enter) return find(!press.shift);
  if (press.key == EditorKey::tab || press.key == EditorKey::down) {
    find_has_keys_ = false;
    return;
  }
  if (const auto move = move_of(press)) query_.move(*move, press.shift);
  switch (press.key) {
    case EditorKey::erase_back:
      query_.erase_back(press.by_words);
      break;
    case EditorKey::erase_on:
      query_.erase_on(press.by_words);
      break;
    case EditorKey::select_all:
      query_.select_all();
      break;
    case EditorKey::copy:
      ImGui::SetClipboardText(std::string(query_.selected()).c_str());
      break;
    case EditorKey::cut:
      ImGui::SetClipboardText(query_.cut().c_str());
      break;
    case EditorKey::paste: {
      const std::string text = clean_text(pasted());
      query_.insert(std::string_view(text).substr(0, text.find('\n')));
      break;
    }
    case EditorKey::undo:
      query_.undo();
      break;
    case EditorKey::redo:
      query_.redo();
      break;
    default:
      break;
  }
  if (query_.revision() != revision) find(true, true);
}

void CodeEditor::press_in_text(const EditorPress& press) {
  reveals_ = true;
  if (const auto move = move_of(press)) {
    const bool page = press.key == EditorKey::page_up || press.key == EditorKey::page_down;
    return buffer_.move(*move, press.shift, page ? std::max(page_ - 1, 1) : 1);
  }
  switch (press.key) {
    case EditorKey::erase_back:
      return buffer_.erase_back(press.by_words);
    case EditorKey::erase_on:
      return buffer_.erase_on(press.by_words);
    case EditorKey::enter:
      return buffer_.new_line();
    case EditorKey::tab:
      return press.shift ? buffer_.unindent() : buffer_.indent();
    case EditorKey::select_all:
      reveals_ = false;
      return buffer_.select_all();
    case EditorKey::copy:
      return ImGui::SetClipboardText(buffer_.copy().c_str());
    case EditorKey::cut:
      return ImGui::SetClipboardText(buffer_.cut().c_str());
    case EditorKey::paste:
      return buffer_.insert(pasted());
    case EditorKey::undo:
      buffer_.undo();
      return;
    case EditorKey::redo:
      buffer_.redo();
      return;
    case EditorKey::comment:
      return buffer_.toggle_comment();
    default:
      return;
  }
}

// ---- drawing ---------------------------------------------------------------------------------------

/// How the text stands in its window.
struct CodeEditor::View {
  CodeGrid grid;
  ImVec2 origin;    ///< of the first line
  ImRect seen;      ///< without scrollbars
  bool pointed_at;  ///< by the mouse

  float x_of(int column) const {
    return origin.x + grid.text_left + grid.advance * static_cast<float>(column);
  }
  float y_of(int line) const { return origin.y + grid.height * static_cast<float>(line); }
  TextSpot spot_at(ImVec2 mouse) const {
    // A mouse that is nowhere is far outside of what an int holds.
    constexpr float kFar = 1e6f;
    const float line = std::clamp((mouse.y - origin.y) / grid.height, -kFar, kFar);
    const float column = std::clamp((mouse.x - x_of(0)) / grid.advance, 0.0f, kFar);
    return {static_cast<int>(std::floor(line)), static_cast<int>(std::lround(column))};
  }
};

/// What is kept of the text for drawing is of its present state.
void CodeEditor::refresh() {
  if (seen_ != buffer_.revision()) {
    seen_ = buffer_.revision();
    tint_ = tinted(buffer_.text());
    columns_ = 0;
    for (const SyntaxLine& line : tint_) columns_ = std::max(columns_, line.columns);
    matched_.clear();
    matches_.clear();
  }
  if (!finds_) {
    matched_.clear();
    matches_.clear();
  } else if (matched_ != query_.text()) {
    matched_ = query_.text();
    matches_ = buffer_.matches(matched_);
  }
}

void CodeEditor::draw(std::string_view id, const EditorLook& look, float below) {
  refresh();
  ImGui::PushID(id.data(), id.data() + id.size());
  const ImVec2 min = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const ImVec2 max(min.x + room.x, min.y + std::max(room.y - below, px(36)));
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left) &&
      !(ImGui::IsMouseHoveringRect(min, max, false) &&
        ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows))) {
    leave();
  }
  const float bar = finds_ ? draw_find_bar(room.x) : 0;
  ImGui::SetCursorScreenPos({min.x, min.y + bar});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, color(Role::background, 0.5f));
  ImGui::BeginChild("text", {room.x, max.y - min.y - bar}, false,
                    ImGuiWindowFlags_HorizontalScrollbar | ImGuiWindowFlags_NoNavInputs);
  draw_text(look);
  ImGui::EndChild();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PopID();
  const ImVec2 low(min.x, min.y + bar);
  list().AddRect(low, max, color(has_keys_ && !find_has_keys_ ? Role::accent : Role::border), px(4),
                 0, px(has_keys_ && !find_has_keys_ ? 1.5f : 1));
  ImGui::SetCursorScreenPos({min.x, max.y});
}

void CodeEditor::draw_text(const EditorLook& look) {
  const ImGuiWindow& window = *ImGui::GetCurrentWindowRead();
  const CodeGrid grid(buffer_.lines());
  const View view{grid, ImGui::GetCursorScreenPos(), window.InnerRect,
                  ImGui::IsWindowHovered() && window.InnerRect.Contains(ImGui::GetIO().MousePos)};
  page_ = std::max(1, static_cast<int>(view.seen.GetHeight() / grid.height));
  const Focused keys =
      Context::current().focus().control("editor", view.seen.Min, view.seen.Max, Takes::press);
  if (keys.pressed) take_keys();
  map("editor", look.label, has_keys_ ? "typing" : "", view.seen.Min, view.seen.Max);
  const CodeMarks marks(look.diagnostics);
  const int first = std::max(0, view.spot_at(view.seen.Min).line);
  const int last = std::min(buffer_.lines() - 1, view.spot_at(view.seen.Max).line);
  float width = grid.text_left + grid.advance * static_cast<float>(columns_ + 1) + px(24);
  const CodeLines lines(buffer_, tint_, look, marks, grid);
  for (int line = first; line <= last; ++line) {
    const ImVec2 at(view.origin.x, view.y_of(line));
    lines.draw_ground(line, at, view.seen, has_keys_);
    for (const std::size_t match : matches_) lines.draw_match(line, at, match, matched_.size());
    width = std::max(width, lines.draw(line, at, view.seen));
  }
  if (has_keys_) {
    const TextSpot spot = buffer_.spot();
    const float x = std::round(view.x_of(spot.column)), y = view.y_of(spot.line);
    const float wide = std::max(1.0f, std::round(px(2)));
    const ImVec2 low(x - std::floor(wide / 2), y + px(1)),
        high(low.x + wide, y + grid.height - px(1));
    if (!find_has_keys_) list().AddRectFilled(low, high, color(Role::text));
    map("editor_caret", "Caret", fmt::format("{}:{}", spot.line + 1, spot.column + 1), low, high);
  }
  const int pointed = view.pointed_at ? view.spot_at(ImGui::GetIO().MousePos).line + 1 : 0;
  hovered_line_ = pointed >= 1 && pointed <= buffer_.lines() ? pointed : 0;
  if (view.pointed_at) lines.draw_tip(view.spot_at(ImGui::GetIO().MousePos).line, view.origin);
  follow_mouse(view);
  follow_caret(view);
  ImGui::SetCursorScreenPos(view.origin);
  ImGui::Dummy({width, grid.height * static_cast<float>(buffer_.lines())});
}

void CodeEditor::follow_mouse(const View& view) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const bool over_text = mouse.x >= view.x_of(0) - px(6);
  if (view.pointed_at && over_text) ImGui::SetMouseCursor(ImGuiMouseCursor_TextInput);
  const TextSpot spot = view.spot_at(mouse);
  if (view.pointed_at && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    take_keys();
    const bool twice = ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
    if (!over_text) {
      buffer_.select_line(spot.line);
    } else if (twice) {
      buffer_.select_word(buffer_.offset_of(spot));
    } else {
      buffer_.go_to(buffer_.offset_of(spot), ImGui::GetIO().KeyShift);
      drags_ = true;
    }
  }
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) drags_ = false;
  if (!drags_ || !ImGui::IsMouseDragging(ImGuiMouseButton_Left, 2)) return;
  const std::size_t to = buffer_.offset_of(spot);
  if (to == buffer_.cursor()) return;
  buffer_.go_to(to, true);
  reveals_ = true;
}

void CodeEditor::follow_caret(const View& view) {
  if (!std::exchange(reveals_, false)) return;
  const TextSpot spot = buffer_.spot();
  const float height = view.grid.height, high = view.seen.GetHeight();
  const float top = height * static_cast<float>(spot.line);
  const float margin = std::min(height, std::max(0.0f, (high - height) / 2));
  float y = ImGui::GetScrollY();
  if (std::exchange(centres_, false)) {
    y = top - high / 3;
  } else {
    y = std::min(y, top - margin);
    y = std::max(y, top + height + margin - high);
  }
  y = std::max(0.0f, std::round(y));
  const float left = view.grid.advance * static_cast<float>(spot.column);
  const float wide = view.seen.GetWidth() - view.grid.text_left, room = 4 * view.grid.advance;
  float x = ImGui::GetScrollX();
  if (left < x) x = std::max(0.0f, left - room);
  if (left + room > x + wide) x = left + room - wide;
  if (y != ImGui::GetScrollY() || x != ImGui::GetScrollX()) {
    ImGui::SetScrollY(y);
    ImGui::SetScrollX(std::round(x));
    request_redraw();
  }
}

// ---- the find bar ----------------------------------------------------------------------------------

float CodeEditor::draw_find_bar(float width) {
  const float row = std::round(px(kControlHeight)), gap = px(kGapSmall);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float buttons = 3 * (row + px(4)) + gap;
  const float count_width = text_size("9999 of 9999", Font::note).x + gap;
  const float field = std::max(px(80), std::min(px(320), width - buttons - count_width));
  draw_find_field(at, {at.x + field, at.y + row});
  const auto [from, to] = buffer_.selection();
  const auto now = std::lower_bound(matches_.begin(), matches_.end(), from);
  const bool on_one = to > from && now != matches_.end() && *now == from;
  std::string count;
  if (!query_.text().empty()) {
    count = matches_.empty() ? "not found"
            : on_one         ? fmt::format("{} of {}", now - matches_.begin() + 1, matches_.size())
                             : fmt::format("{} found", matches_.size());
  }
  const float left = at.x + field + gap;
  ui::draw_text({left, at.y + (row - text_size("x", Font::note).y) / 2}, count, Font::note,
                Role::muted);
  map("find_count", "Found", count, {left, at.y}, {left + count_width, at.y + row});
  float x = left + count_width;
  const auto place = [&] {
    ImGui::SetCursorScreenPos({x, at.y});
    x += row + px(4);
  };
  place();
  if (button("find_previous", "Previous  (Shift+Enter)", {.icon = Icon::back})) find(false);
  place();
  if (button("find_next", "Next  (Enter)", {.icon = Icon::forward})) find(true);
  place();
  if (button("find_close", "Close  (Esc)", {.icon = Icon::cross})) {
    close_find();
    take_keys();
  }
  return row + px(kGapSmall) / 2;
}

void CodeEditor::draw_find_field(ImVec2 min, ImVec2 max) {
  ImGui::SetCursorScreenPos(min);
  const bool clicked = ImGui::InvisibleButton("find_text", {max.x - min.x, max.y - min.y});
  if (ImGui::IsItemHovered()) ImGui::SetMouseCursor(ImGuiMouseCursor_TextInput);
  const Focused keys = Context::current().focus().control("find_text", min, max);
  if (clicked || keys.pressed) has_keys_ = find_has_keys_ = true;
  list().AddRectFilled(min, max, color(Role::raised), px(kControlCorner));
  list().AddRect(min, max, color(find_has_keys_ ? Role::accent : Role::border), px(kControlCorner),
                 0, px(find_has_keys_ ? 1.5f : 1));
  map("find_text", "Find", query_.text(), min, max);
  const float pad = px(12), advance = text_size("0", Font::mono_note).x;
  const float y = std::round((min.y + max.y - font_pixels(Font::mono_note)) / 2);
  const auto x_of = [&](std::size_t offset) {
    return advance * static_cast<float>(query_.spot_of(offset).column);
  };
  // The caret stays in sight in a field that is shorter than what is looked for.
  const float room = max.x - min.x - 2 * pad;
  const float x = min.x + pad - std::max(0.0f, x_of(query_.cursor()) - room);
  list().PushClipRect({min.x + px(4), min.y}, {max.x - px(4), max.y}, true);
  if (query_.text().empty()) {
    ui::draw_text({x, std::round((min.y + max.y - font_pixels(Font::body)) / 2)}, "Find",
                  Font::body, Role::muted);
  }
  const float bottom = y + font_pixels(Font::mono_note);
  if (find_has_keys_ && query_.has_selection()) {
    const auto [from, to] = query_.selection();
    list().AddRectFilled({x + x_of(from), y - px(1)}, {x + x_of(to), bottom + px(2)},
                         color(Role::sky, 0.3f));
  }
  ui::draw_text({x, y}, query_.text(), Font::mono_note, Role::text);
  if (find_has_keys_) {
    const float caret = std::round(x + x_of(query_.cursor()));
    list().AddRectFilled({caret, y - px(1)},
                         {caret + std::max(1.0f, std::round(px(2))), bottom + px(2)},
                         color(Role::text));
  }
  list().PopClipRect();
}

}  // namespace tilestep::ui

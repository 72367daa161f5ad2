#include "scenes/ui/assembly_view.hpp"

#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>

#include "scenes/ui/code_lines.hpp"
#include "scenes/ui/context.hpp"
#include "scenes/ui/line_links.hpp"

namespace tilestep::ui {
namespace {

constexpr float kStaleOpacity = 0.55f;

/// Dims what is drawn until the end of the scope.
class OpacityScope {
 public:
  explicit OpacityScope(float opacity) : before_(Context::current().opacity()) {
    Context::current().set_opacity(before_ * opacity);
  }
  ~OpacityScope() { Context::current().set_opacity(before_); }
  OpacityScope(const OpacityScope&) = delete;
  OpacityScope& operator=(const OpacityScope&) = delete;

 private:
  float before_;
};

class ListingView {
 public:
  /// `width` real pixels are in sight.
  ListingView(std::span<const AssemblyRow> rows, const AssemblyLook& look, float width)
      : rows_(rows),
        look_(look),
        height_(std::round(px(20))),
        advance_(text_size("0", Font::mono_note).x) {
    int last = 0;
    for (const AssemblyRow& row : rows) {
      last = std::max(last, row.line);
      longest_ = std::max(longest_, row.text.size());
    }
    const auto digits = std::max<std::size_t>(2, std::to_string(last).size());
    gutter_ = px(12) + advance_ * static_cast<float>(digits);
    constexpr float kShort = 48;  // characters
    if (width < advance_ * kShort) operands_ = 13;
  }

  float line_height() const { return height_; }
  /// The longest text, with room for its operands to stand in their column.
  float width() const {
    return gutter_ + px(24) + advance_ * static_cast<float>(longest_ + operands_);
  }

  void draw(int at, ImVec2 min, const ImRect& seen, bool hovered) const {
    const AssemblyRow& row = rows_[static_cast<std::size_t>(at)];
    const bool lit = row.lit;
    const ImVec2 low(seen.Min.x, min.y), high(seen.Max.x, min.y + height_);
    if (lit) draw_lit_line(low, high);
    if (hovered) list().AddRectFilled(low, high, color(Role::raised, 0.8f));
    const float y = min.y + (height_ - font_pixels(Font::mono_note)) / 2;
    const bool first = at == 0 || rows_[static_cast<std::size_t>(at) - 1].line != row.line;
    if (row.line > 0 && (first || at == first_seen_)) {
      draw_text({min.x + gutter_, y}, std::to_string(row.line), Font::mono_note,
                lit ? Role::text : Role::muted, Align::right);
    }
    const std::string words = look_.shown ? look_.shown(row.text) : std::string(row.text);
    const std::string text = aligned_instruction(words, operands_);
    if (hovered && words != row.text) show_tooltip(row.text);
    float x = min.x + gutter_ + px(16);
    if (row.line == 0) {  // of no line of the source
      draw_text({x, y}, text, Font::mono_note, Role::muted);
    } else {
      for (const SyntaxSpan& span : tinted_instruction(text)) {
        const std::string_view piece =
            std::string_view(text).substr(span.begin, span.end - span.begin);
        if (piece.find_first_not_of(' ') != piece.npos) {
          draw_text({x, y}, piece, Font::mono_note, role_of(span.kind));
        }
        x += advance_ * static_cast<float>(span.columns);
      }
    }
    map(fmt::format("assembly_row_{}", at + 1), row.text,
        lit            ? "lit"
        : row.line > 0 ? std::to_string(row.line)
                       : "",
        low, high);
  }

  void set_first_seen(int row) { first_seen_ = row; }

 private:
  std::span<const AssemblyRow> rows_;
  const AssemblyLook& look_;
  float height_, advance_, gutter_ = 0;
  std::size_t longest_ = 0, operands_ = 20;
  int first_seen_ = 0;
};

}  // namespace

void draw_lit_line(ImVec2 min, ImVec2 max) {
  list().AddRectFilled(min, max, color(Role::text, 0.1f));
  list().AddRectFilled(min, {min.x + px(3), max.y}, color(Role::text), px(1));
}

AssemblyPointed assembly_view(std::string_view id, std::span<const AssemblyRow> rows,
                              const AssemblyLook& look, float below) {
  const ImVec2 min = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  const float high = std::max(room.y - below, px(40));
  ListingView view(rows, look, room.x);
  AssemblyPointed pointed;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, color(Role::background, 0.5f));
  ImGui::PushID(id.data(), id.data() + id.size());
  ImGui::BeginChild("listing", {room.x, high}, false,
                    ImGuiWindowFlags_HorizontalScrollbar | ImGuiWindowFlags_NoNavInputs);
  const ImRect seen = ImGui::GetCurrentWindowRead()->InnerRect;
  map("assembly", look.label, look.stale ? "stale" : "", seen.Min, seen.Max);
  scroll_stop("assembly");
  if (look.go_to >= 0) {
    const float top = static_cast<float>(look.go_to) * view.line_height();
    ImGui::SetScrollY(std::max(0.0f, std::floor(top - seen.GetHeight() / 3)));
    request_redraw();
  }
  const ImVec2 origin = ImGui::GetCursorScreenPos(), mouse = ImGui::GetIO().MousePos;
  const bool over = ImGui::IsWindowHovered() && seen.Contains(mouse);
  const int count = static_cast<int>(rows.size());
  const auto row_at = [&](float y) {
    return static_cast<int>(
        std::floor(std::clamp((y - origin.y) / view.line_height(), -1e6f, 1e6f)));
  };
  const int first = std::max(0, row_at(seen.Min.y)), last = std::min(count - 1, row_at(seen.Max.y));
  if (over && row_at(mouse.y) >= 0 && row_at(mouse.y) < count) pointed.hovered = row_at(mouse.y);
  if (pointed.hovered >= 0 && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    pointed.clicked = pointed.hovered;
  }
  {
    const OpacityScope dim(look.stale ? kStaleOpacity : 1);
    view.set_first_seen(first);
    for (int at = first; at <= last; ++at) {
      view.draw(at, {origin.x, origin.y + static_cast<float>(at) * view.line_height()}, seen,
                at == pointed.hovered);
    }
  }
  ImGui::SetCursorScreenPos(origin);
  ImGui::Dummy({view.width(), view.line_height() * static_cast<float>(count)});
  ImGui::EndChild();
  ImGui::PopID();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  list().AddRect(min, {min.x + room.x, min.y + high}, color(Role::border), px(4));
  ImGui::SetCursorScreenPos({min.x, min.y + high});
  return pointed;
}

}  // namespace tilestep::ui

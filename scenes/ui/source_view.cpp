#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/base/lab/source.hpp"
#include "scenes/ui/context.hpp"
#include "scenes/ui/syntax.hpp"
#include "scenes/ui/theme.hpp"

namespace tilestep::ui {
namespace {

ImDrawList& list() {
  return *ImGui::GetWindowDrawList();
}

struct Kept {
  const char* data = nullptr;
  std::size_t size = 0;
  std::vector<SyntaxLine> lines;
  int current = 0;
  float scroll_target = -1;
};

Role role_of(Syntax kind) {
  switch (kind) {
    case Syntax::plain:
      return Role::text;
    case Syntax::keyword:
      return Role::purple;
    case Syntax::cuda:
      return Role::sky;
    case Syntax::number:
      return Role::orange;
    case Syntax::string:
      return Role::green;
    case Syntax::comment:
      return Role::muted;
  }
  return Role::text;
}

class View {
 public:
  View(std::string_view source, int current, const std::vector<int>& steps, int line_count)
      : source_(source),
        current_(current),
        steps_(steps),
        height_(std::round(px(20))),
        advance_(text_size("0", Font::mono_note).x),
        gutter_(px(32) + advance_ * static_cast<float>(std::to_string(line_count).size())) {}

  float line_height() const { return height_; }
  float width_of(const SyntaxLine& line) const {
    return gutter_ + px(24) + advance_ * static_cast<float>(line.columns);
  }

  void draw(int number, const SyntaxLine& line, ImVec2 at, float width) const {
    const float left = ImGui::GetWindowPos().x;
    if (number == current_) {
      list().AddRectFilled({left, at.y}, {left + width, at.y + height_}, color(Role::accent, 0.17f),
                           px(4));
      list().AddRectFilled({left, at.y}, {left + px(3), at.y + height_}, color(Role::accent),
                           px(2));
      const std::string_view text = source_.substr(line.begin, line.end - line.begin);
      map("source_line", text.substr(0, text.find(lab::kStepMark)), std::to_string(number),
          {left, at.y}, {left + width, at.y + height_});
    }
    const float y = at.y + (height_ - font_pixels(Font::mono_note)) / 2;
    draw_text({at.x + gutter_ - px(20), y}, std::to_string(number), Font::mono_note,
              number == current_ ? Role::text : Role::faint, Align::right);
    draw_step(number, {at.x + gutter_ - px(6), at.y + height_ / 2});
    float x = at.x + gutter_ + px(8);
    for (const SyntaxSpan& span : line.spans) {
      const std::string_view piece = source_.substr(span.begin, span.end - span.begin);
      if (piece.starts_with(lab::kStepMark)) continue;  // it is for the program, not for readers
      draw_text({x, y}, piece, Font::mono_note, role_of(span.kind));
      x += advance_ * static_cast<float>(span.columns);
    }
  }

 private:
  /// A small numbered disc at the lines of this step.
  void draw_step(int number, ImVec2 center) const {
    const auto found = std::find(steps_.begin(), steps_.end(), number);
    if (found == steps_.end()) return;
    const std::string digit = std::to_string(found - steps_.begin() + 1);
    const bool now = number == current_;
    const float radius = px(8);
    if (now) {
      list().AddCircleFilled(center, radius, color(Role::accent));
    } else {
      list().AddCircle(center, radius, color(Role::muted), 0, px(1));
    }
    const float size = font_pixels(Font::note) * 0.82f;
    const float wide = text_size(digit, Font::note).x * 0.82f;
    list().AddText(
        font(Font::note), size, {std::round(center.x - wide / 2), std::round(center.y - size / 2)},
        ink(now ? Role::on_accent : Role::muted), digit.data(), digit.data() + digit.size());
  }

  std::string_view source_;
  int current_;
  const std::vector<int>& steps_;
  float height_, advance_, gutter_;
};

/// Brings the current line to about a third of the view.
void scroll_to(Kept& kept, int current, float line_height) {
  if (kept.current != current) {
    kept.current = current;
    if (current > 0) {
      const float top = static_cast<float>(current - 1) * line_height;
      kept.scroll_target = std::max(
          0.0f, std::floor((top - ImGui::GetWindowHeight() / 3) / line_height) * line_height);
    }
  }
  if (kept.scroll_target < 0) return;
  const float now = ImGui::GetScrollY();
  const float target = std::min(kept.scroll_target, std::max(ImGui::GetScrollMaxY(), now));
  const float seconds = animation_seconds();
  const float share = seconds > 0 ? 1 - std::exp(-12 * seconds) : 1;
  const float next = now + (target - now) * share;
  if (std::abs(target - next) < 1) {
    // Before the first layout ImGui does not know yet how far it can scroll.
    ImGui::SetScrollY(kept.scroll_target);
    if (ImGui::GetScrollMaxY() > 0) kept.scroll_target = -1;
  } else {
    ImGui::SetScrollY(next);
    request_redraw();
  }
}

}  // namespace

void source_view(std::string_view id, std::string_view source, int current,
                 const std::vector<int>& step_lines) {
  Kept& kept = Context::current().kept<Kept>(kept_name("source", id));
  if (kept.data != source.data() || kept.size != source.size()) {
    kept = {source.data(), source.size(), tinted(source), 0, -1};
  }
  const View view(source, current, step_lines, static_cast<int>(kept.lines.size()));
  float width = 0;
  for (const SyntaxLine& line : kept.lines) width = std::max(width, view.width_of(line));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, 0);
  ImGui::PushID(id.data(), id.data() + id.size());
  ImGui::BeginChild("source", {0, 0}, false, ImGuiWindowFlags_HorizontalScrollbar);
  scroll_stop("source");
  scroll_to(kept, current, view.line_height());
  const float marked = std::max(width, ImGui::GetContentRegionAvail().x);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(kept.lines.size()), view.line_height());
  while (clipper.Step()) {
    for (int row = clipper.DisplayStart; row < clipper.DisplayEnd; ++row) {
      view.draw(row + 1, kept.lines[static_cast<std::size_t>(row)], ImGui::GetCursorScreenPos(),
                marked);
      ImGui::Dummy({width, view.line_height()});
    }
  }
  ImGui::EndChild();
  ImGui::PopID();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
}

}  // namespace tilestep::ui

#include <imgui_internal.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <map>

#include "scenes/ui/context.hpp"

namespace tilestep::ui {
namespace {

float length(ImVec2 v) {
  return std::sqrt(v.x * v.x + v.y * v.y);
}

/// For the sweep that looks for overprinting; costs nothing in a window. What is scrolled away is
/// left out.
void record_text(std::string_view text, ImVec2 min, ImVec2 size, ImU32 color) {
  Context& context = Context::current();
  if (!context.records_texts() || text.empty()) return;
  const ImVec2 max(min.x + size.x, min.y + size.y);
  const bool seen =
      ImRect(min, max).Overlaps(ImRect(list().GetClipRectMin(), list().GetClipRectMax()));
  const bool cut = !can_be_reached(min, max);
  if (!seen && !cut) return;
  context.texts().push_back({std::string(text), min, max, ImGui::GetCurrentWindowRead()->ID, seen,
                             cut, color, &list(), list().IdxBuffer.Size, list().GetClipRectMin(),
                             list().GetClipRectMax()});
}

}  // namespace

ImVec2 text_size(std::string_view text, Font font) {
  return ui::font(font)->CalcTextSizeA(font_pixels(font), FLT_MAX, 0, text.data(),
                                       text.data() + text.size());
}

void draw_text_in(ImVec2 position, std::string_view text, Font font, ImU32 color) {
  list().AddText(ui::font(font), font_pixels(font), position, color, text.data(),
                 text.data() + text.size());
  if (Context::current().records_texts()) record_text(text, position, text_size(text, font), color);
}

ImVec2 draw_text(ImVec2 position, std::string_view text, Font font, Role role, Align align,
                 float alpha) {
  const ImVec2 size = text_size(text, font);
  if (align == Align::center) position.x -= size.x / 2;
  if (align == Align::right) position.x -= size.x;
  draw_text_in({std::round(position.x), std::round(position.y)}, text, font, ink(role, alpha));
  return size;
}

std::string fitted(std::string_view text, Font font, float width) {
  if (text_size(text, font).x <= width) return std::string(text);
  constexpr std::string_view kEllipsis = "…";
  const float room = width - text_size(kEllipsis, font).x;
  if (room <= 0) return {};
  // Binary search over the byte length, kept at the start of a UTF-8 character.
  std::size_t fits = 0, too_long = text.size();
  while (too_long - fits > 1) {
    const std::size_t middle = (fits + too_long) / 2;
    (text_size(text.substr(0, middle), font).x <= room ? fits : too_long) = middle;
  }
  while (fits > 0 && (static_cast<unsigned char>(text[fits]) & 0xC0u) == 0x80u) --fits;
  while (fits > 0 && text[fits - 1] == ' ') --fits;
  return std::string(text.substr(0, fits)).append(kEllipsis);
}

ImVec2 wrapped_size(std::string_view text, float width, Font font) {
  return ui::font(font)->CalcTextSizeA(font_pixels(font), FLT_MAX, std::max(width, 1.0f),
                                       text.data(), text.data() + text.size());
}

ImVec2 draw_wrapped(ImVec2 position, std::string_view text, float width, Font font, Role role) {
  list().AddText(ui::font(font), font_pixels(font), position, ink(role), text.data(),
                 text.data() + text.size(), std::max(width, 1.0f));
  const ImVec2 size = wrapped_size(text, width, font);
  record_text(text, position, size, ink(role));
  return size;
}

void text(std::string_view text, Font font, Role role) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string shown = fitted(text, font, ImGui::GetContentRegionAvail().x);
  ImGui::Dummy(draw_text(at, shown, font, role));
}

void paragraph(std::string_view text, Font font, Role role) {
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::Dummy(draw_wrapped(ImGui::GetCursorScreenPos(), text, width, font, role));
}

void space(float design_pixels) {
  // ImGui adds its own item spacing below a dummy.
  ImGui::Dummy({0, std::max(0.0f, px(design_pixels) - ImGui::GetStyle().ItemSpacing.y)});
}

void tooltip(std::string_view sentence) {
  if (sentence.empty()) return;
  if (ImGui::IsItemHovered()) {
    show_tooltip(sentence);
  } else {
    Context::current().focus().tip(sentence);
  }
}

void show_tooltip(std::string_view sentence) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(12), px(kGapSmall)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, px(kControlCorner));
  ImGui::BeginTooltip();
  const float width = std::min(px(320), text_size(sentence, Font::note).x + 1);
  ImGui::Dummy(draw_wrapped(ImGui::GetCursorScreenPos(), sentence, width, Font::note));
  ImGui::EndTooltip();
  ImGui::PopStyleVar(2);
}

void hatch_in(ImVec2 min, ImVec2 max, ImU32 paint, float spacing) {
  const float gap = std::max(px(spacing), 2.0f);
  if (!(max.x > min.x && max.y > min.y)) return;
  // Lines start at whole gaps of the screen, so that neighbouring cells join without a seam. Each ends
  // at the edges by itself: a clip rectangle a cell would be a draw call a cell.
  const float first = std::ceil((min.x + min.y) / gap) * gap;
  for (float sum = first; sum < max.x + max.y; sum += gap) {
    const float left = std::max(min.x, sum - max.y), right = std::min(max.x, sum - min.y);
    list().AddLine({right, sum - right}, {left, sum - left}, paint, px(1));
  }
}

void hatch(ImVec2 min, ImVec2 max, Role role, float spacing) {
  hatch_in(min, max, color(role), spacing);
}

void dashed_line(ImVec2 from, ImVec2 to, Role role, float thickness) {
  const ImVec2 way(to.x - from.x, to.y - from.y);
  const float total = length(way);
  if (total <= 0) return;
  const float dash = px(5), gap = px(4);
  const ImVec2 unit(way.x / total, way.y / total);
  for (float at = 0; at < total; at += dash + gap) {
    const float end = std::min(at + dash, total);
    list().AddLine({from.x + unit.x * at, from.y + unit.y * at},
                   {from.x + unit.x * end, from.y + unit.y * end}, color(role), px(thickness));
  }
}

void dashed_rect(ImVec2 min, ImVec2 max, Role role, float thickness) {
  dashed_line(min, {max.x, min.y}, role, thickness);
  dashed_line({max.x, min.y}, max, role, thickness);
  dashed_line(max, {min.x, max.y}, role, thickness);
  dashed_line({min.x, max.y}, min, role, thickness);
}

void arrow(ImVec2 from, ImVec2 to, Role role, float thickness) {
  const ImVec2 way(to.x - from.x, to.y - from.y);
  const float total = length(way);
  if (total <= 0) return;
  const ImVec2 unit(way.x / total, way.y / total);
  const float head = std::min(px(4 + 3 * thickness), total);
  const ImVec2 base(to.x - unit.x * head, to.y - unit.y * head);
  const float half = head * 0.5f;
  list().AddLine(from, base, color(role), px(thickness));
  list().AddTriangleFilled(to, {base.x - unit.y * half, base.y + unit.x * half},
                           {base.x + unit.y * half, base.y - unit.x * half}, color(role));
}

void cross(ImVec2 center, float radius, Role role) {
  const float thickness = std::max(radius * 0.3f, 1.5f);
  list().AddLine({center.x - radius, center.y - radius}, {center.x + radius, center.y + radius},
                 color(role), thickness);
  list().AddLine({center.x - radius, center.y + radius}, {center.x + radius, center.y - radius},
                 color(role), thickness);
}

void check(ImVec2 center, float radius, Role role) {
  const ImVec2 points[] = {{center.x - radius, center.y + radius * 0.1f},
                           {center.x - radius * 0.25f, center.y + radius * 0.8f},
                           {center.x + radius, center.y - radius * 0.7f}};
  list().AddPolyline(points, 3, color(role), 0, std::max(radius * 0.3f, 1.5f));
}

}  // namespace tilestep::ui

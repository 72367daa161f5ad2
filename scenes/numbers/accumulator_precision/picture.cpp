// The picture of the accumulator lesson: where everything stands, the sentence, and the chips that
// choose which accumulator is in focus.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/numbers/accumulator_precision/layout.hpp"

namespace tilestep::scenes {

using accumulator_precision::Method;

namespace accumulator_parts {

Role role_of(Method method) {
  switch (method) {
    case Method::fp8_e4m3:
      return Role::vermillion;
    case Method::fp8_e5m2:
      return Role::yellow;
    case Method::fp16:
      return Role::sky;
    case Method::bf16:
      return Role::green;
    case Method::tf32:
      return Role::purple;
    case Method::fp32:
      return Role::blue;
    // Marked besides, since there are more accumulators than colours that all people tell apart.
    case Method::promoted:
      return Role::orange;
    case Method::kahan:
      return Role::purple;
    case Method::pairwise:
      return Role::yellow;
  }
  return Role::muted;
}

void draw_mark(Method method, ImVec2 center, float radius) {
  const ImU32 color = ui::color(role_of(method));
  if (method == Method::promoted) {
    draw_list()->AddCircleFilled(center, radius, color);
  } else if (method == Method::kahan) {
    draw_list()->AddRectFilled(at(center.x - radius, center.y - radius),
                               at(center.x + radius, center.y + radius), color);
  } else if (method == Method::pairwise) {
    draw_list()->AddTriangleFilled(at(center.x - radius * 1.2f, center.y + radius),
                                   at(center.x + radius * 1.2f, center.y + radius),
                                   at(center.x, center.y - radius * 1.2f), color);
  }
}

}  // namespace accumulator_parts

using accumulator_parts::draw_mark, accumulator_parts::role_of;

AccumulatorPrecisionScene::Layout AccumulatorPrecisionScene::layout() const {
  Layout to(picture_frame(330));
  to.note = std::max(to.note, height_of(Font::mono_note));
  const ImVec2 size = at(to.width(), to.height());
  const float gap = px(to.tight ? 3 : 8);
  // The width that the bits need, for the widest format that is shown.
  int bits = 0;
  float widest = 0;
  for (const AccumulatorTrace& a : trace_.accumulators) {
    bits = std::max(bits, a.format.bits());
    widest = std::max(widest, ui::text_size(a.label, Font::note).x);
  }
  const float names = ui::text_size("+ t[00000]", Font::mono_note).x + px(12);
  const float values = ui::text_size("= 0.00000000", Font::mono).x;
  to.group_gap = px(to.tight ? 5 : 8);
  const auto cells = [&](float width, int count) {
    return (width - names - values - 2 * to.group_gap) / static_cast<float>(count);
  };
  // The number line stands beside the bits where the widest format leaves room for it, so that
  // nothing moves when another one comes into focus, or where the plot needs the height more.
  const bool beside = size.y < px(430) || cells(size.x * 0.56f, bits) >= px(11);
  const float wanted = px(to.tight ? 15 : 26);
  const float room = cells(beside ? size.x * 0.56f : size.x, focused().format.bits());
  to.cell = std::max(std::floor(std::min(wanted, room)), 2.0f);
  const float row_text = height_of(Font::mono);
  to.row = to.tight ? std::max(to.note + px(2), px(17)) : std::max(row_text + px(6), px(28));

  // From the bottom up.
  const float marks = px(to.tight ? 11 : 18);  // an arrow, above and below the number line
  const float line_height = 2 * to.note + 2 * marks;
  const float group_names = to.tight ? 0 : to.note + px(2);
  const float rows = group_names + 3 * to.row;
  const float block = beside ? std::max(rows, line_height) : rows + px(8) + line_height;
  const float top = to.max.y - block;
  to.names_top = top;
  to.bits_min = at(to.min.x, top + group_names);
  const float cells_width =
      to.cell * static_cast<float>(focused().format.bits()) + 2 * to.group_gap;
  to.cells_left = to.min.x + names;
  const float bits_right = beside ? to.min.x + size.x * 0.56f : to.max.x;
  to.bits_max = at(std::max(bits_right, to.cells_left + cells_width), to.bits_min.y + 3 * to.row);
  to.line_min = beside ? at(to.bits_max.x + px(16), top + (block - line_height) / 2)
                       : at(to.min.x, to.max.y - line_height);
  to.line_max = at(to.max.x, to.line_min.y + line_height);

  const float chips = to.note + px(to.tight ? 2 : 8);
  to.chips_min = at(to.min.x, top - gap - chips);
  to.chips_max = at(to.max.x, top - gap);
  to.ticks_top = to.chips_min.y - px(to.tight ? 2 : 10) - to.note;
  to.rug_bottom = to.ticks_top - px(2);
  to.rug_top = to.rug_bottom - px(to.tight ? 7 : 11);
  const float ends =
      std::min(widest + ui::text_size("  000000", Font::mono_note).x + px(20), size.x * 0.3f);
  const float ticks = ui::text_size("−00.00", Font::note).x + px(8);
  to.plot_min = at(to.min.x + ticks, to.min.y + height_of(to.heading) + px(to.tight ? 4 : 14));
  to.plot_max = at(to.max.x - ends, std::max(to.rug_top - px(1), to.plot_min.y + px(20)));
  return to;
}

void AccumulatorPrecisionScene::draw_picture(Cursor cursor) {
  if (trace_.accumulators.empty() || trace_.points.empty()) return;
  const Layout where = layout();
  const AccumulatorMoment now = moment(cursor);
  draw_sentence(where, sentence(cursor));
  const PlotSpace plot = plot_space(where);
  draw_axes(where, plot);
  draw_exact(plot, now);
  for (int i = 0; i < static_cast<int>(trace_.accumulators.size()); ++i) {
    if (i != focus_) draw_sum(plot, i, now);
  }
  draw_sum(plot, focus_, now);
  draw_rug(where, plot, now);
  draw_cursor(where, plot, now);
  draw_frozen(where, plot, now, draw_end_labels(where, plot, now));
  draw_chips(where);
  draw_bits(where, now);
  if (focused().method == Method::pairwise) {
    draw_blocks(where, now);
  } else {
    draw_number_line(where, now);
  }
  draw_plot_tooltip(plot, now);
}

/// One accumulator to choose; true if it was pressed.
bool AccumulatorPrecisionScene::chip(int number, ImVec2 min, ImVec2 max) {
  const AccumulatorTrace& a = accumulator(number);
  const bool chosen = number == focus_;
  ImGui::SetCursorScreenPos(min);
  ImGui::PushID(number);
  const bool pressed = ImGui::InvisibleButton("chip", at(max.x - min.x, max.y - min.y));
  ImGui::PopID();
  const bool hovered = ImGui::IsItemHovered();
  if (hovered) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    hovered_chip_ = number;
  }
  const float round = (max.y - min.y) / 2;
  if (chosen || hovered) {
    draw_list()->AddRectFilled(min, max, ui::color(Role::raised), round);
  }
  if (chosen) draw_list()->AddRect(min, max, ui::color(Role::accent), round, 0, px(1.5f));
  const float middle = (min.y + max.y) / 2;
  const float left = min.x + px(8);
  line(at(left, middle), at(left + px(14), middle), role_of(a.method), 3);
  draw_mark(a.method, at(left + px(7), middle), px(4));
  ui::draw_text(at(left + px(20), middle - height_of(Font::note) / 2),
                ui::fitted(a.label, Font::note, max.x - left - px(26)), Font::note,
                chosen ? Role::text : Role::muted);
  ui::map(fmt::format("chip_{}", name_of(a.method)), a.label, chosen ? "selected" : "", min, max);
  return pressed;
}

/// The accumulators side by side, or, where they do not fit, the one in focus and a way to the
/// next.
void AccumulatorPrecisionScene::draw_chips(const Layout& layout) {
  const int count = static_cast<int>(trace_.accumulators.size());
  const auto width_of = [&](int number) {
    return ui::text_size(accumulator(number).label, Font::note).x + px(38);
  };
  const std::string what = "in bits:";
  float x = layout.chips_min.x;
  const float y = layout.chips_min.y + (layout.chips_max.y - layout.chips_min.y - layout.note) / 2;
  x += ui::draw_text(at(x, y), what, Font::note, Role::muted).x + px(8);
  float total = 0;
  for (int i = 0; i < count; ++i) total += width_of(i) + px(4);
  int chosen = focus_;
  const int hovered_before = hovered_chip_;
  hovered_chip_ = -1;
  if (x + total <= layout.chips_max.x) {
    for (int i = 0; i < count; ++i) {
      const float right = x + width_of(i);
      if (chip(i, at(x, layout.chips_min.y), at(right, layout.chips_max.y))) chosen = i;
      x = right + px(4);
    }
  } else {
    const float right = x + width_of(focus_);
    if (chip(focus_, at(x, layout.chips_min.y), at(right, layout.chips_max.y))) ++chosen;
    const std::string next = fmt::format("{} of {}, press for the next", focus_ + 1, count);
    ui::draw_text(at(right + px(10), y),
                  ui::fitted(next, Font::note, layout.chips_max.x - right - px(10)), Font::note,
                  Role::muted);
  }
  // The lines above are drawn already: another frame brings them along.
  if (chosen != focus_ || hovered_chip_ != hovered_before) ui::request_redraw();
  focus_ = chosen % count;
}

}  // namespace tilestep::scenes

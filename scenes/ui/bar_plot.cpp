#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenes/ui/axis.hpp"
#include "scenes/ui/context.hpp"

namespace tilestep::ui {
namespace {

constexpr float kBarRow = 28, kLeastBarRow = 20;  // design pixels

/// Vertical grid lines with their numbers below, right of `left`, and the unit below the values, whose
/// column ends at `right`.
void draw_bar_axis(const Axis& axis, const PlotRoom& room, float left, const std::string& unit,
                   float right) {
  const int most = std::max(2, static_cast<int>(room.width() / px(90)));
  const float unit_left = right - text_size(unit, Font::note).x - px(8);
  for (const double tick : axis.ticks(most)) {
    const float x = std::round(room.min.x + room.width() * axis.place(tick));
    list().AddLine({x, room.min.y}, {x, room.max.y}, color(Role::grid));
    const std::string text = tick_text(tick);
    const float half = text_size(text, Font::note).x / 2;
    const float middle = std::max(x, left + half);
    if (middle + half > unit_left && tick != 0) continue;
    draw_text({middle, room.max.y + px(4)}, text, Font::note, Role::muted, Align::center);
  }
  draw_text({right, room.max.y + px(4)}, unit, Font::note, Role::muted, Align::right);
}

std::string bar_value(const Bar& bar, const std::string& unit) {
  return unit.empty() ? value_text(bar.value) : fmt::format("{} {}", value_text(bar.value), unit);
}

/// Where the columns of a bar plot stand: names, bars, values, notes. No number stands on a line.
struct BarColumns {
  float top = 0, row = 0;  ///< height above the bars, and of each
  float names = 0;         ///< width
  PlotRoom bars;
  float values_right = 0, notes_left = 0, right = 0;
  std::string value_unit;  ///< after each value, where there is room for it
};

float bar_top(const BarPlot& plot) {
  const float title = plot.title.empty() ? 0 : line_height(Font::body_bold) + px(kGapSmall);
  return title + (plot.roof || plot.roof_room ? line_height(Font::note) + px(4) : 0);
}

float bar_foot() {
  return line_height(Font::note) + px(kGapSmall);
}

BarColumns bar_columns(const BarPlot& plot, ImVec2 at, float width, float height) {
  BarColumns columns;
  const auto count = static_cast<float>(std::max<std::size_t>(plot.bars.size(), 1));
  columns.top = bar_top(plot);
  columns.row = std::round(
      std::clamp((height - columns.top - bar_foot()) / count, px(kLeastBarRow), px(kBarRow)));
  if (height <= 0) columns.row = std::round(px(kBarRow));
  float numbers = 0, with_unit = 0, notes = 0;
  for (const Bar& bar : plot.bars) {
    if (bar.name_shown) columns.names = std::max(columns.names, text_size(bar.label).x + px(12));
    numbers = std::max(numbers, text_size(value_text(bar.value), Font::mono_note).x);
    with_unit = std::max(with_unit, text_size(bar_value(bar, plot.unit), Font::mono_note).x);
    notes = std::max(notes, text_size(bar.note, Font::note).x);
  }
  columns.names = std::min(columns.names, width * 0.4f);
  if (notes > 0) notes += px(kGapSmall);
  // The bars keep their share: first the units go, which the axis has too, then the notes' ends.
  const float least = std::max(width * 0.3f, px(60));
  const float room = width - columns.names - px(kGapSmall) - least;
  const bool units = with_unit + notes <= room;
  if (units) columns.value_unit = plot.unit;
  const float values = units ? with_unit : numbers;
  notes = std::clamp(room - values, 0.0f, notes);
  columns.right = at.x + width;
  columns.values_right = columns.right - notes;
  columns.notes_left = columns.values_right + px(kGapSmall);
  columns.bars.min = {at.x + columns.names, at.y + columns.top};
  columns.bars.max = {columns.values_right - values - px(kGapSmall),
                      columns.bars.min.y + columns.row * count};
  return columns;
}

void draw_bar(const Bar& bar, const Axis& axis, const BarColumns& columns, float top) {
  const float middle = std::round(top + columns.row / 2);
  const float half = std::round(std::min(px(9), columns.row / 2 - px(2)));
  const auto place = [&](double value) {
    return columns.bars.min.x + columns.bars.width() * axis.place(value);
  };
  if (bar.name_shown) {
    const std::string name = fitted(bar.label, Font::body, columns.names - px(12));
    draw_text({columns.bars.min.x - px(12), middle - line_height(Font::body) / 2}, name, Font::body,
              Role::text, Align::right);
  }
  const float zero = place(0);
  list().AddRectFilled({zero, middle - half},
                       {std::max(place(bar.value), zero + px(2)), middle + half}, color(bar.role),
                       px(3));
  if (bar.p10 && bar.p90) {
    const float low = place(*bar.p10), high = place(*bar.p90);
    const ImU32 ink = color(Role::text);
    list().AddLine({low, middle}, {high, middle}, ink, px(1.5f));
    for (const float x : {low, high}) {
      list().AddLine({x, middle - px(4)}, {x, middle + px(4)}, ink, px(1.5f));
    }
  }
  draw_text({columns.values_right, middle - line_height(Font::mono_note) / 2},
            bar_value(bar, columns.value_unit), Font::mono_note, Role::text, Align::right);
  draw_text({columns.notes_left, middle - line_height(Font::note) / 2},
            fitted(bar.note, Font::note, columns.right - columns.notes_left), Font::note,
            Role::muted);
}

/// What was expected of a bar, around it.
void draw_expected(const Bar& bar, const Axis& axis, const BarColumns& columns, float top) {
  if (!bar.expected || !std::isfinite(*bar.expected)) return;
  const float middle = std::round(top + columns.row / 2);
  const float half = std::round(std::min(px(9), columns.row / 2 - px(2)));
  const auto place = [&](double value) {
    return std::round(columns.bars.min.x + columns.bars.width() * axis.place(value));
  };
  const float left = place(std::min(bar.value, *bar.expected)), right = place(*bar.expected);
  for (const float y : {middle - half, middle + half}) {
    if (right > left) dashed_line({left, y}, {right, y}, Role::muted);
  }
  dashed_line({right, middle - half - px(2)}, {right, middle + half + px(2)}, Role::text, 2);
}

/// What another device reached, as a mark across the row.
void draw_reference(const Bar& bar, const Axis& axis, const BarColumns& columns, float top) {
  if (!bar.reference || !std::isfinite(*bar.reference)) return;
  const float x =
      std::round(columns.bars.min.x + columns.bars.width() * axis.place(*bar.reference));
  const float middle = std::round(top + columns.row / 2), half = columns.row / 2 - px(1);
  list().AddLine({x, middle - half}, {x, middle + half}, color(Role::panel), px(5));
  list().AddLine({x, middle - half}, {x, middle + half}, color(Role::muted), px(2.5f));
}

/// All of a bar while the pointer is on it: names and notes may have been cut.
void explain_bar(const Bar& bar, const BarPlot& plot, ImVec2 min, ImVec2 max) {
  if (!ImGui::IsWindowHovered() || !ImGui::IsMouseHoveringRect(min, max)) return;
  std::string text = fmt::format("{}\n{}", bar.label, bar_value(bar, plot.unit));
  if (bar.p10 && bar.p90) {
    text += fmt::format("\n80 % of the samples lie between {} and {}", value_text(*bar.p10),
                        value_text(*bar.p90));
  }
  if (bar.expected) text += fmt::format("\nexpected {}", value_text(*bar.expected));
  if (!bar.note.empty()) text += "\n" + bar.note;
  if (bar.reference) {
    text += fmt::format("\n{}: {} {}", plot.reference, value_text(*bar.reference), plot.unit);
  }
  ImGui::SetTooltip("%s", text.c_str());
}

void draw_bar_roof(const BarPlot& plot, const Axis& axis, const BarColumns& columns, float left) {
  if (!plot.roof) return;
  const PlotRoom& room = columns.bars;
  const float x = std::round(room.min.x + room.width() * axis.place(*plot.roof));
  stroke({x, room.min.y}, {x, room.max.y}, Role::muted, false);
  map(plot.id + "_roof", plot.roof_label, value_text(*plot.roof), {x - px(0.75f), room.min.y},
      {x + px(0.75f), room.max.y});
  const std::string label =
      fitted(fmt::format("{} {} {}", plot.roof_label, value_text(*plot.roof), plot.unit),
             Font::note, columns.right - left);
  const float half = text_size(label, Font::note).x / 2;
  const float middle = std::clamp(x, left + half, std::max(columns.right - half, left + half));
  draw_text({middle, room.min.y - line_height(Font::note) - px(2)}, label, Font::note, Role::muted,
            Align::center);
}

}  // namespace

float bar_plot_height(const BarPlot& plot) {
  return bar_top(plot) + std::round(px(kLeastBarRow)) * static_cast<float>(plot.bars.size()) +
         bar_foot();
}

void bar_plot(const BarPlot& plot, float height) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  std::vector<double> values;
  for (const Bar& bar : plot.bars) {
    values.push_back(std::max(bar.value, bar.p90.value_or(bar.value)));
    if (bar.expected) values.push_back(*bar.expected);
    if (bar.reference) values.push_back(*bar.reference);
  }
  if (plot.roof) values.push_back(*plot.roof);
  const Axis axis = axis_for(values, false, true);
  const BarColumns columns = bar_columns(plot, at, width, height);
  if (!plot.title.empty()) {
    draw_text(at, fitted(plot.title, Font::body_bold, width), Font::body_bold);
  }
  draw_bar_axis(axis, columns.bars, at.x, plot.unit, columns.values_right);
  for (std::size_t i = 0; i < plot.bars.size(); ++i) {
    const Bar& bar = plot.bars[i];
    const float y = columns.bars.min.y + columns.row * static_cast<float>(i);
    draw_bar(bar, axis, columns, y);
    draw_expected(bar, axis, columns, y);
    draw_reference(bar, axis, columns, y);
    const ImVec2 min(at.x, y), max(at.x + width, y + columns.row);
    explain_bar(bar, plot, min, max);
    map(fmt::format("{}_{}", plot.id, i), bar.label, bar_value(bar, plot.unit), min, max);
  }
  draw_bar_roof(plot, axis, columns, at.x);
  ImGui::Dummy({width, columns.bars.max.y - at.y + bar_foot()});
}

}  // namespace tilestep::ui

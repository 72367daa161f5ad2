#include "scenes/stage/measured_plots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "scenes/picture/look.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"
#include "scenes/ui/axis.hpp"
#include "scenes/ui/picture_view.hpp"
#include "scenes/ui/roofline.hpp"

namespace tilestep::scenes::measured {
namespace {

using ui::Font;
using ui::px;

bool is_library(std::string_view label) {
  return label.substr(0, 6) == "cuBLAS";
}

/// Roles by name: the same for a name in every plot and under every filter of one table.
class RoleOf {
 public:
  RoleOf(Roles role, const lab::Table& rows, std::string_view column)
      : role_(role), names_(distinct(rows, column)) {}
  Role operator()(std::string_view name) const {
    if (is_library(name)) return Role::muted;
    if (role_ != nullptr) return role_(name);
    const auto place = std::find(names_.begin(), names_.end(), name) - names_.begin();
    return picture::tone_role(
        picture::category_tone(static_cast<int>(place) % picture::kCategories));
  }

 private:
  Roles role_;
  std::vector<std::string> names_;
};

bool is_stable(double value, std::optional<double> low, std::optional<double> high) {
  lab::Measurement m;
  m.value = value;
  m.p10 = low;
  m.p90 = high;
  return m.stable();
}

std::string named_roof(const std::string& label, bool stable) {
  return stable ? label : label + " (unstable)";
}

template <class Plot>
void add_roof(Plot& plot, const Roof& roof, const lab::Report& bench) {
  const lab::Measurement* m = bench.measurement(roof.measurement, roof.variant);
  if (m == nullptr) return;
  plot.roof = m->value;
  plot.roof_label = named_roof(roof.label, m->stable());
}

// ---- bars ---------------------------------------------------------------------------------------

ui::BarPlot bar_plot_of(const Bars& bars, const lab::Table& rows, const lab::Report& bench) {
  ui::BarPlot plot;
  plot.id = filled_in(bars.id, rows);
  plot.title = filled_in(bars.title, rows);
  plot.unit = filled_in(bars.unit, rows);
  add_roof(plot, bars.roof, bench);
  const RoleOf role(bars.role, rows, bars.label);
  const auto scaled = [&](const std::string& column, std::size_t row) {
    auto number = number_in(rows, row, column);
    if (number) *number *= bars.times;
    return number;
  };
  for (std::size_t row = 0; row < rows.rows.size(); ++row) {
    const bool words = bars.label.find('{') != std::string::npos;
    const std::string label =
        words ? filled_in(bars.label, rows, row) : text_in(rows, row, bars.label);
    const bool is_roof =
        bars.rows.measurement == bars.roof.measurement && label == bars.roof.variant;
    const auto value = scaled(bars.value, row);
    if (!value || !std::isfinite(*value) || (is_roof && !label.empty())) continue;
    const auto low = scaled(bars.low, row), high = scaled(bars.high, row);
    auto fraction = number_in(rows, row, bars.fraction);
    if (bars.fraction.empty() && plot.roof) fraction = *value / *plot.roof;
    const bool stable = is_stable(*value, low, high);
    if (is_library(label)) {
      plot.roof = *value;
      plot.roof_label = named_roof(label, stable);
      continue;
    }
    std::string note = filled_in(bars.note, rows, row);
    if (!stable) {
      note = "unstable";
    } else if (fraction && !bars.of.empty()) {
      note = fmt::format("{} of {}", words::percent(*fraction), bars.of);
    }
    const auto expected = bars.expected.empty() ? std::nullopt : scaled(bars.expected, row);
    if (expected && note.empty()) note = fmt::format("expected {}", ui::value_text(*expected));
    plot.bars.push_back({label, *value, low, high, role(label), std::move(note), true, expected});
  }
  return plot;
}

void add(std::vector<Drawable>& to, ui::BarPlot plot) {
  if (plot.bars.empty()) return;
  Looks looks{.measured = true, .peer = plot.roof.has_value()};
  for (const ui::Bar& bar : plot.bars) {
    looks.expected = looks.expected || bar.expected.has_value();
    looks.reference = looks.reference || bar.reference.has_value();
  }
  Drawable one{plot.id, ui::bar_plot_height(plot), {}, std::move(plot), looks};
  to.push_back(std::move(one));
}

/// The bars of `plot` learn what those of the same name are elsewhere.
ui::BarPlot beside(ui::BarPlot plot, const ui::BarPlot& other, const std::string& device) {
  for (ui::Bar& bar : plot.bars) {
    const auto same = std::find_if(other.bars.begin(), other.bars.end(),
                                   [&](const ui::Bar& each) { return each.label == bar.label; });
    if (same != other.bars.end()) bar.reference = same->value;
  }
  plot.reference = device;
  return plot;
}

std::vector<Drawable> drawn(const Bars& bars, const lab::Table& rows, const lab::Report& bench,
                            const Reference* reference) {
  std::vector<Drawable> all;
  const auto add_of = [&](const lab::Table& some, const auto& some_of) {
    ui::BarPlot plot = bar_plot_of(bars, some, bench);
    if (reference != nullptr) {
      const ui::BarPlot other = bar_plot_of(bars, some_of(reference->rows), bench);
      plot = beside(std::move(plot), other, reference->device);
    }
    add(all, std::move(plot));
  };
  if (bars.each.empty()) add_of(rows, [](const lab::Table& table) { return table; });
  for (const std::string& value : distinct(rows, bars.each)) {
    const auto those = [&](const lab::Table& table) { return rows_where(table, bars.each, value); };
    add_of(those(rows), those);
  }
  return all;
}

// ---- lines --------------------------------------------------------------------------------------

void add_point(ui::Curve& curve, const lab::Table& rows, std::size_t row, const std::string& x,
               const std::string& y, const std::string& low, const std::string& high) {
  const auto at = number_in(rows, row, x), value = number_in(rows, row, y);
  if (!at || !value) return;
  curve.x.push_back(*at);
  curve.y.push_back(*value);
  const auto from = number_in(rows, row, low), to = number_in(rows, row, high);
  if (!from || !to) return;
  curve.low.push_back(*from);
  curve.high.push_back(*to);
}

std::vector<ui::Curve> curves_by_column(const Lines& lines, const lab::Table& rows) {
  std::vector<ui::Curve> curves;
  for (const Lines::Curve& each : lines.curves) {
    ui::Curve curve;
    curve.label = each.label;
    curve.role = each.role;
    curve.dashed = each.dashed;
    for (std::size_t row = 0; row < rows.rows.size(); ++row) {
      add_point(curve, rows, row, lines.x, each.column, each.column + "_p10", each.column + "_p90");
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::vector<ui::Curve> curves_by_series(const Lines& lines, const lab::Table& rows) {
  std::vector<ui::Curve> curves;
  const RoleOf role(lines.role, rows, lines.series);
  for (const std::string& name : distinct(rows, lines.series)) {
    ui::Curve curve;
    curve.label = name;
    curve.role = role(name);
    for (std::size_t row = 0; row < rows.rows.size(); ++row) {
      if (text_in(rows, row, lines.series) != name) continue;
      add_point(curve, rows, row, lines.x, lines.y, lines.low, lines.high);
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::vector<ui::Curve> curves_of(const Lines& lines, const lab::Table& rows) {
  std::vector<ui::Curve> curves =
      lines.series.empty() ? curves_by_column(lines, rows) : curves_by_series(lines, rows);
  curves.erase(std::remove_if(curves.begin(), curves.end(),
                              [](const ui::Curve& curve) { return curve.x.empty(); }),
               curves.end());
  return curves;
}

bool is_zero(const ui::Curve& curve) {
  return std::none_of(curve.y.begin(), curve.y.end(), [](double y) { return y > 0; });
}

/// The curves of another device, without their bands: they are not what this tab is about.
void add_beside(ui::LinePlot& plot, std::vector<ui::Curve> others, const std::string& device) {
  bool named = false;
  for (ui::Curve& other : others) {
    const bool known =
        std::any_of(plot.curves.begin(), plot.curves.end(),
                    [&](const ui::Curve& each) { return each.label == other.label; });
    if (!known || other.dashed || (plot.y_log && is_zero(other))) continue;
    other.label = std::exchange(named, true) ? "" : device;
    other.low.clear();
    other.high.clear();
    other.thin = true;
    plot.curves.push_back(std::move(other));
  }
}

std::vector<Drawable> drawn(const Lines& lines, const lab::Table& rows, const lab::Report& bench,
                            const Reference* reference) {
  ui::LinePlot plot;
  plot.id = lines.id;
  plot.title = filled_in(lines.title, rows);
  plot.x_label = lines.x_label;
  plot.y_label = lines.y_label;
  plot.x_log = lines.x_log;
  plot.y_log = lines.y_log;
  plot.marked_x = lines.marked_x;
  for (ui::Curve& curve : curves_of(lines, rows)) {
    if (!lines.y_log || !is_zero(curve)) plot.curves.push_back(std::move(curve));
  }
  if (plot.curves.empty()) return {};
  add_roof(plot, lines.roof, bench);
  Looks looks{.measured = true, .peer = plot.roof.has_value()};
  if (reference != nullptr) {
    const std::size_t ours = plot.curves.size();
    add_beside(plot, curves_of(lines, reference->rows), reference->device);
    looks.reference = plot.curves.size() > ours;
  }
  for (const ui::Curve& curve : plot.curves) {
    looks.expected = looks.expected || curve.dashed;
    looks.peer = looks.peer || is_library(curve.label);
  }
  return {{lines.id, px(170), [plot](ImVec2 size) { ui::line_plot(plot, size); }, {}, looks}};
}

// ---- the others ---------------------------------------------------------------------------------

void add_roof(ui::Roofline& plot, const Roofline::Roof& roof, const lab::Report& bench) {
  const lab::Measurement* m = bench.measurement(roof.measurement);
  if (m == nullptr) return;
  if (m->unit == "GB/s") {
    plot.memory.push_back({roof.label, m->value / 1e3, roof.datasheet});
  } else {
    plot.compute.push_back({roof.label, m->value, roof.datasheet});
  }
}

std::vector<Drawable> drawn(const Roofline& spec, const lab::Table& rows, const lab::Report& bench,
                            const Reference*) {
  ui::Roofline plot;
  plot.id = spec.id;
  for (const Roofline::Roof& roof : spec.roofs) add_roof(plot, roof, bench);
  const RoleOf role(spec.role, rows, spec.label);
  std::vector<std::string> shown;
  for (std::size_t row = 0; row < rows.rows.size(); ++row) {
    const std::string label = text_in(rows, row, spec.label);
    if (std::find(shown.begin(), shown.end(), label) != shown.end()) continue;
    shown.push_back(label);
    plot.dots.push_back({label, number_in(rows, row, spec.x).value_or(0),
                         number_in(rows, row, spec.y).value_or(0), role(label),
                         lab::provenance_from(text_in(rows, row, spec.provenance)),
                         text_in(rows, row, spec.detail)});
  }
  if (plot.dots.empty() || plot.memory.empty() || plot.compute.empty()) return {};
  return {{spec.id,
           ui::roofline_height(),
           [plot](ImVec2 size) { ui::roofline(plot, size); },
           {},
           {.peer = true}}};
}

void draw_picture(const Pictured& plot, const lab::Table& rows, ImVec2 size) {
  picture::Picture picture = plot.picture(rows);
  const std::string title = picture::plain(std::exchange(picture.headline, {}).full);
  const ImVec2 min = ImGui::GetCursorScreenPos(), max(min.x + size.x, min.y + size.y);
  const ImVec2 said =
      ui::draw_text(min, ui::fitted(title, Font::body_bold, size.x), Font::body_bold);
  const auto shown =
      ui::laid_out(std::move(picture), {min.x, min.y + said.y + px(8), max.x, max.y});
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const picture::Identity* at =
      ImGui::IsWindowHovered() ? picture::hit(shown->placed, {mouse.x, mouse.y}, px(4)) : nullptr;
  const picture::Lighting lit(shown->marks, {},
                              at ? std::vector{at->key} : std::vector<picture::Key>{});
  ui::draw(shown->placed, {.lit = &lit});
  ui::map(shown);
  const std::string sentence = at && plot.explain ? plot.explain(rows, at->key) : std::string();
  if (!sentence.empty()) ui::show_tooltip(sentence);
}

std::vector<Drawable> drawn(const Pictured& plot, const lab::Table& rows, const lab::Report&,
                            const Reference*) {
  const bool empty = rows.rows.empty() && !(plot.rows.table + plot.rows.measurement).empty();
  if (empty) return {};
  return {{plot.id, px(plot.least_height),
           [&plot, rows](ImVec2 size) { draw_picture(plot, rows, size); }}};
}

lab::Table table_of(const Rows& rows, const lab::Report& bench) {
  const auto number = [](std::optional<double> value) {
    return value ? lab::Cell(*value) : lab::Cell();
  };
  lab::Table table{rows.measurement,
                   "",
                   {{"variant", "variant", "", -1},
                    {"value", "value", "", -1},
                    {"p10", "p10", "", -1},
                    {"p90", "p90", "", -1},
                    {"samples", "samples", "", 0},
                    {"fraction", "fraction", "", -1}},
                   {}};
  for (const lab::Measurement& m : bench.measurements) {
    if (m.id != rows.measurement) continue;
    const lab::Measurement* fraction =
        rows.fraction.empty() ? nullptr : bench.measurement(rows.fraction, m.variant);
    table.rows.push_back({m.variant, m.value, number(m.p10), number(m.p90),
                          static_cast<double>(m.samples),
                          fraction == nullptr ? lab::Cell() : lab::Cell(fraction->value)});
  }
  return table;
}

}  // namespace

lab::Table rows_of(const Rows& rows, const lab::Report& bench) {
  lab::Table table;
  if (!rows.measurement.empty()) {
    table = table_of(rows, bench);
  } else if (const lab::Table* found = bench.table(rows.table)) {
    table = *found;
  }
  if (rows.prepare != nullptr) table = rows.prepare(std::move(table));
  return rows.column.empty() ? table : rows_where(table, rows.column, rows.is);
}

const Rows& rows_of(const Plot& plot) {
  return std::visit([](const auto& one) -> const Rows& { return one.rows; }, plot);
}

std::vector<Drawable> drawables(const Plot& plot, const lab::Table& rows, const lab::Report& bench,
                                const Reference* reference) {
  return std::visit([&](const auto& one) { return drawn(one, rows, bench, reference); }, plot);
}

std::vector<std::string> zero_curves(const Plot& plot, const lab::Table& rows) {
  std::vector<std::string> names;
  const auto* lines = std::get_if<Lines>(&plot);
  if (lines == nullptr || !lines->y_log) return names;
  for (const ui::Curve& curve : curves_of(*lines, rows)) {
    if (is_zero(curve)) names.push_back(curve.label);
  }
  return names;
}

}  // namespace tilestep::scenes::measured

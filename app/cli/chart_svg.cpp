#include "app/cli/chart_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "app/cli/html.hpp"
#include "app/cli/report_text.hpp"
#include "scenes/picture/look.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/stage/measured_plots.hpp"
#include "scenes/ui/theme.hpp"

namespace tilestep::app {
namespace {

namespace measured = scenes::measured;
using picture::Role;

constexpr double kWidth = 860, kLabels = 210, kBars = 400, kBarRow = 26;
constexpr double kLeft = 76, kPlotWidth = 600, kPlotHeight = 250;
/// A sentence for those who do not see it names no more of a curve or of bars.
constexpr std::size_t kMostNamed = 12;

/// What is drawn, from top to bottom.
class Sheet {
 public:
  explicit Sheet(ui::ThemeKind theme) : theme_(theme) {}

  std::string color(Role role) const {
    const ImU32 c = ui::palette(theme_, role);
    return fmt::format("#{:02x}{:02x}{:02x}", c >> IM_COL32_R_SHIFT & 0xFF,
                       c >> IM_COL32_G_SHIFT & 0xFF, c >> IM_COL32_B_SHIFT & 0xFF);
  }
  void text(double x, double at, std::string_view words, const char* anchor = "start",
            Role role = Role::text, bool bold = false) {
    body += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\"{}>{}</text>\n", x, at,
        anchor, color(role), bold ? " font-weight=\"600\"" : "", html_escaped(words));
  }
  void line(double x1, double y1, double x2, double y2, Role role, bool dashed = false,
            double width = 1) {
    body += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
        "stroke-width=\"{:g}\"{}/>\n",
        x1, y1, x2, y2, color(role), width, dashed ? " stroke-dasharray=\"5 4\"" : "");
  }
  void rect(double x, double at, double width, double height, Role role) {
    body += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, at,
        std::max(width, 0.5), height, color(role));
  }
  void say(std::string_view words) { alt += (alt.empty() ? "" : " ") + std::string(words); }

  double y = 8;
  std::string body, alt;

 private:
  ui::ThemeKind theme_;
};

/// Values along one side of a plot.
struct Scale {
  double low, high, from, to;
  bool log;
  double at(double value) const {
    const double part =
        log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return from + (to - from) * std::clamp(part, 0.0, 1.0);
  }
  std::vector<double> ticks() const {
    std::vector<double> all;
    const double span = log ? std::log10(high / low) : high - low;
    if (log) {
      for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10) {
        for (const double digit : {1.0, 2.0, 5.0}) {
          const double value = power * digit;
          if ((digit == 1 || span < 2) && value >= low && value <= high * 1.0001)
            all.push_back(value);
        }
      }
      return all;
    }
    double step = std::pow(10, std::floor(std::log10(span / 4)));
    for (const double more : {2.0, 2.5, 2.0}) {
      if (span / step > 5) step *= more;
    }
    for (double value = std::ceil(low / step) * step; value <= high + step / 1e6; value += step) {
      all.push_back(value);
    }
    return all;
  }
};

Scale scale_of(const std::vector<double>& values, bool log, bool zero, double from, double to) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!std::isfinite(value) || (log && value <= 0)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (!(low <= high)) low = 1, high = 2;
  if (!log && zero) low = std::min(low, 0.0);
  if (high <= low) high = log ? low * 10 : low + 1;
  return {low, high, from, to, log};
}

Role role_of(measured::Roles roles, std::string_view name, std::size_t place) {
  return roles != nullptr ? roles(name)
                          : picture::tone_role(picture::category_tone(
                                static_cast<int>(place % picture::kCategories)));
}

bool is_library(std::string_view label) {
  return label.starts_with("cuBLAS");
}

// ---- bars ---------------------------------------------------------------------------------------

struct Bar {
  std::string label;
  double value;
  std::optional<double> expected;
  std::string note;
};

void draw_bars(Sheet& sheet, const measured::Bars& spec, const lab::Table& rows,
               const lab::Report& bench) {
  const lab::Measurement* measured_roof =
      bench.measurement(spec.roof.measurement, spec.roof.variant);
  std::optional<double> roof;
  std::string roof_label = spec.roof.label;
  if (measured_roof != nullptr) roof = measured_roof->value * spec.times;
  std::vector<Bar> bars;
  double most = 0;
  for (std::size_t row = 0; row < rows.rows.size(); ++row) {
    const bool words = spec.label.find('{') != std::string::npos;
    const std::string label =
        words ? scenes::filled_in(spec.label, rows, row) : scenes::text_in(rows, row, spec.label);
    const auto value = scenes::number_in(rows, row, spec.value);
    const bool is_roof = !label.empty() && spec.rows.measurement == spec.roof.measurement &&
                         label == spec.roof.variant;
    if (!value || !std::isfinite(*value) || is_roof) continue;
    if (is_library(label)) {
      roof = *value * spec.times;
      roof_label = label;
      continue;
    }
    auto fraction = scenes::number_in(rows, row, spec.fraction);
    if (spec.fraction.empty() && roof) fraction = *value * spec.times / *roof;
    std::string note = scenes::filled_in(spec.note, rows, row);
    if (fraction && !spec.of.empty())
      note = fmt::format("{:.3g} % of {}", 100 * *fraction, spec.of);
    auto expected =
        spec.expected.empty() ? std::nullopt : scenes::number_in(rows, row, spec.expected);
    if (expected) *expected *= spec.times;
    bars.push_back({label, *value * spec.times, expected, std::move(note)});
    most = std::max({most, bars.back().value, expected.value_or(0)});
  }
  if (bars.empty()) return;
  most = std::max({most, roof.value_or(0), 1e-12});
  const std::string unit = scenes::filled_in(spec.unit, rows);
  const std::string title = scenes::filled_in(spec.title, rows);
  sheet.text(0, sheet.y += 18, title, "start", Role::text, true);
  const double top = sheet.y += 10;
  const auto x = [&](double value) { return kLabels + kBars * value / most; };
  if (roof) sheet.y += 16;
  std::string said;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const Bar& bar = bars[i];
    const double middle = sheet.y + kBarRow / 2;
    sheet.text(kLabels - 10, middle + 5, bar.label, "end");
    sheet.rect(kLabels, sheet.y + 4, x(bar.value) - kLabels, kBarRow - 8,
               role_of(spec.role, bar.label, i));
    if (bar.expected) {
      sheet.line(x(*bar.expected), sheet.y + 1, x(*bar.expected), sheet.y + kBarRow - 1, Role::text,
                 true, 2);
    }
    const std::string value = number_words(bar.value) + (unit.empty() ? "" : " " + unit);
    sheet.text(kLabels + kBars + 12, middle + 5,
               bar.note.empty() ? value : value + " · " + bar.note, "start", Role::muted);
    if (i < kMostNamed) said += fmt::format("{}{} {}", i == 0 ? "" : ", ", bar.label, value);
    sheet.y += kBarRow;
  }
  if (roof) {
    sheet.text(x(*roof), top + 12, fmt::format("{} {}", roof_label, number_words(*roof)), "middle",
               Role::muted);
    sheet.line(x(*roof), top + 16, x(*roof), sheet.y, Role::muted, false, 2);
    said += fmt::format("; {} {} {}", roof_label, number_words(*roof), unit);
  }
  sheet.say(fmt::format("{}{}{}.", title, title.empty() ? "" : ": ", said));
  sheet.y += 12;
}

// ---- lines and roofs ------------------------------------------------------------------------------

struct Curve {
  std::string label;
  Role role;
  bool dashed;
  std::vector<double> x, y;
};

std::vector<Curve> curves_of(const measured::Lines& spec, const lab::Table& rows) {
  std::vector<Curve> curves;
  const auto add = [&](const std::string& label, Role role, bool dashed, const std::string& column,
                       const std::string& only) {
    Curve curve{label, role, dashed, {}, {}};
    for (std::size_t row = 0; row < rows.rows.size(); ++row) {
      if (!only.empty() && scenes::text_in(rows, row, spec.series) != only) continue;
      const auto x = scenes::number_in(rows, row, spec.x), y = scenes::number_in(rows, row, column);
      if (!x || !y || (spec.y_log && *y <= 0) || (spec.x_log && *x <= 0)) continue;
      curve.x.push_back(*x);
      curve.y.push_back(*y);
    }
    if (!curve.x.empty()) curves.push_back(std::move(curve));
  };
  if (spec.series.empty()) {
    for (const auto& each : spec.curves) add(each.label, each.role, each.dashed, each.column, "");
    return curves;
  }
  const auto names = scenes::distinct(rows, spec.series);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Role role = is_library(names[i]) ? Role::muted : role_of(spec.role, names[i], i);
    add(names[i], role, false, spec.y, names[i]);
  }
  return curves;
}

/// The frame of a plot, with numbers along it.
void draw_axes(Sheet& sheet, const Scale& x, const Scale& y, std::string_view x_label,
               std::string_view y_label) {
  for (const double tick : y.ticks()) {
    sheet.line(x.from, y.at(tick), x.to, y.at(tick), Role::grid);
    sheet.text(x.from - 8, y.at(tick) + 4, number_words(tick), "end", Role::muted);
  }
  for (const double tick : x.ticks()) {
    sheet.line(x.at(tick), y.from, x.at(tick), y.from + 5, Role::muted);
    sheet.text(x.at(tick), y.from + 19, number_words(tick), "middle", Role::muted);
  }
  sheet.text(x.from, y.to - 8, y_label, "start", Role::muted);
  sheet.text(x.to, y.from + 36, x_label, "end", Role::muted);
}

/// Names at the right, none over another.
struct Names {
  void add(double at, std::string label, Role role) { all.push_back({at, std::move(label), role}); }
  void draw(Sheet& sheet, double x) {
    std::sort(all.begin(), all.end(), [](const One& a, const One& b) { return a.at < b.at; });
    double free = -1e9;
    for (One& one : all) {
      one.at = std::max(one.at, free);
      free = one.at + 17;
      sheet.text(x + 8, one.at + 4, one.label, "start", one.role);
    }
  }
  struct One {
    double at;
    std::string label;
    Role role;
  };
  std::vector<One> all = {};
};

void draw_lines(Sheet& sheet, const measured::Lines& spec, const lab::Table& rows,
                const lab::Report& bench) {
  const std::vector<Curve> curves = curves_of(spec, rows);
  if (curves.empty()) return;
  std::vector<double> xs, ys;
  for (const Curve& curve : curves) {
    xs.insert(xs.end(), curve.x.begin(), curve.x.end());
    ys.insert(ys.end(), curve.y.begin(), curve.y.end());
  }
  const lab::Measurement* roof = bench.measurement(spec.roof.measurement, spec.roof.variant);
  if (roof != nullptr) ys.push_back(roof->value);
  const std::string title = scenes::filled_in(spec.title, rows);
  sheet.text(0, sheet.y += 18, title, "start", Role::text, true);
  sheet.y += 34;
  const Scale x = scale_of(xs, spec.x_log, false, kLeft, kLeft + kPlotWidth);
  const Scale y = scale_of(ys, spec.y_log, true, sheet.y + kPlotHeight, sheet.y);
  draw_axes(sheet, x, y, spec.x_label, spec.y_label);
  Names names;
  std::string said;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Curve& curve = curves[i];
    std::string points;
    for (std::size_t p = 0; p < curve.x.size(); ++p) {
      points += fmt::format("{:.1f},{:.1f} ", x.at(curve.x[p]), y.at(curve.y[p]));
    }
    sheet.body += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", points,
        sheet.color(curve.role), curve.dashed ? " stroke-dasharray=\"5 4\"" : "");
    names.add(y.at(curve.y.back()), curve.label, curve.role);
    if (i >= kMostNamed) continue;
    said += fmt::format("{}{} from {} at {} to {} at {}", i == 0 ? "" : "; ", curve.label,
                        number_words(curve.y.front()), number_words(curve.x.front()),
                        number_words(curve.y.back()), number_words(curve.x.back()));
  }
  if (roof != nullptr) {
    sheet.line(x.from, y.at(roof->value), x.to, y.at(roof->value), Role::muted, false, 2);
    names.add(y.at(roof->value), spec.roof.label, Role::muted);
  }
  names.draw(sheet, x.to);
  sheet.say(fmt::format("{}{}{} over {}: {}.", title, title.empty() ? "" : ". ", spec.y_label,
                        spec.x_label, said));
  sheet.y += kPlotHeight + 52;
}

/// Names of points, right of them where they fit, and lower where another one stands.
class Beside {
 public:
  void add(Sheet& sheet, double x, double y, std::string_view label, Role role) {
    constexpr double kLetter = 6.5, kLine = 15;
    const double width = kLetter * static_cast<double>(label.size());
    const bool left = x + width > kLeft + kPlotWidth;
    Area area{left ? x - 9 - width : x + 9, left ? y - 12 : y};
    area.to = area.from + width;
    const auto taken = [&](const Area& other) {
      return other.from < area.to && area.from < other.to && std::abs(other.y - area.y) < kLine;
    };
    while (std::any_of(areas_.begin(), areas_.end(), taken)) area.y += kLine;
    areas_.push_back(area);
    sheet.text(area.from, area.y + 4, label, "start", role);
  }

 private:
  struct Area {
    double from, y, to = 0;
  };
  std::vector<Area> areas_;
};

void draw_roofline(Sheet& sheet, const measured::Roofline& spec, const lab::Table& rows,
                   const lab::Report& bench) {
  struct Dot {
    std::string label;
    double x, y;
  };
  std::vector<Dot> dots;
  std::vector<double> xs, ys, memory, compute;
  std::vector<std::string> memory_names, compute_names;
  for (std::size_t row = 0; row < rows.rows.size(); ++row) {
    const std::string label = scenes::text_in(rows, row, spec.label);
    const auto x = scenes::number_in(rows, row, spec.x), y = scenes::number_in(rows, row, spec.y);
    const bool shown =
        std::any_of(dots.begin(), dots.end(), [&](const Dot& dot) { return dot.label == label; });
    if (shown || !x || !y || *x <= 0 || *y <= 0) continue;
    dots.push_back({label, *x, *y});
    xs.push_back(*x);
    ys.push_back(*y);
  }
  for (const auto& roof : spec.roofs) {
    const lab::Measurement* m = bench.measurement(roof.measurement);
    if (m == nullptr) continue;
    const bool bytes = m->unit == "GB/s";
    (bytes ? memory : compute).push_back(bytes ? m->value / 1e3 : m->value);
    (bytes ? memory_names : compute_names).push_back(roof.label);
  }
  if (dots.empty() || memory.empty() || compute.empty()) return;
  const double fastest = *std::max_element(memory.begin(), memory.end());
  const double highest = *std::max_element(compute.begin(), compute.end());
  xs.push_back(0.5 * highest / fastest);
  xs.push_back(4 * highest / fastest);
  ys.push_back(1.5 * highest);
  sheet.y += 34;
  const Scale x = scale_of(xs, true, false, kLeft, kLeft + kPlotWidth);
  const Scale y = scale_of(ys, true, false, sheet.y + 1.4 * kPlotHeight, sheet.y);
  draw_axes(sheet, x, y, "FLOP per byte", "TFLOP/s");
  Names names;
  Beside beside;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const double from = std::max(x.low, y.low / memory[i]),
                 to = std::min(x.high, highest / memory[i]);
    sheet.line(x.at(from), y.at(from * memory[i]), x.at(to), y.at(to * memory[i]), Role::muted,
               false, 2);
    beside.add(sheet, x.at(from) - 3, y.at(from * memory[i]) - 10, memory_names[i], Role::muted);
  }
  for (std::size_t i = 0; i < compute.size(); ++i) {
    sheet.line(x.at(compute[i] / fastest), y.at(compute[i]), x.to, y.at(compute[i]), Role::muted,
               false, 2);
    names.add(y.at(compute[i]), compute_names[i], Role::muted);
  }
  names.draw(sheet, x.to);
  std::string said;
  for (std::size_t i = 0; i < dots.size(); ++i) {
    const Dot& dot = dots[i];
    sheet.body +=
        fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\"/>\n", x.at(dot.x),
                    y.at(dot.y), sheet.color(role_of(spec.role, dot.label, i)));
    beside.add(sheet, x.at(dot.x), y.at(dot.y), dot.label, Role::text);
    if (i < kMostNamed) {
      said += fmt::format("{}{} {} TFLOP/s at {} FLOP per byte", i == 0 ? "" : ", ", dot.label,
                          number_words(dot.y), number_words(dot.x));
    }
  }
  sheet.say(fmt::format("A roofline: {}.", said));
  sheet.y += 1.4 * kPlotHeight + 52;
}

// ---- the view -------------------------------------------------------------------------------------

/// The rows of each plot, once its filters stand as the stop has them, else as the tab opens.
std::vector<lab::Table> rows_of(const measured::View& view, const lab::Report& bench,
                                const scenes::GuideStop& stop) {
  std::vector<lab::Table> all;
  for (const measured::Plot& plot : view.plots) {
    all.push_back(measured::rows_of(measured::rows_of(plot), bench));
  }
  for (const measured::Filter& filter : view.filters) {
    std::vector<std::string> values;
    for (const lab::Table& rows : all) {
      for (std::string& value : scenes::distinct(rows, filter.column))
        values.push_back(std::move(value));
    }
    if (values.empty()) continue;
    const std::string& wanted = filter.id == stop.filter ? stop.filtered : filter.first;
    const bool there = std::find(values.begin(), values.end(), wanted) != values.end();
    for (lab::Table& rows : all) {
      rows = scenes::rows_where(rows, filter.column, there ? wanted : values.front());
    }
  }
  return all;
}

void draw(Sheet& sheet, const measured::Plot& plot, const lab::Table& rows,
          const lab::Report& bench) {
  if (const auto* bars = std::get_if<measured::Bars>(&plot)) {
    if (bars->each.empty()) return draw_bars(sheet, *bars, rows, bench);
    for (const std::string& value : scenes::distinct(rows, bars->each)) {
      draw_bars(sheet, *bars, scenes::rows_where(rows, bars->each, value), bench);
    }
  } else if (const auto* lines = std::get_if<measured::Lines>(&plot)) {
    draw_lines(sheet, *lines, rows, bench);
  } else if (const auto* roofline = std::get_if<measured::Roofline>(&plot)) {
    draw_roofline(sheet, *roofline, rows, bench);
  }
}

}  // namespace

std::optional<Chart> chart_of(const measured::Spec& spec, const lab::Report& report,
                              std::string_view lesson, const scenes::GuideStop& stop,
                              ui::ThemeKind theme) {
  const auto view = std::find_if(spec.views.begin(), spec.views.end(),
                                 [&](const measured::View& one) { return one.name == stop.view; });
  if (view == spec.views.end()) return std::nullopt;
  const lab::Report* bench = measured::bench_of(
      report, lesson, view->needs.empty() ? spec.needs : view->needs, view->computed);
  if (bench == nullptr) return std::nullopt;
  Sheet sheet(theme);
  const std::vector<lab::Table> rows = rows_of(*view, *bench, stop);
  for (std::size_t i = 0; i < rows.size(); ++i) draw(sheet, view->plots[i], rows[i], *bench);
  if (sheet.alt.empty()) return std::nullopt;
  const std::string where =
      view->computed ? "computed on " + bench->device.name : measured::where_measured(*bench);
  sheet.text(0, sheet.y += 16, where, "start", Role::muted);
  sheet.say(where + ".");
  sheet.y += 12;
  return Chart{
      fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" "
                  "height=\"{1:.0f}\" viewBox=\"0 0 {0:g} {1:.0f}\" font-size=\"13\" "
                  "font-family=\"Inter, system-ui, sans-serif\">\n<title>{2}</title>\n{3}</svg>\n",
                  kWidth, sheet.y, html_escaped(view->name), sheet.body),
      std::move(sheet.alt)};
}

}  // namespace tilestep::app

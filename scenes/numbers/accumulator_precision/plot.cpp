// The running sums against the number of terms: the axes, the exact sum, a line for each
// accumulator as far as the cursor, and below it what became of each term of the one in focus.
#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "scenes/numbers/accumulator_precision/layout.hpp"

namespace tilestep::scenes {

using accumulator_parts::draw_mark, accumulator_parts::role_of;
using accumulator_precision::Direction;
using words::significant;

namespace {

/// Text on a patch of the panel's colour, so that lines do not run through it.
ImVec2 draw_patched(ImVec2 position, std::string_view text, Font font, Role role) {
  const ImVec2 size = ui::text_size(text, font);
  fill(at(position.x - px(3), position.y), at(position.x + size.x + px(3), position.y + size.y),
       Role::panel, 0.86f);
  return ui::draw_text(position, text, font, role);
}

}  // namespace

AccumulatorPrecisionScene::PlotSpace AccumulatorPrecisionScene::plot_space(
    const Layout& layout) const {
  PlotSpace plot;
  plot.min = layout.plot_min;
  plot.max = layout.plot_max;
  // Zero is left out where all the sums are far from it, or they would be one flat line.
  const bool from_zero = low_ <= 0 || low_ < 0.5 * high_;
  plot.y = ui::axis_for({low_, high_}, false, from_zero);
  if (!from_zero) plot.y.low -= (plot.y.high - plot.y.low) * 0.05;
  plot.x.low = from_zero ? 0 : 1;
  plot.x.high = std::max<double>(trace_.terms, plot.x.low + 1);
  return plot;
}

void AccumulatorPrecisionScene::draw_axes(const Layout& layout, const PlotSpace& plot) const {
  const float height = plot.max.y - plot.min.y;
  for (const double tick : plot.y.ticks(std::max(2, static_cast<int>(height / px(34))))) {
    const float y = std::round(plot.at_y(tick));
    line(at(plot.min.x, y), at(plot.max.x, y), Role::grid);
    ui::draw_text(at(plot.min.x - px(6), y - layout.note / 2), ui::tick_text(tick), Font::note,
                  Role::muted, Align::right);
  }
  line(at(plot.min.x, plot.max.y), plot.max, Role::border);
  if (height > px(72) && !layout.tight) {  // else the sums' own labels need the place
    ui::draw_text(at(plot.min.x + px(6), plot.min.y - px(layout.tight ? 0 : 4)), "running sum",
                  Font::note, Role::muted);
  }
  // The axis' name stands at its right end, in the row of the numbers.
  const std::string name = "terms added";
  const float name_left = plot.max.x - ui::text_size(name, Font::note).x;
  ui::draw_text(at(name_left, layout.ticks_top), name, Font::note, Role::muted);
  const float width = plot.max.x - plot.min.x;
  for (const double tick : plot.x.ticks(std::max(2, static_cast<int>(width / px(80))))) {
    const float x = std::round(plot.at_x(tick));
    const std::string text = ui::tick_text(tick);
    if (x + ui::text_size(text, Font::note).x / 2 + px(8) > name_left) continue;
    line(at(x, plot.max.y), at(x, plot.max.y + px(3)), Role::border);
    ui::draw_text(at(x, layout.ticks_top), text, Font::note, Role::muted, Align::center);
  }
  ui::map("plot", "running sum", fmt::format("{} points", points()), plot.min, plot.max,
          {px(120), px(39)});
}

/// Dashed over the whole width: it is what the sums are held against, not what they do.
void AccumulatorPrecisionScene::draw_exact(const PlotSpace& plot,
                                           const AccumulatorMoment& now) const {
  ImVec2 from = plot.x.low == 0 ? at(plot.at_x(0), plot.at_y(0))
                                : at(plot.at_x(terms_added(0)), plot.at_y(trace_.exact[0]));
  const float least = px(10);  // a dash and a gap, so that short pieces do not close up to a line
  for (int point = 0; point < points(); ++point) {
    const ImVec2 to =
        at(plot.at_x(terms_added(point)), plot.at_y(trace_.exact[static_cast<std::size_t>(point)]));
    if (std::hypot(to.x - from.x, to.y - from.y) < least && point + 1 < points()) continue;
    ui::dashed_line(from, to, point <= now.point ? Role::text : Role::faint, 1.5f);
    from = to;
  }
}

void AccumulatorPrecisionScene::draw_sum(const PlotSpace& plot, int number_of,
                                         const AccumulatorMoment& now) const {
  const AccumulatorTrace& a = accumulator(number_of);
  const bool lit =
      number_of == focus_ || number_of == lit_accumulator_ || number_of == hovered_chip_;
  const Role role = role_of(a.method);
  const int last = now.rounded ? now.point : now.point - 1;
  std::vector<ImVec2> way;
  if (plot.x.low == 0) way.push_back(at(plot.at_x(0), plot.at_y(0)));
  for (int point = 0; point <= last; ++point) {
    const double sum = static_cast<double>(a.steps[static_cast<std::size_t>(point)].sum);
    if (!std::isfinite(sum)) break;
    const ImVec2 to = at(plot.at_x(terms_added(point)), plot.at_y(sum));
    const bool close = !way.empty() && point < last && to.x - way.back().x < 0.7f;
    if (!close) way.push_back(to);
  }
  const float thickness = px(lit ? 3.0f : 2.0f);
  if (way.size() > 1) {
    draw_list()->AddPolyline(way.data(), static_cast<int>(way.size()), ui::color(role), 0,
                             thickness);
  }
  const float step = (plot.max.x - plot.min.x) / static_cast<float>(trace_.terms);
  const bool dots = lit && step > px(8);
  const std::size_t every = std::max<std::size_t>(1, way.size() / 6);
  for (std::size_t i = 0; i < way.size(); ++i) {
    if (dots) draw_list()->AddCircleFilled(way[i], px(2.5f), ui::color(role));
    if (way.size() > 3 && i % every == every / 2) draw_mark(a.method, way[i], px(4.5f));
  }
}

/// The places where sums stop for good, and for the one in focus the numbers that say why.
void AccumulatorPrecisionScene::draw_frozen(const Layout& layout, const PlotSpace& plot,
                                            const AccumulatorMoment& now,
                                            const std::vector<Patch>& labels) const {
  for (int i = 0; i < static_cast<int>(trace_.accumulators.size()); ++i) {
    const AccumulatorTrace& a = accumulator(i);
    const bool seen = now.point >= 0 && now.rounded &&
                      trace_.points[static_cast<std::size_t>(now.point)] >= a.frozen_at;
    if (a.frozen_at < 0 || !seen) continue;
    const ImVec2 place = at(plot.at_x(a.frozen_at), plot.at_y(static_cast<double>(a.final_sum)));
    const Role role = role_of(a.method);
    const float radius = px(i == focus_ ? 7 : 5);
    const ImVec2 diamond[] = {at(place.x, place.y - radius), at(place.x + radius, place.y),
                              at(place.x, place.y + radius), at(place.x - radius, place.y)};
    draw_list()->AddConvexPolyFilled(diamond, 4, ui::color(Role::panel));
    draw_list()->AddPolyline(diamond, 4, ui::color(role), ImDrawFlags_Closed, px(2));
    ui::map(fmt::format("frozen_{}", name_of(a.method)), a.verdict, fmt::format("{}", a.frozen_at),
            at(place.x - radius, place.y - radius), at(place.x + radius, place.y + radius));
    if (i == focus_) draw_frozen_note(layout, plot, place, labels);
  }
}

/// The lines as points a few pixels apart, so that a label finds where it covers none.
std::vector<ImVec2> AccumulatorPrecisionScene::ink(const PlotSpace& plot) const {
  std::vector<ImVec2> all;
  float last = -FLT_MAX;
  for (int point = 0; point < points(); ++point) {
    const float x = plot.at_x(terms_added(point));
    if (x - last < px(3)) continue;
    last = x;
    const auto p = static_cast<std::size_t>(point);
    all.push_back(at(x, plot.at_y(trace_.exact[p])));
    for (const AccumulatorTrace& a : trace_.accumulators) {
      all.push_back(at(x, plot.at_y(static_cast<double>(a.steps[p].sum))));
    }
  }
  return all;
}

/// What the verdict says, beside the flat part of the line, where it covers the least.
void AccumulatorPrecisionScene::draw_frozen_note(const Layout& layout, const PlotSpace& plot,
                                                 ImVec2 place,
                                                 const std::vector<Patch>& labels) const {
  std::vector<std::string> lines = {"frozen: " + focused().verdict};
  for (const std::string_view cut : {": numbers", ": the format", ", and a"}) {
    const std::size_t found = lines.back().find(cut);
    if (found == std::string::npos) continue;
    const std::size_t words = lines.back().find(' ', found) + 1;
    std::string rest = lines.back().substr(words);
    lines.back().resize(found + 1);
    if (lines.back().back() == ':') lines.back().pop_back();
    lines.push_back(std::move(rest));
  }
  float width = 0;
  for (const std::string& each : lines) width = std::max(width, ui::text_size(each, Font::note).x);
  width = std::min(width, plot.max.x - plot.min.x - px(8));
  const float height = layout.note * static_cast<float>(lines.size());
  // Every place of a coarse net is tried: the one that covers the least, and of those the nearest.
  constexpr int kColumns = 12, kRows = 8;
  const std::vector<ImVec2> lines_drawn = ink(plot);
  const ImVec2 axis_name = ui::text_size("running sum", Font::note);
  std::vector<Patch> taken = labels;
  taken.push_back({plot.min, at(plot.min.x + axis_name.x + px(8), plot.min.y + axis_name.y)});
  const float room_x = plot.max.x - plot.min.x - width - px(8);
  const float room_y = plot.max.y - plot.min.y - height - px(2);
  ImVec2 best(plot.min.x + px(4), plot.min.y);
  float least = FLT_MAX;
  for (int i = 0; i <= kColumns * kRows && room_x > 0 && room_y > 0; ++i) {
    const ImVec2 min =
        at(plot.min.x + px(4) + room_x * static_cast<float>(i % kColumns) / (kColumns - 1),
           plot.min.y + room_y * static_cast<float>(i / kColumns % kRows) / (kRows - 1));
    const ImVec2 max = at(min.x + width, min.y + height);
    const Patch padded{at(min.x - px(4), min.y - px(4)), at(max.x + px(4), max.y + px(4))};
    auto cost =
        static_cast<float>(std::count_if(lines_drawn.begin(), lines_drawn.end(), [&](ImVec2 point) {
          return inside(point, padded.min, padded.max);
        }));
    for (const Patch& label : taken) {
      const bool touches = label.min.x < max.x + px(4) && min.x < label.max.x + px(4) &&
                           label.min.y < max.y && min.y < label.max.y;
      cost += touches ? 1000.0f : 0.0f;
    }
    const float dx = std::max({min.x - place.x, place.x - max.x, 0.0f});
    const float dy = std::max({min.y - place.y, place.y - max.y, 0.0f});
    const bool on_mark = dx < px(9) && dy < px(9);
    cost = cost * 100 + std::hypot(dx, dy) / px(10) + (on_mark ? 5000.0f : 0.0f);
    if (cost >= least) continue;
    least = cost;
    best = min;
  }
  if (least >= 100000) return;  // it would cover a label, and the sentence says it too
  const ImVec2 near =
      at(std::clamp(place.x, best.x, best.x + width), std::clamp(place.y, best.y, best.y + height));
  line(place, near, Role::muted, 1, 0.6f);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const ImVec2 position = at(best.x, best.y + layout.note * static_cast<float>(i));
    draw_patched(position, ui::fitted(lines[i], Font::note, width), Font::note,
                 i == 0 ? Role::text : Role::muted);
  }
  ui::map("frozen_note", focused().verdict, "", best, at(best.x + width, best.y + height));
}

struct AccumulatorPrecisionScene::EndLabel {
  int accumulator = -1;  ///< −1: the exact sum
  std::string text;
  ImVec2 tip;
  float y = 0;
};

/// Names and sums at the ends of the lines, pushed apart where they would touch.
std::vector<AccumulatorPrecisionScene::Patch> AccumulatorPrecisionScene::draw_end_labels(
    const Layout& layout, const PlotSpace& plot, const AccumulatorMoment& now) {
  const int last = now.rounded ? now.point : now.point - 1;
  const float margin = plot.max.x + px(14);
  std::vector<EndLabel> labels;
  const double exact = trace_.exact.back();
  labels.push_back({-1, "exact " + significant(exact, 6), at(plot.max.x, plot.at_y(exact))});
  const auto p = static_cast<std::size_t>(std::max(last, 0));
  const auto add = [&](int i) {
    const double sum = static_cast<double>(accumulator(i).steps[p].sum);
    const float y = std::isfinite(sum) ? plot.at_y(sum) : plot.min.y;
    labels.push_back(
        {i, accumulator(i).label + " " + significant(sum, 6), at(plot.at_x(terms_added(last)), y)});
  };
  if (last >= 0) add(focus_);
  const float height = layout.note + px(1);
  const auto room = static_cast<std::size_t>((plot.max.y - plot.min.y) / height);
  for (int i = 0; last >= 0 && i < static_cast<int>(trace_.accumulators.size()); ++i) {
    if (i != focus_ && labels.size() < std::max<std::size_t>(room, 2)) add(i);
  }
  std::stable_sort(labels.begin(), labels.end(),
                   [](const EndLabel& a, const EndLabel& b) { return a.tip.y < b.tip.y; });
  // At the first terms they stand where the name of the axis does.
  const float name_end = plot.min.x + px(10) + ui::text_size("running sum", Font::note).x;
  const bool below_name = last >= 0 && plot.at_x(terms_added(last)) + px(14) < name_end;
  float lowest = plot.min.y + height / 2 + (below_name ? layout.note : 0);
  for (EndLabel& label : labels) {
    label.y = std::max(label.tip.y, lowest);
    lowest = label.y + height;
  }
  lowest = plot.max.y - height / 2;
  for (std::size_t i = labels.size(); i-- > 0;) {
    labels[i].y = std::min(labels[i].y, lowest);
    lowest = labels[i].y - height;
  }
  std::vector<Patch> boxes;
  for (const EndLabel& label : labels) {
    const bool is_exact = label.accumulator < 0;
    const Role role = is_exact ? Role::muted : role_of(accumulator(label.accumulator).method);
    const float x = std::min(label.tip.x + px(14), margin);
    line(label.tip, at(x - px(3), label.y), role, 1.5f);
    const std::string text = ui::fitted(label.text, Font::note, layout.max.x - x);
    const ImVec2 min = at(x, label.y - layout.note / 2);
    const bool chosen = label.accumulator == focus_;
    const ImVec2 size = draw_patched(min, text, Font::note, chosen ? Role::text : Role::muted);
    const ImVec2 max = at(min.x + size.x, min.y + size.y);
    boxes.push_back({min, max});
    ui::map(is_exact ? std::string("end_exact")
                     : fmt::format("end_{}", name_of(accumulator(label.accumulator).method)),
            label.text, chosen ? "selected" : "", min, max);
    if (is_exact) continue;
    draw_list()->AddCircleFilled(label.tip, px(chosen ? 5 : 3.5f), ui::color(role));
    if (chosen) line(at(min.x, max.y), max, role, 2);
    if (ImGui::IsWindowHovered() && inside(ImGui::GetIO().MousePos, min, max)) {
      ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
      if (ImGui::IsMouseClicked(0)) focus_ = label.accumulator;
    }
  }
  return boxes;
}

void AccumulatorPrecisionScene::draw_cursor(const Layout& layout, const PlotSpace& plot,
                                            const AccumulatorMoment& now) const {
  if (now.point < 0) return;
  const float cursor = plot.at_x(terms_added(now.point));
  line(at(cursor, plot.min.y), at(cursor, layout.rug_bottom), Role::accent, 1.0f);
  if (lit_point_ >= 0 && lit_point_ < points()) {
    const float lit = plot.at_x(terms_added(lit_point_));
    line(at(lit, plot.min.y), at(lit, layout.rug_bottom), Role::text, 1.0f, 0.7f);
  }
}

/// What rounding did with each term so far, a cell a point, in the accumulator in focus.
void AccumulatorPrecisionScene::draw_rug(const Layout& layout, const PlotSpace& plot,
                                         const AccumulatorMoment& now) const {
  if (focused().method == accumulator_precision::Method::pairwise) return;
  const int last = now.rounded ? now.point : now.point - 1;
  const float top = layout.rug_top, bottom = layout.rug_bottom;
  const float middle = (top + bottom) / 2;
  float left = plot.at_x(plot.x.low);
  int ups = 0, downs = 0, losses = 0;
  for (int point = 0; point <= last; ++point) {
    const Fate v = fate(point);
    if (v.lost) {
      ++losses;
    } else if (v.direction != Direction::exact) {
      ++(v.direction == Direction::up ? ups : downs);
    }
    const float right = plot.at_x(terms_added(point));
    if (right - left < 1.5f && point < last) continue;
    const float width = right - left;
    const float center = (left + right) / 2;
    if (v.lost) {
      fill(at(left, top), at(width > px(4) ? right - 1 : right, bottom), Role::wrong, 0.25f);
      if (width > px(8)) ui::cross(at(center, middle), px(3), Role::wrong);
    } else if (v.direction != Direction::exact) {
      const bool up = v.direction == Direction::up;
      const Role role = up ? Role::sky : Role::orange;
      const float tip = up ? middle - px(3) : middle + px(3);
      const float base = up ? middle + px(3) : middle - px(3);
      if (width > px(6)) {
        draw_list()->AddTriangleFilled(at(center - px(3.5f), base), at(center + px(3.5f), base),
                                       at(center, tip), ui::color(role));
      } else {
        fill(at(left, up ? top : middle), at(std::max(right, left + 1), up ? middle : bottom),
             role);
      }
    } else if (width > px(6)) {
      draw_list()->AddCircleFilled(at(center, middle), px(1.5f), ui::color(Role::faint));
    }
    left = right;
  }
  draw_rug_key(layout, plot);
  ui::map("rug", fmt::format("{} up, {} down, {} lost", ups, downs, losses), "",
          at(plot.min.x, top), at(plot.max.x, bottom));
}

/// What the marks of the strip mean, to its right where there is room.
void AccumulatorPrecisionScene::draw_rug_key(const Layout& layout, const PlotSpace& plot) const {
  const char* const words[] = {"up", "down", "lost"};
  const float mark = px(11), gap = px(8);
  float width = 0;
  for (const char* word : words) width += mark + ui::text_size(word, Font::note).x + gap;
  float x = plot.max.x + px(14);
  if (x + width - gap > layout.max.x) return;
  const float middle = (layout.rug_top + layout.rug_bottom) / 2;
  for (int i = 0; i < 3; ++i) {
    const ImVec2 center = at(x + px(4), middle);
    if (i == 2) {
      ui::cross(center, px(3), Role::wrong);
    } else {
      const float tip = i == 0 ? -px(3) : px(3);
      draw_list()->AddTriangleFilled(
          at(center.x - px(3.5f), middle - tip), at(center.x + px(3.5f), middle - tip),
          at(center.x, middle + tip), ui::color(i == 0 ? Role::sky : Role::orange));
    }
    x += mark;
    x += ui::draw_text(at(x, middle - layout.note / 2), words[i], Font::note, Role::muted).x + gap;
  }
}

void AccumulatorPrecisionScene::draw_plot_tooltip(const PlotSpace& plot,
                                                  const AccumulatorMoment& now) const {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const int last = now.rounded ? now.point : now.point - 1;
  if (last < 0 || !ImGui::IsWindowHovered() || !inside(mouse, plot.min, plot.max)) return;
  const double share = static_cast<double>((mouse.x - plot.min.x) / (plot.max.x - plot.min.x));
  const double wanted = plot.x.low + share * (plot.x.high - plot.x.low) - 1;
  const auto found = std::lower_bound(trace_.points.begin(), trace_.points.end(),
                                      static_cast<int>(std::lround(std::max(wanted, 0.0))));
  if (found == trace_.points.end()) return;
  const auto p = static_cast<std::size_t>(found - trace_.points.begin());
  if (static_cast<int>(p) > last) return;
  std::string text = fmt::format("{} terms added, the last: {}\nexact  {}", *found + 1,
                                 significant(static_cast<double>(trace_.term[p]), 6),
                                 significant(trace_.exact[p], 8));
  for (const AccumulatorTrace& a : trace_.accumulators) {
    text += fmt::format("\n{}  {}", a.label, significant(static_cast<double>(a.steps[p].sum), 8));
  }
  ImGui::SetTooltip("%s", text.c_str());
}

}  // namespace tilestep::scenes

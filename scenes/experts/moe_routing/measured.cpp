// The Measured tab of the MoE lesson: useful TFLOP/s of each scheme against skew and against the
// number of experts beside cuBLAS called once an expert, the recorded blocks over time, and what
// the hardware counted.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <optional>

#include "scenes/experts/moe_routing/layout.hpp"
#include "scenes/shared/measured_parts.hpp"
#include "scenes/ui/axis.hpp"

namespace tilestep::scenes {

using ui::Align;
using ui::Font;
using ui::px;
using ui::Role;

namespace {

constexpr std::string_view kRates = "moe_rate";
constexpr std::string_view kLibrary = "cuBLAS loop";

/// A row of the table `moe_rate`.
struct Rate {
  std::string scheme, routing;
  double skew = 0;
  int experts = 0;
  double tflops = 0, p10 = 0, p90 = 0;
  std::optional<double> of_cublas, cublas;

  /// How uneven the routing is, as an exponent: balanced is none.
  std::optional<double> unevenness() const {
    if (routing == "balanced") return 0.0;
    if (routing == "skewed") return skew;
    return std::nullopt;
  }
  /// The peer's rate on the same routing, in the same run.
  std::optional<double> library() const {
    if (cublas) return cublas;
    if (!of_cublas || *of_cublas <= 0) return std::nullopt;
    return tflops / *of_cublas;
  }
  std::string routing_name() const {
    return routing == "skewed" ? fmt::format("skewed {:g}", skew) : routing;
  }
};

std::vector<Rate> rates_of(const lab::Report& bench) {
  const lab::Table& table = *bench.table(kRates);
  std::vector<Rate> rates;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    Rate rate;
    rate.scheme = text_in(table, row, "scheme");
    rate.routing = text_in(table, row, "routing");
    rate.skew = number_in(table, row, "skew").value_or(0);
    rate.experts = static_cast<int>(number_in(table, row, "experts").value_or(0));
    rate.tflops = number_in(table, row, "tflops").value_or(0);
    rate.p10 = number_in(table, row, "p10").value_or(rate.tflops);
    rate.p90 = number_in(table, row, "p90").value_or(rate.tflops);
    rate.of_cublas = number_in(table, row, "of_cublas");
    rate.cublas = number_in(table, row, "cublas_tflops");
    if (rate.tflops > 0) rates.push_back(std::move(rate));
  }
  return rates;
}

Role scheme_role(std::string_view scheme) {
  if (scheme == "packed") return Role::accent;
  if (scheme == "tile-padded") return Role::sky;
  if (scheme == "padded-to-capacity") return Role::purple;
  return Role::muted;
}

/// The values of `of` that occur, in the order of their first row.
template <class Of>
auto distinct(const std::vector<Rate>& rates, Of of) {
  std::vector<decltype(of(rates.front()))> values;
  for (const Rate& rate : rates) {
    const auto value = of(rate);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values;
}

int choose(std::string_view id, const std::vector<std::string>& labels, int selected) {
  const int inside = std::clamp(selected, 0, std::max(0, static_cast<int>(labels.size()) - 1));
  if (labels.size() < 2) return inside;
  ImGui::SameLine(0, px(16));
  return ui::segmented(id, labels, inside).value_or(inside);
}

/// Where and how, in what is left of the line of controls, else on a line of its own.
void draw_where(const std::string& where) {
  ImGui::SameLine(0, px(16));
  const float room = ImGui::GetContentRegionAvail().x;
  if (room < px(120)) {
    ImGui::NewLine();
    return ui::text(where, Font::note, Role::muted);
  }
  const ImVec2 here = ImGui::GetCursorScreenPos();
  ui::draw_text(at(here.x, here.y + px(8)), ui::fitted(where, Font::note, room), Font::note,
                Role::muted);
  ImGui::NewLine();
  ImGui::Dummy({1, px(4)});
}

/// Rates over an x of `x_of`, a curve a scheme and one for the library.
ui::LinePlot curves_over(const std::vector<Rate>& rates,
                         const std::function<std::optional<double>(const Rate&)>& x_of) {
  ui::LinePlot plot;
  plot.y_label = "useful TFLOP/s";
  struct Point {
    double x, y, low, high;
  };
  const auto add = [&](const std::string& label, std::vector<Point> points, Role role, bool peer) {
    std::sort(points.begin(), points.end(),
              [](const Point& a, const Point& b) { return a.x < b.x; });
    ui::Curve curve;
    curve.label = label;
    curve.role = role;
    curve.dashed = peer;
    for (const Point& point : points) {
      // The library's rate comes with every scheme's row: once is enough.
      if (!curve.x.empty() && curve.x.back() >= point.x) continue;
      curve.x.push_back(point.x);
      curve.y.push_back(point.y);
      if (peer) continue;
      curve.low.push_back(point.low);
      curve.high.push_back(point.high);
    }
    if (!curve.x.empty()) plot.curves.push_back(std::move(curve));
  };
  std::vector<Point> library;
  for (const std::string& scheme : distinct(rates, [](const Rate& rate) { return rate.scheme; })) {
    std::vector<Point> points;
    for (const Rate& rate : rates) {
      const auto x = x_of(rate);
      if (!x || rate.scheme != scheme) continue;
      points.push_back({*x, rate.tflops, rate.p10, rate.p90});
      if (const auto peer = rate.library()) library.push_back({*x, *peer, *peer, *peer});
    }
    add(scheme, std::move(points), scheme_role(scheme), false);
  }
  add(std::string(kLibrary), std::move(library), Role::muted, true);
  return plot;
}

/// One routing's rates as bars.
ui::BarPlot bars_of(const std::vector<Rate>& rates) {
  ui::BarPlot plot;
  plot.unit = "TFLOP/s";
  for (const Rate& rate : rates) {
    std::string note;
    if (rate.p90 - rate.p10 > 0.1 * rate.tflops) {
      note = "unstable";
    } else if (rate.of_cublas) {
      note = fmt::format("{:.0f} % of the loop", 100 * *rate.of_cublas);
    }
    plot.bars.push_back(
        {rate.scheme, rate.tflops, rate.p10, rate.p90, scheme_role(rate.scheme), note});
    if (const auto peer = rate.library(); peer && !plot.roof) {
      plot.roof = *peer;
      plot.roof_label = std::string(kLibrary);
    }
  }
  return plot;
}

}  // namespace

void MoeRoutingScene::draw_measured(const lab::Report& report) {
  const lab::Report* bench = bench_of(report, lesson(), kRates);
  if (bench == nullptr) {
    ui::empty_state("Nothing measured yet",
                    "On a machine with an NVIDIA GPU, press Measure here or run tilestep bench "
                    "moe-routing.");
    return;
  }
  view_ = ui::segmented("measured_view", {"By skew", "By experts", "Blocks", "Counters"}, view_)
              .value_or(view_);
  if (view_ == 0) return draw_by_skew(*bench);
  if (view_ == 1) return draw_by_experts(*bench);
  if (view_ == 2) return draw_recorded_blocks(*bench);
  draw_counters(*bench);
}

namespace {

constexpr const char* kHow =
    ", 8192 tokens, 4096 × 4096 experts, top-1, BF16, random data, median; useful: 2 · kept tokens "
    "· 4096² FLOP";

float plot_height() {
  return std::max(ImGui::GetContentRegionAvail().y - px(4), px(170));
}

void draw_no_rates() {
  ImGui::NewLine();
  ui::empty_state("The measurement is empty", "Press Measure, or run tilestep bench moe-routing.");
}

}  // namespace

void MoeRoutingScene::draw_by_skew(const lab::Report& bench) {
  const std::vector<Rate> rates = rates_of(bench);
  if (rates.empty()) return draw_no_rates();
  const std::vector<int> counts = distinct(rates, [](const Rate& rate) { return rate.experts; });
  std::vector<std::string> names;
  for (const int count : counts) names.push_back(fmt::format("{} experts", count));
  experts_choice_ = choose("measured_experts", names, experts_choice_);
  draw_where(where_measured(bench) + kHow);
  std::vector<Rate> shown, one_hot;
  for (const Rate& rate : rates) {
    if (rate.experts != counts[static_cast<std::size_t>(experts_choice_)]) continue;
    (rate.routing == "one-hot" ? one_hot : shown).push_back(rate);
  }
  ui::LinePlot plot = curves_over(shown, [](const Rate& rate) { return rate.unevenness(); });
  plot.id = "rate_by_skew";
  plot.x_label = "skew: exponent of the routing, 0 is balanced";
  if (params_.routing == moe_routing::Routing::skewed) plot.marked_x = params_.skew;
  if (params_.routing == moe_routing::Routing::balanced) plot.marked_x = 0;
  const float room = ImGui::GetContentRegionAvail().x;
  const float height = plot_height();
  const bool beside = !one_hot.empty() && room > px(760);
  ui::line_plot(plot, {beside ? (room - px(24)) * 0.58f : room, height});
  if (!beside) return;
  ImGui::SameLine(0, px(24));
  ImGui::BeginChild("one_hot", {0, height});
  ui::BarPlot bars = bars_of(one_hot);
  bars.id = "rate_one_hot";
  bars.title = "one-hot: all to one expert";
  ui::bar_plot(bars);
  ImGui::EndChild();
}

/// Few counts were measured: bars side by side say more than a line through two points.
void MoeRoutingScene::draw_by_experts(const lab::Report& bench) {
  const std::vector<Rate> rates = rates_of(bench);
  if (rates.empty()) return draw_no_rates();
  const auto routings = distinct(rates, [](const Rate& rate) { return rate.routing_name(); });
  routing_choice_ = choose("measured_routing", routings, routing_choice_);
  draw_where(where_measured(bench) + kHow);
  const std::string& routing = routings[static_cast<std::size_t>(routing_choice_)];
  const std::vector<int> counts = distinct(rates, [](const Rate& rate) { return rate.experts; });
  const float room = ImGui::GetContentRegionAvail().x;
  const float height = plot_height();
  const float gap = px(24);
  const auto many = static_cast<float>(counts.size());
  const bool beside = room > px(420) * many;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    std::vector<Rate> shown;
    for (const Rate& rate : rates) {
      if (rate.experts == counts[i] && rate.routing_name() == routing) shown.push_back(rate);
    }
    ui::BarPlot plot = bars_of(shown);
    plot.id = fmt::format("rate_{}_experts", counts[i]);
    plot.title = fmt::format("{} experts, {}", counts[i], routing);
    if (beside && i > 0) ImGui::SameLine(0, gap);
    ImGui::BeginChild(plot.id.c_str(), {beside ? (room - gap * (many - 1)) / many : room,
                                        beside ? height : px(190)});
    ui::bar_plot(plot);
    ImGui::EndChild();
  }
}

// ---- the recorded blocks over time --------------------------------------------------------------

namespace {

/// A row of the table `gantt`.
struct Span {
  int block = 0, expert = 0;
  double begin_us = 0, end_us = 0;
};

struct Recorded {
  std::string name;  ///< "packed, skewed"
  std::vector<Span> spans;
};

std::vector<Recorded> recorded_blocks(const lab::Table& table) {
  std::vector<Recorded> all;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::string name = text_in(table, row, "scheme") + ", " + text_in(table, row, "routing");
    auto found = std::find_if(all.begin(), all.end(),
                              [&](const Recorded& each) { return each.name == name; });
    if (found == all.end()) found = all.insert(all.end(), {name, {}});
    const std::string label = text_in(table, row, "expert");
    const auto number = number_in(table, row, "expert");
    const int expert = number                                ? static_cast<int>(*number)
                       : label.size() > 1 && label[0] == 'E' ? std::atoi(label.c_str() + 1)
                                                             : 0;
    found->spans.push_back({static_cast<int>(number_in(table, row, "block").value_or(0)), expert,
                            number_in(table, row, "begin_us").value_or(0),
                            number_in(table, row, "end_us").value_or(0)});
  }
  return all;
}

void draw_blocks(const Recorded& recorded, ImVec2 min, ImVec2 max) {
  std::vector<int> blocks;
  double end = 0, busy = 0;
  for (const Span& span : recorded.spans) {
    blocks.push_back(span.block);
    end = std::max(end, span.end_us);
    busy += span.end_us - span.begin_us;
  }
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  if (blocks.empty() || end <= 0) return;
  const float note = height_of(Font::note);
  const double share = 100 * busy / (end * static_cast<double>(blocks.size()));
  const std::string title =
      fmt::format("{}: {} blocks recorded, {:.0f} µs, {:.0f} % of their time in tiles",
                  recorded.name, blocks.size(), end, share);
  ui::draw_text(min, ui::fitted(title, Font::body_bold, max.x - min.x), Font::body_bold);
  const float top = min.y + height_of(Font::body_bold) + px(6);
  const float bottom = max.y - note - px(6);
  const float row = std::max(1.0f, (bottom - top) / static_cast<float>(blocks.size()));
  ui::Axis axis;
  axis.high = end;
  const float width = max.x - min.x - px(4);
  draw_list()->AddRectFilled(at(min.x, top), at(min.x + width, bottom),
                             ui::color(Role::raised, 0.5f));
  for (const Span& span : recorded.spans) {
    const auto place = std::lower_bound(blocks.begin(), blocks.end(), span.block) - blocks.begin();
    const float y = top + row * static_cast<float>(place);
    const ImVec2 from = at(min.x + width * axis.place(span.begin_us), y);
    const ImVec2 to = at(min.x + width * axis.place(span.end_us),
                         std::min(y + row - (row > px(4) ? 1.0f : 0.0f), bottom));
    draw_list()->AddRectFilled(from, to, ui::color(expert_role(span.expert)));
    draw_inside(from, to, fmt::format("E{}", span.expert),
                ui::readable_on(ui::color(expert_role(span.expert))));
  }
  const std::string unit = "µs";
  const float unit_left = min.x + width - ui::text_size(unit, Font::note).x - px(8);
  for (const double tick : axis.ticks(6)) {
    const float x = min.x + width * axis.place(tick);
    const std::string text = ui::tick_text(tick);
    if (x + ui::text_size(text, Font::note).x > unit_left) continue;
    ui::draw_text(at(x, bottom + px(2)), text, Font::note, Role::muted,
                  tick == 0 ? Align::left : Align::center);
  }
  ui::draw_text(at(min.x + width, bottom + px(2)), unit, Font::note, Role::muted, Align::right);
  ui::map("recorded_blocks", recorded.name, fmt::format("{} spans", recorded.spans.size()), min,
          max);
}

}  // namespace

void MoeRoutingScene::draw_recorded_blocks(const lab::Report& bench) {
  const lab::Table* table = bench.table("gantt");
  if (table == nullptr || table->rows.empty()) {
    ImGui::NewLine();
    ui::empty_state("No blocks in this measurement",
                    "Press Measure, or run tilestep bench moe-routing.");
    return;
  }
  const std::vector<Recorded> all = recorded_blocks(*table);
  std::vector<std::string> names;
  for (const Recorded& each : all) names.push_back(each.name);
  gantt_choice_ = choose("measured_blocks", names, gantt_choice_);
  draw_where("begin and end of each block's tiles, recorded by the kernel; " +
             where_measured(bench) + "; a row a block, in its experts' colours");
  const ImVec2 min = ImGui::GetCursorScreenPos();
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float height = std::max(room.y - px(4), px(150));
  draw_blocks(all[static_cast<std::size_t>(gantt_choice_)], min,
              at(min.x + room.x, min.y + height));
  ImGui::Dummy({room.x, height});
}

void MoeRoutingScene::draw_counters(const lab::Report& bench) const {
  const lab::Table* table = bench.table("moe_counters");
  if (table == nullptr || table->rows.empty()) {
    ImGui::NewLine();
    ui::empty_state("Not in this measurement",
                    "Hardware counters need permission; tilestep doctor says how to allow them.");
    return;
  }
  draw_where(fmt::format("{}; {}", table->title, where_measured(bench)));
  ui::data_table(*table);
}

}  // namespace tilestep::scenes

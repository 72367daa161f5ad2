// The Measured tab of the online-softmax lesson: the ladder at one shape as bars under the roof of
// the device's own copy, and against the threads that share a row as curves.
#include <fmt/format.h>

#include <algorithm>

#include "scenes/attention/online_softmax/scene.hpp"
#include "scenes/shared/measured_parts.hpp"

namespace tilestep::scenes {
namespace {

constexpr double kColumns = 8192;

ui::Role role_of(const std::string& rung) {
  if (rung == "three-pass") return ui::Role::purple;
  if (rung == "online-two-pass") return ui::Role::sky;
  return ui::Role::accent;
}

ui::BarPlot bars_of(const lab::Report& bench) {
  ui::BarPlot plot;
  plot.id = "ladder";
  plot.title = "Useful bandwidth, rows of 8192";
  plot.unit = "GB/s";
  for (const lab::Measurement& m : bench.measurements) {
    if (m.id != "softmax_bandwidth") continue;
    const lab::Measurement* fraction = bench.measurement("fraction_of_copy", m.variant);
    std::string note;
    if (!m.stable()) {
      note = "unstable";
    } else if (fraction != nullptr) {
      note = fmt::format("{:.0f} % of copy", 100 * fraction->value);
    }
    plot.bars.push_back({m.variant, m.value, m.p10, m.p90, role_of(m.variant), note});
  }
  if (const lab::Measurement* copy = bench.measurement("copy_bandwidth")) {
    plot.roof = copy->value;
    plot.roof_label = "copy";
  }
  return plot;
}

/// Rows of one width, against how many threads share a row: where the repeated reads of the lower
/// rungs are answered by L1 and where they are not.
ui::LinePlot curves_of(const lab::Report& bench, double columns) {
  ui::LinePlot plot;
  plot.id = "ladder_by_threads";
  plot.title = fmt::format("The same by threads a row, {:.0f} columns", columns);
  plot.x_label = "threads a row";
  plot.y_label = "useful GB/s";
  plot.x_log = true;
  const lab::Table& table = *bench.table("ladder_blocks");
  const std::vector<double> widths = column(table, "columns");
  const std::vector<double> threads = column(table, "threads");
  const std::vector<double> rates = column(table, "bandwidth");
  const std::vector<double> lows = column(table, "p10");
  const std::vector<double> highs = column(table, "p90");
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (widths[row] != columns) continue;
    const std::string rung = table.text(row, 0);
    auto curve = std::find_if(plot.curves.begin(), plot.curves.end(),
                              [&](const ui::Curve& one) { return one.label == rung; });
    if (curve == plot.curves.end()) {
      ui::Curve fresh;
      fresh.label = rung;
      fresh.role = role_of(rung);
      curve = plot.curves.insert(plot.curves.end(), std::move(fresh));
    }
    curve->x.push_back(threads[row]);
    curve->y.push_back(rates[row]);
    curve->low.push_back(lows[row]);
    curve->high.push_back(highs[row]);
  }
  if (const lab::Measurement* copy = bench.measurement("copy_bandwidth")) {
    plot.roof = copy->value;
    plot.roof_label = "copy";
  }
  return plot;
}

}  // namespace

void OnlineSoftmaxScene::draw_measured(const lab::Report& report) {
  const lab::Report* bench = bench_of(report, lesson(), "ladder_blocks");
  if (bench == nullptr) {
    ui::empty_state("Nothing measured yet",
                    "On a machine with an NVIDIA GPU, press Measure here or run tilestep bench.");
    return;
  }
  const lab::Measurement* rate = bench->measurement("softmax_bandwidth");
  const std::string where = fmt::format(
      "{}: FP32, one read and one write of each element counted, median of {} samples; "
      "each rung at its best block size",
      where_measured(*bench), rate == nullptr ? 0 : rate->samples);
  ui::draw_text(ImGui::GetCursorScreenPos(),
                ui::fitted(where, ui::Font::note, ImGui::GetContentRegionAvail().x), ui::Font::note,
                ui::Role::muted);
  ImGui::Dummy({1, ui::px(24)});
  const float width = ImGui::GetContentRegionAvail().x;
  const bool side_by_side = width > ui::px(760);
  const float bars_width = side_by_side ? width * 0.48f : width;
  ImGui::BeginChild("ladder_bars", {bars_width, side_by_side ? 0 : ui::px(190)});
  ui::bar_plot(bars_of(*bench));
  ImGui::EndChild();
  if (side_by_side) ImGui::SameLine(0, ui::px(24));
  const float height = side_by_side ? ImGui::GetContentRegionAvail().y : ui::px(220);
  ImGui::BeginChild("ladder_curves", {0, height});
  ui::line_plot(curves_of(*bench, kColumns), ImGui::GetContentRegionAvail());
  ImGui::EndChild();
}

}  // namespace tilestep::scenes

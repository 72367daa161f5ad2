// The Measured tab of the online-softmax lesson: the ladder at one shape as bars under the roof of
// the device's own copy, and against the width of the rows as curves.
#include <fmt/format.h>

#include <algorithm>

#include "lab/recording.hpp"
#include "online_softmax_scene.hpp"

namespace tilestep::scenes {
namespace {

/// A bench made in this window comes first; else the one that was recorded on a real GPU.
const lab::Report* bench_of(const lab::Report& report) {
  if (report.table("ladder_measured") != nullptr) return &report;
  const lab::Recording* recording = lab::recording("online-softmax");
  return recording == nullptr ? nullptr : &recording->bench;
}

ui::Role role_of(const std::string& rung) {
  if (rung == "three-pass") return ui::Role::vermillion;
  if (rung == "online-two-pass") return ui::Role::orange;
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
    plot.roof_label = fmt::format("copy {:.0f} GB/s", copy->value);
  }
  return plot;
}

double number_in(const lab::Table& table, std::size_t row, std::string_view column) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].id != column) continue;
    if (const auto* number = std::get_if<double>(&table.rows[row][c])) return *number;
  }
  return 0;
}

ui::LinePlot curves_of(const lab::Report& bench) {
  ui::LinePlot plot;
  plot.id = "ladder_by_columns";
  plot.title = "The same against the width of a row";
  plot.x_label = "columns (log)";
  plot.y_label = "useful GB/s";
  plot.x_log = true;
  const lab::Table& table = *bench.table("ladder_measured");
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::string rung = table.text(row, 0);
    auto curve = std::find_if(plot.curves.begin(), plot.curves.end(),
                              [&](const ui::Curve& one) { return one.label == rung; });
    if (curve == plot.curves.end()) {
      ui::Curve fresh;
      fresh.label = rung;
      fresh.role = role_of(rung);
      curve = plot.curves.insert(plot.curves.end(), std::move(fresh));
    }
    curve->x.push_back(number_in(table, row, "columns"));
    curve->y.push_back(number_in(table, row, "bandwidth"));
    curve->low.push_back(number_in(table, row, "p10"));
    curve->high.push_back(number_in(table, row, "p90"));
  }
  if (const lab::Measurement* copy = bench.measurement("copy_bandwidth")) {
    plot.roof = copy->value;
    plot.roof_label = "copy";
  }
  return plot;
}

}  // namespace

void OnlineSoftmaxScene::draw_measured(const lab::Report& report) {
  const lab::Report* bench = bench_of(report);
  if (bench == nullptr) {
    ui::empty_state("Nothing measured yet",
                    "On a machine with an NVIDIA GPU, press Measure here or run tilestep bench.");
    return;
  }
  const lab::Measurement* rate = bench->measurement("softmax_bandwidth");
  if (rate == nullptr || bench->table("ladder_measured") == nullptr) {
    ui::empty_state("This recording holds no ladder",
                    "Make it anew with tilestep record on a machine with an NVIDIA GPU.");
    return;
  }
  ui::draw_text(ImGui::GetCursorScreenPos(), ui::provenance_sentence(*rate, *bench), ui::Font::note,
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
  ui::line_plot(curves_of(*bench), ImGui::GetContentRegionAvail());
  ImGui::EndChild();
}

}  // namespace tilestep::scenes

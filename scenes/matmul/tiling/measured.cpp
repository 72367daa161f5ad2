// The Measured tab of the tiling lesson: the ladder beside cuBLAS, the roofline, and what the
// compiled kernels take and the hardware counts.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenes/matmul/tiling/scene.hpp"
#include "scenes/shared/measured_parts.hpp"
#include "scenes/shared/strokes.hpp"
#include "scenes/ui/roofline.hpp"

namespace tilestep::scenes {
namespace {

using ui::Role;

constexpr std::string_view kLadder = "ladder_measured";

/// A row of the table `ladder_measured`.
struct Rung {
  std::string name;
  int size = 0;
  double tflops = 0, p10 = 0, p90 = 0;
  double fraction = 0;  ///< of the library; 0: not known

  bool stable() const { return p90 - p10 <= 0.1 * tflops; }
  bool is_peer() const { return !tiling_variant(); }
  /// The rung's number in the ladder, if it is one of ours.
  std::optional<tiling::Variant> tiling_variant() const {
    for (int i = 0; i < tiling::kVariants; ++i) {
      if (to_text(static_cast<tiling::Variant>(i)) == name) return static_cast<tiling::Variant>(i);
    }
    return std::nullopt;
  }
  /// Multiplies in BF16 on tensor cores; the library's rows say so in their name.
  bool bf16() const {
    return name.find("BF16") != std::string::npos ||
           tiling_variant() == tiling::Variant::tensor_core;
  }
};

std::vector<Rung> rungs_of(const lab::Report& bench) {
  const lab::Table& table = *bench.table(kLadder);
  const std::array columns = {column(table, "size"), column(table, "tflops"), column(table, "p10"),
                              column(table, "p90"), column(table, "fraction")};
  std::vector<Rung> rungs;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const auto value = [&](std::size_t c) { return row < columns[c].size() ? columns[c][row] : 0; };
    rungs.push_back(
        {table.text(row, 0), static_cast<int>(value(0)), value(1), value(2), value(3), value(4)});
  }
  return rungs;
}

std::vector<int> sizes_of(const std::vector<Rung>& rungs) {
  std::vector<int> sizes;
  for (const Rung& rung : rungs) {
    if (std::find(sizes.begin(), sizes.end(), rung.size) == sizes.end()) sizes.push_back(rung.size);
  }
  std::sort(sizes.rbegin(), sizes.rend());
  return sizes;
}

/// The rungs of one number format as bars, under the library's rate as the roof.
ui::BarPlot ladder(const std::vector<Rung>& rungs, int size, bool bf16) {
  ui::BarPlot plot;
  plot.id = bf16 ? "ladder_bf16" : "ladder_fp32";
  plot.title =
      bf16 ? fmt::format("BF16 on tensor cores, {}³", size) : fmt::format("FP32, {}³", size);
  plot.unit = "TFLOP/s";
  for (const Rung& rung : rungs) {
    if (rung.size != size || rung.bf16() != bf16) continue;
    if (rung.is_peer()) {
      plot.roof = rung.tflops;
      plot.roof_label = rung.stable() ? rung.name : rung.name + " (unstable)";
      continue;
    }
    std::string note;
    if (!rung.stable()) {
      note = "unstable";
    } else if (rung.fraction > 0) {
      note = fmt::format("{:.{}f} % of cuBLAS", 100 * rung.fraction, rung.fraction < 0.1 ? 1 : 0);
    }
    const Role role = bf16 ? Role::purple : Role::accent;
    plot.bars.push_back({rung.name, rung.tflops, rung.p10, rung.p90, role, note});
  }
  // The roof's name says which format this is; the title would take a rung's room.
  if (plot.roof) plot.title.clear();
  return plot;
}

/// A row of the table `roofline`, whose labels read "rung size³" or "rung size³, counted bytes".
struct Point {
  std::string label, detail;
  double flop_per_byte = 0, tflops = 0;
  lab::Provenance provenance = lab::Provenance::measured;

  bool counted() const { return label.find("counted") != std::string::npos; }
  std::string rung() const {
    return provenance == lab::Provenance::derived ? label : label.substr(0, label.find(' '));
  }
  bool at_size(int size) const {
    return label.find(fmt::format(" {}³", size)) != std::string::npos;
  }
};

std::vector<Point> points_of(const lab::Report& bench) {
  std::vector<Point> points;
  const lab::Table* table = bench.table("roofline");
  if (table == nullptr) return points;
  const auto x = column(*table, "flop_per_byte");
  const auto y = column(*table, "tflops");
  for (std::size_t row = 0; row < std::min(table->rows.size(), std::min(x.size(), y.size()));
       ++row) {
    Point point{table->text(row, 0), "", x[row], y[row]};
    for (std::size_t c = 0; c < table->columns.size(); ++c) {
      if (table->columns[c].id == "formula") point.detail = table->text(row, c);
      if (table->columns[c].id == "provenance") {
        point.provenance = lab::provenance_from(table->text(row, c));
      }
    }
    points.push_back(std::move(point));
  }
  return points;
}

void add_roofs(ui::Roofline& plot, const lab::Report& bench) {
  struct Roof {
    const char* id;
    const char* label;
    double scale;
    bool memory, datasheet;
  };
  static constexpr Roof kRoofs[] = {{"copy_bandwidth", "copy", 1e-3, true, false},
                                    {"library_fp32", "cuBLAS FP32", 1, false, false},
                                    {"library_bf16", "cuBLAS BF16", 1, false, false},
                                    {"datasheet_bandwidth", "datasheet", 1e-3, true, true},
                                    {"datasheet_fp32", "datasheet FP32", 1, false, true},
                                    {"datasheet_bf16", "datasheet BF16", 1, false, true}};
  for (const Roof& roof : kRoofs) {
    const lab::Measurement* m = bench.measurement(roof.id);
    if (m == nullptr) continue;
    if (roof.memory) {
      plot.memory.push_back({roof.label, m->value * roof.scale, roof.datasheet});
    } else {
      plot.compute.push_back({roof.label, m->value * roof.scale, roof.datasheet});
    }
  }
}

/// A segmented control on the same line as the one before.
int choose(std::string_view id, const std::vector<std::string>& labels, int selected) {
  ImGui::SameLine(0, ui::px(16));
  return ui::segmented(id, labels, selected).value_or(selected);
}

}  // namespace

void TilingScene::draw_measured(const lab::Report& report) {
  const lab::Report* bench = bench_of(report, lesson(), kLadder);
  if (bench == nullptr) {
    ui::empty_state("Nothing measured yet",
                    "On a machine with an NVIDIA GPU, press Measure here or run tilestep bench.");
    return;
  }
  view_ = ui::segmented("measured_view", {"Ladder", "Roofline", "Counters", "Occupancy"}, view_)
              .value_or(view_);
  if (view_ == 0) return draw_ladder(*bench);
  if (view_ == 1) return draw_roofline(*bench);
  draw_table(*bench, view_ == 2 ? "counters" : "resources");
}

namespace {

/// Where and how, in what is left of the line of controls.
void draw_where(const std::string& where) {
  ImGui::SameLine(0, ui::px(16));
  const ImVec2 here = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x;
  ui::draw_text(at(here.x, here.y + ui::px(8)), ui::fitted(where, ui::Font::note, room),
                ui::Font::note, Role::muted);
  ImGui::NewLine();
  ImGui::Dummy({1, ui::px(4)});
}

}  // namespace

void TilingScene::draw_ladder(const lab::Report& bench) {
  const std::vector<Rung> rungs = rungs_of(bench);
  const std::vector<int> sizes = sizes_of(rungs);
  if (sizes.empty()) {
    ui::empty_state("The ladder is empty", "Press Measure, or run tilestep bench tiling.");
    return;
  }
  size_ = std::clamp(size_, 0, static_cast<int>(sizes.size()) - 1);
  if (sizes.size() > 1) {
    std::vector<std::string> names;
    for (const int size : sizes) names.push_back(fmt::format("{}³", size));
    size_ = choose("measured_size", names, size_);
  }
  draw_where(where_measured(bench) + ", random data, median; whiskers hold 80 % of the samples");
  const int size = sizes[static_cast<std::size_t>(size_)];
  const ui::BarPlot fp32 = ladder(rungs, size, false);
  const ui::BarPlot bf16 = ladder(rungs, size, true);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const bool both = !bf16.bars.empty() || bf16.roof.has_value();
  const bool side_by_side = both && room.x > ui::px(760);
  const float width = side_by_side ? (room.x - ui::px(24)) * 0.56f : room.x;
  const auto height = [](const ui::BarPlot& plot) {
    return ui::px(28 * static_cast<float>(plot.bars.size()) + 84);
  };
  ImGui::BeginChild("fp32", {width, std::max(height(fp32), side_by_side ? room.y : 0)});
  ui::bar_plot(fp32);
  ImGui::EndChild();
  if (!both) return;
  if (side_by_side) ImGui::SameLine(0, ui::px(24));
  ImGui::BeginChild("bf16", {0, side_by_side ? room.y : height(bf16)});
  ui::bar_plot(bf16);
  ImGui::EndChild();
}

void TilingScene::draw_roofline(const lab::Report& bench) {
  const std::vector<Point> points = points_of(bench);
  ui::Roofline plot;
  plot.id = "roofline";
  add_roofs(plot, bench);
  if (points.empty() || plot.memory.empty() || plot.compute.empty()) {
    ImGui::NewLine();
    ui::empty_state("No roofline in this measurement",
                    "It lacks the roofs or the dots. Press Measure, or run tilestep bench tiling.");
    return;
  }
  const bool has_counted =
      std::any_of(points.begin(), points.end(), [](const Point& p) { return p.counted(); });
  if (has_counted) {
    bytes_ = choose("roofline_bytes", {"Bytes as counted", "Each matrix once"}, bytes_);
  }
  draw_where(where_measured(bench) +
             "; filled: measured, hollow: derived; solid: measured roofs, dashed: datasheet");
  // One dot a rung: with counted bytes, or at the largest size that the rung was timed at.
  const bool counted = has_counted && bytes_ == 0;
  const std::vector<int> sizes = sizes_of(rungs_of(bench));
  std::vector<std::string> shown;
  const auto add = [&](const Point& point) {
    const std::string rung = point.rung();
    if (std::find(shown.begin(), shown.end(), rung) != shown.end()) return;
    shown.push_back(rung);
    const bool derived = point.provenance == lab::Provenance::derived;
    const Role role = derived ? Role::sky : rung == "tensor-core" ? Role::purple : Role::accent;
    plot.dots.push_back({rung, point.flop_per_byte, point.tflops, role, point.provenance,
                         derived ? point.detail : point.label + ": " + point.detail});
  };
  for (const int size : sizes) {
    for (const Point& point : points) {
      const bool derived = point.provenance == lab::Provenance::derived;
      if (!derived && point.counted() == counted && point.at_size(size)) add(point);
    }
  }
  for (const Point& point : points) {
    if (point.provenance == lab::Provenance::derived) add(point);
  }
  const ImVec2 room = ImGui::GetContentRegionAvail();
  ui::roofline(plot, {room.x, std::max(room.y - ui::px(4), ui::px(170))});
}

void TilingScene::draw_table(const lab::Report& bench, const char* id) const {
  const lab::Table* table = bench.table(id);
  if (table == nullptr) {
    ImGui::NewLine();
    ui::empty_state("Not in this measurement",
                    "Hardware counters need permission; tilestep doctor says how to allow them.");
    return;
  }
  draw_where(fmt::format("{}; {}", table->title, where_measured(bench)));
  ui::data_table(*table);
}

}  // namespace tilestep::scenes

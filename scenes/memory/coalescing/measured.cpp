// The Measured tab of the coalescing lesson: useful bandwidth against stride and offset beside what
// the sectors let expect, all patterns, the copy ladder, and the transposes with their banks.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenes/memory/coalescing/scene.hpp"
#include "scenes/shared/measured_parts.hpp"
#include "scenes/shared/strokes.hpp"

namespace tilestep::scenes {
namespace {

using ui::Role;

ui::Curve curve(const lab::Table& table, const char* x, const char* y, const char* label, Role role,
                bool dashed = false) {
  ui::Curve one;
  one.label = label;
  one.x = column(table, x);
  one.y = column(table, y);
  one.low = column(table, std::string(y) + "_p10");
  one.high = column(table, std::string(y) + "_p90");
  one.role = role;
  one.dashed = dashed;
  return one;
}

void add_roof(ui::LinePlot& plot, const lab::Report& bench) {
  if (const auto* copy = bench.measurement("copy_bandwidth", "device")) {
    plot.roof = copy->value;
    plot.roof_label = "copy";
  }
}

ui::LinePlot against(const lab::Report& bench, const char* table_id, const char* x,
                     const char* title, const char* label) {
  ui::LinePlot plot;
  plot.id = table_id;
  plot.title = title;
  plot.x_label = label;
  plot.y_label = "useful GB/s";
  if (const lab::Table* table = bench.table(table_id)) {
    plot.curves = {curve(*table, x, "expected", "expected from sectors", Role::muted, true),
                   curve(*table, x, "load", "load", Role::accent),
                   curve(*table, x, "store", "store", Role::sky)};
  }
  add_roof(plot, bench);
  return plot;
}

/// Bars of one measurement, a bar a variant, with another measurement's value as the note.
ui::BarPlot ladder(const lab::Report& bench, const char* id, const char* title,
                   const char* fraction_id, const char* of) {
  static constexpr std::array kRoles = {Role::purple, Role::sky, Role::accent};
  ui::BarPlot plot;
  plot.id = id;
  plot.title = title;
  plot.unit = "GB/s";
  for (const lab::Measurement& m : bench.measurements) {
    if (m.id != id || m.variant == "device") continue;
    const auto* fraction = bench.measurement(fraction_id, m.variant);
    std::string note = m.stable() ? "" : "unstable";
    if (m.stable() && fraction != nullptr) {
      note = fmt::format("{:.0f} % of {}", 100 * fraction->value, of);
    }
    plot.bars.push_back(
        {m.variant, m.value, m.p10, m.p90, kRoles[plot.bars.size() % kRoles.size()], note});
  }
  return plot;
}

}  // namespace

void CoalescingScene::draw_measured(const lab::Report& report) {
  const lab::Report* bench = bench_of(report, lesson(), "bandwidth_by_stride");
  if (bench == nullptr) {
    ui::empty_state("Nothing measured yet",
                    "On a machine with an NVIDIA GPU, press Measure here or run tilestep bench.");
    return;
  }
  if (const auto chosen = ui::segmented(
          "measured_view", {"Stride and offset", "Patterns", "Copy ladder", "Transpose"}, view_)) {
    view_ = *chosen;
  }
  ImGui::SameLine(0, ui::px(16));
  const std::string where =
      where_measured(*bench) + ": bytes that the kernel asked for, read and written, over time";
  const float room = ImGui::GetContentRegionAvail().x;
  const ImVec2 here = ImGui::GetCursorScreenPos();
  ui::draw_text(at(here.x, here.y + ui::px(8)), ui::fitted(where, ui::Font::note, room),
                ui::Font::note, Role::muted);
  ImGui::NewLine();
  ImGui::Dummy({1, ui::px(4)});
  if (view_ == 0) return draw_curves(*bench);
  if (view_ == 1) return draw_patterns(*bench);
  if (view_ == 2) return draw_copies(*bench);
  draw_transposes(*bench);
}

void CoalescingScene::draw_curves(const lab::Report& bench) const {
  ui::LinePlot stride = against(bench, "bandwidth_by_stride", "stride", "4-byte elements by stride",
                                "stride in elements");
  stride.x_log = true;
  ui::LinePlot offset = against(bench, "bandwidth_by_offset", "offset",
                                "4-byte elements by misalignment", "offset in elements");
  if (params_.pattern == coalescing::Pattern::strided) stride.marked_x = params_.stride;
  if (params_.pattern == coalescing::Pattern::offset) offset.marked_x = params_.offset;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const bool side_by_side = room.x > ui::px(720);
  const ImVec2 size(side_by_side ? (room.x - ui::px(24)) / 2 : room.x,
                    std::max(room.y, ui::px(170)));
  ImGui::BeginChild("stride", size);
  ui::line_plot(stride, ImGui::GetContentRegionAvail());
  ImGui::EndChild();
  if (side_by_side) ImGui::SameLine(0, ui::px(24));
  ImGui::BeginChild("offset", size);
  ui::line_plot(offset, ImGui::GetContentRegionAvail());
  ImGui::EndChild();
}

void CoalescingScene::draw_patterns(const lab::Report& bench) const {
  if (const lab::Table* table = bench.table("bandwidth_by_pattern")) {
    ui::data_table(*table);
  }
}

void CoalescingScene::draw_copies(const lab::Report& bench) const {
  ui::BarPlot plot = ladder(bench, "copy_bandwidth", "Copying an array: rung by rung",
                            "fraction_of_device_copy", "cudaMemcpyAsync");
  if (const auto* copy = bench.measurement("copy_bandwidth", "device")) {
    plot.roof = copy->value;
    plot.roof_label = "cudaMemcpyAsync";
  }
  ui::bar_plot(plot);
}

void CoalescingScene::draw_transposes(const lab::Report& bench) const {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const bool side_by_side = room.x > ui::px(720);
  ImGui::BeginChild("transposes",
                    {side_by_side ? room.x * 0.5f : room.x, side_by_side ? room.y : ui::px(170)});
  ui::BarPlot plot = ladder(bench, "transpose_bandwidth", "Transposing a matrix: rung by rung",
                            "fraction_of_copy", "our copy");
  if (const auto* copy = bench.measurement("copy_bandwidth", "vectorized")) {
    plot.roof = copy->value;
    plot.roof_label = "our copy";
  }
  ui::bar_plot(plot);
  ImGui::EndChild();
  if (side_by_side) ImGui::SameLine(0, ui::px(24));
  draw_banks({side_by_side ? ImGui::GetContentRegionAvail().x : room.x, ui::px(170)});
}

/// The 32 banks of shared memory, a row a request: how many of the warp's words each has to
/// deliver.
void CoalescingScene::draw_banks(ImVec2 size) const {
  const ImVec2 min = ImGui::GetCursorScreenPos();
  ImGui::Dummy(size);
  ui::draw_text(min, "Words each of the 32 banks delivers to one warp", ui::Font::body_bold);
  const float top = min.y + ui::px(28);
  const float step = std::min(
      ui::px(34), (size.y - ui::px(28)) /
                      static_cast<float>(std::max<std::size_t>(1, trace_.tile_requests.size())));
  const float name = ui::px(220);
  const float cell = (size.x - name - ui::px(72)) / coalescing::kBanks;
  for (std::size_t row = 0; row < trace_.tile_requests.size(); ++row) {
    const coalescing::TileRequest& request = trace_.tile_requests[row];
    std::array<int, coalescing::kBanks> words{};
    for (const std::int32_t byte : request.byte_offset) {
      ++words[static_cast<std::size_t>(byte / coalescing::kBankBytes % coalescing::kBanks)];
    }
    const float y = top + step * static_cast<float>(row);
    const std::string label = fmt::format(
        "{}, {}", request.rung, request.kind == coalescing::Access::load ? "load" : "store");
    ui::draw_text(at(min.x, y), ui::fitted(label, ui::Font::note, name - ui::px(8)), ui::Font::note,
                  Role::muted);
    for (int bank = 0; bank < coalescing::kBanks; ++bank) {
      const int count = words[static_cast<std::size_t>(bank)];
      const ImVec2 from = at(min.x + name + cell * static_cast<float>(bank), y);
      const ImVec2 to = at(from.x + cell - ui::px(1), y + step - ui::px(8));
      if (count > 0) {
        fill(from, to, count > 1 ? Role::wrong : Role::sky);
      } else {
        outline(from, to, Role::faint);
      }
    }
    const std::string ways =
        request.ways == 1 ? "no conflict" : fmt::format("{}-way", request.ways);
    ui::draw_text(at(min.x + size.x, y), ways, ui::Font::note,
                  request.ways == 1 ? Role::text : Role::wrong, ui::Align::right);
    ui::map(fmt::format("banks_{}", row), label, ways, at(min.x, y),
            at(min.x + size.x, y + step - ui::px(8)));
  }
}

}  // namespace tilestep::scenes

// The Measured tab of the accumulator lesson: errors of tensor-core products against K, what
// accuracy costs, how far the software model agrees with the hardware, and what scales save.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "scenes/numbers/accumulator_precision/layout.hpp"
#include "scenes/shared/measured_parts.hpp"

namespace tilestep::scenes {

using accumulator_precision::GemmVariant;
using accumulator_precision::kGemmData;
using accumulator_precision::kGemmVariants;
using ui::Font;
using ui::px;
using ui::Role;

namespace {

constexpr std::string_view kErrors = "tensor_core_error";

Role role_of(GemmVariant variant) {
  switch (variant) {
    case GemmVariant::wgmma_fp8:
      return Role::vermillion;
    case GemmVariant::wgmma_fp8_promoted:
      return Role::blue;
    case GemmVariant::mma_fp16_acc16:
      return Role::purple;
    case GemmVariant::mma_fp16_acc32:
      return Role::yellow;
    case GemmVariant::mma_bf16:
      return Role::green;
  }
  return Role::muted;
}

/// A table's number at a row and a column by id, if there is one.
std::optional<double> cell(const lab::Table& table, std::size_t row, std::string_view id) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].id != id) continue;
    const auto* value = std::get_if<double>(&table.rows.at(row).at(c));
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  return std::nullopt;
}

/// Where and how, in what is left of the line of controls.
void draw_where(const std::string& where) {
  ImGui::SameLine(0, px(16));
  const ImVec2 here = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x;
  ui::draw_text(at(here.x, here.y + px(8)), ui::fitted(where, Font::note, room), Font::note,
                Role::muted);
  ImGui::NewLine();
  ui::space(4);
}

/// Two plots of the same bars, side by side where there is room: then the names stand once.
void draw_pair(const ui::BarPlot& first, ui::BarPlot second) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const bool side_by_side = room.x > px(700);
  const float height = px(28 * static_cast<float>(first.bars.size()) + 60);
  ImGui::BeginChild(first.id.c_str(), {side_by_side ? room.x * 0.58f : room.x, height});
  ui::bar_plot(first);
  ImGui::EndChild();
  if (side_by_side) {
    for (ui::Bar& bar : second.bars) bar.label.clear();
    ImGui::SameLine(0, px(24));
  }
  ImGui::BeginChild(second.id.c_str(), {0, height});
  ui::bar_plot(second);
  ImGui::EndChild();
}

void nothing_measured() {
  ui::empty_state("Nothing measured yet",
                  "On a machine with an NVIDIA GPU, press Measure here or run tilestep bench "
                  "accumulator-precision. Scales are computed without one.");
}

}  // namespace

void AccumulatorPrecisionScene::draw_measured(const lab::Report& report) {
  const lab::Report* bench = bench_of(report, lesson(), kErrors);
  measured_ = ui::segmented("measured_view", {"Error", "Price", "Model", "Scales"}, measured_)
                  .value_or(measured_);
  if (measured_ == 3) {
    // A run without a GPU has this table too.
    draw_scales(report.table("scaling") != nullptr || bench == nullptr ? report : *bench);
    return;
  }
  if (bench == nullptr) return nothing_measured();
  if (measured_ == 0) {
    ImGui::SameLine(0, px(16));
    return draw_errors(*bench);
  }
  if (measured_ == 1) return draw_price(*bench);
  draw_model(*bench);
}

void AccumulatorPrecisionScene::draw_errors(const lab::Report& bench) {
  std::vector<std::string> names;
  for (const auto data : kGemmData) names.emplace_back(to_text(data));
  data_ = ui::segmented("measured_data", names, data_).value_or(data_);
  const lab::Table& table = *bench.table(kErrors);
  ui::LinePlot plot;
  plot.id = "gemm_error";
  plot.x_label = "K, products in a sum";
  plot.y_label = "relative error in %";
  plot.x_log = plot.y_log = true;
  std::string without_error;
  for (const GemmVariant variant : kGemmVariants) {
    ui::Curve curve;
    curve.label = to_text(variant);
    curve.role = role_of(variant);
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      if (table.text(row, 0) != names[static_cast<std::size_t>(data_)]) continue;
      const auto k = cell(table, row, "k");
      const auto error = cell(table, row, to_text(variant));
      if (!k || !error) continue;
      curve.x.push_back(*k);
      curve.y.push_back(*error);
    }
    // A logarithmic axis has no place for 0.
    const bool drawn =
        std::any_of(curve.y.begin(), curve.y.end(), [](double error) { return error > 0; });
    if (!drawn && !curve.x.empty())
      without_error += (without_error.empty() ? "" : ", ") + curve.label;
    if (drawn) plot.curves.push_back(std::move(curve));
  }
  draw_where(where_measured(bench) +
             "; all multiply the same E4M3 numbers, only the adding differs" +
             (without_error.empty() ? "" : "; no error at all: " + without_error));
  if (plot.curves.empty()) {
    ui::empty_state("No errors in this measurement", "It was made without tensor cores.");
    return;
  }
  ui::line_plot(plot, {ImGui::GetContentRegionAvail().x,
                       std::max(ImGui::GetContentRegionAvail().y - px(4), px(170))});
}

void AccumulatorPrecisionScene::draw_price(const lab::Report& bench) const {
  const lab::Table* table = bench.table("tensor_core_rate");
  if (table == nullptr || table->rows.empty()) {
    ui::empty_state("No rates in this measurement", "It was made without tensor cores.");
    return;
  }
  ui::BarPlot rates, errors;
  rates.id = "gemm_rate";
  rates.title = "Throughput";
  rates.unit = "TFLOP/s";
  errors.id = "gemm_error_bars";
  errors.title = "Error on uniform data";
  errors.unit = "%";
  for (std::size_t row = 0; row < table->rows.size(); ++row) {
    const std::string name = table->text(row, 0);
    Role role = Role::muted;
    for (const GemmVariant variant : kGemmVariants) {
      if (to_text(variant) == name) role = role_of(variant);
    }
    const double rate = cell(*table, row, "rate").value_or(0);
    const auto p10 = cell(*table, row, "p10"), p90 = cell(*table, row, "p90");
    const bool stable = !p10 || !p90 || *p90 - *p10 <= 0.1 * rate;
    rates.bars.push_back({name, rate, p10, p90, role, stable ? "" : "unstable"});
    if (const auto error = cell(*table, row, "error")) {
      errors.bars.push_back({name, *error, {}, {}, role, ""});
    }
  }
  const auto k = cell(*table, 0, "k").value_or(0);
  const auto m = cell(*table, 0, "m").value_or(0);
  draw_where(fmt::format("{}; M = N = {:g}, K = {:g}, median; whiskers hold 80 % of the samples",
                         where_measured(bench), m, k));
  // The price in a sentence, from the two measured pairs.
  const auto* straight = bench.measurement("gemm_rate", "wgmma-fp8");
  const auto* promoted = bench.measurement("gemm_rate", "wgmma-fp8-promoted");
  const auto* loses = bench.measurement("gemm_error", "wgmma-fp8");
  const auto* saves = bench.measurement("gemm_error", "wgmma-fp8-promoted");
  if (straight && promoted && loses && saves && straight->value > 0 && saves->value > 0) {
    const std::string price = fmt::format(
        "Promotion costs {:.0f} % of the throughput and makes the error {:.0f} times smaller.",
        100 * (1 - promoted->value / straight->value), loses->value / saves->value);
    ui::paragraph(price, Font::body_bold);
    ui::map("price", price, "", ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  }
  draw_pair(rates, std::move(errors));
}

void AccumulatorPrecisionScene::draw_model(const lab::Report& bench) const {
  const lab::Table* table = bench.table("hopper_model");
  if (table == nullptr || table->rows.empty()) {
    ui::empty_state("No model in this measurement",
                    "It describes wgmma, which needs a GPU of compute capability 9.0.");
    return;
  }
  draw_where(where_measured(bench));
  std::string agrees;
  const lab::Measurement* any = nullptr;
  for (const auto data : kGemmData) {
    const auto* m = bench.measurement("model_bit_equal", to_text(data));
    if (m == nullptr) continue;
    any = m;
    agrees +=
        fmt::format("{}{} % on {} data", agrees.empty() ? "" : ", ",
                    m->value == 100 ? "100" : fmt::format("{:.2f}", m->value),
                    data == accumulator_precision::GemmData::outliers ? "outlier" : to_text(data));
  }
  if (any != nullptr) {
    ui::paragraph("The same bits as the hardware: " + agrees + ".", Font::body_bold);
    ui::map("model_agrees", agrees, "", ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
    ui::paragraph(
        fmt::format("The {}. The table has other parameters, too. {}.", any->detail, table->title),
        Font::note, Role::muted);
  }
  ui::data_table(*table);
}

void AccumulatorPrecisionScene::draw_scales(const lab::Report& report) const {
  const lab::Table* table = report.table("scaling");
  if (table == nullptr) {
    ImGui::NewLine();
    ui::empty_state("No scales in this report", "Run the lesson again.");
    return;
  }
  draw_where(fmt::format("{}; computed by the kernel on {}", table->title, report.device.name));
  ui::BarPlot errors, lost;
  errors.id = "scaling_error";
  errors.title = "Error of a row of C";
  lost.id = "scaling_lost";
  lost.title = "Elements rounded to 0";
  errors.unit = lost.unit = "%";
  for (std::size_t row = 0; row < table->rows.size(); ++row) {
    const std::string scheme = table->text(row, 0);
    const Role role = row + 1 == table->rows.size() ? Role::accent : Role::sky;
    const std::string count = fmt::format("{:.0f} scales", cell(*table, row, "scales").value_or(0));
    errors.bars.push_back({scheme, cell(*table, row, "error").value_or(0), {}, {}, role, count});
    lost.bars.push_back({scheme, cell(*table, row, "lost").value_or(0), {}, {}, role, ""});
  }
  draw_pair(errors, std::move(lost));
  const std::size_t why = table->columns.size() - 1;
  const std::string sentence = table->text(table->rows.size() - 1, why);
  ui::paragraph(table->text(table->rows.size() - 1, 0) + ": " + sentence);
  ui::map("scaling_why", sentence, "", ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
}

}  // namespace tilestep::scenes

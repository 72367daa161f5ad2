// The Measured tab of the accumulator lesson: errors of tensor-core products against K, the price of
// accuracy, the agreement of the software model with the hardware, and the effect of scales.
#include "scenes/shared/measured.hpp"

#include <fmt/format.h>

#include "scenes/numbers/accumulator_precision/scene.hpp"
#include "scenes/shared/rows.hpp"
#include "scenes/shared/words.hpp"

namespace tilestep::scenes {

using accumulator_precision::GemmVariant, accumulator_precision::kGemmData;

namespace {

/// In the order of the variants.
constexpr Role kRoles[] = {Role::magenta, Role::blue, Role::purple, Role::yellow, Role::green};
static_assert(std::size(kRoles) == count_of<GemmVariant>());

Role variant_role(std::string_view name) {
  const auto variant = named<GemmVariant>(name);
  return variant ? kRoles[static_cast<std::size_t>(*variant)] : Role::muted;
}

/// The price in a sentence, from the two measured pairs.
std::string price(const lab::Report& bench) {
  const auto* straight = bench.measurement("gemm_rate", "wgmma-fp8");
  const auto* promoted = bench.measurement("gemm_rate", "wgmma-fp8-promoted");
  const auto* loses = bench.measurement("gemm_error", "wgmma-fp8");
  const auto* saves = bench.measurement("gemm_error", "wgmma-fp8-promoted");
  const bool known = straight && promoted && loses && saves;
  if (!known || straight->value <= 0 || saves->value <= 0) return {};
  return fmt::format(
      "Promotion costs {:.0f} % of the throughput and makes the error {:.0f} times smaller.",
      100 * (1 - promoted->value / straight->value), loses->value / saves->value);
}

std::string agreement(const lab::Report& bench) {
  std::vector<std::string> shares;
  std::string model;
  for (const auto data : kGemmData) {
    const auto* m = bench.measurement("model_bit_equal", name_of(data));
    if (m == nullptr) continue;
    const bool outliers = data == accumulator_precision::GemmData::outliers;
    model = m->detail;
    shares.push_back(fmt::format("{} on {} data", words::percent(m->value / 100),
                                 outliers ? "outlier" : name_of(data)));
  }
  if (shares.empty()) return {};
  return fmt::format("Same bits as the hardware: {}. The {}.", words::joined(shares), model);
}

constexpr std::string_view kAsItStands = "the model";

/// Models that differ in one part from the first, the lesson's own, with one row per kind of data. The
/// number of bits kept follows the number of bits added.
lab::Table one_change(lab::Table models) {
  lab::Table all{models.id, models.title, {"name", "data", {"value", "", "", -1}}, {}};
  const auto text = [&](std::size_t row, const char* id) { return text_in(models, row, id); };
  const auto changes = [&](std::size_t row) {
    std::vector<std::string> names;
    const auto part = [&](const char* id, const std::string& name) {
      if (text(row, id) != text(0, id)) names.push_back(name);
    };
    part("fraction_bits", text(row, "fraction_bits") + " bits after the point");
    part("group", text(row, "group") + " products/step");
    part("exponent", "exponent " + text(row, "exponent"));
    part("cut", "cut " + text(row, "cut"));
    if (text(row, "mantissa_bits") != text(row, "fraction_bits")) {
      names.push_back(text(row, "mantissa_bits") + " mantissa bits kept");
    }
    return names;
  };
  for (const char* data : {"uniform", "normal", "outliers"}) {
    for (std::size_t row = 0; row < models.rows.size(); ++row) {
      const std::vector<std::string> names = changes(row);
      if (names.size() > 1 || (row > 0 && names.empty())) continue;
      const auto value = number_in(models, row, data);
      if (value) all.add({row == 0 ? std::string(kAsItStands) : names[0], data, *value});
    }
  }
  return all;
}

/// The last scheme's price, in the table's own words.
std::string scaling_why(const lab::Report& report) {
  const lab::Table& table = *report.table("scaling");
  const std::size_t last = table.rows.size() - 1;
  return filled_in("{scheme}: {why}", table, last);
}

}  // namespace

measured::Spec AccumulatorPrecisionScene::measured_spec() const {
  using namespace measured;
  const std::string no_tensor_cores = "It was made without tensor cores.";
  std::vector<Lines::Curve> curves;
  for (const std::string_view name : names_of(GemmVariant{})) {
    curves.push_back({std::string(name), std::string(name), variant_role(name)});
  }
  const Rows rates{.table = "tensor_core_rate"}, scales{.table = "scaling"};
  const std::string needs = "tensor_core_error";
  return {needs,
          {{.name = "Error",
            .how = "all multiply the same E4M3 numbers; only the adding differs",
            .filters = {{"measured_data", "data", "{}", "", "data"}},
            .plots = {Lines{.id = "gemm_error",
                            .x_label = "K, products in a sum",
                            .y_label = "relative error in %",
                            .x_log = true,
                            .y_log = true,
                            .rows = {.table = needs},
                            .x = "k",
                            .curves = curves}},
            .missing = no_tensor_cores},
           {.name = "Price",
            .how = "M = N = {m}, K = {k}, median; whiskers hold 80 % of the samples",
            .plots = {Bars{.id = "gemm_rate",
                           .title = "Throughput",
                           .unit = "TFLOP/s",
                           .rows = rates,
                           .value = "rate",
                           .role = variant_role},
                      Bars{.id = "gemm_error_bars",
                           .title = "Error on uniform data",
                           .unit = "%",
                           .rows = rates,
                           .value = "error",
                           .low = "",
                           .high = "",
                           .role = variant_role}},
            .needs = "tensor_core_rate",
            .missing = no_tensor_cores,
            .headline = {"price", price}},
           {.name = "By data",
            .how = "M = N = {m}, K = {k}, median; the error of the same product, to 0.0001 %",
            .filters = {{"rate_data", "data", "{}", "", "data"}},
            .plots = {Bars{.id = "rate_by_data",
                           .title = "Throughput",
                           .unit = "TFLOP/s",
                           .rows = {.table = "rate_and_error"},
                           .value = "rate",
                           .role = variant_role},
                      Bars{.id = "error_by_data",
                           .title = "Error",
                           .unit = "%",
                           .rows = {.table = "rate_and_error"},
                           .value = "error",
                           .low = "",
                           .high = "",
                           .role = variant_role}},
            .needs = "rate_and_error"},
           alignment_view(),
           {.name = "Model",
            .how = "the model as is, and with one part changed",
            .filters = {{"model_data", "data", "{}", "", "data"}},
            .plots = {Bars{.id = "model_bits",
                           .title = "Outputs bit-identical to hardware: {data} data",
                           .unit = "%",
                           .rows = {.table = "hopper_model", .prepare = one_change},
                           .label = "name",
                           .role =
                               [](std::string_view name) {
                                 return name == kAsItStands ? Role::sky : Role::purple;
                               }}},
            .needs = "hopper_model",
            .missing = "It describes wgmma, which needs a GPU of compute capability 9.0.",
            .headline = {"model_agrees", agreement}},
           {.name = "Scales",
            .how = "one block of numbers, computed by the kernel itself",
            .plots = {Bars{.id = "scaling_error",
                           .title = "Error of a row of C",
                           .unit = "%",
                           .rows = scales,
                           .label = "scheme",
                           .value = "error",
                           .note = "{scales} scales"},
                      Bars{.id = "scaling_lost",
                           .title = "Elements rounded to 0",
                           .unit = "%",
                           .rows = scales,
                           .label = "scheme",
                           .value = "lost"}},
            .needs = "scaling",
            .missing = "Run the lesson again.",
            .computed = true,
            .footnote = {"scaling_why", scaling_why}}}};
}

}  // namespace tilestep::scenes

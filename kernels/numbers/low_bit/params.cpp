#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/numeric/small_float.hpp"
#include "kernels/numbers/low_bit/lesson.hpp"

namespace tilestep::low_bit {
namespace {

std::uint16_t bf16(double value) {
  return static_cast<std::uint16_t>(
      numeric::encode(numeric::kBf16, numeric::round_to(numeric::kBf16, value)));
}

/// Student's t with 3 degrees of freedom, of deviation 1: a normal number over the root of three squares' mean.
double heavy_tailed(const std::vector<float>& normals, std::size_t first) {
  const auto square = [&](std::size_t i) {
    return static_cast<double>(normals[i]) * static_cast<double>(normals[i]);
  };
  const double mean = (square(first + 1) + square(first + 2) + square(first + 3)) / 3;
  return static_cast<double>(normals[first]) / std::sqrt(3 * std::max(mean, 1e-3));
}

}  // namespace

namespace {

void check_break(const Params& params) {
  const Group group = group_of(params.format, params.group);
  if (can_break(params.format, group, params.broken)) return;
  std::string allowed;
  for (const Break broken : all_of<Break>()) {
    if (!can_break(params.format, group, broken)) continue;
    fmt::format_to(std::back_inserter(allowed), "{}{}", allowed.empty() ? "" : ", ",
                   name_of(broken));
  }
  lab::refuse_with(
      "break", std::string(name_of(params.broken)),
      fmt::format("format = {} and group = {}", name_of(params.format), name_of(group)), allowed,
      std::string("none"));
}

}  // namespace

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .group("kernel")
          .choice(&Params::format, {"format", "What the weights are stored in."})
          .with("recipe", {"none"})
          .choice(&Params::group,
                  {"group",
                   "Weights that share a scale: neighbours along a row, a whole row (an output "
                   "channel) or the whole tensor."})
          .with("format", {"int8", "int4", "int4-zero-point", "fp8-e4m3", "fp8-e5m2"})
          .choice(&Params::broken, {"break", "Break it", "",
                                    "Writes numbers to memory, or takes a wrong scale or zero "
                                    "point, and runs that kernel."})
          .with("recipe", {"none"})
          .choice(&Params::recipe,
                  {"recipe",
                   "Way to choose codes by the layer's inputs, shown on 32 inputs of W: gptq and "
                   "awq in INT4, smooth in INT8 on both sides."})
          .group("model")
          .choice(&Params::data, {"data", "Distribution of the weights."})
          .real(&Params::outlier,
                {"outlier", "Outlier", "deviations",
                 "Size of one weight, in standard deviations; 0 leaves it like the others."},
                -6, 6)
          .integer(&Params::outlier_at, {"outlier_at", "Outlier at", "", "Which weight that is."},
                   0, kWeightCount - 1)
          .group("run")
          .seed("Seed of weights and input.")
          .require(check_break);
  return table;
}

std::vector<std::uint16_t> weights_of(const Params& params) {
  std::mt19937 generator = lab::generator_of(params.seed);
  const std::vector<float> normals = lab::normal_floats(generator, 4 * kWeightCount);
  std::vector<std::uint16_t> weights;
  for (std::size_t i = 0; i < kWeightCount; ++i) {
    auto x = static_cast<double>(normals[4 * i]);
    if (params.data == Data::heavy_tailed) x = heavy_tailed(normals, 4 * i);
    // Two of eight output channels are larger than the others.
    if (params.data == Data::outlier_rows && i / kMatrix.columns % 4 == 1) x *= 2.5;
    if (params.data == Data::positive) x = 3 + 0.6 * x;
    if (params.outlier != 0 && static_cast<int>(i) == params.outlier_at) x = params.outlier;
    weights.push_back(bf16(std::clamp(kDeviation * x, -kMostWeight, kMostWeight)));
  }
  return weights;
}

std::vector<std::uint16_t> input_of(const Params& params) {
  std::mt19937 generator = lab::generator_of(params.seed + 1);
  std::vector<std::uint16_t> input;
  for (const float x : lab::normal_floats(generator, static_cast<std::size_t>(kMatrix.columns))) {
    input.push_back(bf16(static_cast<double>(x)));
  }
  return input;
}

}  // namespace tilestep::low_bit

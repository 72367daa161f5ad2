#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/base/lab/closest.hpp"
#include "kernels/base/lab/random.hpp"
#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/numbers/accumulator_precision/kernels.hpp"
#include "kernels/numbers/accumulator_precision/report.hpp"

// FP8 can represent numbers of very different sizes only if each is first divided by a scale that
// brings it near the format's largest number. The number of scales decides the cost of an outlier:
// with one for the whole tensor it pushes all others into E4M3's subnormals, or to zero.

namespace tilestep::accumulator_precision {
namespace {

using numeric::elements_of, numeric::index_of;

constexpr int kRows = 32;     // of A: tokens
constexpr int kColumns = 32;  // of Bᵀ: outputs
constexpr int kDepth = 512;   // along k: channels
constexpr int kBlock = 128;
/// One group of kBlock channels has activations larger than the others by this factor, and weights
/// smaller by the same factor, so that it contributes as much as they do. A few channels with
/// activations thousands of times larger are common in language models (Sun et al., "Massive
/// activations in large language models", 2024).
constexpr double kOutlierChannels = 32768;

struct Scheme {
  std::string_view name;
  ScaleBlock a, b;
};
constexpr Scheme kSchemes[] = {
    {"per-tensor", {kRows, kDepth}, {kColumns, kDepth}},
    {"per-row", {1, kDepth}, {1, kDepth}},
    {"per-block 1x128, 128x128", {1, kBlock}, {kBlock, kBlock}},
};

/// A matrix, row-major, k fastest.
using Values = std::vector<double>;

bool outlier_channel(int kk) {
  return kk / kBlock == 1;
}

/// Normal numbers, row by row, each times `size(row, kk)`, in FP32.
template <class Size>
Values normal_matrix(std::mt19937& generator, int rows, const Size& size) {
  std::normal_distribution<double> normal;
  Values values;
  for (int row = 0; row < rows; ++row) {
    for (int kk = 0; kk < kDepth; ++kk) {
      values.push_back(static_cast<float>(normal(generator) * size(row, kk)));
    }
  }
  return values;
}

/// Some rows (tokens) are up to 2^7 times larger than others. All factors are powers of two.
double activation_size(int row, int kk) {
  return std::ldexp(outlier_channel(kk) ? kOutlierChannels : 1, row % 8);
}
double weight_size(int, int kk) {
  return outlier_channel(kk) ? 1 / kOutlierChannels : 1;
}

/// A matrix as E4M3 bits with scales.
struct Quantized {
  ScaleBlock block;
  std::vector<std::uint8_t> bits;
  std::vector<float> scales;
  Values values;    ///< what bits and scales say
  double lost = 0;  ///< elements that became 0
};

Quantized quantize(const Values& values, const ScaleBlock& block) {
  const int rows = static_cast<int>(values.size()) / kDepth;
  const int across = (kDepth + block.columns - 1) / block.columns;
  Quantized q{block, {}, std::vector<float>(scale_count(block, rows, kDepth)), {}, 0};
  const auto scale_of = [&](std::size_t i) -> float& {
    const int row = static_cast<int>(i) / kDepth, kk = static_cast<int>(i) % kDepth;
    return q.scales[index_of(row / block.rows, kk / block.columns, across)];
  };
  const double largest = numeric::max_finite(numeric::kE4m3);
  for (std::size_t i = 0; i < values.size(); ++i) {
    scale_of(i) = std::max(scale_of(i), static_cast<float>(std::abs(values[i]) / largest));
  }
  for (float& scale : q.scales) scale = scale > 0 ? scale : 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double scale = scale_of(i), scaled = values[i] / scale;
    const double rounded =
        numeric::round_to(numeric::kE4m3, scaled, Rounding::nearest, numeric::Overflow::saturate);
    q.lost += rounded == 0 && scaled != 0 ? 1 : 0;
    q.bits.push_back(static_cast<std::uint8_t>(numeric::encode(numeric::kE4m3, rounded)));
    q.values.push_back(rounded * scale);
  }
  return q;
}

std::vector<float> multiply(simt::Device& device, const Quantized& a, const Quantized& b) {
  const simt::Buffer<std::uint8_t> a_bits(device, a.bits);
  const simt::Buffer<std::uint8_t> b_bits(device, b.bits);
  const simt::Buffer<float> a_scales(device, a.scales);
  const simt::Buffer<float> b_scales(device, b.scales);
  simt::Buffer<float> c(device, elements_of(kRows, kColumns));
  const ScaledOperands operands{a_bits.span(), b_bits.span(), a_scales.span(), b_scales.span(),
                                a.block,       b.block,       c.span()};
  return lab::result_of(device, c, [&] {
    kernels_of(device).scaled_gemm(device, {kRows, kColumns, kDepth}, operands);
  });
}

/// A·Bᵀ in double; with `absolute` of the absolute values.
Values product(const Values& all_a, const Values& all_b, bool absolute) {
  Values c;
  c.reserve(elements_of(kRows, kColumns));
  for (int row = 0; row < kRows; ++row) {
    const double* a = &all_a[index_of(row, 0, kDepth)];
    for (int column = 0; column < kColumns; ++column) {
      const double* b = &all_b[index_of(column, 0, kDepth)];
      double sum = 0;
      for (int kk = 0; kk < kDepth; ++kk) sum += absolute ? std::abs(a[kk] * b[kk]) : a[kk] * b[kk];
      c.push_back(sum);
    }
  }
  return c;
}

/// Compares C row by row with `exact`, the product of the unrounded numbers, and with the product
/// of the rounded ones.
void compare(ScalingResult& result, const Values& exact, const Quantized& a, const Quantized& b,
             const std::vector<float>& c) {
  const Values expected = product(a.values, b.values, false);
  const Values absolute = product(a.values, b.values, true);
  double errors = 0;
  for (int row = 0; row < kRows; ++row) {
    double row_error = 0;
    double row_size = 0;
    for (int column = 0; column < kColumns; ++column) {
      const auto i = static_cast<std::size_t>(row * kColumns + column);
      const auto got = static_cast<double>(c[i]);
      row_error += (got - exact[i]) * (got - exact[i]);
      row_size += exact[i] * exact[i];
      const double off = std::abs(got - expected[i]) / (absolute[i] > 0 ? absolute[i] : 1);
      result.kernel_error =
          off > result.kernel_error || std::isnan(off) ? off : result.kernel_error;
    }
    errors += std::sqrt(row_error / row_size);
  }
  result.error_percent = 100 * errors / kRows;
}

}  // namespace

std::vector<ScalingResult> run_scaling(simt::Device& device, std::int64_t seed,
                                       lab::Progress& progress) {
  std::mt19937 generator = lab::generator_of(seed);
  const Values a = normal_matrix(generator, kRows, activation_size);
  const Values b = normal_matrix(generator, kColumns, weight_size);
  const Values exact = product(a, b, false);
  std::vector<ScalingResult> results;
  for (const Scheme& scheme : kSchemes) {
    progress.check();
    const Quantized qa = quantize(a, scheme.a);
    const Quantized qb = quantize(b, scheme.b);
    ScalingResult& result = results.emplace_back();
    result.scheme = scheme.name;
    result.scales = static_cast<double>(qa.scales.size() + qb.scales.size());
    result.lost_percent =
        100 * (qa.lost + qb.lost) / static_cast<double>(qa.bits.size() + qb.bits.size());
    compare(result, exact, qa, qb, multiply(device, qa, qb));
    // A product undergoes at most kBlock roundings in its partial sum, three with the scales, and
    // one per block in the total; 1.01 for higher-order terms.
    result.kernel_bound = 1.01 * (kBlock + 3 + kDepth / kBlock) * 0x1p-24;
  }
  return results;
}

lab::Table scaling_table(const std::vector<ScalingResult>& results) {
  lab::Table table{
      "scaling",
      fmt::format("E4M3 with scales, on data with outliers: C = A·B, {} x {} by {} x {}", kRows,
                  kDepth, kDepth, kColumns),
      {lab::column("scheme", "scales"), lab::whole("scales", "number"),
       lab::real("error", "error of a row", "%", 1),
       lab::real("lost", "elements rounded to 0", "%", 1),
       lab::column("why", "cost of an outlier")}};
  constexpr const char* kWhy[] = {
      "One outlier sets the scale of everything: small numbers fall among the subnormals or to 0.",
      "It costs its own row alone; a channel that is large in every row still costs them all.",
      "It costs 128 numbers. The scales change every 128 along k, so the partial sums must be "
      "multiplied and added in FP32 there: the same step promotes them, which is why DeepGEMM does "
      "both at once."};
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ScalingResult& r = results[i];
    table.add({r.scheme, r.scales, r.error_percent, r.lost_percent, kWhy[i]});
  }
  return table;
}

lab::Check scaling_check(const std::vector<ScalingResult>& results) {
  lab::Closest closest;
  for (const ScalingResult& r : results) closest.add(r.kernel_error, 0, r.kernel_bound);
  return closest.check(
      "scaling",
      "The scaled kernel against the same E4M3 numbers and scales in double, relative to the sum "
      "of |a·b|; tolerance: 2^-24 for each of a product's up to 135 roundings.");
}

}  // namespace tilestep::accumulator_precision

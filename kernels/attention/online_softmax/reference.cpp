#include "kernels/attention/online_softmax/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/numeric/float_format.hpp"

// This is the textbook algorithm: the largest score of the whole row first, then sums of
// exp(s − max) from left to right. A prefix's sum is rescaled to the prefix's own maximum only at
// the end. Nothing is rescaled along the way, so the reference cannot share a mistake in the
// kernel's rescaling.

namespace tilestep::online_softmax {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUnit32 = numeric::Fp32::kUnitRoundoff;
// expf is good to 2 ulp (CUDA C++ Programming Guide, mathematical functions; glibc to 1 ulp), and
// an ulp is at most two unit roundoffs.
constexpr double kExpUnits = 4;
constexpr double kSmallestFp32 = 0x1.0p-149;

/// How far l and O can have drifted from the exact recurrence: the first-order rounding errors of
/// every operation of the kernel, added up tile by tile (Higham, "Accuracy and Stability of
/// Numerical Algorithms", chapters 3 and 4). u is the format's unit roundoff, u32 FP32's.
///  - a weight exp(s − m): the subtraction is off by |s − m| u32, which exp turns into the same
///    relative error, and expf itself by 4 u32
///  - a rescale factor other than 1: the same, plus u + u32 for the product with l or O
///  - the sum of a tile's weights: u32 for each level of additions that a weight goes through
///  - an addition to l or O: u of the sum, but never more than the term added (the old sum is a
///    number of the format, so the nearest one is no farther off), and u32 for adding in FP32
/// O's errors are for values of size 1; multiply by a component's largest |value|.
class DriftBound {
 public:
  DriftBound(Accumulator accumulator, bool skip_rescale)
      : format_(limits_of(accumulator)), skip_rescale_(skip_rescale) {}

  void add_tile(std::span<const float> scores, double m_old, double m_new) {
    if (m_new == -kInfinity) return;  // weights 0, l and O stay 0: no rounding at all
    if (!skip_rescale_ && m_new > m_old) rescale(m_old, m_new);
    double tile_sum = 0;
    double tile_error = 0;
    for (const float score : scores) {
      const double shift = m_new - static_cast<double>(score);
      if (shift == kInfinity) continue;  // a masked key adds an exact 0
      const double weight = std::exp(-shift);
      const double weight_error = weight * (shift + kExpUnits) * kUnit32 + 2 * kSmallestFp32;
      tile_sum += weight;
      tile_error += weight_error;
      const double size = l_ + tile_sum + o_error_;
      o_error_ += weight_error + weight * (format_.unit + kUnit32) +
                  std::min(format_.unit * size, weight) + kUnit32 * size;
      o_tiny_ += 2 * format_.tiny;
    }
    // A block has 32 threads or more, and at most 5 + 3 levels of additions follow a thread's own.
    const double levels = static_cast<double>(scores.size()) / 32 + 9;
    tile_error += levels * kUnit32 * tile_sum;
    l_ += tile_sum;
    const double size = l_ + l_error_ + tile_error;
    l_error_ += tile_error + std::min(format_.unit * size, tile_sum + tile_error) + kUnit32 * size +
                format_.tiny;
  }

  double l_bound() const { return l_ + l_error_ >= format_.largest ? kInfinity : l_error_; }
  double o_bound(double largest_value) const {
    const double bound = largest_value * o_error_ + o_tiny_;
    return largest_value * l_ + bound >= format_.largest ? kInfinity : bound;
  }
  /// (O + δO) / (l + δl) − O / l, with the division's own rounding.
  double output_bound(double output, double largest_value) const {
    if (l_ == 0) return 0;
    const double l_error = l_bound();
    if (l_error >= l_) return kInfinity;
    return (o_bound(largest_value) + std::abs(output) * l_error) / (l_ - l_error) +
           2 * kUnit32 * std::abs(output) + kSmallestFp32;
  }

 private:
  void rescale(double m_old, double m_new) {
    if (m_old == -kInfinity) return;  // l and O are 0 and stay 0
    const double factor = std::exp(m_old - m_new);
    const double relative = (m_new - m_old + kExpUnits) * kUnit32 + format_.unit + kUnit32;
    const double tiny = format_.tiny + 2 * kSmallestFp32 * (l_ + l_error_);
    l_error_ = factor * (l_error_ + (l_ + l_error_) * relative) + tiny;
    o_error_ = factor * (o_error_ + (l_ + o_error_) * relative) + 2 * kSmallestFp32 * l_;
    o_tiny_ = factor * o_tiny_ + format_.tiny;
    l_ *= factor;
  }

  FormatLimits format_;
  bool skip_rescale_;
  double l_ = 0, l_error_ = 0, o_error_ = 0, o_tiny_ = 0;
};

double max_of(std::span<const float> scores) {
  double largest = -kInfinity;
  for (const float score : scores) largest = std::max(largest, static_cast<double>(score));
  return largest;
}

/// The keys of tile t of a row.
std::span<const float> tile_of(const Params& params, std::span<const float> row, int tile) {
  const auto first = static_cast<std::size_t>(tile) * static_cast<std::size_t>(params.tile_width);
  return row.subspan(first,
                     std::min(static_cast<std::size_t>(params.tile_width), row.size() - first));
}

/// The running maximum after each tile.
std::vector<double> running_max(const Params& params, std::span<const float> row) {
  std::vector<double> maxima;
  double largest = -kInfinity;
  for (int t = 0; t < params.tiles(); ++t) {
    largest = std::max(largest, max_of(tile_of(params, row, t)));
    maxima.push_back(largest);
  }
  return maxima;
}

/// exp(s − reference point): the row's maximum or, if the rescale is skipped, the maximum known at
/// the key's tile.
std::vector<double> row_weights(const Params& params, std::span<const float> row,
                                const std::vector<double>& maxima) {
  std::vector<double> weights(row.size(), 0.0);
  for (std::size_t j = 0; j < row.size(); ++j) {
    const auto tile = j / static_cast<std::size_t>(params.tile_width);
    const double point = params.skip_rescale ? maxima[tile] : maxima.back();
    if (point > -kInfinity) weights[j] = std::exp(static_cast<double>(row[j]) - point);
  }
  return weights;
}

}  // namespace

FormatLimits limits_of(Accumulator accumulator) {
  switch (accumulator) {
    case Accumulator::fp16:
      return {numeric::Fp16::kUnitRoundoff, 0x1.0p-25, 65504};
    case Accumulator::bf16:
      return {numeric::Bf16::kUnitRoundoff, 0x1.0p-134, 0x1.FEp127};
    case Accumulator::fp32:
      break;
  }
  return {numeric::Fp32::kUnitRoundoff, kSmallestFp32, 0x1.FFFFFEp127};
}

std::vector<PrefixState> reference_prefixes(const Params& params, std::span<const float> scores,
                                            std::span<const float> values) {
  const std::vector<double> maxima = running_max(params, scores);
  const std::vector<double> weights = row_weights(params, scores, maxima);
  DriftBound drift(params.accumulator, params.skip_rescale);
  std::vector<PrefixState> states;
  double l = 0;
  double o = 0;
  double largest_value = 0;
  std::size_t key = 0;
  for (int t = 0; t < params.tiles(); ++t) {
    const std::span<const float> tile = tile_of(params, scores, t);
    for (std::size_t i = 0; i < tile.size(); ++i, ++key) {
      l += weights[key];
      o += weights[key] * static_cast<double>(values[key]);
      largest_value = std::max(largest_value, std::abs(static_cast<double>(values[key])));
    }
    const double m = maxima[static_cast<std::size_t>(t)];
    drift.add_tile(tile, t == 0 ? -kInfinity : maxima[static_cast<std::size_t>(t) - 1], m);
    PrefixState state;
    state.m = m;
    if (m > -kInfinity) {
      const double to_prefix = params.skip_rescale ? 1.0 : std::exp(maxima.back() - m);
      state.l = l * to_prefix;
      state.o = o * to_prefix;
      state.output = o / l;
    }
    state.l_bound = drift.l_bound();
    state.o_bound = drift.o_bound(largest_value);
    state.output_bound = drift.output_bound(state.output, largest_value);
    states.push_back(state);
  }
  return states;
}

numeric::AllBounded reference_output(const Params& params, const Inputs& inputs,
                                     lab::Progress& progress) {
  const auto keys = static_cast<std::size_t>(params.keys);
  const auto head_dim = static_cast<std::size_t>(params.head_dim);
  std::vector<double> largest_value(head_dim, 0.0);
  for (std::size_t i = 0; i < inputs.values.size(); ++i) {
    double& largest = largest_value[i % head_dim];
    largest = std::max(largest, std::abs(static_cast<double>(inputs.values[i])));
  }
  numeric::AllBounded reference;
  for (int query = 0; query < params.queries; ++query) {
    progress.check();
    const auto row = std::span(inputs.scores).subspan(static_cast<std::size_t>(query) * keys, keys);
    const std::vector<double> maxima = running_max(params, row);
    const std::vector<double> weights = row_weights(params, row, maxima);
    std::vector<double> o(head_dim, 0.0);
    double l = 0;
    for (std::size_t j = 0; j < keys; ++j) {
      l += weights[j];
      const float* value = &inputs.values[j * head_dim];
      for (std::size_t c = 0; c < head_dim; ++c) o[c] += weights[j] * static_cast<double>(value[c]);
    }
    DriftBound drift(params.accumulator, params.skip_rescale);
    for (std::size_t t = 0; t < maxima.size(); ++t) {
      drift.add_tile(tile_of(params, row, static_cast<int>(t)), t == 0 ? -kInfinity : maxima[t - 1],
                     maxima[t]);
    }
    for (std::size_t c = 0; c < head_dim; ++c) {
      const double output = l > 0 ? o[c] / l : 0.0;
      reference.push_back({output, drift.output_bound(output, largest_value[c])});
    }
  }
  return reference;
}

std::vector<double> reference_softmax(std::span<const float> row) {
  const double largest = max_of(row);
  std::vector<double> weights(row.size(), 0.0);
  if (largest == -kInfinity) return weights;
  double sum = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    weights[i] = std::exp(static_cast<double>(row[i]) - largest);
    sum += weights[i];
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

double ladder_tolerance(int columns, double span) {
  // The weight and the sum each carry exp's error (twice: for the thread's maximum, then for the
  // row's); a thread adds at most columns / 128 terms and rescales as often, and the tree over 1024
  // threads has 10 levels; 4 more for the division.
  const double terms = static_cast<double>(columns) / 128 + 1;
  return kUnit32 *
         (2 * (span + 2 * kExpUnits) + (2 + kExpUnits) * terms + 10 * (2 + kExpUnits) + 4);
}

}  // namespace tilestep::online_softmax

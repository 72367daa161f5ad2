#include "kernels/attention/online_softmax/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

/// A format's rounding and range.
struct Limits {
  double unit;     ///< unit roundoff
  double tiny;     ///< the largest rounding error among subnormal numbers
  double largest;  ///< from this on a result may round to infinity
};
constexpr Limits kLimits[] = {{kUnit32, kSmallestFp32, 0x1.FFFFFEp127},
                              {numeric::Fp16::kUnitRoundoff, 0x1.0p-25, 65504},
                              {numeric::Bf16::kUnitRoundoff, 0x1.0p-134, 0x1.FEp127}};

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
  explicit DriftBound(const Params& params)
      : format_(kLimits[static_cast<std::size_t>(params.accumulator)]),
        skip_rescale_(params.skip_rescale) {}

  void add_tile(std::span<const float> scores, double m_old, double m_new) {
    if (m_new == -kInfinity) return;  // weights 0, l and O stay 0: no rounding at all
    if (!skip_rescale_ && m_new > m_old) rescale(m_old, m_new);
    double tile_sum = 0;
    double tile_error = 0;
    for (const float score : scores) {
      if (std::isinf(score)) continue;  // a masked key adds an exact 0
      const auto [weight, weight_error] = reference_weight(score, m_new);
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

  Limits format_;
  bool skip_rescale_;
  double l_ = 0, l_error_ = 0, o_error_ = 0, o_tiny_ = 0;
};

double max_of(std::span<const float> scores) {
  double largest = -kInfinity;
  for (const float score : scores) largest = std::max(largest, static_cast<double>(score));
  return largest;
}

/// A row over the tiles that were added; values are keys × `width` components.
class Row {
 public:
  Row(const Params& params, std::span<const float> scores, std::span<const float> values, int width)
      : params_(params),
        scores_(scores),
        values_(values),
        largest_value_(static_cast<std::size_t>(width)),
        o_(largest_value_.size()),
        drift_(params),
        row_max_(max_of(scores)) {}

  void add_tile(int tile) {
    const auto wide = static_cast<std::size_t>(params_.tile_width), width = o_.size();
    const std::size_t first = static_cast<std::size_t>(tile) * wide;
    const auto keys = scores_.subspan(first, std::min(wide, scores_.size() - first));
    const double m_old = std::exchange(m_, std::max(m_, max_of(keys)));
    drift_.add_tile(keys, m_old, m_);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      // A skipped rescale leaves the maximum that was known then.
      const double point = params_.skip_rescale ? m_ : row_max_;
      const double weight =
          point > -kInfinity ? std::exp(static_cast<double>(keys[i]) - point) : 0.0;
      l_ += weight;
      const auto value = values_.subspan((first + i) * width, width);
      for (std::size_t c = 0; c < width; ++c) {
        o_[c] += weight * static_cast<double>(value[c]);
        largest_value_[c] = std::max(largest_value_[c], std::abs(static_cast<double>(value[c])));
      }
    }
  }

  PrefixState state(std::size_t component) const {
    PrefixState state;
    state.m = m_;
    if (m_ > -kInfinity) {
      const double to_prefix = params_.skip_rescale ? 1.0 : std::exp(row_max_ - m_);
      state.l = l_ * to_prefix;
      state.o = o_[component] * to_prefix;
      state.output = o_[component] / l_;
    }
    const double largest_value = largest_value_[component];
    state.l_bound = drift_.l_bound();
    state.o_bound = drift_.o_bound(largest_value);
    state.output_bound = drift_.output_bound(state.output, largest_value);
    return state;
  }

 private:
  const Params& params_;
  std::span<const float> scores_, values_;
  std::vector<double> largest_value_, o_;
  DriftBound drift_;
  double row_max_, m_ = -kInfinity, l_ = 0;
};

}  // namespace

double unit_of(Accumulator accumulator) {
  return kLimits[static_cast<std::size_t>(accumulator)].unit;
}

numeric::Bounded reference_weight(float score, double m) {
  if (std::isinf(score)) return {0, 0};
  const double shift = m - static_cast<double>(score), weight = std::exp(-shift);
  return {weight, weight * (shift + kExpUnits) * kUnit32 + 2 * kSmallestFp32};
}

std::vector<PrefixState> reference_prefixes(const Params& params, std::span<const float> scores,
                                            std::span<const float> values) {
  Row row(params, scores, values, 1);
  std::vector<PrefixState> states;
  for (int t = 0; t < params.tiles(); ++t) {
    row.add_tile(t);
    states.push_back(row.state(0));
  }
  return states;
}

numeric::AllBounded reference_output(const Params& params, const Inputs& inputs,
                                     lab::Progress& progress) {
  const auto keys = static_cast<std::size_t>(params.keys);
  numeric::AllBounded reference;
  for (std::size_t first = 0; first < inputs.scores.size(); first += keys) {
    progress.check();
    const auto scores = std::span(inputs.scores).subspan(first, keys);
    Row row(params, scores, inputs.values, params.head_dim);
    for (int t = 0; t < params.tiles(); ++t) row.add_tile(t);
    for (int c = 0; c < params.head_dim; ++c) {
      const PrefixState end = row.state(static_cast<std::size_t>(c));
      reference.push_back({end.output, end.output_bound});
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

#include "kernels/attention/attention_backward/reference.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/attention/shared/weights.hpp"

namespace tilestep::attention_backward {
namespace {

/// Relative, of weights, dS and results in BF16.
constexpr double kNumber = numeric::Bf16::kUnitRoundoff;
/// What FP32 and BF16 call 0 at the latest.
constexpr double kFloor = 0x1p-126;

/// Sums of a row of dQ, dK or dV: values, and what their bounds are made of.
struct RowSums {
  std::vector<double> value, magnitude, error;
  int terms = 0;

  explicit RowSums(int columns)
      : value(static_cast<std::size_t>(columns)), magnitude(value.size()), error(value.size()) {}

  /// Adds factor · row, the factor off by `bound`.
  void add(double factor, double bound, const double* row) {
    for (std::size_t c = 0; c < value.size(); ++c) {
      value[c] += factor * row[c];
      magnitude[c] += std::abs(factor * row[c]);
      error[c] += bound * std::abs(row[c]);
    }
    ++terms;
  }
  void append_to(numeric::AllBounded& all, double scale) const {
    // Zeros of what is masked lose nothing.
    const double ku = (terms + kStrip) * kUnit * 4;  // tensor cores cut off
    for (std::size_t c = 0; c < value.size(); ++c) {
      const double exact = value[c] * scale;
      double bound =
          scale * (error[c] + ku / (1 - ku) * magnitude[c]) + 4 * kUnit * std::abs(exact);
      bound += kNumber * (std::abs(exact) + bound);
      all.push_back({exact, terms == 0 ? 0 : kSlack * bound + kFloor});
    }
  }
};

/// What one score gives on, and how far it may be off.
struct Slopes {
  double weight, weight_bound;  ///< to dV
  double ds, ds_bound;          ///< to dQ and dK
};

/// One query of one head: what its rows of Q, O and dO are, and how far D may be off.
struct Query {
  const double* q;
  const double* d_o;
  double d = 0, d_bound = 0;
};

class Backward {
 public:
  Backward(const Task& task, const Numbers& numbers, const std::vector<double>& d_output,
           const Reference& forward, const BackwardRoundings& roundings)
      : task_(task),
        numbers_(numbers),
        d_output_(d_output),
        forward_(forward),
        r_(roundings),
        scale_(1 / std::sqrt(static_cast<double>(task.head_dim))) {}

  void add_all(BackwardReference& reference, lab::Progress& progress) {
    const auto rows = static_cast<std::size_t>(task_.kv_heads * task_.length());
    dk_.assign(rows, RowSums(task_.head_dim));
    dv_ = dk_;
    for (int head = 0; head < task_.heads; ++head) {
      for (int query = 0; query < task_.length(); ++query) {
        progress.check();
        add_query(head, query, reference);
      }
    }
    for (const RowSums& sums : dk_) sums.append_to(reference.dk, scale_);
    for (const RowSums& sums : dv_) sums.append_to(reference.dv, 1);
  }

  /// dQ of query `place`, dK and dV of key `place`, of the only head.
  void add_place(int place, BackwardReference& reference) const {
    RowSums dq(task_.head_dim), dk(task_.head_dim), dv(task_.head_dim);
    const Query mine = query_at(0, place);
    for (int other = 0; other < task_.length(); ++other) {
      if (const auto slopes = slopes_at(place, other, mine)) {
        dq.add(slopes->ds, slopes->ds_bound, &numbers_.k[row_at(task_, 0, other)]);
      }
      const Query theirs = query_at(0, other);
      if (const auto slopes = slopes_at(other, place, theirs)) {
        dk.add(slopes->ds, slopes->ds_bound, theirs.q);
        dv.add(slopes->weight, slopes->weight_bound, theirs.d_o);
      }
    }
    dq.append_to(reference.dq, scale_);
    dk.append_to(reference.dk, scale_);
    dv.append_to(reference.dv, 1);
  }

 private:
  void add_query(int head, int query, BackwardReference& to) {
    RowSums sums(task_.head_dim);
    const std::vector<Score> scores = scores_of(task_, numbers_, head, query, &r_.forward);
    const double largest = largest_of(scores);
    if (largest == -kInfinity) to.d.push_back({0, 0});
    if (largest > -kInfinity) {
      const Weights weights = weights_of(scores, largest, &r_.forward);
      const Query mine = query_at(head, query);
      to.d.push_back({mine.d, kSlack * mine.d_bound + kFloor});
      const auto place = static_cast<std::size_t>(head * task_.length() + query);
      for (int key = 0; key < task_.length(); ++key) {
        const auto i = static_cast<std::size_t>(key);
        if (scores[i].value == -kInfinity) continue;
        const Slopes slopes = slopes_of(kv_head(task_, head), key, mine, scores[i],
                                        weights.value[i], made_again(scores[i], place));
        const auto row = static_cast<std::size_t>(kv_head(task_, head) * task_.length() + key);
        sums.add(slopes.ds, slopes.ds_bound, &numbers_.k[row_at(task_, kv_head(task_, head), key)]);
        dk_[row].add(slopes.ds, slopes.ds_bound, mine.q);
        dv_[row].add(slopes.weight, slopes.weight_bound, mine.d_o);
      }
    }
    sums.append_to(to.dq, scale_);
  }

  Query query_at(int head, int query) const {
    const std::size_t at = row_at(task_, head, query);
    Query mine{&numbers_.q[at], &d_output_[at]};
    double magnitude = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(task_.head_dim); ++c) {
      const double part = mine.d_o[c] * forward_.o.value[at + c];
      mine.d += part;
      magnitude += std::abs(part);
      mine.d_bound += std::abs(mine.d_o[c]) * forward_.o.bound[at + c];
    }
    mine.d_bound += task_.head_dim * kUnit * (magnitude + mine.d_bound);
    return mine;
  }
  /// How far exp(score − log-sum-exp) may be off for its size.
  double made_again(const Score& score, std::size_t row) const {
    const double lse = forward_.lse.value[row];
    return std::expm1(score.bound + forward_.lse.bound[row] +
                      kUnit * (6 * std::abs(score.value) + 6 * std::abs(lse) + 16));
  }
  /// By the log-sum-exp that the forward pass left; nothing where the query does not see the key.
  std::optional<Slopes> slopes_at(int query, int key, const Query& mine) const {
    const Score score = score_of(task_, numbers_, 0, query, key, &r_.forward);
    if (score.value == -kInfinity) return std::nullopt;
    const auto row = static_cast<std::size_t>(query);
    return slopes_of(0, key, mine, score, std::exp(score.value - forward_.lse.value[row]),
                     made_again(score, row));
  }
  Slopes slopes_of(int of_head, int key, const Query& mine, const Score& score, double weight,
                   double relative) const {
    const std::size_t other = row_at(task_, of_head, key);
    numeric::RunningSum dot(numeric::Adding::tensor_core);
    for (std::size_t c = 0; c < static_cast<std::size_t>(task_.head_dim); ++c) {
      dot.add(mine.d_o[c] * numbers_.v[other + c]);
    }
    const double rounded_weight = kNumber * weight + kFloor;
    double weight_bound = weight * relative + kFloor;
    if (r_.rounded_weights) weight_bound += rounded_weight;
    const double x = dot.sum() - mine.d;
    const double x_bound = dot.bound() + mine.d_bound + kUnit * std::abs(x);
    double slope_bound = 0;
    if (task_.mod == ScoreMod::softcap) {
      const double t = std::abs(score.value) / static_cast<double>(kSoftcap);
      const double t_bound = score.bound / static_cast<double>(kSoftcap) + 4 * kUnit * t;
      slope_bound = (2 * t + t_bound) * t_bound + 4 * kUnit;
    }
    const double ds = weight * x * score.slope;
    double ds_bound =
        score.slope * (weight_bound * std::abs(x) + (weight + weight_bound) * x_bound);
    ds_bound += slope_bound * (weight + weight_bound) * (std::abs(x) + x_bound);
    ds_bound += 4 * kUnit * std::abs(ds);
    ds_bound += kNumber * (std::abs(ds) + ds_bound) + kFloor;
    return {weight, weight_bound + (r_.rounded_weights ? 0 : rounded_weight), ds, ds_bound};
  }

  const Task& task_;
  const Numbers& numbers_;
  const std::vector<double>& d_output_;
  const Reference& forward_;
  const BackwardRoundings& r_;
  double scale_;
  std::vector<RowSums> dk_, dv_;
};

}  // namespace

BackwardReference reference_backward(const Task& task, const Inputs& inputs,
                                     const std::vector<float>& d_output, const Reference& forward,
                                     const BackwardRoundings& roundings, lab::Progress& progress) {
  BackwardReference reference;
  const Numbers numbers = numbers_of(inputs);
  const std::vector<double> gradient(d_output.begin(), d_output.end());
  Backward(task, numbers, gradient, forward, roundings).add_all(reference, progress);
  return reference;
}

BackwardReference reference_backward_at(const Task& task, const Numbers& numbers,
                                        const std::vector<double>& d_output,
                                        const Reference& forward,
                                        const BackwardRoundings& roundings,
                                        const std::vector<int>& places) {
  if (task.heads != 1) throw Error("flash-attention: places are those of one head");
  BackwardReference reference;
  const Backward backward(task, numbers, d_output, forward, roundings);
  for (const int place : places) backward.add_place(place, reference);
  return reference;
}

}  // namespace tilestep::attention_backward

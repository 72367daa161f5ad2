#include "kernels/attention/sparse_attention/bench/expected.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/attention/shared/weights.hpp"
#include "kernels/base/numeric/small_float.hpp"

namespace tilestep::sparse_attention {

attention::Roundings list_roundings() {
  attention::Roundings roundings;
  roundings.values_adding = numeric::Adding::any_order_tensor_core;
  roundings.backwards = true;
  return roundings;
}

attention::Reference expected_listed(const attention::Task& task, const TileLists& lists,
                                     const attention::Numbers& numbers, int head, int query) {
  const attention::Roundings roundings = list_roundings();
  std::vector<attention::Score> scores =
      attention::scores_of(task, numbers, head, query, &roundings);
  std::vector<bool> listed(scores.size());
  const auto tile = static_cast<std::size_t>(query / timed::kListRows);
  for (int i = lists.first[tile]; i < lists.first[tile + 1]; ++i) {
    const int first = lists.tiles[static_cast<std::size_t>(i)] * timed::kListKeys;
    for (int key = first; key < std::min(first + timed::kListKeys, task.length()); ++key)
      listed[static_cast<std::size_t>(key)] = true;
  }
  for (std::size_t key = 0; key < scores.size(); ++key) {
    if (!listed[key]) scores[key] = {};
  }
  attention::Reference reference;
  attention::add_answer(reference, task, scores,
                        numbers.v.data() + attention::row_at(task, head, 0), roundings);
  return reference;
}

numeric::Bounded expected_score(const std::vector<std::uint8_t>& q,
                                const std::vector<float>& weights,
                                const std::vector<std::uint8_t>& key, float scale, double unit) {
  double score = 0, bound = 0;
  for (std::size_t head = 0; head < weights.size(); ++head) {
    double dot = 0, magnitude = 0;
    for (std::size_t i = 0; i < timed::kDim; ++i) {
      const double product = numeric::decode(numeric::kE4m3, q[head * timed::kDim + i]) *
                             numeric::decode(numeric::kE4m3, key[i]);
      dot += product;
      magnitude += std::abs(product);
    }
    const auto weight = static_cast<double>(weights[head]);
    score += weight * std::max(dot, 0.0);
    // Four steps along k, each of which cuts off; FP32 sums of the heads.
    bound += std::abs(weight) * magnitude * (4 * unit + 80 * numeric::Fp32::kUnitRoundoff);
  }
  const auto by = static_cast<double>(scale);
  return {by * score, std::abs(by) * bound};
}

numeric::AllBounded expected_decode(const std::vector<std::uint16_t>& q,
                                    const std::vector<std::vector<std::uint16_t>>& rows,
                                    double scale) {
  const auto number = [](std::uint16_t bits) {
    return static_cast<double>(numeric::Bf16::value(bits));
  };
  std::vector<double> scores;
  double largest = -INFINITY, off = 0, sum = 0;
  for (const auto& row : rows) {
    numeric::RunningSum dot(numeric::Adding::any_order_tensor_core);
    for (std::size_t i = 0; i < q.size(); ++i) dot.add(number(q[i]) * number(row[i]));
    scores.push_back(scale * dot.sum());
    largest = std::max(largest, scores.back());
    off = std::max(off, scale * dot.bound() + 0x1p-21 * std::abs(scores.back()));
  }
  for (double& one : scores) {
    one = std::exp(one - largest);
    sum += one;
  }
  // Scores; exp to 2 ulp and as often rescaled as there are tiles; weights in BF16; O in BF16.
  const double relative = 2 * off + 0x1p-8 + static_cast<double>(rows.size()) * 0x1p-22;
  numeric::AllBounded all;
  for (std::size_t n = 0; n < timed::kValueNumbers && !rows.empty(); ++n) {
    double value = 0, magnitude = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double term = scores[i] / sum * number(rows[i][n]);
      value += term;
      magnitude += std::abs(term);
    }
    all.push_back({value, relative * magnitude + 0x1p-8 * std::abs(value) + 0x1p-100});
  }
  return all;
}

}  // namespace tilestep::sparse_attention

#pragma once

/// \file
/// Shared by the references of the forward and the backward pass: scores and weights of a query, with bounds.

#include <cstddef>
#include <limits>
#include <vector>

#include "kernels/attention/shared/reference.hpp"
#include "kernels/base/numeric/float_format.hpp"

namespace tilestep::attention {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kUnit = numeric::Fp32::kUnitRoundoff;
/// Bounds are of first order; this is for the rest.
inline constexpr double kSlack = 1.02;

inline std::size_t row_at(const Task& task, int head, int row) {
  return (static_cast<std::size_t>(head) * static_cast<std::size_t>(task.length()) +
          static_cast<std::size_t>(row)) *
         static_cast<std::size_t>(task.head_dim);
}
inline int kv_head(const Task& task, int head) {
  return head / (task.heads / task.kv_heads);
}

/// A score and its components.
struct Score {
  double value = -kInfinity;
  double slope = 1;  ///< the modifier's derivative
  double bound = 0;  ///< the kernel's largest allowed error
};

/// One score; −∞ where the query does not see the key. Its bound is only made with `roundings`.
Score score_of(const Task& task, const Numbers& numbers, int head, int query, int key,
               const Roundings* roundings);
/// All scores of a query.
std::vector<Score> scores_of(const Task& task, const Numbers& numbers, int head, int query,
                             const Roundings* roundings);
/// The score of a product q · k, with how far both may be off; −∞ where the mask hides it is not asked for.
Score score_of(const Task& task, int head, int query, int key, const numeric::Bounded& product);
/// Adds to `reference` what a query's scores come to, with the values of its head.
void add_answer(Reference& reference, const Task& task, const std::vector<Score>& scores,
                const double* values, const Roundings& roundings);
double largest_of(const std::vector<Score>& scores);

/// The weights of a query that sees a key, their sum 1, and how far each may be off for its size.
struct Weights {
  std::vector<double> value, error;
  double log_sum = 0, mean_error = 0, depth = 0, tiles = 0;
};
/// Bounds are made with `roundings` alone.
Weights weights_of(const std::vector<Score>& scores, double largest,
                   const Roundings* roundings = nullptr);

}  // namespace tilestep::attention

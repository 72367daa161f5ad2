#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention/linear_attention/kernels.hpp"
#include "kernels/base/numeric/running_sum.hpp"

/// What the kernels should leave, in double, and how far rounding may take them from it.
namespace tilestep::linear_attention {

/// Numbers as they lie in memory.
using Words = std::vector<std::uint16_t>;
std::vector<float> values_of(std::span<const std::uint16_t> words);

/// A head's tokens. Keys come in turn, `repeat` of them; each query looks for one of them, with some noise.
struct Inputs {
  int tokens = 0, dim = 16;
  Words q, k, v;                        ///< [tokens × dim], not mapped
  std::vector<float> log_gates, betas;  ///< [tokens]
  std::vector<float> omega;             ///< [dim × dim], of random features
};
struct InputSizes {
  int tokens = 40, dim = 16, repeat = 4;
  double gate = 0.9, beta = 1;
};
Inputs make_inputs(const InputSizes& sizes, std::int64_t seed);

/// φ of all rows.
numeric::AllBounded reference_features(std::span<const std::uint16_t> x, const FeatureShape& shape,
                                       std::span<const float> omega);

/// Weights of the last token's query, as shares, and the two answers.
struct ReferenceWeights {
  std::vector<double> exact, approximate;  ///< [tokens]
  numeric::AllBounded by_softmax, by_features;
};
ReferenceWeights reference_weights(const Inputs& raw, std::span<const std::uint16_t> mapped_q,
                                   std::span<const std::uint16_t> mapped_k);

/// How a kernel computes: token by token in FP32, or by chunks with BF16 between its products.
enum class Way { recurrent, chunked };
/// A head by the recurrence, in double, from mapped queries and keys.
struct ReferenceHead {
  numeric::AllBounded o;       ///< [tokens × dim]; rounded to BF16 in memory
  numeric::AllBounded state;   ///< [dim × dim], after the last token
  numeric::AllBounded states;  ///< [tokens × kShown × kShown], after each token, if asked for
};
struct Head {
  std::span<const std::uint16_t> q, k, v;   ///< [tokens × dim]
  std::span<const float> log_gates, betas;  ///< [tokens]
};
ReferenceHead reference_head(const Head& head, int dim, Rule rule, Way way, bool each = false);

}  // namespace tilestep::linear_attention

#pragma once

#include <vector>

#include "kernels/attention/kv_cache/inputs.hpp"

/// \file
/// The right answer in double by another algorithm: a request's tokens are gathered one by one, all scores are computed
/// before the first exp, and nothing is split or merged.
namespace tilestep::kv_cache {

/// One query of one head.
struct Row {
  std::vector<double> scores;   ///< of each token, with the scale
  std::vector<double> weights;  ///< softmax of them
  std::vector<double> o;        ///< [value]
  double log_sum = 0;           ///< natural; −∞ without tokens, where o is 0
};
Row exact_row(const Inputs& inputs, int request, int head);

/// A kernel's roundings besides FP32's own sums. Unit roundoffs; 0: none.
struct Roundings {
  double query = 0;   ///< of the query, where a channel's scale was multiplied into it
  double weight = 0;  ///< of e^(s − m), for the product with V
  double output = 0;  ///< of O as it is stored
};
Roundings roundings_of(KvType type, Scales scales);

/// Answers of all requests and heads, and the error bounds of a kernel's.
struct Reference {
  std::vector<double> o, o_bound;      ///< [batch × heads × value]
  std::vector<double> lse, lse_bound;  ///< [batch × heads]
};
/// With K and V as in `inputs`: for a quantized cache the values its numbers represent. Bounds are of first order: a
/// score is off by its sum of `key` products in FP32, a weight by its score, by exp and by its own rounding; sums over
/// the tokens add FP32's.
Reference reference_attention(const Inputs& inputs, const Roundings& roundings);

}  // namespace tilestep::kv_cache

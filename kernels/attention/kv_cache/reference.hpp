#pragma once

#include <vector>

#include "kernels/attention/kv_cache/inputs.hpp"

/// \file
/// The right answer in double by another algorithm: a request's tokens are gathered one after the other, all scores
/// are there before the first exp, and nothing is split or merged.
namespace tilestep::kv_cache {

/// One query of one head.
struct Row {
  std::vector<double> scores;   ///< of each token, with the scale
  std::vector<double> weights;  ///< softmax of them
  std::vector<double> o;        ///< [value]
  double log_sum = 0;           ///< natural; −∞ without tokens, where o is 0
};
Row exact_row(const Inputs& inputs, int request, int head);

/// What a kernel rounds beside FP32's own sums. Unit roundoffs; 0: it does not.
struct Roundings {
  double query = 0;   ///< of the query, where a channel's scale was multiplied into it
  double weight = 0;  ///< of e^(s − m), for the product with V
  double output = 0;  ///< of O as it is stored
};
Roundings roundings_of(KvType type, Scales scales);

/// Answers of all requests and heads, and how far a kernel's may be from them.
struct Reference {
  std::vector<double> o, o_bound;      ///< [batch × heads × value]
  std::vector<double> lse, lse_bound;  ///< [batch × heads]
};
/// With K and V as `inputs` has them: of a quantized cache what its numbers stand for. Bounds are of first order: a
/// score is off by its sum of `key` products in FP32, a weight by its score, by exp and by its own rounding; sums over
/// the tokens add FP32's.
Reference reference_attention(const Inputs& inputs, const Roundings& roundings);

}  // namespace tilestep::kv_cache

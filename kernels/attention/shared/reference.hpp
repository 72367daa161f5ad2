#pragma once

#include <vector>

#include "kernels/attention/shared/problem.hpp"
#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/numeric/running_sum.hpp"
#include "kernels/base/numeric/small_float.hpp"

/// \file
/// The right answer in double, by the textbook: for each query all scores, the largest of them, then sums of
/// exp(s − max). No tiles, no rescaling, and each pair is checked with `MaskRule::allows`.

namespace tilestep::attention {

/// Q, K and V in double.
struct Numbers {
  std::vector<double> q, k, v;
  std::vector<int> begins;
};
Numbers numbers_of(const Inputs& inputs);

/// How a kernel rounds; by default one that computes no score twice, on tensor cores, like flash-2.
struct Roundings {
  double score = 0;                              ///< relative, of scores that are stored
  double weight = numeric::Bf16::kUnitRoundoff;  ///< relative, before weights are multiplied by V
  double output = numeric::Bf16::kUnitRoundoff;  ///< relative, of O
  double visits = 3;                             ///< roundings of O and ℓ in FP32 a tile
  bool backwards = false;                        ///< from the last key to the first
  numeric::Adding values_adding = numeric::Adding::tensor_core;
};

/// O and log-sum-exp, laid out as the kernels write them, each with how far rounding can take it: of the
/// scores' sums (a running bound, numeric/running_sum.hpp), of exp and its argument, of every rescale of a
/// tile of 16 keys, of weights, sums and O. A query that sees no key has O = 0 and −∞, exactly.
struct Reference {
  numeric::AllBounded o, lse;
};
Reference reference_forward(const Task& task, const Inputs& inputs, const Roundings& roundings,
                            lab::Progress& progress);

/// Adds one query's to `reference`: head_dim numbers of O, and its log-sum-exp.
void add_reference(Reference& reference, const Task& task, const Numbers& numbers, int head,
                   int query, const Roundings& roundings);

/// The scores of a query with scale, modifier and mask (−∞: it does not see the key), [length].
std::vector<double> exact_scores(const Task& task, const Numbers& numbers, int head, int query);

/// Only O, for numbers that need not fit a format.
std::vector<double> exact_output(const Task& task, const Numbers& numbers);

/// The derivative of Σ dO ∘ O by each number of Q, K and V.
struct Gradients {
  std::vector<double> dq, dk, dv;
};
/// With P the weights and D = Σ_c dO ∘ O of a query: dV = P^T dO, dS = P ∘ (dO V^T − D), times the
/// modifier's slope dQ = dS K / sqrt(head_dim), dK = dS^T Q / sqrt(head_dim); dK and dV of a head are summed
/// over the query heads that share it.
Gradients reference_backward(const Task& task, const Numbers& numbers,
                             const std::vector<double>& d_output);

}  // namespace tilestep::attention

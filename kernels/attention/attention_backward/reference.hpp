#pragma once

#include "kernels/attention/attention_backward/params.hpp"
#include "kernels/attention/shared/reference.hpp"

/// \file
/// The right gradients in double, each with how far the kernels' may be from it.

namespace tilestep::attention_backward {

/// How the kernels of a backward pass round.
struct BackwardRoundings {
  Roundings forward = {};        ///< of the pass that left O and the log-sum-exp
  bool rounded_weights = false;  ///< dS is made of weights in BF16
};

/// Laid out as the kernels write them. A query that sees no key has dQ = 0, a key that nobody sees dK = dV = 0, exactly
/// or within what is below normal numbers.
struct BackwardReference {
  numeric::AllBounded dq, dk, dv;
  numeric::AllBounded
      d;  ///< [heads × length]: rows' sums of dO ∘ O, of O as the forward pass left it
};
/// `forward` is reference_forward's with `roundings.forward`.
BackwardReference reference_backward(const Task& task, const Inputs& inputs,
                                     const std::vector<float>& d_output, const Reference& forward,
                                     const BackwardRoundings& roundings, lab::Progress& progress);

/// The same at some places of a single head: dQ of these queries, dK and dV of these keys, head_dim numbers each. For
/// lengths at which all of it takes too long: `forward` has O and log-sum-exp of all rows as a kernel left them, which a
/// backward pass is given, with bounds of 0.
BackwardReference reference_backward_at(const Task& task, const Numbers& numbers,
                                        const std::vector<double>& d_output,
                                        const Reference& forward,
                                        const BackwardRoundings& roundings,
                                        const std::vector<int>& places);

}  // namespace tilestep::attention_backward

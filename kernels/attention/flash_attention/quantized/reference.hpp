#pragma once

#include "kernels/attention/flash_attention/quantized/problem.hpp"
#include "kernels/attention/shared/reference.hpp"

/// \file
/// What scores from 8-bit numbers should come to, and what the 8 bits cost.

namespace tilestep::flash_attention {

/// O and log-sum-exp of the inputs as they are, in double, each with how far the kernel may be from it: what the
/// numbers of 8 bits make of it in double, and from there as far as rounding can take it.
Reference reference_quantized(const Task& task, const Inputs& inputs,
                              const QuantizedNumbers& numbers, DataType format,
                              lab::Progress& progress);

/// Numbers of Q and K, tiles' scales and products with the mean that are not what their kernels should have made of
/// the inputs: 8-bit numbers more than half a step away, scales that are not those of the largest number, means and
/// products past the bound of their sums.
int wrong_numbers(const Task& task, const Inputs& inputs, const QuantizedNumbers& numbers,
                  DataType format, bool smooth_k);

/// What of a tensor's scores is lost, over all pairs of a query and a key that it sees; natural units, as they enter
/// exp.
struct ScoreErrors {
  double rms = 0;
  int wrong = 0;  ///< further off than half a step of each number explains
};
ScoreErrors score_errors(const Task& task, const Inputs& inputs, const QuantizedNumbers& numbers,
                         DataType format);

}  // namespace tilestep::flash_attention

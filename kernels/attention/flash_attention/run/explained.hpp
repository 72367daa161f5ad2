#pragma once

#include <span>
#include <vector>

#include "kernels/attention/flash_attention/lesson.hpp"
#include "kernels/attention/flash_attention/quantized/problem.hpp"
#include "kernels/attention/flash_attention/run/excerpt.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::flash_attention {

/// What an explained run wrote and recorded, on the host.
struct Outcome {
  Plan plan;
  std::vector<float> o, lse;
  std::vector<float> s;  ///< [heads × length × score_pitch], of naive and `materialize`
  std::vector<float> p;  ///< the same, of naive
  /// [heads × q_tiles × k_tiles]; block −1: not visited.
  std::vector<Visit> visits;
  std::vector<StepRecord> steps;  ///< [k_tiles]; order −1: none. Of naive none.
  /// What was asked of memory, and what the formula says: of the launch.
  Ledger asked{}, formula{};
  int blocks = 0;            ///< of the launch
  int block = 0;             ///< that has the chosen query
  QuantizedNumbers numbers;  ///< of fp8 and int8: what Q and K were multiplied as
};

/// Runs what `plan_of(params)` chooses. Throws Error for a chosen head, query or component that is not there.
Outcome run_explained(simt::Device& device, const Params& params, const Inputs& inputs,
                      const Chosen& chosen);

/// Fills what the explained kernels with scores of 8 bits write and record: quantized/run.cpp.
void run_quantized(simt::Device& device, const Params& params, const Inputs& inputs,
                   const Chosen& chosen, Outcome& outcome);

}  // namespace tilestep::flash_attention

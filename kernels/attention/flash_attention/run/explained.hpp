#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kernels/attention/flash_attention/kernels.hpp"
#include "kernels/attention/flash_attention/lesson.hpp"
#include "kernels/attention/flash_attention/params.hpp"
#include "kernels/attention/flash_attention/quantized/problem.hpp"
#include "kernels/attention/shared/excerpt.hpp"
#include "kernels/attention/shared/reference.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::flash_attention {

/// Of the knobs.
inline Inputs make_inputs(const Params& params) {
  return make_inputs(task_of(params), params.data, params.seed);
}
/// How the kernels of `runs` round.
Roundings roundings_of(Variant runs);

using Excerpt = ExcerptOf<Params>;
Excerpt excerpt_of(const Params& params);

/// The output and records of an explained run, on the host.
struct Outcome {
  Plan plan;
  std::vector<float> o, lse;
  std::vector<float> s;  ///< [heads × length × score_pitch], of naive and `materialize`
  std::vector<float> p;  ///< the same, of naive
  /// [heads × q_tiles × k_tiles]; block −1: not visited.
  std::vector<Visit> visits;
  std::vector<StepRecord> steps;  ///< [k_tiles]; order −1: none. Empty for naive.
  /// Requested bytes, and the formula's: of the launch.
  Ledger asked{}, formula{};
  int blocks = 0;            ///< of the launch
  int block = 0;             ///< the one with the chosen query
  QuantizedNumbers numbers;  ///< for fp8 and int8: Q and K as multiplied
};

/// Runs what `plan_of(params)` chooses. Throws Error for a chosen head, query or component out of range.
Outcome run_explained(simt::Device& device, const Params& params, const Inputs& inputs,
                      const Chosen& chosen);

/// Fills the output and records of the explained kernels with 8-bit scores: quantized/run.cpp.
void run_quantized(simt::Device& device, const Params& params, const Inputs& inputs,
                   const Chosen& chosen, Outcome& outcome);

/// The bytes that the kernels of `plan.runs` request: by formula, for any length, equal to their accesses.
/// `begins` is read for `document` only.
Ledger ledger_of(const Plan& plan, const Task& task, Break broken, const std::vector<int>& begins);

/// Memory in bytes of each tensor, by Tensor; 0: the kernels have none.
Held held_by(const Plan& plan, const Task& task, Break broken);

/// Tiles of scores that a head computes: the visited ones, for naive all.
std::int64_t tiles_of(const Plan& plan, const std::vector<int>& begins);

/// FLOPs of both products, forward, over all heads: whole tiles, as computed.
double tile_flops(const Plan& plan, const Task& task, const std::vector<int>& begins);

/// The same without tiles: 4 · head_dim per pair of a query and a key that it sees.
double needed_flops(const Task& task, const std::vector<int>& begins);

}  // namespace tilestep::flash_attention

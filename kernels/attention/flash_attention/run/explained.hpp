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

/// The bytes that the kernels of `plan.runs` ask of memory: by formula, for any length, exactly what their accesses
/// come to. `begins` is read for `document` alone.
Ledger ledger_of(const Plan& plan, const Task& task, Break broken, const std::vector<int>& begins);

/// Bytes of memory that each tensor takes, by Tensor; 0: the kernels have none.
Held held_by(const Plan& plan, const Task& task, Break broken);

/// Tiles of scores that a head computes: those that are visited, of naive all.
std::int64_t tiles_of(const Plan& plan, const std::vector<int>& begins);

/// Multiplications and additions of both products, forward, of all heads: whole tiles, as they are computed.
double tile_flops(const Plan& plan, const Task& task, const std::vector<int>& begins);

/// The same without tiles: 4 · head_dim for each pair of a query and a key that it sees.
double needed_flops(const Task& task, const std::vector<int>& begins);

}  // namespace tilestep::flash_attention

#pragma once

#include <span>
#include <vector>

#include "kernels/attention/flash_attention/lesson.hpp"
#include "kernels/attention/flash_attention/quantized/problem.hpp"
#include "kernels/attention/flash_attention/run/excerpt.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::flash_attention {

/// Whose steps are shown.
struct Chosen {
  int head = 0, query = 0, component = 0;
};

/// What an explained run wrote and recorded, on the host.
struct Outcome {
  Plan plan;
  std::vector<float> o, lse;
  std::vector<float> s;  ///< [heads × length × score_pitch], of naive and `materialize`
  std::vector<float> p;  ///< the same, of naive
  /// [heads × q_tiles × k_tiles]; block −1: not visited. Of flash-3 block and order follow from its schedule,
  /// `rescaled` is −1, and begin and end are −1 but for the chosen block's.
  std::vector<Visit> visits;
  std::vector<StepRecord> steps;  ///< [k_tiles]; order −1: none. Of naive none.
  /// What was asked of memory, and what the formula says: of the launch, of flash-3 of the chosen block.
  Ledger asked{}, formula{};
  int blocks = 0;             ///< of the launch
  int block = 0;              ///< that has the chosen query
  std::vector<Event> events;  ///< of flash-3's chosen block
  QuantizedNumbers numbers;   ///< of fp8 and int8: what Q and K were multiplied as
};

/// Where an explained launch records: nothing is visited yet, and nothing asked for.
struct RecordBuffers {
  simt::Buffer<Visit> visits;
  simt::Buffer<StepRecord> steps;
  simt::Buffer<unsigned long long> asked;

  RecordBuffers(simt::Device& device, const Plan& plan, int heads)
      : visits(filled(device, numeric::elements_of(heads * plan.q_tiles, plan.k_tiles),
                      Visit{-1, -1, 0, 0, 0, 0, 0, -1})),
        steps(filled(device, static_cast<std::size_t>(plan.k_tiles),
                     StepRecord{0, 0, 0, 0, 0, 0, 0, -1})),
        asked(device, std::size_t{2} * kTensors) {
    asked.fill(0);
  }

  Records records(const Chosen& chosen) {
    return {chosen.head, chosen.query, chosen.component, visits.span(), steps.span(), asked.span()};
  }
  void download(Outcome& outcome) const {
    outcome.visits = visits.download();
    outcome.steps = steps.download();
    const std::vector<unsigned long long> bytes = asked.download();
    for (std::size_t i = 0; i < kTensors; ++i) outcome.asked[i] = {bytes[2 * i], bytes[2 * i + 1]};
  }

 private:
  template <class T>
  static simt::Buffer<T> filled(simt::Device& device, std::size_t count, const T& with) {
    const std::vector<T> host(count, with);
    return simt::Buffer<T>(device, std::span<const T>(host));
  }
};

/// Runs what `plan_of(params)` chooses. Throws Error for a chosen head, query or component that is not there, and
/// Error (unavailable) for flash-3 on a GPU other than Hopper.
Outcome run_explained(simt::Device& device, const Params& params, const Inputs& inputs,
                      const Chosen& chosen);

/// Fills what the explained kernels with scores of 8 bits write and record: quantized/run.cpp.
void run_quantized(simt::Device& device, const Params& params, const Inputs& inputs,
                   const Chosen& chosen, Outcome& outcome);

// ---- flash-3: flash_3/explained.cpp ---------------------------------------------------------------------------

/// Fills what the explained kernel of flash-3 writes and records.
void run_flash_3(simt::Device& device, const Params& params, const Inputs& inputs,
                 const Chosen& chosen, Outcome& outcome);

/// What is asked of a kernel of flash-3; of `flash-3` itself so many blocks that each has two tiles of queries, so
/// that what it does between them is seen.
flash_3::Problem flash_3_problem(const Params& params, const Plan& plan);

}  // namespace tilestep::flash_attention

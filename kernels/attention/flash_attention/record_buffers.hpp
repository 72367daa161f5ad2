#pragma once

#include <span>
#include <vector>

#include "kernels/attention/flash_attention/gather.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::flash_attention {

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

}  // namespace tilestep::flash_attention

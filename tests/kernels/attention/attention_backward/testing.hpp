#pragma once

#include <numeric>
#include <vector>

#include "kernels/attention/attention_backward/lesson.hpp"
#include "kernels/attention/attention_backward/run/run.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/simt/backends.hpp"
#include "tests/catch.hpp"
#include "tests/traces.hpp"

/// Devices and comparisons of the lesson's tests.
namespace tilestep::attention_backward {

/// The forward pass is flash-attention's.
inline constexpr simt::KernelEntry kKernels[] = {
    {"flash_attention", flash_attention::kernels_emulated},
    {"attention_backward", kernels_emulated}};

using tests::held_run, tests::test_device;
inline const tests::Runs runs(lesson(), knob_table(), trace_from_json);

inline Inputs make_inputs(const Params& params) {
  return attention::make_inputs(task_of(params), Data::random, params.seed);
}
inline std::vector<float> make_d_output(const Params& params) {
  return attention::make_d_output(task_of(params), params.seed);
}
inline double sum_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace tilestep::attention_backward

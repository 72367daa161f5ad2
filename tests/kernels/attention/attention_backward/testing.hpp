#pragma once

#include <memory>
#include <string>

#include "kernels/attention/attention_backward/lesson.hpp"
#include "kernels/attention/attention_backward/run/run.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/simt/backends.hpp"
#include "tests/catch.hpp"

/// Devices and comparisons of the lesson's tests.
namespace tilestep::attention_backward {

/// The forward pass is flash-attention's.
inline constexpr simt::KernelEntry kKernels[] = {
    {"flash_attention", flash_attention::kernels_emulated},
    {"attention_backward", kernels_emulated}};

inline std::unique_ptr<simt::Device> emulated(
    simt::ThreadOrder order = simt::ThreadOrder::ascending, std::uint64_t seed = 1,
    simt::Completion completion = simt::Completion::latest) {
  return simt::make_emulated_device(kKernels,
                                    {.order = order, .seed = seed, .completion = completion});
}

inline std::string words(const Params& p) {
  std::string text;
  for (const auto& [id, value] : knob_table().settings(p)) {
    text += id + "=" + lab::to_text(value) + " ";
  }
  return text;
}

inline Inputs make_inputs(const Params& params) {
  return attention::make_inputs(task_of(params), Data::random, params.seed);
}
inline std::vector<float> make_d_output(const Params& params) {
  return attention::make_d_output(task_of(params), params.seed);
}

/// A run of the lesson, held to its own checks, and its trace to what comes back from JSON.
inline lab::Report held_run(simt::Device& device, const Params& params) {
  lab::NoProgress nobody;
  CAPTURE(words(params));
  lab::Report report = lesson().run(knob_table().settings(params), device, nobody);
  for (const lab::Check& check : report.checks) {
    CAPTURE(check.id, check.max_error, check.tolerance);
    CHECK(check.ok);
  }
  CHECK((to_json(trace_from_json(report.trace)) == report.trace));
  return report;
}

}  // namespace tilestep::attention_backward

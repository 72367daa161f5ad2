#pragma once

#include <memory>
#include <string>

#include "kernels/attention/flash_attention/lesson.hpp"
#include "kernels/attention/flash_attention/run/explained.hpp"
#include "kernels/attention/shared/reference.hpp"
#include "kernels/base/lab/closest.hpp"
#include "kernels/base/simt/backends.hpp"
#include "tests/catch.hpp"

/// Devices and comparisons of the lesson's tests.
namespace tilestep::flash_attention {

inline std::unique_ptr<simt::Device> emulated(
    simt::ThreadOrder order = simt::ThreadOrder::ascending, std::uint64_t seed = 1,
    simt::Completion completion = simt::Completion::latest) {
  static const simt::KernelEntry kTable[] = {{"flash_attention", kernels_emulated}};
  return simt::make_emulated_device(kTable,
                                    {.order = order, .seed = seed, .completion = completion});
}

inline std::string words(const Params& p) {
  std::string text;
  for (const auto& [id, value] : knob_table().settings(p)) {
    text += id + "=" + lab::to_text(value) + " ";
  }
  return text;
}

/// A run of the explained kernels, beside what is right.
struct Compared {
  Inputs inputs;
  Outcome outcome;
  Reference exact;
  lab::Closest o, lse;

  bool ok() const { return o.ok() && lse.ok(); }
};
inline Compared compared_run(simt::Device& device, const Params& params,
                             const Chosen& chosen = {}) {
  lab::NoProgress nobody;
  Compared c;
  c.inputs = make_inputs(params);
  c.outcome = run_explained(device, params, c.inputs, chosen);
  c.exact = reference_forward(task_of(params), c.inputs, roundings_of(c.outcome.plan.runs), nobody);
  c.o = lab::compared(c.outcome.o, c.exact.o.value, c.exact.o.bound);
  c.lse = lab::compared(c.outcome.lse, c.exact.lse.value, c.exact.lse.bound);
  return c;
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

}  // namespace tilestep::flash_attention

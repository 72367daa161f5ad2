#pragma once

#include "kernels/attention/flash_attention/lesson.hpp"
#include "kernels/attention/flash_attention/run/explained.hpp"
#include "kernels/attention/shared/reference.hpp"
#include "kernels/base/lab/closest.hpp"
#include "tests/catch.hpp"
#include "tests/traces.hpp"

/// Devices and comparisons of the lesson's tests.
namespace tilestep::flash_attention {

using tests::held_run, tests::test_device;
inline const tests::Runs runs(lesson(), knob_table(), trace_from_json);

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

}  // namespace tilestep::flash_attention

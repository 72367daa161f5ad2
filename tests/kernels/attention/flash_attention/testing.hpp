#pragma once

#include "kernels/attention/flash_attention/lesson.hpp"
#include "kernels/attention/flash_attention/run/run.hpp"
#include "kernels/attention/shared/reference.hpp"
#include "kernels/base/lab/closest.hpp"
#include "tests/catch.hpp"
#include "tests/traces.hpp"

/// Devices and comparisons of the lesson's tests.
namespace tilestep::flash_attention {

using tests::test_device;

/// Runs of all that the kernels take, which is more than the knobs choose.
struct KernelRuns {
  lab::Report operator()(const Params& params = {},
                         simt::Device& device = tests::device_at_hand()) const {
    return report_of(run_of(params, device, tests::unwatched));
  }
  Trace trace(const Params& params = {}) const { return trace_from_json((*this)(params).trace); }
  std::string words(const Params& p) const {
    return fmt::format(
        "variant={} seq={} heads={}/{} head_dim={} mask={} window={} sinks={} mod={} tile={}x{} "
        "dtype={} smooth_k={} data={} break={} seed={} query={}",
        name_of(p.variant), p.seq, p.heads, p.kv_heads, name_of(p.head_dim), name_of(p.mask),
        p.window, p.sinks, name_of(p.score_mod), name_of(p.block_q), name_of(p.block_k),
        name_of(p.dtype), p.smooth_k, name_of(p.data), name_of(p.broken), p.seed, p.query);
  }
};
inline const KernelRuns runs{};
/// A run held to its own checks, and its trace to what comes back from JSON.
inline void check_run(const Params& params, simt::Device& device) {
  CAPTURE(runs.words(params));
  const lab::Report report = runs(params, device);
  CHECK(tests::failed_checks(report) == "");
  CHECK((to_json(trace_from_json(report.trace)) == report.trace));
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

}  // namespace tilestep::flash_attention

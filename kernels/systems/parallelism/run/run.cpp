// Runs the lesson: an all-reduce by the timed kernel and by the explained one, the cut model, and what was planned of it.

#include "kernels/systems/parallelism/run/run.hpp"

#include <fmt/format.h>

#include <cstring>

namespace tilestep::parallelism {
namespace {

std::string wait_text(const Waits& waits) {
  const std::string other = waits.other_call >= 0
                                ? fmt::format("which is in call {}", waits.other_call + 1)
                                : "which has ended";
  return fmt::format("rank {} waits in call {} for rank {}, {}", waits.rank, waits.call + 1,
                     waits.from, other);
}

Outcome outcome_of(const Trace& trace, const Message& broken) {
  Outcome outcome;
  compared(broken, outcome.wrong);
  outcome.elements = static_cast<int>(broken.out.size() * broken.out.front().size());
  if (!trace.waits.empty()) {
    outcome.text = "deadlock: " + wait_text(trace.waits.front());
  } else if (outcome.wrong == 0) {
    outcome.text = "no number is wrong all the same";
  } else {
    outcome.text = fmt::format("{} of {} numbers are wrong", outcome.wrong, outcome.elements);
  }
  return outcome;
}

int equal_bits(const Numbers& a, const Numbers& b) {
  int equal = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    equal += std::memcmp(&a[i], &b[i], sizeof a[i]) == 0 ? 1 : 0;
  return equal;
}

}  // namespace

Run run_of(const Params& params, simt::Device& device, lab::Progress& progress) {
  Run run;
  run.params = params;
  Trace& trace = run.trace;
  trace.algorithm = params.algorithm;
  trace.broken = params.broken;
  trace.ranks = params.ranks;
  trace.message = params.message / (4 * kPack) * (4 * kPack);
  trace.cut = params.cut;
  trace.schedule = params.schedule;
  trace.microbatches = params.microbatches;
  trace.link = params.link;
  trace.tokens = params.tokens;

  progress.report(0.05, "adding up over ranks");
  run.timed = reduced(device, params, Break::none, false, nullptr);
  progress.check();
  Trace unused = trace;
  run.explained = reduced(device, params, Break::none, false, &unused);
  progress.check();
  reduced(device, params, params.broken, true, &trace);
  if (params.broken != Break::none)
    trace.outcome = outcome_of(trace, reduced(device, params, params.broken, false, &unused));
  progress.check();

  progress.report(0.4, "cutting a model");
  const ModelShape model = small_model(params.cut, params.ranks, params.schedule);
  run.cut =
      run_cut(device, params.cut, params.ranks, params.schedule, params.microbatches, params.seed);
  progress.check();
  const Counts routed = routed_of(model, make_inputs(model, params.seed), params.ranks);
  run.plan = plan_of(params.cut, model, params.ranks, params.schedule, params.microbatches, routed);
  trace.memory = run.cut.memory;
  trace.calls = run.cut.calls;
  progress.report(0.8, "the same on one rank");
  const CutRun one =
      run_cut(device, params.cut, 1, params.schedule, params.microbatches, params.seed);
  const bool same_model = params.cut != Cut::pipeline;
  trace.cut_numbers = static_cast<int>(run.cut.z.size());
  trace.cut_equal = same_model ? equal_bits(run.cut.z, one.z) : 0;
  trace.slots = pipeline_of(params.schedule, params.ranks, params.microbatches);
  return run;
}

}  // namespace tilestep::parallelism

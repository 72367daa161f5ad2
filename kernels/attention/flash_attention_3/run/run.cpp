// Runs the explained kernel, and puts together what it wrote.

#include "kernels/attention/flash_attention_3/run/run.hpp"

#include <algorithm>

#include "kernels/base/simt/simt.hpp"

namespace tilestep::flash_attention_3 {
namespace {

BrokenResult result_of(const Run& run, const Outcome& shown, const Trace& trace) {
  BrokenResult result;
  if (run.params.omits == Omission::none) return result;
  result.add(Tensor::o, shown.o, run.exact.o, trace.shape.length, trace.shape.head_dim);
  result.judge();
  return result;
}

Trace trace_of(const Run& run, const Outcome& shown, bool emulated) {
  const Params& part = run.excerpt.params;
  const TilePlan& plan = shown.plan;
  const attention::Task whole = task_of(run.params);
  Trace trace;
  trace.runs = part.variant;
  describe(trace, run.params, run.excerpt, plan, shown.blocks);
  trace.broken = break_of(part.omits);
  trace.clock_unit = emulated ? "words" : "cycles";
  trace.chosen = {run.chosen.head, run.chosen.query, run.chosen.component,
                  run.chosen.query / plan.block_q, shown.block};
  // Clocks are counted from the first event on.
  const Launched visited{shown.visits, plan, Owns::query_tile, false, false};
  trace.visits = visits_of(visited, run.chosen.head);
  trace.blocks = lanes_of(visited, part.heads);
  trace.ledger = ledger_rows(shown.asked, shown.formula, ledger_of(plan_of(run.params), whole),
                             held_by(whole));
  trace.lines = mark_lines();
  trace.steps = shown.steps;
  require_steps(trace, trace.steps.size());
  fill_answer(trace.answer, trace, shown.o, shown.lse, run.exact);
  trace.wrong = wrong_of_tiles(shown.o, run.exact.o, run.chosen.head * part.seq, part.seq,
                               plan.head_dim, plan.block_q);
  trace.events = shown.events;
  trace.result = result_of(run, shown, trace);
  return trace;
}

}  // namespace

Excerpt excerpt_of(const Params& params) {
  return excerpt_where(params, [](const Params& part, const std::vector<int>&) {
    const TilePlan plan = plan_of(part);
    return std::int64_t{plan.q_tiles} * plan.k_tiles <= kMostTiles &&
           flops_of(plan, task_of(part)) <= kMostFlops;
  });
}

Roundings roundings_of(OutputOf output) {
  Roundings r;
  // It goes backwards, and the running bound is of sums from the first key on.
  r.values_adding = numeric::Adding::any_order_tensor_core;
  r.backwards = true;
  if (output == OutputOf::explained) r.output = 0;
  return r;
}

Run run_of(const Params& params, simt::Device& device, lab::Progress& progress) {
  Run run;
  run.params = params;
  progress.report(0, "making Q, K and V");
  run.excerpt = excerpt_of(params);
  const Params& part = run.excerpt.params;
  run.chosen.query = std::min(params.query, part.seq - 1);
  const Inputs inputs = inputs_of(run.excerpt);
  progress.check();
  progress.report(0.1, "running the kernel");
  Params sound = part;
  sound.omits = Omission::none;
  run.sound = run_explained(device, sound, inputs, run.chosen);
  progress.check();
  progress.report(0.5, "comparing with the reference");
  run.exact = reference_forward(task_of(part), inputs, roundings_of(OutputOf::explained), progress);
  const bool emulated = device.info().backend == "emulated";
  if (part.omits == Omission::none) {
    run.trace = trace_of(run, run.sound, emulated);
    return run;
  }
  progress.report(0.7, "running the broken kernel");
  run.trace = trace_of(run, run_explained(device, part, inputs, run.chosen), emulated);
  return run;
}

}  // namespace tilestep::flash_attention_3

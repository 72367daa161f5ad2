// Runs a backward pass after its forward pass, and puts together what they wrote.

#include "kernels/attention/attention_backward/run/run.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "kernels/attention/attention_backward/run/explained.hpp"
#include "kernels/attention/shared/weights.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::attention_backward {
namespace {

using numeric::index_of;

// ---- the chosen query -------------------------------------------------------------------------------

/// The tiles that the chosen query is in, by when their blocks come to them.
std::vector<Step> steps_of(const Outcome& shown, const Trace& trace) {
  std::vector<Step> steps;
  for (int tile = 0; tile < trace.plan.k_tiles; ++tile) {
    const TileVisit& visit = trace.visit(trace.chosen.q_tile, tile);
    if (visit.order < 0) continue;
    Step step;
    step.k_tile = tile;
    step.order = visit.order;
    step.kind = visit.kind;
    step.dq = shown.steps[static_cast<std::size_t>(tile)].o;
    steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return std::tuple(a.order, a.k_tile) < std::tuple(b.order, b.k_tile);
  });
  return steps;
}

/// dS of the chosen query, in double.
std::vector<double> exact_row(const Run& run, const Task& task, const Numbers& numbers,
                              const std::vector<double>& d_output) {
  const std::vector<Score> scores =
      scores_of(task, numbers, run.chosen.head, run.chosen.query, nullptr);
  const double largest = largest_of(scores);
  std::vector<double> ds(scores.size());
  if (largest == -kInfinity) return ds;
  const Weights weights = weights_of(scores, largest);
  const std::size_t mine = row_at(task, run.chosen.head, run.chosen.query);
  double d = 0;
  for (std::size_t key = 0; key < ds.size(); ++key) {
    const std::size_t other = row_at(task, kv_head(task, run.chosen.head), static_cast<int>(key));
    for (std::size_t c = 0; c < static_cast<std::size_t>(task.head_dim); ++c) {
      ds[key] += d_output[mine + c] * numbers.v[other + c];
    }
    d += weights.value[key] * ds[key];
  }
  for (std::size_t key = 0; key < ds.size(); ++key) {
    const bool seen = scores[key].value > -kInfinity;
    ds[key] = seen ? weights.value[key] * (ds[key] - d) * scores[key].slope : 0;
  }
  return ds;
}

/// The chosen component of dQ over the keys of the tiles so far, in double.
std::vector<double> prefixes_of(const Run& run, const Inputs& inputs,
                                const std::vector<float>& d_output, const Trace& trace) {
  const Task task = task_of(run.excerpt.params);
  const Numbers numbers = numbers_of(inputs);
  const std::vector<double> ds = exact_row(run, task, numbers, {d_output.begin(), d_output.end()});
  double sum = 0;
  std::vector<double> prefixes;
  for (const Step& step : trace.steps) {
    const int first = step.k_tile * trace.plan.block_k;
    const int end = std::min(first + trace.plan.block_k, trace.shape.length);
    for (int key = first; key < end; ++key) {
      sum += ds[static_cast<std::size_t>(key)] *
             numbers.k[row_at(task, kv_head(task, run.chosen.head), key) +
                       static_cast<std::size_t>(run.chosen.component)];
    }
    prefixes.push_back(sum / std::sqrt(static_cast<double>(task.head_dim)));
  }
  return prefixes;
}

template <class T>
std::vector<T> row_of(const std::vector<T>& all, int row, int columns) {
  const auto first = static_cast<std::ptrdiff_t>(index_of(row, 0, columns));
  return {all.begin() + first, all.begin() + first + columns};
}

BackwardRow backward_row_of(const Run& run, const Outcome& shown, const Trace& trace) {
  const int length = trace.shape.length, columns = trace.shape.head_dim;
  const int row = run.chosen.head * length + run.chosen.query;
  const int group = trace.shape.heads / trace.shape.kv_heads;
  const int key = run.chosen.head / group * length + run.chosen.query;
  const BackwardReference& exact = run.exact_gradients;
  BackwardRow made;
  made.lse = shown.forward.lse[static_cast<std::size_t>(row)];
  made.exact_lse = run.exact.lse.value[static_cast<std::size_t>(row)];
  made.d = shown.d[static_cast<std::size_t>(row)];
  made.p = shown.p;
  made.dp = shown.dp;
  made.ds = shown.ds;
  made.dq = row_of(shown.dq, row, columns);
  made.dk = row_of(shown.dk, key, columns);
  made.dv = row_of(shown.dv, key, columns);
  made.exact_dq = row_of(exact.dq.value, row, columns);
  made.exact_dk = row_of(exact.dk.value, key, columns);
  made.exact_dv = row_of(exact.dv.value, key, columns);
  return made;
}

// ---- what is wrong ----------------------------------------------------------------------------------

/// A gradient beside what it should be.
struct Compared {
  Tensor tensor;
  const std::vector<float>& got;
  const numeric::AllBounded& exact;
};
std::array<Compared, 3> gradients_of(const Run& run, const Outcome& shown) {
  const BackwardReference& exact = run.exact_gradients;
  return {{{Tensor::dq, shown.dq, exact.dq},
           {Tensor::dk, shown.dk, exact.dk},
           {Tensor::dv, shown.dv, exact.dv}}};
}

BrokenResult result_of(const Run& run, const Outcome& shown, const Trace& trace) {
  BrokenResult result;
  if (run.params.omits == Omission::none) return result;
  for (const Compared& one : gradients_of(run, shown)) {
    result.add(one.tensor, one.got, one.exact, trace.shape.length, trace.shape.head_dim);
  }
  result.judge();
  return result;
}

/// Of the whole problem the formula, of what ran what was asked for.
std::vector<LedgerRow> ledger_of_run(const Run& run, const Outcome& shown) {
  const TilePlan whole = plan_of(run.params);
  const Task task = task_of(run.params);
  const Memory memory = memory_of(whole, task);
  const std::vector<int> begins = begins_of(document_lengths(run.params.seq, run.params.seed));
  return ledger_rows(shown.asked, shown.formula, ledger_of(whole, task, begins), memory.held,
                     memory.kept);
}

Trace trace_of(const Run& run, const Outcome& shown, const Inputs& inputs,
               const std::vector<float>& d_output, bool emulated) {
  const Params& part = run.excerpt.params;
  const TilePlan& plan = shown.plan;
  Trace trace;
  describe(trace, run.params, run.excerpt, plan, shown.blocks);
  trace.broken = break_of(part.omits);
  trace.clock_unit = emulated ? "tiles" : "ns";
  trace.chosen = {run.chosen.head, run.chosen.query, run.chosen.component,
                  run.chosen.query / plan.block_q,
                  run.chosen.head / (part.heads / part.kv_heads) * plan.k_tiles +
                      run.chosen.query / plan.block_k};
  const Launched visited{shown.visits, plan, Owns::key_tile, false};
  trace.visits = visits_of(visited, run.chosen.head);
  trace.blocks = lanes_of(visited, part.heads);
  trace.ledger = ledger_of_run(run, shown);
  trace.lines = mark_lines();
  trace.steps = steps_of(shown, trace);
  trace.row = backward_row_of(run, shown, trace);
  trace.row.dq_after = prefixes_of(run, inputs, d_output, trace);
  trace.wrong.assign(static_cast<std::size_t>(trace.plan.q_tiles), 0);
  trace.wrong_dk.assign(static_cast<std::size_t>(trace.plan.k_tiles), 0);
  trace.wrong_dv = trace.wrong_dk;
  if (run.params.omits != Omission::none) {
    const auto all = gradients_of(run, shown);
    const int kv_head = run.chosen.head / (trace.shape.heads / trace.shape.kv_heads);
    const auto wrong = [&](int i, int head, int size) {
      const Compared& one = all[static_cast<std::size_t>(i)];
      return wrong_of_tiles(one.got, one.exact, head * part.seq, part.seq, plan.head_dim, size);
    };
    trace.wrong = wrong(0, run.chosen.head, plan.block_q);
    trace.wrong_dk = wrong(1, kv_head, plan.block_k);
    trace.wrong_dv = wrong(2, kv_head, plan.block_k);
  }
  trace.result = result_of(run, shown, trace);
  return trace;
}

}  // namespace

Excerpt excerpt_of(const Params& params) {
  return excerpt_where(params, [](const Params& part, const std::vector<int>& begins) {
    const TilePlan plan = plan_of(part);
    // The forward pass before it, in tiles of about that size, has two products for these five.
    return std::int64_t{plan.q_tiles} * plan.k_tiles <= kMostTiles &&
           1.4 * flops_of(plan, task_of(part), begins) <= kMostFlops;
  });
}

Run run_of(const Params& params, simt::Device& device, lab::Progress& progress) {
  Run run;
  run.params = params;
  progress.report(0, "making Q, K, V and dO");
  run.excerpt = excerpt_of(params);
  const Params& part = run.excerpt.params;
  run.chosen.query = std::min(params.query, part.seq - 1);
  const Task task = task_of(part);
  const Inputs inputs = inputs_of(run.excerpt);
  const std::vector<float> d_output = make_d_output(task, part.seed);
  progress.check();
  progress.report(0.1, "running the forward and the backward pass");
  Params sound = part;
  sound.omits = Omission::none;
  run.sound = run_explained(device, sound, inputs, d_output, run.chosen);
  progress.check();
  progress.report(0.4, "comparing with the reference");
  const BackwardRoundings roundings;
  run.exact = reference_forward(task, inputs, roundings.forward, progress);
  run.exact_gradients = reference_backward(task, inputs, d_output, run.exact, roundings, progress);
  const bool emulated = device.info().backend == "emulated";
  if (part.omits == Omission::none) {
    run.trace = trace_of(run, run.sound, inputs, d_output, emulated);
    return run;
  }
  progress.report(0.8, "running the broken kernels");
  run.trace = trace_of(run, run_explained(device, part, inputs, d_output, run.chosen), inputs,
                       d_output, emulated);
  return run;
}

}  // namespace tilestep::attention_backward

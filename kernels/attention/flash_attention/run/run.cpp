// Runs the explained kernels, and puts together what they wrote.

#include "kernels/attention/flash_attention/run/run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/attention/flash_attention/quantized/reference.hpp"
#include "kernels/attention/flash_attention/run/explained.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::flash_attention {
namespace {

using numeric::index_of;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// ---- the chosen query -------------------------------------------------------------------------------

/// The chosen query's row of S or P; where nothing was written the mask hides all.
std::vector<float> row_of(const std::vector<float>& matrix, const Run& run) {
  if (matrix.empty()) return {};
  const int length = run.excerpt.params.seq;
  const std::size_t first =
      index_of(run.chosen.head * length + run.chosen.query, 0, score_pitch(length));
  std::vector<float> row(matrix.begin() + static_cast<std::ptrdiff_t>(first),
                         matrix.begin() + static_cast<std::ptrdiff_t>(first) + length);
  for (float& score : row) score = std::isnan(score) ? -kInfinity : score;
  return row;
}

/// Naive has no steps of its own: tiles of scores from left to right.
std::vector<Step> steps_of_scores(const Trace& trace) {
  std::vector<Step> steps;
  for (int tile = 0; tile < trace.plan.k_tiles; ++tile) {
    const int first = tile * trace.plan.block_k;
    const int end = std::min(first + trace.plan.block_k, trace.shape.length);
    Step step;
    step.k_tile = tile;
    step.order = tile;
    step.kind = trace.visit(trace.chosen.q_tile, tile).kind;
    step.tile_max = *std::max_element(trace.scores.begin() + first, trace.scores.begin() + end);
    steps.push_back(step);
  }
  return steps;
}

/// Throws Error for what an edited kernel left unrecorded: a picture would show it as zeros, or as nothing to see.
void require_recorded(const Trace& trace, std::size_t steps) {
  const auto count = [&trace](const auto& is) {
    return static_cast<std::size_t>(std::count_if(trace.visits.begin(), trace.visits.end(), is));
  };
  const std::size_t visited = count([](const TileVisit& one) { return one.order >= 0; });
  const std::size_t due = count([](const TileVisit& one) { return one.kind != TileKind::skipped; });
  if (visited == 0 && steps > 0) simt::refuse_unrecorded("the tiles of scores", 0, steps);
  if (visited == 0 && due > 0) simt::refuse_unrecorded("the tiles of scores", 0, due);
  require_steps(trace, steps);
  const std::size_t ended =
      count([](const TileVisit& one) { return one.order >= 0 && one.end >= 0; });
  if (ended < visited) simt::refuse_unrecorded("the tiles' ends", ended, visited);
}

std::vector<Step> steps_of(const Outcome& shown, const Trace& trace) {
  if (shown.plan.runs == Variant::naive) return steps_of_scores(trace);
  std::vector<Step> steps;
  std::copy_if(shown.steps.begin(), shown.steps.end(), std::back_inserter(steps),
               [](const Step& step) { return step.order >= 0; });
  std::sort(steps.begin(), steps.end(),
            [](const Step& a, const Step& b) { return a.order < b.order; });
  require_recorded(trace, steps.size());
  return steps;
}

/// The chosen component of softmax over the keys of the tiles so far, in double.
std::vector<double> prefixes_of(const Run& run, const Trace& trace) {
  const Task task = task_of(run.excerpt.params);
  const Inputs inputs = inputs_of(run.excerpt);
  const std::vector<double> scores =
      exact_scores(task, numbers_of(inputs), run.chosen.head, run.chosen.query);
  const double largest = *std::max_element(scores.begin(), scores.end());
  const int kv_head = run.chosen.head / (task.heads / task.kv_heads);
  double sum = 0;
  double output = 0;
  std::vector<double> prefixes;
  for (const Step& step : trace.steps) {
    const int first = step.k_tile * trace.plan.block_k;
    const int end = std::min(first + trace.plan.block_k, trace.shape.length);
    for (int key = first; key < end; ++key) {
      const double score = scores[static_cast<std::size_t>(key)];
      if (std::isinf(score)) continue;
      const double weight = std::exp(score - largest);
      sum += weight;
      output += weight * static_cast<double>(inputs.v[index_of(
                             kv_head * task.length() + key, run.chosen.component, task.head_dim)]);
    }
    prefixes.push_back(sum > 0 ? output / sum : 0);
  }
  return prefixes;
}

// ---- bytes ------------------------------------------------------------------------------------------

std::vector<LedgerRow> ledger_of_run(const Run& run, const Outcome& shown) {
  const Params& params = run.params;
  const Task task = task_of(params);
  const Plan whole = plan_of(params);
  const std::vector<int> begins = begins_of(document_lengths(params.seq, params.seed));
  return ledger_rows(shown.asked, shown.formula, ledger_of(whole, task, params.broken, begins),
                     held_by(whole, task, params.broken));
}

unsigned long long sum_of(const Ledger& ledger) {
  unsigned long long sum = 0;
  for (const Asked& asked : ledger) sum += asked.loaded + asked.stored;
  return sum;
}

BrokenResult result_of(const Run& run, const Outcome& shown, const Trace& trace) {
  BrokenResult result;
  if (run.params.broken == Break::none) return result;
  result.add(Tensor::o, shown.o, run.exact.o, trace.shape.length, trace.shape.head_dim);
  result.more_bytes = static_cast<std::int64_t>(sum_of(shown.asked)) -
                      static_cast<std::int64_t>(sum_of(run.sound.asked));
  result.judge();
  return result;
}

}  // namespace

Trace trace_of(const Run& run, const Outcome& shown, bool emulated) {
  const Params& part = run.excerpt.params;
  const Plan& plan = shown.plan;
  Trace trace;
  trace.asked = plan.asked;
  trace.runs = plan.runs;
  trace.instead = plan.instead;
  describe(trace, run.params, run.excerpt, plan, shown.blocks);
  trace.dtype = part.dtype;
  trace.smooth_k = run.sound.plan.smooth_k;
  trace.quantized = run.quantized.rows;
  trace.data = part.data;
  trace.score_mod = part.score_mod;
  trace.broken = part.broken;
  trace.clock_unit = emulated ? "tiles" : "ns";
  trace.chosen = {run.chosen.head, run.chosen.query, run.chosen.component,
                  run.chosen.query / plan.block_q, shown.block};
  const Launched visited{shown.visits, plan,
                         plan.runs == Variant::flash_1 ? Owns::head : Owns::query_tile,
                         plan.runs != Variant::naive};
  trace.visits = visits_of(visited, run.chosen.head);
  trace.blocks = lanes_of(visited, part.heads);
  trace.ledger = ledger_of_run(run, shown);
  trace.lines = mark_lines(plan.runs, part.dtype);
  trace.o_recorded = plan.runs != Variant::naive;
  trace.scores = row_of(shown.s, run);
  trace.weights = row_of(shown.p, run);
  trace.steps = steps_of(shown, trace);
  fill_answer(trace.answer, trace, shown.o, shown.lse, run.exact);
  trace.answer.o_after = prefixes_of(run, trace);
  trace.wrong = wrong_of_tiles(shown.o, run.exact.o, run.chosen.head * part.seq, part.seq,
                               plan.head_dim, plan.block_q);
  trace.result = result_of(run, shown, trace);
  return trace;
}

Run run_of(const Params& params, simt::Device& device, lab::Progress& progress) {
  Run run;
  run.params = params;
  progress.report(0, "making Q, K and V");
  run.excerpt = excerpt_of(params);
  Params& part = run.excerpt.params;
  run.chosen.query = std::min(params.query, part.seq - 1);
  const Inputs inputs = inputs_of(run.excerpt);
  progress.check();
  progress.report(0.1, "running the kernels");
  Params sound = part;
  sound.broken = Break::none;
  run.sound = run_explained(device, sound, inputs, run.chosen);
  progress.check();
  progress.report(0.5, "comparing with the reference");
  run.exact =
      run.sound.plan.quantized
          ? reference_quantized(task_of(part), inputs, run.sound.numbers, part.dtype, progress)
          : reference_forward(task_of(part), inputs, roundings_of(run.sound.plan.runs), progress);
  if (run.sound.plan.quantized) run.quantized = quantized_errors(device, run, inputs, progress);
  const bool emulated = device.info().backend == "emulated";
  if (part.broken == Break::none) {
    run.trace = trace_of(run, run.sound, emulated);
    return run;
  }
  progress.report(0.7, "running the broken kernel");
  run.trace = trace_of(run, run_explained(device, part, inputs, run.chosen), emulated);
  return run;
}

}  // namespace tilestep::flash_attention

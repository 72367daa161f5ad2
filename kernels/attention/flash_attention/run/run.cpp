// Runs the explained kernels, and puts together what they wrote.

#include "kernels/attention/flash_attention/run/run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "kernels/attention/flash_attention/quantized/reference.hpp"
#include "kernels/attention/flash_attention/run/ledger.hpp"
#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::flash_attention {
namespace {

using numeric::index_of;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// ---- the plan ---------------------------------------------------------------------------------------

Shape shape_of(const Run& run, const Plan& plan) {
  const Params& part = run.excerpt.params;
  return {part.seq,         part.heads,          part.kv_heads, run.params.seq,
          run.params.heads, run.params.kv_heads, plan.head_dim, plan.columns};
}

Dispatch dispatch_of(const Run& run, const Outcome& shown) {
  const Plan& plan = shown.plan;
  return {plan.asked,   plan.runs,       plan.instead, plan.filled,
          plan.resized, run.excerpt.cut, plan.block_q, plan.block_k,
          plan.q_tiles, plan.k_tiles,    plan.threads, static_cast<int>(plan.shared_bytes),
          shown.blocks};
}

// ---- visits -----------------------------------------------------------------------------------------

/// The visits of a head, in the kernels' own words.
const Visit& visit_at(const Outcome& shown, int head, int q_tile, int k_tile) {
  return shown.visits[index_of(head * shown.plan.q_tiles + q_tile, k_tile, shown.plan.k_tiles)];
}

/// Clocks are counted from the first visit's begin on.
long long first_clock(const Outcome& shown) {
  long long first = std::numeric_limits<long long>::max();
  for (const Visit& visit : shown.visits) {
    if (visit.block >= 0 && visit.begin >= 0) first = std::min(first, visit.begin);
  }
  return is_flash_3(shown.plan.runs) ? 0 : first;  // flash-3's are counted from the first event on
}
std::int64_t clock_from(long long clock, long long first) {
  return clock < 0 ? -1 : clock - first;
}

std::vector<TileVisit> visits_of(const Outcome& shown, int head, Pass pass) {
  const bool counts = pass == Pass::forward && shown.plan.runs != Variant::naive;
  const long long first = first_clock(shown);
  std::vector<TileVisit> visits;
  for (int q_tile = 0; q_tile < shown.plan.q_tiles; ++q_tile) {
    for (int k_tile = 0; k_tile < shown.plan.k_tiles; ++k_tile) {
      const Visit& from = visit_at(shown, head, q_tile, k_tile);
      TileVisit visit;
      if (from.block >= 0) {
        visit.kind = static_cast<TileKind>(from.kind);
        visit.block = from.block;
        visit.order = from.order;
        visit.rescaled = counts ? from.rescaled : -1;
        visit.o_reads = from.o_reads;
        visit.o_writes = from.o_writes;
        visit.begin = clock_from(from.begin, first);
        visit.end = clock_from(from.end, first);
      }
      visits.push_back(visit);
    }
  }
  return visits;
}

std::vector<BlockLane> lanes_of(const Outcome& shown, int heads, Pass pass) {
  const long long first = first_clock(shown);
  const bool of_keys = pass != Pass::forward;
  const bool of_head = shown.plan.runs == Variant::flash_1 || of_keys;
  std::map<int, BlockLane> lanes;
  for (int head = 0; head < heads; ++head) {
    for (int q_tile = 0; q_tile < shown.plan.q_tiles; ++q_tile) {
      for (int k_tile = 0; k_tile < shown.plan.k_tiles; ++k_tile) {
        const Visit& visit = visit_at(shown, head, q_tile, k_tile);
        if (visit.block < 0) continue;
        const auto [place, fresh] = lanes.try_emplace(
            visit.block,
            BlockLane{visit.block, head, of_head ? -1 : q_tile, of_keys ? k_tile : -1, 0, -1, -1});
        BlockLane& lane = place->second;
        if (!fresh && visit.order == 0 && !of_head) {
          lane.head = head;  // a block of flash-3 has several tiles of queries
          lane.q_tile = q_tile;
        }
        ++lane.visits;
        const std::int64_t begin = clock_from(visit.begin, first);
        if (begin >= 0 && (lane.begin < 0 || begin < lane.begin)) lane.begin = begin;
        lane.end = std::max(lane.end, clock_from(visit.end, first));
      }
    }
  }
  std::vector<BlockLane> all;
  for (const auto& [block, lane] : lanes) {
    if (all.size() < kShownBlocks) all.push_back(lane);
  }
  return all;
}

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
  std::size_t seen = 0;
  for (int tile = 0; tile < trace.plan.k_tiles; ++tile) {
    seen += trace.visit(trace.chosen.q_tile, tile).order >= 0 ? 1 : 0;
  }
  if (steps < seen) simt::refuse_unrecorded("the chosen query's steps", steps, seen);
  if (is_flash_3(trace.plan.runs)) return;
  const std::size_t ended =
      count([](const TileVisit& one) { return one.order >= 0 && one.end >= 0; });
  if (ended < visited) simt::refuse_unrecorded("the tiles' ends", ended, visited);
}

std::vector<Step> steps_of(const Outcome& shown, const Trace& trace) {
  if (shown.plan.runs == Variant::naive) return steps_of_scores(trace);
  std::vector<Step> steps;
  for (int tile = 0; tile < shown.plan.k_tiles; ++tile) {
    const StepRecord& from = shown.steps[static_cast<std::size_t>(tile)];
    if (from.order < 0) continue;
    steps.push_back({tile, from.order, trace.visit(trace.chosen.q_tile, tile).kind, from.tile_max,
                     from.m_before, from.m_after, from.rescale, from.tile_sum, from.l,
                     trace.o_recorded ? from.o : 0});
  }
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

Answer answer_of(const Run& run, const Outcome& shown, const Trace& trace) {
  const int row = run.chosen.head * trace.shape.length + run.chosen.query;
  const auto first = static_cast<std::ptrdiff_t>(index_of(row, 0, trace.shape.head_dim));
  const auto end = first + trace.shape.head_dim;
  Answer answer;
  answer.o.assign(shown.o.begin() + first, shown.o.begin() + end);
  answer.exact.assign(run.exact.o.value.begin() + first, run.exact.o.value.begin() + end);
  answer.lse = shown.lse[static_cast<std::size_t>(row)];
  answer.exact_lse = run.exact.lse.value[static_cast<std::size_t>(row)];
  answer.o_after = prefixes_of(run, trace);
  return answer;
}

// ---- bytes ------------------------------------------------------------------------------------------

std::vector<LedgerRow> ledger_rows(const Run& run, const Outcome& shown) {
  const Params& params = run.params;
  const Task task = task_of(params);
  const std::vector<int> begins = begins_of(document_lengths(params.seq, params.seed));
  Ledger all{};
  std::array<unsigned long long, kTensors> held{}, kept{};
  if (params.pass == Pass::forward) {
    const Plan whole = plan_of(params);
    all = ledger_of(whole, task, params.broken, begins);
    held = held_by(whole, task, params.broken);
  } else {
    const Plan whole = backward_plan_of(params);
    all = backward_ledger_of(whole, task, begins);
    const BackwardMemory memory = backward_memory_of(whole, task);
    held = memory.held;
    kept = memory.kept;
  }
  const auto number = [](unsigned long long bytes) { return static_cast<std::int64_t>(bytes); };
  std::vector<LedgerRow> rows;
  for (std::size_t i = 0; i < kTensors; ++i) {
    if (held[i] == 0 && shown.asked[i] == Asked{} && shown.formula[i] == Asked{}) continue;
    rows.push_back({static_cast<Tensor>(i), number(shown.asked[i].loaded),
                    number(shown.asked[i].stored), number(shown.formula[i].loaded),
                    number(shown.formula[i].stored), number(all[i].loaded), number(all[i].stored),
                    number(held[i]), number(kept[i])});
  }
  return rows;
}

unsigned long long sum_of(const Ledger& ledger) {
  unsigned long long sum = 0;
  for (const Asked& asked : ledger) sum += asked.loaded + asked.stored;
  return sum;
}

// ---- what is wrong ----------------------------------------------------------------------------------

/// Whether the element is off by more than rounding can explain; NaN is.
bool is_wrong(const Run& run, const Outcome& shown, std::size_t element) {
  const double off = std::abs(static_cast<double>(shown.o[element]) - run.exact.o.value[element]);
  return !(off <= run.exact.o.bound[element]);
}

std::vector<int> wrong_of_tiles(const Run& run, const Outcome& shown, const Trace& trace) {
  std::vector<int> wrong(static_cast<std::size_t>(trace.plan.q_tiles));
  const int columns = trace.shape.head_dim;
  for (int query = 0; query < trace.shape.length; ++query) {
    for (int c = 0; c < columns; ++c) {
      const int row = run.chosen.head * trace.shape.length + query;
      if (!is_wrong(run, shown, index_of(row, c, columns))) continue;
      ++wrong[static_cast<std::size_t>(query / trace.plan.block_q)];
    }
  }
  return wrong;
}

BrokenResult result_of(const Run& run, const Outcome& shown, const Trace& trace) {
  BrokenResult result;
  if (run.params.broken == Break::none) return result;
  result.elements = static_cast<int>(shown.o.size());
  for (std::size_t i = 0; i < shown.o.size(); ++i) {
    if (!is_wrong(run, shown, i)) continue;
    const auto got = static_cast<double>(shown.o[i]);
    if (result.wrong++ == 0) {
      const int row = static_cast<int>(i) / trace.shape.head_dim;
      result.head = row / trace.shape.length;
      result.query = row % trace.shape.length;
      result.component = static_cast<int>(i) % trace.shape.head_dim;
      result.got = got;
      result.want = run.exact.o.value[i];
    }
    result.largest = std::max(result.largest, std::abs(got - run.exact.o.value[i]));
  }
  result.more_bytes = static_cast<std::int64_t>(sum_of(shown.asked)) -
                      static_cast<std::int64_t>(sum_of(run.sound.asked));
  result.outcome = result.wrong > 0        ? "wrong numbers"
                   : result.more_bytes > 0 ? "more bytes"
                                           : "right";
  return result;
}

}  // namespace

Trace frame_of(const Run& run, const Outcome& shown, bool emulated) {
  const Params& part = run.excerpt.params;
  Trace trace;
  trace.pass = run.params.pass;
  trace.plan = dispatch_of(run, shown);
  trace.shape = shape_of(run, shown.plan);
  trace.dtype = part.dtype;
  trace.smooth_k = run.sound.plan.smooth_k;
  trace.quantized = run.quantized.rows;
  trace.data = part.data;
  trace.mask = part.mask;
  trace.window = run.params.rule().window;
  trace.sinks = run.params.rule().sinks;
  trace.score_mod = part.score_mod;
  if (part.mask == Mask::document) {
    trace.documents = document_lengths(run.params.seq, run.params.seed);
  }
  trace.broken = part.broken;
  const bool flash_3 = is_flash_3(shown.plan.runs);
  trace.clock_unit = emulated ? (flash_3 ? "words" : "tiles") : (flash_3 ? "cycles" : "ns");
  trace.chosen = {run.chosen.head, run.chosen.query, run.chosen.component,
                  run.chosen.query / shown.plan.block_q, shown.block};
  trace.visits = visits_of(shown, run.chosen.head, part.pass);
  trace.blocks = lanes_of(shown, part.heads, part.pass);
  trace.ledger = ledger_rows(run, shown);
  trace.lines = mark_lines(shown.plan.runs, part.pass, part.dtype);
  return trace;
}

Trace trace_of(const Run& run, const Outcome& shown, bool emulated) {
  Trace trace = frame_of(run, shown, emulated);
  const bool flash_3 = is_flash_3(shown.plan.runs);
  trace.o_recorded = shown.plan.runs != Variant::naive && !flash_3;
  trace.scores = row_of(shown.s, run);
  trace.weights = row_of(shown.p, run);
  trace.steps = steps_of(shown, trace);
  trace.answer = answer_of(run, shown, trace);
  trace.wrong = wrong_of_tiles(run, shown, trace);
  trace.events = shown.events;
  trace.result = result_of(run, shown, trace);
  return trace;
}

Run run_of(const Params& params, simt::Device& device, lab::Progress& progress) {
  Run run;
  run.params = params;
  progress.report(0, "making Q, K and V");
  run.excerpt = excerpt_of(params);
  Params& part = run.excerpt.params;
  run.chosen = {std::min(params.head, part.heads - 1), std::min(params.query, part.seq - 1),
                std::min(params.component, columns_of(part.head_dim) - 1)};
  const Inputs inputs = inputs_of(run.excerpt);
  progress.check();
  if (params.pass != Pass::forward) {
    run_backward(run, inputs, device, progress);
    return run;
  }
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

// Runs the explained kernels and assembles their output.

#include "kernels/attention/decode/run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <random>

#include "kernels/base/lab/random.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::decode {

Way way_of(simt::Device& device, const Case& of, const Inputs& inputs) {
  const Kernels& kernels = kernels_of(device);
  if (of.scheme != Scheme::mla) return kv_cache::way_of(device, kernels, of, inputs);
  const int heads = inputs.layer.heads;
  return {.cut = {heads, latent::lines_of(heads), inputs.page_size},
          .room = latent::heads_of_item(heads),
          .tile = latent::kPair,
          .look_up = latent::rows_at_once(inputs.page_size),
          .launch = [&](const paged::Problem& problem, const paged::Arrays& arrays,
                        const simt::Tape& tape) {
            kernels.attend_latent(device, problem, arrays, tape);
          }};
}

Outcome run_explained(simt::Device& device, const Case& of, const Inputs& inputs,
                      const Cache& cache, const paged::Followed& followed) {
  return kv_cache::run_explained(device, of, inputs, cache, followed, way_of(device, of, inputs));
}

namespace {

/// Tokens of each request: between half and one and a half times the average.
std::vector<int> contexts_of(const Params& params) {
  std::mt19937 generator = lab::generator_of(params.seed + 3);
  std::vector<int> contexts;
  for (int r = 0; r < params.batch; ++r) {
    const auto spread = static_cast<unsigned>(params.context) + 1;
    contexts.push_back(std::max(1, params.context / 2 + static_cast<int>(generator() % spread)));
  }
  return contexts;
}

}  // namespace

Inputs inputs_of(const Params& params) {
  const std::vector<int> contexts = contexts_of(params);
  int pages = 0;
  std::vector<std::vector<int>> tables;
  for (const int tokens : contexts) {
    tables.emplace_back(static_cast<std::size_t>((tokens + kPageSize - 1) / kPageSize));
    for (int& page : tables.back()) page = pages++;
  }
  return make_inputs(params.of(), pages, contexts, std::move(tables));
}

namespace {

// ---- the trace --------------------------------------------------------------------------------------

Shape shape_of(const Run& run) {
  const Params& part = run.excerpt.params;
  const LayerShape& layer = run.inputs.layer;
  Shape shape;
  shape.scheme = part.scheme;
  shape.heads = layer.heads;
  shape.cached_heads = layer.cached_heads;
  shape.key = layer.row.key;
  shape.value = layer.row.value;
  shape.kv_dtype = part.kv_dtype;
  shape.scales = part.scales;
  shape.tile = part.scheme == Scheme::mla ? latent::kPair : paged::kExplainedTile;
  shape.cut = run.excerpt.cut;
  return shape;
}

std::vector<ItemTrace> items_of(const Outcome& shown) {
  require_items(shown);
  std::vector<ItemTrace> items = shown.items;
  const std::int64_t first = std::ranges::min(items, {}, &ItemTrace::begin).begin;
  for (ItemTrace& item : items) {
    item.begin -= first;
    item.end -= first;
    item.first_round = 0;
    for (const ItemTrace& other : items) {
      if (other.block == item.block && other.order < item.order) item.first_round += other.tiles;
    }
  }
  return items;
}

void add_chosen_row(Trace& trace, const Outcome& shown) {
  const paged::Followed& chosen = shown.problem.followed;
  const auto columns = static_cast<std::size_t>(trace.shape.value);
  for (std::size_t i = 0; i < trace.items.size(); ++i) {
    const paged::WorkItem& work = shown.plan.items[i];
    const int query = paged::row_with(work, chosen.request, chosen.head);
    if (query < 0) continue;
    const auto steps = shown.steps_of(i);
    trace.steps.insert(trace.steps.end(), steps.begin(), steps.end());
    PartTrace part;
    part.item = static_cast<int>(i);
    if (paged::is_split(work)) {
      const auto row =
          static_cast<std::size_t>(paged::part_of(work, query, shown.problem.most_rows));
      part.m = shown.part_m[row];
      part.l = shown.part_l[row];
      part.o = shown.part_o[row * columns + static_cast<std::size_t>(chosen.component)];
      part.weight = shown.weights[row];
    } else if (!steps.empty()) {
      part.m = steps.back().m_after;
      part.l = steps.back().l;
      part.o = steps.back().o;
    } else {
      part.m = -std::numeric_limits<float>::infinity();
    }
    trace.parts.push_back(part);
  }
}

std::vector<LedgerRow> ledger_rows(const Outcome& shown) {
  constexpr const char* kNames[] = {"Q", "K", "V", "scales", "block table", "O", "lse", "parts"};
  static_assert(std::size(kNames) == paged::kTensors);
  std::vector<LedgerRow> rows;
  for (std::size_t t = 0; t < shown.asked.size(); ++t) {
    const Asked& asked = shown.asked[t];
    const Asked& formula = shown.formula[t];
    if (asked == Asked{} && formula == Asked{}) continue;
    rows.push_back({kNames[t], asked.loaded, asked.stored, formula.loaded + formula.stored});
  }
  return rows;
}

Trace trace_of(const Run& run, const Outcome& shown, bool emulated) {
  Trace trace;
  trace.shape = shape_of(run);
  trace.broken = run.excerpt.params.broken;
  trace.tokens = run.inputs.contexts;
  trace.items = items_of(shown);
  trace.blocks = static_cast<int>(shown.plan.first_item.size()) - 1;
  trace.clock_unit = emulated ? "items" : "ns";
  trace.request = run.chosen.request;
  trace.head = run.chosen.head;
  trace.component = run.chosen.component;
  add_chosen_row(trace, shown);
  trace.merged = shown.plan.slots > 0;
  const auto row =
      static_cast<std::size_t>(run.chosen.request * trace.shape.heads + run.chosen.head);
  const std::size_t at = row * static_cast<std::size_t>(trace.shape.value) +
                         static_cast<std::size_t>(run.chosen.component);
  trace.o = shown.o[at];
  trace.lse = shown.lse[row];
  trace.exact_o = run.exact.o[at];
  trace.exact_lse = run.exact.lse[row];
  trace.ledger = ledger_rows(shown);
  return trace;
}

std::int64_t asked_by(const Outcome& outcome) {
  std::int64_t sum = 0;
  for (const Asked& one : outcome.asked) sum += one.loaded + one.stored;
  return sum;
}

BrokenResult result_of(const Run& run, const Outcome& shown) {
  BrokenResult result;
  result.elements = static_cast<int>(run.exact.o.size());
  result.wrong = wrong_numbers(shown, run.exact);
  result.more_bytes = asked_by(shown) - asked_by(run.sound);
  switch (run.excerpt.params.broken) {
    case Break::none:
      return {};
    case Break::repeat_kv:
      result.outcome = "the same answer, and each K/V head is read once for each query head";
      break;
    case Break::unmerged_splits:
      result.outcome = shown.plan.slots > 0 ? "each request is answered from its first part alone"
                                            : "no request has more than one part";
      break;
  }
  return result;
}

}  // namespace

Run run_of(const Params& params, simt::Device& device, lab::Progress& progress) {
  Run run;
  run.params = params;
  run.excerpt = excerpt_of(params);
  const Params& part = run.excerpt.params;
  run.inputs = inputs_of(part);
  run.cache = cache_of(run.inputs, part.kv_dtype, part.scales);
  progress.check();
  progress.report(0.2, "running the explained kernel");
  Params sound = part;
  sound.broken = Break::none;
  run.sound = run_explained(device, sound.of(), run.inputs, run.cache, run.chosen);
  progress.check();
  progress.report(0.6, "comparing with the reference");
  run.exact = reference_attention(as_cached(run.inputs, run.cache),
                                  roundings_of(part.kv_dtype, part.scales));
  progress.check();
  const bool emulated = !device.can_time();
  if (part.broken == Break::none) {
    run.trace = trace_of(run, run.sound, emulated);
    return run;
  }
  progress.report(0.8, "running the broken kernel");
  const Outcome shown = run_explained(device, part.of(), run.inputs, run.cache, run.chosen);
  run.trace = trace_of(run, shown, emulated);
  run.trace.result = result_of(run, shown);
  return run;
}

}  // namespace tilestep::decode

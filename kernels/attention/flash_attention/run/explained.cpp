// Runs the explained kernels, and brings home what they wrote.

#include "kernels/attention/flash_attention/run/explained.hpp"

#include "kernels/base/lab/result.hpp"

namespace tilestep::flash_attention {

Roundings roundings_of(Variant runs) {
  Roundings r;
  if (runs == Variant::naive) r.score = numeric::Bf16::kUnitRoundoff;
  if (runs == Variant::flash_1) {
    r.visits = 10;
    r.values_adding = numeric::Adding::any_order_tensor_core;  // warps add up
  }
  return r;
}

Excerpt excerpt_of(const Params& params) {
  return excerpt_where(params, [](const Params& part, const std::vector<int>& begins) {
    const Plan plan = plan_of(part);
    return std::int64_t{plan.q_tiles} * plan.k_tiles <= kMostTiles &&
           tile_flops(plan, task_of(part), begins) <= kMostFlops;
  });
}

namespace {

using lab::unwritten, lab::uploaded;

std::size_t count_of(int a, int b, int c) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}

void run_in_bf16(simt::Device& device, const Params& params, const Inputs& inputs,
                 const Chosen& chosen, Outcome& outcome) {
  const Plan& plan = outcome.plan;
  const Task task = task_of(params);
  const int length = task.length();
  const bool sums = plan.runs == Variant::flash_1, naive = plan.runs == Variant::naive;
  const bool scores = naive || params.broken == Break::materialize;
  const std::size_t rows = count_of(task.heads, length, 1);
  const std::size_t score_count = count_of(task.heads, length, score_pitch(length));
  const auto q = uploaded(device, words_of(inputs.q));
  const auto k = uploaded(device, words_of(inputs.k));
  const auto v = uploaded(device, words_of(inputs.v));
  const auto begins = uploaded(device, inputs.begins);
  auto o = unwritten<std::uint16_t>(device, inputs.q.size());
  auto lse = unwritten<float>(device, rows);
  auto s = unwritten<std::uint16_t>(device, scores ? score_count : 0);
  auto p = unwritten<std::uint16_t>(device, naive ? score_count : 0);
  auto o_sums = unwritten<float>(device, sums ? inputs.q.size() : 0);
  auto m = unwritten<float>(device, sums ? rows : 0);
  auto l = unwritten<float>(device, sums ? rows : 0);
  RecordBuffers records(device, plan, task.heads);
  const Arrays arrays{q.span(), k.span(), v.span(),      begins.span(), o.span(), lse.span(),
                      s.span(), p.span(), o_sums.span(), m.span(),      l.span()};
  const Records to = records.records(chosen);
  kernels_of(device).explain(device, plan, task, params.broken, arrays, to);
  device.synchronize();
  outcome.o = values_of(o.download());
  outcome.s = values_of(s.download());
  outcome.p = values_of(p.download());
  outcome.lse = lse.download();
  outcome.visits = records.visits.download();
  outcome.steps = records.steps.download();
  outcome.asked = records.ledger();
  outcome.formula = ledger_of(plan, task, params.broken, inputs.begins);
}

/// Of the launch; of naive of the one that computes scores.
int blocks_of(const Plan& plan, int heads) {
  if (plan.runs == Variant::flash_1) return heads;
  return heads * plan.q_tiles * (plan.runs == Variant::naive ? plan.k_tiles : 1);
}

/// The block that has the chosen query: of its visits', which are all one block's but where each has its own.
int block_of(const Outcome& outcome, const Chosen& chosen) {
  const Plan& plan = outcome.plan;
  const std::size_t first =
      count_of(chosen.head * plan.q_tiles + chosen.query / plan.block_q, plan.k_tiles, 1);
  for (std::size_t tile = 0; tile < static_cast<std::size_t>(plan.k_tiles); ++tile) {
    if (outcome.visits[first + tile].block >= 0) return outcome.visits[first + tile].block;
  }
  return 0;  // nobody visits anything for it
}

}  // namespace

Outcome run_explained(simt::Device& device, const Params& params, const Inputs& inputs,
                      const Chosen& chosen) {
  Outcome outcome;
  outcome.plan = plan_of(params);
  simt::require_within("flash-attention: head", chosen.head, 0, params.heads - 1);
  simt::require_within("flash-attention: query", chosen.query, 0, params.seq - 1);
  simt::require_within("flash-attention: component", chosen.component, 0,
                       outcome.plan.head_dim - 1);
  if (outcome.plan.quantized) {
    run_quantized(device, params, inputs, chosen, outcome);
  } else {
    run_in_bf16(device, params, inputs, chosen, outcome);
  }
  outcome.blocks = blocks_of(outcome.plan, params.heads);
  outcome.block = block_of(outcome, chosen);
  return outcome;
}

}  // namespace tilestep::flash_attention

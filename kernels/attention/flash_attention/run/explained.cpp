// Runs the explained kernels, and brings home what they wrote.

#include "kernels/attention/flash_attention/run/explained.hpp"

#include <span>

#include "kernels/attention/flash_attention/run/ledger.hpp"

namespace tilestep::flash_attention {
namespace {

std::size_t count_of(int a, int b, int c) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b) * static_cast<std::size_t>(c);
}

/// An array that holds NaN until a kernel writes to it.
template <class T>
simt::Buffer<T> unwritten(simt::Device& device, std::size_t count) {
  simt::Buffer<T> buffer(device, count);
  buffer.fill(0xFF);
  return buffer;
}
template <class T>
simt::Buffer<T> uploaded(simt::Device& device, const std::vector<T>& host) {
  return simt::Buffer<T>(device, std::span<const T>(host));
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

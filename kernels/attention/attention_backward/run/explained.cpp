// Runs the explained kernels of the backward pass, and brings home what they wrote.

#include "kernels/attention/attention_backward/run/explained.hpp"

#include "kernels/base/lab/result.hpp"
#include "kernels/base/numeric/index.hpp"

namespace tilestep::attention_backward {
namespace {

using lab::unwritten, lab::uploaded;
using numeric::elements_of;

/// D of the rows that are there.
std::vector<float> d_of(const std::vector<float>& terms, const TilePlan& plan, const Task& task) {
  const std::size_t padded = elements_of(plan.q_tiles, plan.block_q);
  std::vector<float> d;
  for (std::size_t head = 0; head < static_cast<std::size_t>(task.heads); ++head) {
    for (std::size_t query = 0; query < static_cast<std::size_t>(task.length()); ++query) {
      d.push_back(terms[2 * (head * padded + query) + 1]);
    }
  }
  return d;
}

}  // namespace

flash_attention::Params forward_of(const Params& params) {
  flash_attention::Params forward;
  forward.seq = params.seq;
  forward.heads = params.heads;
  forward.kv_heads = params.kv_heads;
  forward.head_dim = params.head_dim;
  forward.mask = params.mask;
  forward.window = Params::kWindow;
  forward.block_q = params.block_q;
  forward.block_k = params.block_k;
  // A forward pass without its rescale leaves a wrong log-sum-exp; the mask is the backward pass's own affair.
  if (params.omits == Omission::skip_rescale) forward.broken = Break::skip_rescale;
  return forward;
}

PassBuffers::PassBuffers(simt::Device& device, const Scratch& scratch, const Inputs& inputs,
                         const std::vector<float>& d_output, const std::vector<float>& o,
                         const std::vector<float>& lse)
    : q_(device, words_of(inputs.q)),
      k_(device, words_of(inputs.k)),
      v_(device, words_of(inputs.v)),
      o_(device, words_of(o)),
      d_o_(device, words_of(d_output)),
      begins_(uploaded(device, inputs.begins)),
      lse_(device, lse),
      terms(unwritten<float>(device, scratch.terms)),
      dq_sums(unwritten<float>(device, scratch.dq_sums)),
      dq(unwritten<std::uint16_t>(device, inputs.q.size())),
      dk(unwritten<std::uint16_t>(device, inputs.k.size())),
      dv(unwritten<std::uint16_t>(device, inputs.v.size())) {}

Arrays PassBuffers::arrays() {
  return {q_.span(),   k_.span(),    v_.span(),      o_.span(), d_o_.span(), begins_.span(),
          lse_.span(), terms.span(), dq_sums.span(), dq.span(), dk.span(),   dv.span()};
}

Outcome run_explained(simt::Device& device, const Params& params, const Inputs& inputs,
                      const std::vector<float>& d_output, const Chosen& chosen) {
  Outcome outcome;
  outcome.plan = plan_of(params);
  outcome.forward = flash_attention::run_explained(device, forward_of(params), inputs, chosen);
  const TilePlan& plan = outcome.plan;
  const Task task = task_of(params);
  PassBuffers pass(device, scratch_of(task, plan.block_q, plan.columns), inputs, d_output,
                   outcome.forward.o, outcome.forward.lse);
  RecordBuffers records(device, plan, task.heads, 3);
  kernels_of(device).explain(device, plan, task, break_of(params.omits), pass.arrays(),
                             records.records(chosen));
  device.synchronize();
  outcome.dq = values_of(pass.dq.download());
  outcome.dk = values_of(pass.dk.download());
  outcome.dv = values_of(pass.dv.download());
  outcome.visits = records.visits.download();
  outcome.steps = records.steps.download();
  outcome.asked = records.ledger();
  outcome.formula = ledger_of(plan, task, inputs.begins);
  outcome.blocks = task.kv_heads * plan.k_tiles;
  outcome.d = d_of(pass.terms.download(), plan, task);
  const std::vector<float> all = records.rows.download();
  const auto length = static_cast<std::ptrdiff_t>(task.length());
  const auto row = [&](std::ptrdiff_t number) {
    return std::vector<float>(all.begin() + number * length, all.begin() + (number + 1) * length);
  };
  outcome.p = row(0), outcome.dp = row(1), outcome.ds = row(2);
  return outcome;
}

}  // namespace tilestep::attention_backward

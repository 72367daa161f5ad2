// Runs the explained kernels of the backward pass, and brings home what they wrote.

#include "kernels/attention/flash_attention/backward/explained.hpp"

#include <span>

#include "kernels/attention/flash_attention/run/ledger.hpp"

namespace tilestep::flash_attention {
namespace {

class BackwardRun {
 public:
  BackwardRun(simt::Device& device, const Params& params, const Inputs& inputs,
              const std::vector<float>& d_output, BackwardOutcome& outcome)
      : device_(device),
        params_(params),
        inputs_(inputs),
        d_output_(d_output),
        outcome_(outcome),
        task_(task_of(params)) {}

  void run(const Chosen& chosen) {
    const Plan& plan = outcome_.plan;
    const std::size_t padded = numbers(task_.heads, plan.q_tiles * plan.block_q);
    const auto q = sent(inputs_.q), k = sent(inputs_.k), v = sent(inputs_.v),
               o = sent(outcome_.forward.o), d_o = sent(d_output_);
    const auto begins = plain(inputs_.begins);
    const auto lse = plain(outcome_.forward.lse);
    auto terms = empty<float>(2 * padded);
    auto sums = empty<float>(padded * static_cast<std::size_t>(plan.columns));
    auto dq = empty<std::uint16_t>(inputs_.q.size()), dk = empty<std::uint16_t>(inputs_.k.size()),
         dv = empty<std::uint16_t>(inputs_.v.size());
    auto visits = plain(std::vector<Visit>(numbers(task_.heads * plan.q_tiles, plan.k_tiles),
                                           Visit{-1, -1, 0, 0, 0, 0, 0, 0}));
    auto steps = plain(std::vector<StepRecord>(static_cast<std::size_t>(plan.k_tiles),
                                               StepRecord{0, 0, 0, 0, 0, 0, 0, -1}));
    auto rows = plain(std::vector<float>(numbers(3, task_.length())));
    auto asked = plain(std::vector<unsigned long long>(std::size_t{2} * kTensors));
    kernels_of(device_).backward().explain(
        device_, plan, task_, params_.broken,
        {q.span(), k.span(), v.span(), o.span(), d_o.span(), begins.span(), lse.span(),
         terms.span(), sums.span(), dq.span(), dk.span(), dv.span()},
        {chosen.head, chosen.query, chosen.component, visits.span(), steps.span(), asked.span(),
         rows.span()});
    device_.synchronize();
    outcome_.dq = values_of(dq.download());
    outcome_.dk = values_of(dk.download());
    outcome_.dv = values_of(dv.download());
    outcome_.visits = visits.download();
    outcome_.steps = steps.download();
    const std::vector<unsigned long long> bytes = asked.download();
    for (std::size_t i = 0; i < kTensors; ++i) outcome_.asked[i] = {bytes[2 * i], bytes[2 * i + 1]};
    outcome_.formula = backward_ledger_of(plan, task_, inputs_.begins);
    outcome_.blocks = task_.kv_heads * plan.k_tiles;
    take_d(terms.download());
    const std::vector<float> all = rows.download();
    const auto length = static_cast<std::ptrdiff_t>(task_.length());
    const auto row = [&](std::ptrdiff_t number) {
      return std::vector<float>(all.begin() + number * length, all.begin() + (number + 1) * length);
    };
    outcome_.p = row(0), outcome_.dp = row(1), outcome_.ds = row(2);
  }

 private:
  static std::size_t numbers(int a, int b) {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
  }
  template <class U>
  simt::Buffer<U> plain(const std::vector<U>& host) const {
    return simt::Buffer<U>(device_, std::span<const U>(host));
  }
  /// Holds NaN until a kernel writes to it.
  template <class U>
  simt::Buffer<U> empty(std::size_t count) const {
    simt::Buffer<U> buffer(device_, count);
    buffer.fill(0xFF);
    return buffer;
  }
  simt::Buffer<std::uint16_t> sent(const std::vector<float>& values) const {
    return plain(words_of(values));
  }

  /// D of the rows that are there.
  void take_d(const std::vector<float>& terms) const {
    const std::size_t padded = numbers(outcome_.plan.q_tiles, outcome_.plan.block_q);
    const auto length = static_cast<std::size_t>(task_.length());
    for (std::size_t head = 0; head < static_cast<std::size_t>(task_.heads); ++head) {
      for (std::size_t query = 0; query < length; ++query) {
        outcome_.d.push_back(terms[2 * (head * padded + query) + 1]);
      }
    }
  }

  simt::Device& device_;
  const Params& params_;
  const Inputs& inputs_;
  const std::vector<float>& d_output_;
  BackwardOutcome& outcome_;
  Task task_;
};

}  // namespace

Params forward_of(const Params& params) {
  Params forward = params;
  forward.variant = Variant::flash_2;
  forward.pass = Pass::forward;
  // A forward pass without its rescale leaves a wrong log-sum-exp; the mask is the backward pass's own affair.
  if (params.broken != Break::skip_rescale) forward.broken = Break::none;
  return forward;
}

BackwardOutcome run_explained_backward(simt::Device& device, const Params& params,
                                       const Inputs& inputs, const std::vector<float>& d_output,
                                       const Chosen& chosen) {
  BackwardOutcome outcome;
  outcome.plan = backward_plan_of(params);
  outcome.forward = run_explained(device, forward_of(params), inputs, chosen);
  BackwardRun(device, params, inputs, d_output, outcome).run(chosen);
  return outcome;
}

}  // namespace tilestep::flash_attention

// Runs the explained kernels of the backward pass, and brings home what they wrote.

#include "kernels/attention/flash_attention/backward_gather.hpp"

#include <span>

#include "kernels/attention/flash_attention/ledger.hpp"

namespace tilestep::flash_attention {
namespace {

/// The backward pass on numbers T: float, or 16-bit words.
template <class T>
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
    const bool stores = params_.pass == Pass::backward_store;
    const std::size_t padded = numbers(task_.heads, plan.q_tiles * plan.block_q);
    const std::size_t scores = numbers(task_.heads * task_.length(), score_pitch(task_.length()));
    const auto q = sent(inputs_.q), k = sent(inputs_.k), v = sent(inputs_.v),
               o = sent(outcome_.forward.o), d_o = sent(d_output_),
               s = sent(stores ? outcome_.forward.s : std::vector<float>{}),
               p = sent(stores ? outcome_.forward.p : std::vector<float>{});
    const auto begins = plain(inputs_.begins);
    const auto lse = plain(outcome_.forward.lse);
    auto terms = empty<float>(2 * padded);
    auto sums = empty<float>(stores ? 0 : padded * static_cast<std::size_t>(plan.columns));
    auto dp = empty<T>(stores ? scores : 0), ds = empty<T>(stores ? scores : 0);
    auto dq = empty<T>(inputs_.q.size()), dk = empty<T>(inputs_.k.size()),
         dv = empty<T>(inputs_.v.size());
    auto visits = plain(std::vector<Visit>(numbers(task_.heads * plan.q_tiles, plan.k_tiles),
                                           Visit{-1, -1, 0, 0, 0, 0, 0, 0}));
    auto steps = plain(std::vector<StepRecord>(static_cast<std::size_t>(plan.k_tiles),
                                               StepRecord{0, 0, 0, 0, 0, 0, 0, -1}));
    auto rows = plain(std::vector<float>(numbers(3, task_.length())));
    auto asked = plain(std::vector<unsigned long long>(std::size_t{2} * kTensors));
    const BackwardArrays<T> arrays{q.span(),    k.span(),      v.span(),   o.span(),
                                   d_o.span(),  begins.span(), lse.span(), terms.span(),
                                   sums.span(), s.span(),      p.span(),   dp.span(),
                                   ds.span(),   dq.span(),     dk.span(),  dv.span()};
    start(arrays, {chosen.head, chosen.query, chosen.component, visits.span(), steps.span(),
                   asked.span(), rows.span()});
    device_.synchronize();
    outcome_.dq = fetched(dq);
    outcome_.dk = fetched(dk);
    outcome_.dv = fetched(dv);
    outcome_.visits = visits.download();
    outcome_.steps = steps.download();
    const std::vector<unsigned long long> bytes = asked.download();
    for (std::size_t i = 0; i < kTensors; ++i) outcome_.asked[i] = {bytes[2 * i], bytes[2 * i + 1]};
    outcome_.formula = backward_ledger_of(params_.pass, plan, task_, params_.dtype, inputs_.begins);
    outcome_.blocks =
        stores ? task_.heads * plan.q_tiles * plan.k_tiles : task_.kv_heads * plan.k_tiles;
    take_d(terms.download());
    if (stores) {
      take_rows(chosen, outcome_.forward.p, fetched(dp), fetched(ds));
    } else {
      const std::vector<float> all = rows.download();
      const auto length = static_cast<std::ptrdiff_t>(task_.length());
      const auto row = [&](std::ptrdiff_t number) {
        return std::vector<float>(all.begin() + number * length,
                                  all.begin() + (number + 1) * length);
      };
      outcome_.p = row(0), outcome_.dp = row(1), outcome_.ds = row(2);
    }
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
  simt::Buffer<T> sent(const std::vector<float>& values) const {
    if constexpr (std::is_same_v<T, float>) {
      return plain(values);
    } else {
      return plain(words_of(values));
    }
  }
  std::vector<float> fetched(const simt::Buffer<T>& buffer) const {
    if constexpr (std::is_same_v<T, float>) {
      return buffer.download();
    } else {
      return values_of(buffer.download());
    }
  }

  void start(const BackwardArrays<T>& arrays, const Records& records) const {
    kernels_of(device_).backward().explain(device_, params_.pass, outcome_.plan, task_,
                                           params_.broken, arrays, records);
  }

  /// The chosen query's of matrices in memory.
  void take_rows(const Chosen& chosen, const std::vector<float>& p, const std::vector<float>& dp,
                 const std::vector<float>& ds) const {
    const auto first = static_cast<std::ptrdiff_t>(
        numbers(chosen.head * task_.length() + chosen.query, score_pitch(task_.length())));
    const auto row = [&](const std::vector<float>& matrix) {
      return std::vector<float>(matrix.begin() + first, matrix.begin() + first + task_.length());
    };
    outcome_.p = row(p), outcome_.dp = row(dp), outcome_.ds = row(ds);
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
  const bool stores = params.pass == Pass::backward_store;
  forward.variant = stores ? Variant::naive : Variant::flash_2;
  forward.pass = Pass::forward;
  forward.rescale_above = forward.exp_polynomial = 0;
  // A forward pass without its rescale leaves a wrong log-sum-exp; the mask is the backward pass's own affair.
  if (!stores && params.broken != Break::skip_rescale) forward.broken = Break::none;
  return forward;
}

BackwardOutcome run_explained_backward(simt::Device& device, const Params& params,
                                       const Inputs& inputs, const std::vector<float>& d_output,
                                       const Chosen& chosen) {
  BackwardOutcome outcome;
  outcome.plan = backward_plan_of(params);
  outcome.forward = run_explained(device, forward_of(params), inputs, chosen);
  if (params.dtype == DataType::fp32) {
    BackwardRun<float>(device, params, inputs, d_output, outcome).run(chosen);
  } else {
    BackwardRun<std::uint16_t>(device, params, inputs, d_output, outcome).run(chosen);
  }
  return outcome;
}

}  // namespace tilestep::flash_attention

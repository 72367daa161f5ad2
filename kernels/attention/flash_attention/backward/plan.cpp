// What the dispatcher makes of the knobs for a backward pass.

#include <fmt/format.h>

#include "kernels/attention/flash_attention/backward/kernels.hpp"

namespace tilestep::flash_attention {

Plan backward_plan_of(const Params& params) {
  plan_of(params);  // which refuses what no kernel computes
  return formula_backward_plan_of(params);
}

Plan formula_backward_plan_of(const Params& params) {
  if (params.pass == Pass::forward) throw Error("flash-attention: this pass is not a backward one");
  Plan plan = formula_plan_of(params);
  plan.block_q = size_of(params.block_q);
  plan.block_k = size_of(params.block_k);
  const auto shared_bytes = [&] {
    return backward_shared_bytes({plan.block_q, plan.block_k, plan.columns});
  };
  // There are four tiles of queries for two of keys.
  while (shared_bytes() > static_cast<std::size_t>(kMostSharedBytes)) {
    (plan.block_q > kStrip && plan.block_q >= plan.block_k ? plan.block_q : plan.block_k) /= 2;
  }
  plan.shared_bytes = shared_bytes();
  plan.threads = plan.block_k / kStrip * 32;
  plan.resized.clear();
  if (plan.block_q != size_of(params.block_q) || plan.block_k != size_of(params.block_k)) {
    plan.resized = fmt::format(
        "backward, tiles of {} queries and {} keys do not fit into the {} KB of shared memory",
        size_of(params.block_q), size_of(params.block_k), kMostSharedBytes / 1024);
  }
  plan.q_tiles = (params.seq + plan.block_q - 1) / plan.block_q;
  plan.k_tiles = (params.seq + plan.block_k - 1) / plan.block_k;
  return plan;
}

}  // namespace tilestep::flash_attention

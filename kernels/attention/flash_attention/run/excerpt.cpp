#include "kernels/attention/flash_attention/run/excerpt.hpp"

#include "kernels/attention/flash_attention/run/ledger.hpp"

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

Inputs inputs_of(const Excerpt& excerpt) {
  Inputs inputs = make_inputs(excerpt.params);
  inputs.begins = excerpt.begins;
  return inputs;
}

}  // namespace tilestep::flash_attention

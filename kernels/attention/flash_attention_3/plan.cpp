// The knobs, and what they come to.

#include <fmt/format.h>

#include <algorithm>

#include "kernels/attention/flash_attention_3/params.hpp"

namespace tilestep::flash_attention_3 {
MaskRule Params::rule() const {
  const bool windowed = mask == HopperMask::sliding_window;
  return {mask_of(mask), seq, windowed ? std::min(window, seq) : 0, 0};
}

attention::Task task_of(const Params& params) {
  return {params.rule(), params.heads, params.kv_heads, params.columns(), ScoreMod::none};
}

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .group("kernel")
          .choice(&Params::variant, {"variant", "Which rung of the ladder runs."})
          .group("model")
          .integer(&Params::seq, {"seq", "Length", "tokens", "Queries, and as many keys."}, 1,
                   kMostLength, true)
          .integer(&Params::heads, {"heads", "Heads of Q and O, which share one K/V head."}, 1,
                   kMostHeads, true)
          .choice(&Params::head_dim,
                  {"head_dim", "Head dimension", "", "Components of a query, key or value."})
          .choice(&Params::mask, {"mask", "Which keys a query sees."})
          .integer(&Params::window, {"window", "Window", "keys", "Last keys that a query sees."}, 0,
                   kMostLength, true)
          .with("mask", {"sliding-window"})
          .group("kernel")
          .choice(&Params::block_k, {"block_k", "Tile of keys", "", "Keys per tile."})
          .choice(&Params::omits, {"break", "Break it", "", "Omits a step, and runs that kernel."})
          .group("run")
          .seed()
          .group("look")
          .integer(&Params::query,
                   {"query", "Chosen query", "", "Query whose steps are traced, at most the last."},
                   0, kMostLength - 1)
          .require([](const Params& p) { check_omission(p.omits, p.rule().mask); });
  return table;
}

TilePlan plan_of(const Params& params) {
  check_omission(params.omits, params.rule().mask);
  simt::require_within("flash-attention-3: seq", params.seq, 1, kMostLength);
  const TileSizes sizes = explained_sizes(params.columns(), params.keys());
  TilePlan plan;
  plan.fill(params.columns());
  plan.rule = params.rule();
  plan.block_q = sizes.rows();
  plan.block_k = sizes.keys;
  plan.threads = sizes.threads();
  plan.shared_bytes = static_cast<std::size_t>(sizes.shared_bytes());
  plan.cut(params.seq);
  return plan;
}

Problem problem_of(const Params& params, const TilePlan& plan) {
  return {task_of(params), params.variant, (params.heads * plan.q_tiles + 1) / 2};
}

}  // namespace tilestep::flash_attention_3

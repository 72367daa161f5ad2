// The knobs, and what the dispatcher makes of them.

#include <fmt/format.h>

#include <algorithm>

#include "kernels/attention/attention_backward/kernels.hpp"
#include "kernels/attention/attention_backward/params.hpp"
#include "kernels/attention/shared/knobs.hpp"

namespace tilestep::attention_backward {
MaskRule Params::rule() const {
  const bool windowed = mask == Mask::sliding_window || mask == Mask::prefix;
  return {mask, seq, windowed ? std::min(kWindow, seq) : 0, 0};
}

Task task_of(const Params& params) {
  return {params.rule(), params.heads, params.kv_heads, columns_of(params.head_dim),
          params.score_mod};
}

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .group("model")
          .integer(&Params::seq, {"seq", "Length", "tokens", "Queries, and as many keys."}, 1,
                   kMostLength, true)
          .integer(&Params::heads, {"heads", "Heads of Q, O and dO."}, 1, kMostHeads, true)
          .integer(&Params::kv_heads,
                   {"kv_heads", "Key/value heads", "",
                    "Heads of K and V, whose gradients add up over the query heads that share "
                    "them."},
                   1, kMostHeads, true)
          .choice(&Params::head_dim,
                  {"head_dim", "Head dimension", "", "Components of a query, key or value."})
          .choice(&Params::mask,
                  {"mask", "Which keys a query sees. A window or a prefix has 64 keys."})
          .group("kernel")
          .choice(&Params::block_q, {"block_q", "Tile of queries", "", "Queries per tile."})
          .choice(&Params::block_k,
                  {"block_k", "Tile of keys", "", "Keys per tile, which a block owns."})
          .choice(&Params::omits, {"break", "Break it", "",
                                   "Omits a step of this pass or of the one before, and runs it."})
          .group("run")
          .seed()
          .group("look")
          .integer(&Params::query,
                   {"query", "Chosen query", "", "Query whose row is traced, at most the last."}, 0,
                   kMostLength - 1)
          .require([](const Params& p) { check_heads(p.heads, p.kv_heads); })
          .require([](const Params& p) { check_omission(p.omits, p.rule().mask); });
  return table;
}

TilePlan plan_of(const Params& params) {
  check_heads(params.heads, params.kv_heads);
  check_omission(params.omits, params.rule().mask);
  simt::require_within("attention-backward: seq", params.seq, 1, kMostLength);
  TilePlan plan;
  plan.fill(columns_of(params.head_dim));
  plan.rule = params.rule();
  const int asked_q = size_of(params.block_q), asked_k = size_of(params.block_k);
  plan.block_q = asked_q;
  plan.block_k = asked_k;
  const auto shared_bytes = [&] {
    return backward_shared_bytes({plan.block_q, plan.block_k, plan.columns});
  };
  // There are four tiles of queries for two of keys.
  while (shared_bytes() > static_cast<std::size_t>(kMostSharedBytes)) {
    (plan.block_q > kStrip && plan.block_q >= plan.block_k ? plan.block_q : plan.block_k) /= 2;
  }
  plan.shared_bytes = shared_bytes();
  plan.threads = plan.block_k / kStrip * 32;
  if (plan.block_q != asked_q || plan.block_k != asked_k) {
    plan.resized =
        fmt::format("tiles of {} queries and {} keys do not fit into the {} KB of shared memory",
                    asked_q, asked_k, kMostSharedBytes / 1024);
  }
  plan.cut(params.seq);
  return plan;
}

}  // namespace tilestep::attention_backward

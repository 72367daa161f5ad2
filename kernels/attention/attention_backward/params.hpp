#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/attention/flash_attention_3/omission.hpp"
#include "kernels/attention/shared/matrix.hpp"
#include "kernels/lessons.hpp"

/// The lesson on attention's gradients: from dO to dQ, dK and dV, with weights recomputed from Q, K and the
/// log-sum-exp of the forward pass. Dao et al., "FlashAttention", 2022 (arXiv:2205.14135); Dao,
/// "FlashAttention-2", 2023 (arXiv:2307.08691).
namespace tilestep::attention_backward {

using namespace attention;
using flash_attention_3::check_omission, flash_attention_3::Omission;

struct Params {
  int seq = 256;
  int heads = 2, kv_heads = 1;
  HeadDim head_dim = HeadDim::d32;
  Mask mask = Mask::causal;
  Edge block_q = Edge::t32, block_k = Edge::t32;
  Omission omits =
      Omission::none;  ///< in the forward pass that leaves the log-sum-exp, or in this one
  int query = 225;     ///< whose row is shown; past the end: the last
  std::int64_t seed = 1;
  static constexpr ScoreMod score_mod = ScoreMod::none;
  static constexpr int kWindow = 64;  ///< of sliding-window and prefix, or the length

  MaskRule rule() const;
};

/// The kernels' task.
Task task_of(const Params& params);

/// The knobs, bound to Params: seq heads kv_heads head_dim mask block_q block_k break seed query.
const lab::KnobTable<Params>& knob_table();

/// The dispatcher's choice for Params: tiles that fit, threads of the blocks that own a tile of keys. Throws Error for
/// a task that no kernel computes.
TilePlan plan_of(const Params& params);

}  // namespace tilestep::attention_backward

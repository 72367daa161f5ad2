#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/attention/flash_attention_3/omission.hpp"
#include "kernels/attention/flash_attention_3/problem.hpp"
#include "kernels/attention/shared/matrix.hpp"
#include "kernels/lessons.hpp"

/// The lesson on attention for Hopper: the same result as flash-2, with copies, products and exponentials side by side.
/// Shah et al., "FlashAttention-3", 2024 (arXiv:2407.08608).
namespace tilestep::flash_attention_3 {

constexpr auto names_of(Rung) {
  return std::to_array<std::string_view>({"flash-3-tma", "flash-3-ping-pong", "flash-3"});
}
constexpr auto reasons_of(Rung) {
  return std::to_array<std::string_view>(
      {"Hopper: warpgroup products from shared memory, which TMA fills during the products.",
       "Two warpgroups take turns: one does exponentials while the other multiplies.",
       "The softmax of one tile runs under the products of the next, inside each warpgroup too."});
}

/// What the kernels are compiled for.
enum class Columns { d64, d128 };
constexpr auto names_of(Columns) {
  return std::to_array<std::string_view>({"64", "128"});
}
enum class Keys { k64, k128 };
constexpr auto names_of(Keys) {
  return std::to_array<std::string_view>({"64", "128"});
}
enum class HopperMask { none, causal, sliding_window };
constexpr auto names_of(HopperMask) {
  return std::to_array<std::string_view>({"none", "causal", "sliding-window"});
}
constexpr Mask mask_of(HopperMask mask) {
  constexpr Mask kMasks[] = {Mask::none, Mask::causal, Mask::sliding_window};
  return kMasks[static_cast<int>(mask)];
}

struct Params {
  Rung variant = Rung::ping_pong;
  int seq = 512;
  int heads = 1;
  int kv_heads = 1;  ///< no knob: all heads share one of K and V
  Columns head_dim = Columns::d128;
  HopperMask mask = HopperMask::none;
  int window = 64;  ///< of sliding-window
  Keys block_k = Keys::k64;
  Omission omits = Omission::none;
  int query = 225;  ///< whose numbers are shown; past the end: the last
  std::int64_t seed = 1;
  static constexpr ScoreMod score_mod = ScoreMod::none;

  int columns() const { return head_dim == Columns::d64 ? 64 : 128; }
  int keys() const { return block_k == Keys::k64 ? 64 : 128; }
  /// The mask; a window beyond the length is the length.
  MaskRule rule() const;
};

/// The kernels' task.
attention::Task task_of(const Params& params);

/// The knobs, bound to Params: variant seq heads head_dim mask window block_k break seed query.
const lab::KnobTable<Params>& knob_table();

/// What Params come to. Throws Error for what no kernel computes.
TilePlan plan_of(const Params& params);
/// A kernel's task; for `flash-3` itself as many blocks as give each two tiles of queries, so that its work between
/// them is visible.
Problem problem_of(const Params& params, const TilePlan& plan);

}  // namespace tilestep::flash_attention_3

#pragma once

#include "kernels/attention/flash_attention/backward_hopper_problem.hpp"
#include "kernels/attention/flash_attention/kernels.hpp"

/// \file
/// The kernels of the backward pass as the host calls them, and how they use shared memory. From dO, the
/// gradient of O, to dQ, dK and dV, which are laid out as O, Q, K and V are.

namespace tilestep::flash_attention {

/// Threads of the kernels that multiply nothing.
inline constexpr int kRowThreads = 128;

/// Dynamic shared memory of a block, in bytes; `bytes` of a number. Recomputing: K, V, two stages of Q and dO,
/// dS, and of each stage's queries two floats; FP32 puts 16 columns of weights through it besides.
constexpr std::size_t recompute_shared_bytes(const TileSize& t, int bytes) {
  const int numbers = (2 * t.block_k + 4 * t.block_q) * t.columns +
                      t.block_k * (t.block_q + (bytes == 4 ? kStrip : 0));
  return static_cast<std::size_t>(numbers) * static_cast<std::size_t>(bytes) +
         static_cast<std::size_t>(4 * t.block_q) * sizeof(float);
}
/// dK or dV from stored matrices: two stages of a tile of them and one of Q or dO, then the sums on their way out.
constexpr std::size_t key_gradient_shared_bytes(const TileSize& t, int bytes) {
  const int numbers = 2 * t.block_q * (t.block_k + t.columns) + t.block_k * t.columns;
  return static_cast<std::size_t>(numbers) * static_cast<std::size_t>(bytes);
}
/// The largest of a pass's kernels.
constexpr std::size_t backward_shared_bytes(Pass pass, const TileSize& t, int bytes) {
  if (pass == Pass::backward_recompute) return recompute_shared_bytes(t, bytes);
  std::size_t most = key_gradient_shared_bytes(t, bytes);
  for (const std::size_t one : {scores_shared_bytes(t, bytes), values_shared_bytes(t, bytes)}) {
    if (one > most) most = one;
  }
  return most;
}

/// The arrays of a backward pass; T as of `Arrays`.
template <class T>
struct BackwardArrays {
  simt::Span<const T> q, k, v, o, d_o;
  simt::Span<const int> begins;
  simt::Span<const float> lse;
  simt::Span<float> terms;    ///< [heads × q_tiles · block_q × 2]: log-sum-exp to base 2, D
  simt::Span<float> dq_sums;  ///< recompute: [heads × q_tiles · block_q × columns]
  simt::Span<const T> s, p;   ///< store: of naive; S for softcap alone
  simt::Span<T> dp, ds;       ///< store: [heads × length × score_pitch]
  simt::Span<T> dq, dk, dv;
};

/// A backward pass that is compiled for one size of tiles, to be timed: all of its kernels, one after the other.
struct BackwardConfiguration {
  Pass pass;
  DataType dtype;
  int head_dim;
  int block_q, block_k;
  int warps;
  std::string_view name;  ///< "64x128, 8 warps of 16 keys"
};

class BackwardKernels {
 public:
  virtual ~BackwardKernels() = default;

  /// The explained kernels of `pass`; `plan` is backward_plan_of's. Of `records.steps` there are `o`, what a tile of keys adds
  /// to the chosen component of dQ's sum, and `order`, and `rows`, where weights are made again; else both stay as they
  /// are. Throws Error for shapes that they do not take.
  virtual void explain(simt::Device& device, Pass pass, const Plan& plan, const Task& task,
                       Break broken, const BackwardArrays<std::uint16_t>& arrays,
                       const Records& records) const = 0;
  /// The same for FP32.
  virtual void explain(simt::Device& device, Pass pass, const Plan& plan, const Task& task,
                       Break broken, const BackwardArrays<float>& arrays,
                       const Records& records) const = 0;

  /// The kernels that are timed, and nothing recorded. D and dQ's conversion are part of a run.
  virtual std::span<const BackwardConfiguration> configurations() const = 0;
  virtual void run(simt::Device& device, int configuration, const Task& task,
                   const BackwardArrays<std::uint16_t>& arrays) const = 0;
  /// What the configuration's kernel that makes dK takes of a multiprocessor.
  virtual simt::Resources resources(simt::Device& device, int configuration) const = 0;

  /// The kernels for Hopper, timed; D and dQ's conversion are part of a run. Throw Error for what they do not take,
  /// Error (unavailable) on a GPU other than Hopper.
  virtual void run(simt::Device& device, const backward_hopper::Problem& problem,
                   const backward_hopper::Arrays& arrays) const = 0;
  virtual simt::Resources resources(simt::Device& device,
                                    const backward_hopper::Problem& problem) const = 0;
};

/// What backward_plan_of makes of Params for their `pass`: tiles that fit, threads of the blocks that have a tile of
/// keys. Throws Error for what no kernel computes, and for the forward pass.
Plan backward_plan_of(const Params& params);
/// The same for formulas, which know no limits of a kernel.
Plan formula_backward_plan_of(const Params& params);

}  // namespace tilestep::flash_attention

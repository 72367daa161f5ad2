#pragma once

#include "kernels/attention/flash_attention/backward_hopper/problem.hpp"
#include "kernels/attention/flash_attention/kernels.hpp"

/// \file
/// The kernels of the backward pass as the host calls them, and how they use shared memory. From dO, the
/// gradient of O, to dQ, dK and dV, which are laid out as O, Q, K and V are.

namespace tilestep::flash_attention {

/// Threads of the kernels that multiply nothing.
inline constexpr int kRowThreads = 128;

/// Dynamic shared memory of a block, in bytes: K, V, two stages of Q and dO, dS, and of each stage's queries two
/// floats.
constexpr std::size_t backward_shared_bytes(const TileSize& t) {
  return bytes_of_numbers((2 * t.block_k + 4 * t.block_q) * t.columns + t.block_k * t.block_q) +
         static_cast<std::size_t>(4 * t.block_q) * sizeof(float);
}

/// The arrays of a backward pass.
struct BackwardArrays {
  simt::Span<const std::uint16_t> q, k, v, o, d_o;
  simt::Span<const int> begins;
  simt::Span<const float> lse;
  simt::Span<float> terms;    ///< [heads × q_tiles · block_q × 2]: log-sum-exp to base 2, D
  simt::Span<float> dq_sums;  ///< [heads × q_tiles · block_q × columns]
  simt::Span<std::uint16_t> dq, dk, dv;
};

/// A backward pass that is compiled for one size of tiles, to be timed: all of its kernels, one after the other.
struct BackwardConfiguration {
  int head_dim;
  int block_q, block_k;
  int warps;
  std::string_view name;  ///< "64x128, 8 warps of 16 keys"
};

class BackwardKernels {
 public:
  virtual ~BackwardKernels() = default;

  /// The explained kernels; `plan` is backward_plan_of's. Of `records.steps` there are `o`, what a tile of keys adds to
  /// the chosen component of dQ's sum, and `order`. Throws Error for shapes that they do not take.
  virtual void explain(simt::Device& device, const Plan& plan, const Task& task, Break broken,
                       const BackwardArrays& arrays, const Records& records) const = 0;

  /// The kernels that are timed, and nothing recorded. D and dQ's conversion are part of a run.
  virtual std::span<const BackwardConfiguration> configurations() const = 0;
  virtual void run(simt::Device& device, int configuration, const Task& task,
                   const BackwardArrays& arrays) const = 0;
  /// What the configuration's kernel that makes dK takes of a multiprocessor.
  virtual simt::Resources resources(simt::Device& device, int configuration) const = 0;

  /// The kernels for Hopper, timed; D and dQ's conversion are part of a run. Throw Error for what they do not take,
  /// Error (unavailable) on a GPU other than Hopper.
  virtual void run(simt::Device& device, const backward_hopper::Problem& problem,
                   const backward_hopper::Arrays& arrays) const = 0;
  virtual simt::Resources resources(simt::Device& device,
                                    const backward_hopper::Problem& problem) const = 0;
};

/// What the dispatcher makes of Params for a backward pass: tiles that fit, threads of the blocks that have a tile of
/// keys. Throws Error for what no kernel computes, and for the forward pass.
Plan backward_plan_of(const Params& params);
/// The same for formulas, which know no limits of a kernel.
Plan formula_backward_plan_of(const Params& params);

}  // namespace tilestep::flash_attention

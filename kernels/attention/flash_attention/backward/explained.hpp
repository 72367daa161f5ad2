#pragma once

#include <vector>

#include "kernels/attention/flash_attention/backward/kernels.hpp"
#include "kernels/attention/flash_attention/run/explained.hpp"

namespace tilestep::flash_attention {

/// What an explained backward pass wrote and recorded, on the host, and the forward pass before it.
struct BackwardOutcome {
  Plan plan;        ///< of the backward pass
  Outcome forward;  ///< of flash-2; its visits, steps and bytes too
  std::vector<float> dq, dk, dv;
  std::vector<float> d;       ///< [heads × length]
  std::vector<Visit> visits;  ///< [heads × q_tiles × k_tiles]; block −1: not visited
  /// [k_tiles]: `o` is what the tile added to the chosen component of dQ's sum; order −1: none was.
  std::vector<StepRecord> steps;
  /// Of the chosen query, [length], as they were in registers. 0: not visited.
  std::vector<float> p, dp, ds;
  Ledger asked{}, formula{};  ///< of the backward pass alone
  int blocks = 0;             ///< of the launch that visits tiles of scores
};

/// The forward pass that leaves what the backward pass needs: variant and pass changed. Of what is broken it has
/// skip-rescale.
Params forward_of(const Params& params);

/// Runs that and the backward pass on the gradient of O that is given, numbers of the dtype. Throws Error for
/// pass = forward, and as run_explained does.
BackwardOutcome run_explained_backward(simt::Device& device, const Params& params,
                                       const Inputs& inputs, const std::vector<float>& d_output,
                                       const Chosen& chosen = {});

}  // namespace tilestep::flash_attention

#pragma once

#include "kernels/attention/shared/task.hpp"
#include "kernels/base/lab/replay.hpp"

/// What the lessons on attention say alike of their knobs and runs.
namespace tilestep::attention {

/// What the kernels are compiled for at least.
inline constexpr int kLeastCapability = 80;

/// Throws Error unless as many heads of Q share each head of K and V.
void check_heads(int heads, int kv_heads);

/// What of a run is of the GPU that it ran on.
const lab::Replay& replay_of_runs();

}  // namespace tilestep::attention

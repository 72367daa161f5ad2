#pragma once

#include <vector>

#include "kernels/attention/shared/task.hpp"
#include "kernels/base/lab/replay.hpp"

/// What the lessons on attention say alike of their knobs and runs.
namespace tilestep::attention {

/// What the kernels are compiled for at least.
inline constexpr int kLeastCapability = 80;

/// Throws Error unless as many heads of Q share each head of K and V.
void check_heads(int heads, int kv_heads);

/// What of a run is of the GPU that it ran on, and `more` of this lesson's.
lab::Replay replay_with(std::vector<lab::Replay::Part> more);
/// Why what is wrong need not be the same.
inline constexpr const char* kLastBit = "how many are past a tolerance is a matter of the last bit";

}  // namespace tilestep::attention

#pragma once

#include <vector>

#include "kernels/base/lab/closest.hpp"
#include "kernels/systems/parallelism/lesson.hpp"
#include "kernels/systems/parallelism/run/team.hpp"

namespace tilestep::parallelism {

/// An all-reduce of made-up numbers, and what each rank had in hand afterwards.
struct Message {
  std::vector<std::vector<float>> in, out;  ///< by rank
  std::vector<Waits> waits;
};
/// Runs an all-reduce with its reader behind it. `marks`: each rank's numbers are a power of eight, so that a sum says
/// who is in it. `trace`: takes what the kernels noted; null: the timed kernel runs.
Message reduced(simt::Device& device, const Params& params, Break broken, bool marks, Trace* trace,
                simt::ThreadOrder order = simt::ThreadOrder::ascending);
/// All ranks' results against sums in double.
lab::Closest compared(const Message& message, int& wrong);

}  // namespace tilestep::parallelism

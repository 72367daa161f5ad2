#pragma once

#include <string>
#include <vector>

#include "kernels/base/lab/closest.hpp"
#include "kernels/systems/parallelism/lesson.hpp"
#include "kernels/systems/parallelism/reference.hpp"
#include "kernels/systems/parallelism/run/team.hpp"

namespace tilestep::parallelism {

/// A step of the small model, cut over ranks: forward, backward, and a step of Adam.
struct CutRun {
  std::vector<double> memory;                        ///< bytes by kind and rank, as allocated
  std::vector<CutCall> calls;                        ///< with the bytes that the kernels stored
  lab::Closest outputs, inputs, gradients, weights;  ///< against double
  Numbers z;                                         ///< tokens × width, of all ranks
  std::vector<simt::Stuck> stuck;
};
CutRun run_cut(simt::Device& device, Cut cut, int ranks, Schedule schedule, int microbatches,
               std::int64_t seed, simt::ThreadOrder order = simt::ThreadOrder::ascending);
/// Tokens that each rank has for the experts of each.
Counts routed_of(const ModelShape& model, const ModelInputs& inputs, int ranks);

}  // namespace tilestep::parallelism

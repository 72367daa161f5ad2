#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/flash_attention/kernels.hpp"
#include "kernels/attention/shared/bench/forward_problem.hpp"

/// What is timed: kernels and peers on one problem.
namespace tilestep::flash_attention {

/// A kernel that is timed, of `Kernels::configurations`.
struct TimedKernel {
  Variant variant = Variant::flash_2;
  int configuration = 0;
  std::string name;  ///< "128x64, 4 warps of 32 queries"
};
/// The kernels of a variant for a head dimension.
std::vector<TimedKernel> timed_kernels(const Kernels& kernels, Variant variant, int head_dim);
/// What such a kernel comes to for a task: its tiles, for formulas.
Plan plan_of(const Kernels& kernels, const TimedKernel& kernel, const Task& task);

/// A forward pass with what kernels up to flash-2 need besides.
class BenchProblem : public ForwardProblem {
 public:
  using ForwardProblem::ForwardProblem;

  /// The kernel on it. Arrays of scores are made when a kernel needs them, and stay.
  lab::Runnable runnable(const TimedKernel& kernel);
  /// What a kernel of the variant reads and writes.
  Arrays arrays(Variant variant);

 private:
  std::optional<simt::Buffer<std::uint16_t>> s_, p_;
  std::optional<simt::Buffer<float>> o_sums_, m_, l_;
};

/// cuDNN's `plan` on a problem, twice as far off as `as` may be; and what it is asked for.
lab::Runnable library_runnable(simt::Device& device, ForwardProblem& problem, int plan);
simt::LibraryAttention library_attention(const Task& task);

}  // namespace tilestep::flash_attention

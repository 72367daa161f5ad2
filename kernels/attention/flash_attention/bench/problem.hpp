#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention/flash_attention/kernels.hpp"
#include "kernels/attention/flash_attention/run/excerpt.hpp"
#include "kernels/base/lab/bench.hpp"

/// What is timed: kernels and peers on one problem.
namespace tilestep::flash_attention {

/// A kernel that is timed: of `Kernels::configurations`, or one of flash-3.
struct TimedKernel {
  Variant variant = Variant::flash_2;
  int configuration = -1;  ///< −1: flash-3's only one
  std::string name;        ///< "128x64, 4 warps of 32 queries"
};
/// The kernels of a variant for a head dimension.
std::vector<TimedKernel> timed_kernels(const Kernels& kernels, Variant variant, int head_dim);
/// What such a kernel comes to for a task: its tiles, for formulas.
Plan plan_of(const Kernels& kernels, const TimedKernel& kernel, const Task& task);

/// The rung of flash-3 that a variant is; all else by default.
flash_3::Problem flash_3_problem_of(Variant variant);

/// Attention made ready on the device, in BF16. Q, K and V repeat a period, so that the host knows each of their
/// numbers; O is compared with double at some queries of the first head and the last.
class BenchProblem {
 public:
  BenchProblem(simt::Device& device, const Task& task);

  const Task& task() const { return task_; }
  /// 4 · length² · head_dim · heads; half of that with a causal mask.
  double flops() const;
  /// Q, K, V, O and log-sum-exp once.
  double bytes() const;

  /// The kernel on it. Arrays of scores are made when a kernel needs them, and stay.
  lab::Runnable runnable(const TimedKernel& kernel);
  /// cuDNN's `plan`.
  lab::Runnable library(int plan);
  simt::LibraryAttention library_attention() const;

  flash_3::Problem flash_3_problem(Variant variant) const;

  /// What a kernel of the variant reads and writes.
  Arrays arrays(Variant variant);
  /// Random numbers of the size of O, for dO.
  lab::Repeated<std::uint16_t> numbers(unsigned seed) const;
  /// Q, K and V of a head.
  Numbers numbers_of_head(int head) const;
  /// `count` numbers of O, and of log-sum-exp, as the last launch left them.
  std::vector<std::uint16_t> output(std::size_t first, std::size_t count) const {
    return o_.download(first, count);
  }
  std::vector<float> log_sum_exp(std::size_t first, std::size_t count) const {
    return lse_.download(first, count);
  }

 private:
  struct Probe {
    int head, query;
  };
  /// The answers at the probes, and how far such a kernel may be from them; made once.
  const Reference& reference(Variant variant);
  lab::Closest compared(Variant variant, double slack);

  simt::Device& device_;
  Task task_;
  lab::Repeated<std::uint16_t> q_, k_, v_;
  simt::Buffer<std::uint16_t> o_;
  simt::Buffer<float> lse_;
  std::optional<simt::Buffer<std::uint16_t>> s_, p_;
  std::optional<simt::Buffer<float>> o_sums_, m_, l_;
  std::vector<Probe> probes_;
  std::map<Variant, Reference> references_;
};

}  // namespace tilestep::flash_attention

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/attention/attention_backward/kernels.hpp"
#include "kernels/attention/attention_backward/reference.hpp"
#include "kernels/attention/flash_attention/bench/problem.hpp"

/// The timed kernels of the backward pass.
namespace tilestep::attention_backward {

enum class BackwardRung { recompute, hopper };
constexpr auto names_of(BackwardRung) {
  return std::to_array<std::string_view>({"backward-recompute", "backward-hopper"});
}
constexpr auto reasons_of(BackwardRung) {
  return std::to_array<std::string_view>(
      {"The weights are recomputed from Q, K and the log-sum-exp while a tile is on chip: "
       "one "
       "more product, and no matrix in memory.",
       "The same on Hopper: TMA copies and adds up dQ, and warpgroups multiply from shared "
       "memory."});
}

BackwardRoundings roundings_of(BackwardRung rung, int head_dim);

/// The BF16 kernel of a rung for a head dimension.
struct TimedBackward {
  BackwardRung rung = BackwardRung::recompute;
  int block_q = 0;
  std::string name;
  int configuration = -1;  ///< of `Kernels::configurations`; −1: Hopper's
};
TimedBackward timed_backward(const Kernels& kernels, BackwardRung rung, int head_dim);

/// The gradient problem prepared on the device, in BF16: dO repeats a period, O and log-sum-exp come from a forward
/// kernel. dQ, dK and dV are compared with double at three places of the first head and of the last.
class BackwardProblem {
 public:
  /// `task` has equally many heads of K, V and Q. flash-2 runs before.
  BackwardProblem(simt::Device& device, const Task& task);

  const Task& task() const { return forward_.task(); }
  /// 2.5 times the forward pass: five products for its two. D and recomputation do not count.
  double flops() const { return 2.5 * forward_.flops(); }
  /// Q, K, V, O, dO, log-sum-exp, dQ, dK and dV once.
  double bytes() const;

  lab::Runnable runnable(const TimedBackward& kernel);

 private:
  Arrays arrays(const TimedBackward& kernel);
  const BackwardReference& reference(BackwardRung rung, int head);
  lab::Closest compared(BackwardRung rung);

  simt::Device& device_;
  flash_attention::BenchProblem forward_;
  lab::Repeated<std::uint16_t> d_o_;
  flash_attention::Arrays given_;  ///< of the forward pass
  simt::Buffer<std::uint16_t> dq_, dk_, dv_;
  std::optional<simt::Buffer<float>> terms_, sums_;
  std::vector<int> places_;
  std::map<std::pair<BackwardRung, int>, BackwardReference> references_;
};

}  // namespace tilestep::attention_backward

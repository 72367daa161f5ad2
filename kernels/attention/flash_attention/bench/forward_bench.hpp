#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/attention/flash_attention/bench/problem.hpp"
#include "kernels/attention/shared/bench/bench.hpp"

namespace tilestep::flash_attention {

/// A kernel that a bench times and counts: "flash-2", its configuration, and how it is launched.
struct ForwardKernel {
  std::string rung, why;
  std::string configuration;
  std::function<lab::Runnable(BenchProblem& problem)> make;
  std::function<simt::Resources()> resources;
  /// Bytes that it asks for, by formula.
  std::function<double(const Task& task)> asked_bytes;
};

/// What a bench of a forward pass is made of, and its sizes.
struct ForwardSizes {
  std::vector<int> lengths = {1024, 4096, 16384};
  std::vector<int> head_dims = {64, 128};  ///< of them, each with so many heads
  std::vector<int> heads = {32, 16};
  int counted_length = 8192, counted_heads = 16;  ///< of what L2, DRAM and units count
  BenchPace pace = {};
  bool quick = false;  ///< the ladder alone

  /// The first of each length and head dimension that is worth half a minute.
  void make_quick() {
    lengths = {4096};
    head_dims = {128};
    heads = {16};
    quick = true;
  }
};

/// Rungs of a forward pass from short to long, with and without a causal mask, beside cuDNN and PyTorch.
class ForwardBench : public AttentionBench {
 public:
  ForwardBench(const lab::Bench& start, const ForwardSizes& sizes);
  virtual ~ForwardBench() = default;
  void run();

 protected:
  /// The rungs at a head dimension, from the first to the last.
  virtual std::vector<ForwardKernel> kernels_at(int head_dim) const = 0;
  /// Whether the rung is timed at all with such a task.
  virtual bool is_timed(const std::string&, const Task&) const { return true; }
  /// The rung that the summary is about.
  virtual std::string headliner() const = 0;

  const Kernels& kernels_;

 private:
  lab::Rung library_rung(BenchProblem& problem);
  std::vector<lab::Rung> peers_of(BenchProblem& problem);
  void climb_one(const Task& task, double share);
  void add_causal();
  void add_counts();
  void count_one(lab::Table& bytes, lab::Table& pipes, BenchProblem& problem,
                 const ForwardKernel& kernel);
  void add_resources();
  std::string summary() const;

  const ForwardSizes& sizes_;
  simt::LibraryStatus library_;
  std::map<std::tuple<std::string, int, int, Mask>, double> times_;
};

/// A rung of this lesson's.
std::vector<ForwardKernel> forward_kernels(simt::Device& device, Variant variant, int head_dim);

}  // namespace tilestep::flash_attention

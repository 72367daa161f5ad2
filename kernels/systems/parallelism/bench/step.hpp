#pragma once

#include <memory>
#include <vector>

#include "kernels/base/lab/closest.hpp"
#include "kernels/systems/parallelism/bench/bench.hpp"
#include "kernels/systems/parallelism/plan.hpp"

namespace tilestep::parallelism {

/// The products and collectives of a training step of a cut model, forward and backward, in BF16, in the order in which
/// they need each other. As in the plan nothing else is done: q stands for attention's output, the gradients of k and v
/// are given, and there are no activation functions and no optimizer.
class Step {
 public:
  struct How {
    int blocks = 1, threads = 32;  ///< of a collective
    int microbatches = 1;
    bool numbers = false;  ///< the host chooses every number, so that results can be compared
  };
  /// Whether ranks can share a model equally by a cut.
  static bool has(Cut cut, const ModelShape& model, int ranks, int microbatches);
  static std::unique_ptr<Step> make(simt::Device& device, Cut cut, const ModelShape& model,
                                    int ranks, const How& how);

  virtual ~Step() = default;
  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  virtual bool apart() = 0;
  /// Loads all products' kernels, so that none must be while ranks wait for each other.
  virtual void warm() = 0;
  /// Runs a step and compares its outputs and all gradients with one rank's step in double. Needs `numbers`.
  virtual lab::Closest compared() = 0;
  /// Milliseconds of a step.
  virtual std::vector<double> times(int samples) = 0;
  /// Milliseconds of the first product of an MLP, by all ranks at the same time, and its operations.
  virtual std::vector<double> product_times(int samples) = 0;
  virtual double product_flops() const = 0;
};

}  // namespace tilestep::parallelism

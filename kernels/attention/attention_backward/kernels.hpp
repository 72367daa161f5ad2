#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/attention/attention_backward/hopper/problem.hpp"
#include "kernels/attention/attention_backward/params.hpp"
#include "kernels/base/simt/resources.hpp"

/// \file
/// The kernels of the backward pass as the host calls them, and how they use shared memory. From dO, the
/// gradient of O, to dQ, dK and dV, which are laid out like O, Q, K and V.

namespace tilestep::attention_backward {

/// Threads of the kernels without products.
inline constexpr int kRowThreads = 128;

/// Dynamic shared memory of a block, in bytes: K, V, two stages of Q and dO, dS, and of each stage's queries two
/// floats.
constexpr std::size_t backward_shared_bytes(const TileSize& t) {
  return bytes_of_numbers((2 * t.block_k + 4 * t.block_q) * t.columns + t.block_k * t.block_q) +
         static_cast<std::size_t>(4 * t.block_q) * sizeof(float);
}

/// A backward pass compiled for one tile size, to be timed: all of its kernels, one after the other.
struct Configuration {
  int head_dim;
  int block_q, block_k;
  int warps;
  std::string_view name;  ///< "64x128, 8 warps of 16 keys"
};

class Kernels : public simt::KernelSet {
 public:
  /// The explained kernels; `plan` is plan_of's. Of `records.steps` it fills `o`, a tile's addition to the
  /// chosen component of dQ's sum, and `order`. Throws Error for shapes that they do not take.
  virtual void explain(simt::Device& device, const TilePlan& plan, const Task& task, Break broken,
                       const Arrays& arrays, const Records& records) const = 0;

  /// The timed kernels, which record nothing. D and dQ's conversion are part of a run.
  virtual std::span<const Configuration> configurations() const = 0;
  virtual void run(simt::Device& device, int configuration, const Task& task,
                   const Arrays& arrays) const = 0;
  /// Resources that the configuration's kernel that computes dK takes of a multiprocessor.
  virtual simt::Resources resources(simt::Device& device, int configuration) const = 0;

  /// The kernels for Hopper, timed; D and dQ's conversion are part of a run. Throw Error for what they do not take,
  /// Error (unavailable) on a GPU other than Hopper.
  virtual void run(simt::Device& device, const hopper::Problem& problem,
                   const hopper::Arrays& arrays) const = 0;
  virtual simt::Resources resources(simt::Device& device, const hopper::Problem& problem) const = 0;
};

}  // namespace tilestep::attention_backward

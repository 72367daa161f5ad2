#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/attention/flash_attention/params.hpp"
#include "kernels/base/simt/cuda/cudnn.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"

/// \file
/// The lesson's kernels as the host calls them, the same for both backends, and how they use shared memory.

namespace tilestep::flash_attention {

/// Threads that share a row in the softmax of `naive`.
inline constexpr int kSoftmaxThreads = 128;

/// Warps of a block: each has 16 queries, in flash-1 16 keys.
constexpr int warps_of(Variant variant, const TileSize& tile) {
  return (variant == Variant::flash_1 ? tile.block_k : tile.block_q) / kStrip;
}

/// Dynamic shared memory of each kernel, in bytes.
constexpr std::size_t scores_shared_bytes(const TileSize& t) {
  return bytes_of_numbers((t.block_q + t.block_k) * t.columns + t.block_q * t.block_k);
}
constexpr std::size_t values_shared_bytes(const TileSize& t) {
  return bytes_of_numbers(2 * (t.block_q * t.block_k + t.block_k * t.columns) +
                          t.block_q * t.columns);
}
constexpr std::size_t flash_1_shared_bytes(const TileSize& t) {
  const int warps = t.block_k / kStrip;
  const int floats = warps * kStrip * (t.columns + 2) + 3 * kStrip;
  return bytes_of_numbers((2 * t.block_k + t.block_q) * t.columns) +
         static_cast<std::size_t>(floats) * sizeof(float);
}
constexpr std::size_t flash_2_shared_bytes(const TileSize& t) {
  return bytes_of_numbers((t.block_q + 4 * t.block_k) * t.columns);
}
/// The largest of a variant's kernels.
constexpr std::size_t shared_bytes_of(Variant variant, const TileSize& tile) {
  if (variant == Variant::flash_1) return flash_1_shared_bytes(tile);
  if (variant == Variant::flash_2) return flash_2_shared_bytes(tile);
  const std::size_t scores = scores_shared_bytes(tile);
  const std::size_t values = values_shared_bytes(tile);
  return scores > values ? scores : values;
}

/// The arrays of a launch; numbers are bit patterns of BF16.
struct Arrays {
  simt::Span<const std::uint16_t> q, k, v;
  simt::Span<const int> begins;  ///< of documents, [length]
  simt::Span<std::uint16_t> o;
  simt::Span<float> lse;
  /// [heads × length × score_pitch]: S of naive and `materialize`; P of naive.
  simt::Span<std::uint16_t> s, p;
  simt::Span<float> o_sums;  ///< flash-1: O in FP32, [heads × length × head_dim]
  simt::Span<float> m, l;    ///< flash-1: [heads × length]
};

/// A kernel compiled for one tile size, to be timed.
struct Configuration {
  Variant variant;
  int head_dim;  ///< filled_columns of the task's must be this
  int block_q, block_k;
  int warps;
  std::string_view name;  ///< "128x64, 4 warps of 32 queries"
};

struct QuantizedProblem;  // quantized/problem.hpp
struct QuantizedArrays;

class Kernels : public simt::KernelSet {
 public:
  /// The explained kernels of `plan.runs`, up to flash-2. Throws Error for shapes that they do not take.
  virtual void explain(simt::Device& device, const Plan& plan, const Task& task, Break broken,
                       const Arrays& arrays, const Records& records) const = 0;

  /// The timed kernels, which record nothing.
  virtual std::span<const Configuration> configurations() const = 0;
  virtual void run(simt::Device& device, int configuration, const Task& task,
                   const Arrays& arrays) const = 0;
  /// Resources that the configuration's kernel (of several, the one that multiplies by V) takes of a multiprocessor.
  virtual simt::Resources resources(simt::Device& device, int configuration) const = 0;

  /// Scores in 8 bits: Q and K are quantized to 8 bits, then attended; explained, and timed. Throw Error for shapes that
  /// they do not take, Error (unavailable) on a GPU other than Hopper.
  virtual void explain(simt::Device& device, const QuantizedProblem& problem, Break broken,
                       const QuantizedArrays& arrays, const Records& records) const = 0;
  virtual void run(simt::Device& device, const QuantizedProblem& problem,
                   const QuantizedArrays& arrays) const = 0;
  virtual simt::Resources resources(simt::Device& device,
                                    const QuantizedProblem& problem) const = 0;

  /// cuDNN, where installed: base/simt/cuda/cudnn.hpp. Throws Error (unavailable) where it is not.
  virtual simt::LibraryStatus library(simt::Device& device) const = 0;
  virtual int library_plans(simt::Device& device,
                            const simt::LibraryAttention& attention) const = 0;
  virtual void library_attend(simt::Device& device, const simt::LibraryAttention& attention,
                              int plan, const simt::LibraryAttentionArrays& arrays) const = 0;
};

}  // namespace tilestep::flash_attention

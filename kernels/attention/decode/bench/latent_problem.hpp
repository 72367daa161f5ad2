#pragma once

#include "kernels/attention/kv_cache/bench/paged_problem.hpp"

namespace tilestep::decode {

/// A step of decoding with a latent cache, BF16, of DeepSeek's size: query heads share rows of 512 + 64 numbers.
class LatentProblem : public kv_cache::BenchProblem {
 public:
  /// `step` has batch, context, whether it is ragged, and the size of a page.
  LatentProblem(simt::Device& device, kv_cache::Step step, int heads);

  /// In equal pieces, merged by a second kernel; or each request by one cluster of blocks.
  lab::Runnable runnable(bool balanced);
};

}  // namespace tilestep::decode

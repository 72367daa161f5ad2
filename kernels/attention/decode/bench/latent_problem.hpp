#pragma once

#include <memory>

#include "kernels/attention/decode/kernels.hpp"
#include "kernels/attention/kv_cache/bench/paged_problem.hpp"

namespace tilestep::decode {

/// A step of decoding with a latent cache, BF16, of DeepSeek's size: 128 query heads share rows of 512 + 64 numbers.
/// `step` has batch, context, whether it is ragged, and the size of a page. Rows repeat a period; O is compared with
/// double for some heads of some requests.
class LatentProblem {
 public:
  LatentProblem(simt::Device& device, const Step& step, int heads);

  /// 2 · heads · (576 + 512) for each token of a request.
  double flops() const;
  /// The cache, the block table, q and O once.
  double bytes() const;

  /// In equal pieces, merged by a second kernel; or each request by one cluster of blocks.
  lab::Runnable runnable(bool balanced);

 private:
  lab::Closest compared() const;

  simt::Device& device_;
  Step step_;
  int heads_;
  std::vector<int> context_;
  int table_pitch_ = 0;
  std::vector<int> table_;
  std::vector<float> q_values_, period_;
  simt::Buffer<std::uint16_t> q_, o_;
  simt::Buffer<float> lse_;
  lab::Repeated<std::uint16_t> cache_;
  simt::Buffer<int> context_on_device_, table_on_device_;
};

}  // namespace tilestep::decode

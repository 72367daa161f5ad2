#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/attention/kv_cache/kernels.hpp"
#include "kernels/attention/kv_cache/on_device.hpp"
#include "kernels/attention/kv_cache/reference.hpp"
#include "kernels/base/lab/bench.hpp"

/// The timed problem: kernels and peers on one cache.
namespace tilestep::kv_cache {

/// A decoding step of a layer: one query per request and query head.
struct Step {
  int heads = 32, kv_heads = 4;
  RowShape row = {128, 128, 256};
  int batch = 64, context = 8192;  ///< average tokens per request
  bool ragged = true;              ///< requests have from half to one and a half times that
  int page_size = 16;
  KvType type = KvType::bf16;
  int prefix =
      0;  ///< tokens that all requests have in common, whole pages and no more than the shortest has
};
/// Tokens of each request; their sum is batch × context.
std::vector<int> contexts_of(const Step& step);
/// Products of queries, keys, weights and values.
double attention_flops(const Step& step);
/// Bytes that must be read and written at least: keys, values and scales of all tokens, those of the prefix once, the
/// block table, q and O.
double least_bytes(const Step& step);

/// K and V of all pages that are held.
double cache_bytes(const Step& step);

/// How a step is launched.
struct Launching {
  enum class Cutting {
    balanced,   ///< equal pieces, one per block
    even,       ///< each request and K/V head in `splits` parts, one per block
    repeat_kv,  ///< in equal pieces, each query head by itself
  };
  Cutting cutting = Cutting::balanced;
  int splits = 1;
  bool merge_apart = false;  ///< by a second kernel
  int least = 0;  ///< least tokens of a balanced piece; 0: pieces for all multiprocessors
  /// With balanced pieces: the prefix is read once for as many requests as a block has room for, by its own launch.
  bool prefix_once = false;
};

/// A cache prepared on the device, its pages in shuffled order. Rows of K and V repeat a period, so that the host
/// knows each of their numbers; O is compared with double for some heads of some requests.
class BenchProblem {
 public:
  BenchProblem(simt::Device& device, const PagedKernels& kernels, const Step& step);

  const Step& step() const { return step_; }

  /// The kernel, launched this way.
  lab::Runnable runnable(const Launching& how);
  /// A kernel that only adds up the bytes of K and V, with a number of blocks per multiprocessor.
  lab::Runnable read(int blocks);
  /// cuDNN's `plan` for requests of `step.context` tokens each, contiguous: the same arrays, read that way. Not ragged,
  /// 16 bits.
  lab::Runnable library(int plan);
  simt::LibraryAttention library_attention() const;

 protected:
  /// Judged by what it leaves in O.
  lab::Runnable judged(std::function<void()> launch, bool in_pages = true);
  paged::Problem problem_of(const Launching& how) const;
  paged::Arrays arrays_of(DeviceCut& cut);

  simt::Device& device_;
  std::vector<int> context_;

 private:
  std::function<void()> launch_of(const Launching& how);
  std::function<void()> launch_of_two(const Launching& how);
  int blocks_of(const paged::Problem& problem) const;
  paged::WorkPlan plan_of(const Launching& how, const paged::Problem& problem) const;
  /// For some requests and heads; tokens in pages, or contiguous.
  lab::Closest compared(bool in_pages) const;

  const PagedKernels& kernels_;
  Step step_;
  std::vector<int> table_;
  int table_pitch_ = 0;
  std::vector<float> q_values_;
  Quantized k_period_, v_period_;  ///< of kPeriod rows
  simt::Buffer<std::uint16_t> q_, o_;
  simt::Buffer<float> lse_;
  simt::Buffer<unsigned> sum_;
  lab::Repeated<std::uint8_t> k_;
  std::optional<lab::Repeated<std::uint8_t>> v_;  ///< none of latent rows
  std::optional<lab::Repeated<float>> k_scales_, v_scales_;
  simt::Buffer<int> context_on_device_, table_on_device_;
};

}  // namespace tilestep::kv_cache

#pragma once

#include "kernels/attention/kv_cache/layer.hpp"
#include "kernels/attention/kv_cache/paged/problem.hpp"
#include "kernels/base/simt/cuda/cudnn.hpp"
#include "kernels/base/simt/resources.hpp"

/// \file
/// The kernels over a paged cache as the host calls them, the same for both backends.
namespace tilestep::kv_cache {

/// The kernels' name of a cache format.
constexpr paged::Cache cache_format(KvType type) {
  static_assert(static_cast<int>(KvType::int4) == static_cast<int>(paged::Cache::int4));
  return static_cast<paged::Cache>(type);
}

class PagedKernels : public simt::KernelSet {
 public:
  /// mha, gqa and mqa over a paged cache: paged/problem.hpp. Throw Error for unsupported problems, Error
  /// (unavailable) on a GPU below compute capability 8.0.
  virtual void explain(simt::Device& device, const paged::Problem& problem,
                       const paged::Arrays& arrays, const simt::Tape& tape) const = 0;
  virtual void attend(simt::Device& device, const paged::Problem& problem,
                      const paged::Arrays& arrays) const = 0;
  /// The merge as a separate kernel.
  virtual void merge(simt::Device& device, const paged::Problem& problem,
                     const paged::Arrays& arrays) const = 0;
  virtual simt::Resources resources(simt::Device& device, const paged::Problem& problem) const = 0;

  /// cuDNN, where it is installed: base/simt/cuda/cudnn.hpp. Throws Error (unavailable) where it is not.
  virtual simt::LibraryStatus library(simt::Device& device) const = 0;
  virtual int library_plans(simt::Device& device,
                            const simt::LibraryAttention& attention) const = 0;
  virtual void library_attend(simt::Device& device, const simt::LibraryAttention& attention,
                              int plan, const simt::LibraryAttentionArrays& arrays) const = 0;

  /// Adds the 32-bit words of k and v, equally many in both and a multiple of 16 bytes, to sum[0], modulo 2^32, with
  /// the given blocks per multiprocessor. Asynchronous on a GPU.
  virtual void read(simt::Device& device, simt::Span<const std::uint8_t> k,
                    simt::Span<const std::uint8_t> v, simt::Span<unsigned> sum,
                    int blocks) const = 0;
};

}  // namespace tilestep::kv_cache

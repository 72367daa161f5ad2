#pragma once

/// \file
/// What the host asks of the paged kernels, for the kernel sets of the lessons that have them; the same text for both
/// backends. The kernels are compiled in files of their own.

#include "kernels/attention/kv_cache/kernels.hpp"
#include "kernels/attention/kv_cache/paged/kernels.hpp"

namespace tilestep::kv_cache::SIMT_BACKEND {

/// Set: a lesson's `Kernels`, derived from PagedKernels.
template <class Set>
class PagedKernelsHere : public Set {
 public:
  void explain(simt::Device& device, const paged::Problem& problem, const paged::Arrays& arrays,
               const simt::Tape& tape) const override {
    paged::SIMT_BACKEND::explain(device, problem, arrays, tape);
  }
  void attend(simt::Device& device, const paged::Problem& problem,
              const paged::Arrays& arrays) const override {
    paged::SIMT_BACKEND::attend(device, problem, arrays);
  }
  void merge(simt::Device& device, const paged::Problem& problem,
             const paged::Arrays& arrays) const override {
    paged::SIMT_BACKEND::merge(device, problem, arrays);
  }
  simt::Resources resources(simt::Device& device, const paged::Problem& problem) const override {
    return paged::SIMT_BACKEND::resources(device, problem);
  }

  simt::LibraryStatus library(simt::Device&) const override { return simt::cudnn_status(); }
  int library_plans(simt::Device&,
                    [[maybe_unused]] const simt::LibraryAttention& attention) const override {
#if defined(__CUDACC__)
    return simt::cuda::Cudnn::loaded().plans(attention);
#else
    return 0;
#endif
  }
  void library_attend(simt::Device&, [[maybe_unused]] const simt::LibraryAttention& attention,
                      [[maybe_unused]] int plan,
                      [[maybe_unused]] const simt::LibraryAttentionArrays& arrays) const override {
#if defined(__CUDACC__)
    simt::cuda::Cudnn::loaded().attend(attention, plan, arrays);
#else
    throw Error(simt::cudnn_status().reason, ExitCode::unavailable);
#endif
  }

  void read(simt::Device& device, simt::Span<const std::uint8_t> k,
            simt::Span<const std::uint8_t> v, simt::Span<unsigned> sum, int blocks) const override {
    kv_cache::SIMT_BACKEND::read(device, k, v, sum, blocks);
  }
};

}  // namespace tilestep::kv_cache::SIMT_BACKEND

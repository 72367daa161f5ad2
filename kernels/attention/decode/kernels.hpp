#pragma once

#include "kernels/attention/decode/latent/explained_problem.hpp"
#include "kernels/attention/decode/latent/problem.hpp"
#include "kernels/attention/decode/params.hpp"
#include "kernels/attention/kv_cache/kernels.hpp"

/// \file
/// The lesson's kernels as the host calls them, the same for both backends.
namespace tilestep::decode {

class Kernels : public PagedKernels {
 public:
  using PagedKernels::attend, PagedKernels::explain, PagedKernels::merge, PagedKernels::resources;

  /// The explained mla, its merge included: latent/latent_explained.cu.
  virtual void explain(simt::Device& device, const latent::ExplainedProblem& problem,
                       const latent::ExplainedArrays& arrays,
                       const paged::Explanation& what) const = 0;

  /// mla on Hopper, at its real size: latent/problem.hpp. Throw Error (unavailable) on another GPU.
  virtual void attend(simt::Device& device, const latent::Problem& problem,
                      const latent::Arrays& arrays) const = 0;
  virtual void explain(simt::Device& device, const latent::Problem& problem,
                       const latent::Arrays& arrays, const paged::Explanation& what) const = 0;
  virtual void merge(simt::Device& device, const latent::Problem& problem,
                     const latent::Arrays& arrays, const paged::Explanation* what) const = 0;
  virtual simt::Resources resources(simt::Device& device, const latent::Problem& problem) const = 0;
};

}  // namespace tilestep::decode

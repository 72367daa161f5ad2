#pragma once

#include "kernels/attention/decode/latent/problem.hpp"
#include "kernels/attention/decode/params.hpp"
#include "kernels/attention/kv_cache/kernels.hpp"

/// \file
/// The lesson's kernels as the host calls them, the same for both backends.
namespace tilestep::decode {

class Kernels : public PagedKernels {
 public:
  /// mla on Hopper: latent/problem.hpp. O and log-sum-exp of requests that one item has whole; where there are slots,
  /// a second kernel merges the parts of the others. A tape that keeps something records the launch: a step is a pair
  /// of tiles. Asynchronous on a GPU. Throws Error for unsupported problems, Error (unavailable) on another GPU.
  virtual void attend_latent(simt::Device& device, const paged::Problem& problem,
                             const paged::Arrays& arrays, const simt::Tape& tape = {}) const = 0;
};

}  // namespace tilestep::decode

#pragma once

/// \file
/// The interface of launch_latent.cu to launch.cu.

#include "kernels/attention/decode/latent/problem.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::decode::latent::SIMT_BACKEND {

/// O and log-sum-exp of requests that one item has whole, and parts of the others, which `merge` combines.
/// Asynchronous on a GPU. Throws Error for unsupported problems, Error (unavailable) on a GPU other than
/// Hopper.
void attend(simt::Device& device, const Problem& problem, const Arrays& arrays);
/// The same, with records: visits, the chosen row's steps (one per tile of 64 tokens; `o` in the last of every two) and
/// bytes requested, where kK has the cache's.
void explain(simt::Device& device, const Problem& problem, const Arrays& arrays,
             const paged::Explanation& what);
/// Merges the parts; `what`, which may be null, receives the weights.
void merge(simt::Device& device, const Problem& problem, const Arrays& arrays,
           const paged::Explanation* what);
/// The timed kernel's resources on a multiprocessor.
simt::Resources resources(simt::Device& device, const Problem& problem);

}  // namespace tilestep::decode::latent::SIMT_BACKEND

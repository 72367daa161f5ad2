#pragma once

/// \file
/// What launch_latent.cu gives launch.cu.

#include "kernels/attention/decode/latent/problem.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::decode::latent::SIMT_BACKEND {

/// O and log-sum-exp of requests that one item has whole, and parts of the others, which `merge` puts together.
/// Asynchronous on a GPU. Throws Error for what the kernel does not take, Error (unavailable) on a GPU other than
/// Hopper.
void attend(simt::Device& device, const Problem& problem, const Arrays& arrays);
/// The same, and what happened: visits, the chosen row's steps (one a tile of 64 tokens; `o` in the last of every two)
/// and bytes asked, where kK has the cache's.
void explain(simt::Device& device, const Problem& problem, const Arrays& arrays,
             const paged::Explanation& what);
/// Puts the parts together; `what`, which may be null, gets the weights.
void merge(simt::Device& device, const Problem& problem, const Arrays& arrays,
           const paged::Explanation* what);
/// What the timed kernel takes of a multiprocessor.
simt::Resources resources(simt::Device& device, const Problem& problem);

}  // namespace tilestep::decode::latent::SIMT_BACKEND

#pragma once

/// \file
/// The launch files' interface to kernel_set.hpp: the kernels are compiled beside the
/// lesson's others, not behind them.

#include "kernels/attention/kv_cache/paged/problem.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::kv_cache::paged::SIMT_BACKEND {

/// O and log-sum-exp of every item's rows, merge included unless another kernel does it (`Problem::merged_by`): then
/// call `merge` next. Asynchronous on a GPU. Throws Error for unsupported problems, Error (unavailable) on a GPU below
/// compute capability 8.0.
void attend(simt::Device& device, const Problem& problem, const Arrays& arrays);
/// The same sums by the same template, one tile of an item after another, with records.
void explain(simt::Device& device, const Problem& problem, const Arrays& arrays,
             const simt::Tape& tape);
/// Merges the parts.
void merge(simt::Device& device, const Problem& problem, const Arrays& arrays);
/// The timed kernel's resources on a multiprocessor.
simt::Resources resources(simt::Device& device, const Problem& problem);

}  // namespace tilestep::kv_cache::paged::SIMT_BACKEND

namespace tilestep::kv_cache::SIMT_BACKEND {

/// PagedKernels::read.
void read(simt::Device& device, simt::Span<const std::uint8_t> k, simt::Span<const std::uint8_t> v,
          simt::Span<unsigned> sum, int blocks);

}  // namespace tilestep::kv_cache::SIMT_BACKEND

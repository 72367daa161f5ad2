#pragma once

#include <array>
#include <cstdint>

#include "kernels/attention/kv_cache/layer.hpp"
#include "kernels/attention/kv_cache/paged/work_plan.hpp"

/// \file
/// The bytes that the explained kernels ask of memory, by formula.
namespace tilestep::kv_cache {

struct Asked {
  std::int64_t loaded = 0, stored = 0;
  bool operator==(const Asked&) const = default;
};
/// By paged::Tensor.
using Ledger = std::array<Asked, paged::kTensors>;

/// Tokens of an item of a request of `context` tokens.
int tokens_of(const paged::WorkItem& item, int page_size, int context);

/// Exactly what the accesses of an explained launch come to, its merge included: an item loads the keys and values of
/// its tokens once, whatever the number of query heads, and looks each token up in the table. Of mla it loads a latent
/// row for both.
Ledger ledger_of(const paged::Problem& problem, const paged::WorkPlan& plan,
                 const std::vector<int>& contexts, const RowShape& row);

}  // namespace tilestep::kv_cache

#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention/shared/reference.hpp"
#include "kernels/attention/sparse_attention/bench/bench.hpp"
#include "kernels/attention/sparse_attention/timed/kernels.hpp"
#include "kernels/base/numeric/running_sum.hpp"

/// What the timed kernels should leave, in double, of a few queries.
namespace tilestep::sparse_attention {

/// How flash-3's kernel rounds, whatever its lists.
attention::Roundings list_roundings();
/// O and log-sum-exp of a query over the keys of its listed tiles that the rule lets it see. `numbers`: of its head.
attention::Reference expected_listed(const attention::Task& task, const TileLists& lists,
                                     const attention::Numbers& numbers, int head, int query);

/// An index score from a query's codes [kHeads × kDim], its weights and a key's codes; `unit`: what the tensor cores cut
/// off, of a step's magnitudes.
numeric::Bounded expected_score(const std::vector<std::uint8_t>& q,
                                const std::vector<float>& weights,
                                const std::vector<std::uint8_t>& key, float scale, double unit);

/// O of a head over rows [kRowNumbers] in BF16, kValueNumbers numbers.
numeric::AllBounded expected_decode(const std::vector<std::uint16_t>& q,
                                    const std::vector<std::vector<std::uint16_t>>& rows,
                                    double scale);

}  // namespace tilestep::sparse_attention

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention/positions/kernels.hpp"
#include "kernels/attention/positions/method.hpp"
#include "kernels/base/numeric/running_sum.hpp"

/// What the kernels should leave, in double.
namespace tilestep::positions {

/// A head as it lies in memory.
using Words = std::vector<std::uint16_t>;
std::vector<float> values_of(std::span<const std::uint16_t> words);

/// What a word is projected to, and the norms' gains. The query looks for such a key: the two of a pair point in about
/// the same direction.
struct Inputs {
  Words q, k, v, q_gain, k_gain;
};
Inputs make_inputs(int dim, Pairs pairs, std::int64_t seed);

/// A head that is normed and then turned as at `position`; how far a kernel may be from it, with FP32 between the two
/// or, `apart`, with a launch's rounding to BF16.
numeric::AllBounded reference_head(std::span<const std::uint16_t> words,
                                   std::span<const std::uint16_t> gain, const Turning& turning,
                                   Pairs pairs, int position, bool apart);
/// A query's score of a key, from the two, with the bounds of both.
numeric::Bounded reference_score(const numeric::AllBounded& q, const numeric::AllBounded& k,
                                 double bias);

}  // namespace tilestep::positions

#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention/sparse_attention/kernels.hpp"
#include "kernels/base/numeric/running_sum.hpp"

/// What the kernels should leave, in double.
namespace tilestep::sparse_attention {

/// A text of words that come again: keys of a word are alike but for their position, its index keys are equal.
struct Inputs {
  int length = 0, index_heads = 0;
  std::vector<float> q, k, v;  ///< [length × kKey], [length × kValue]: k's first
  std::vector<int> documents;  ///< [length]
  std::vector<std::uint8_t> index_q, index_keys;  ///< [length × heads × kIndexDim], E4M3
  std::vector<float> index_weights, index_scales;
  std::vector<int> table;    ///< of pages: the last first
  std::vector<float> cache;  ///< k by page
};
Inputs make_inputs(int length, int index_heads, int page_size, std::int64_t seed);
/// Where a token's row lies.
int row_of(const Inputs& inputs, int page_size, int token);

/// Whether a query sees a key, by the method's definition; of `own` as the source has it unedited.
bool sees(Method method, int length, int window, const std::vector<int>& documents, int query,
          int key);
TileKind kind_of(const std::vector<int>& pairs, int length, int tile, int query_tile, int key_tile);

/// A score, and how far a kernel's may be from it; of the keys that a query sees.
struct Scored {
  int key = 0;
  numeric::Bounded score;
};
/// scale · q · k.
numeric::Bounded reference_score(const float* q, const float* k);
/// Σ softmax(score) · v over the keys, kValue numbers, and behind them the log-sum-exp. Zeros and −∞ without a key.
/// `steps`: how often the kernel may rescale.
numeric::AllBounded reference_attention(const std::vector<Scored>& scored, const float* values,
                                        int pitch, int steps);
/// Their weights.
std::vector<double> weights_of(const std::vector<Scored>& scored);

/// A query's index scores of the tokens up to it; exact for make_inputs, whose sums have few bits.
std::vector<double> reference_index(const Inputs& inputs, int query);
/// The k largest, of equal ones the earlier, by sorting all; in order of the tokens.
std::vector<int> reference_top_k(const std::vector<double>& scores, int k);

}  // namespace tilestep::sparse_attention

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/attention/decode/cache/serving.hpp"
#include "kernels/attention/decode/cost.hpp"
#include "kernels/attention/decode/params.hpp"

namespace tilestep::decode {

/// What one run explains at most: multiplications and additions of whole tiles, tiles that a block takes one after the
/// other, and pages of a pool that can be drawn.
inline constexpr double kMostFlops = 4e7;
inline constexpr int kMostTiles = 40;
inline constexpr int kMostPages = 288;
inline constexpr int kMostShownBatch = 8;
inline constexpr int kMostShownRequests = 64;

/// The part of a problem that a run explains: fewer requests, a shorter context, at last the query heads of one K/V
/// head. The formulas are of the whole.
struct Excerpt {
  Params params;    ///< with what runs
  std::string cut;  ///< what of the whole that is; empty: all of it
};
Excerpt excerpt_of(const Params& params);

/// A step of decoding on the host: one query a request and head, and the cache that it attends to.
struct Inputs {
  LayerShape layer;
  int pages = 0, page_size = 1;
  std::vector<int> contexts;             ///< tokens of each request
  std::vector<std::vector<int>> tables;  ///< pages of each request
  std::vector<float> q;                  ///< [batch × heads × key]
  /// [pages × cached heads × page_size × key] and [… × value]; of mla k holds the latent rows, [pages × page_size ×
  /// (latent + rope)], and v is empty. Slots without a token have numbers too: what lay there before.
  std::vector<float> k, v;
  double scale = 1;  ///< of the scores, before exp

  int batch() const { return static_cast<int>(contexts.size()); }
  /// Where the row of a token's key (value) of a K/V head begins.
  std::size_t key_at(int page, int head, int slot) const;
  std::size_t value_at(int page, int head, int slot) const;
};

/// Normal numbers of mean 0 and deviation 1, rounded to 16 bits. A sixteenth of K's channels lie 8 to 16 away from 0,
/// for all tokens of a head alike, as in real models (Liu et al., "KIVI", 2024, arXiv:2402.02750). Latent rows have
/// none: they pass a norm first.
Inputs make_inputs(const Params& params, int pages, std::vector<int> contexts,
                   std::vector<std::vector<int>> tables);
/// The requests that run at the end of `serving`.
Inputs make_inputs(const Params& params, const Serving& serving);
/// Requests of these lengths, their pages in an order that `params.seed` shuffles. Full pages of the prefix are the first
/// request's.
Inputs make_inputs(const Params& params, const std::vector<int>& contexts);

/// Of Q, O, and a cache that is not quantized: BF16.
std::vector<std::uint16_t> words_of(const std::vector<float>& values);
std::vector<float> values_of(const std::vector<std::uint16_t>& words);

}  // namespace tilestep::decode

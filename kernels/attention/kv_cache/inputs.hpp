#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/attention/kv_cache/layer.hpp"

namespace tilestep::kv_cache {

/// A step of decoding on the host: one query per request and head, and the cache that it attends to.
struct Inputs {
  LayerShape layer;
  int pages = 0, page_size = 1;
  std::vector<int> contexts;             ///< tokens of each request
  std::vector<std::vector<int>> tables;  ///< pages of each request
  std::vector<float> q;                  ///< [batch × heads × key]
  /// [pages × cached heads × page_size × key] and [… × value]; of mla k holds the latent rows, [pages × page_size ×
  /// (latent + rope)], and v is empty. Slots without a token have numbers too: stale data.
  std::vector<float> k, v;
  double scale = 1;  ///< of the scores, before exp

  int batch() const { return static_cast<int>(contexts.size()); }
  /// Pages of the longest request, at least 1: the length of a row of the flat tables.
  int table_pitch() const;
  /// Rows of equal length; missing entries name a page that does not exist.
  std::vector<int> flat_tables() const;
  /// Index of the first number of a token's key (value) of a K/V head.
  std::size_t key_at(int page, int head, int slot) const;
  std::size_t value_at(int page, int head, int slot) const;
};

/// Normal numbers of mean 0 and deviation 1, rounded to 16 bits. A sixteenth of K's channels are 8 to 16 away from 0,
/// in every token of a head, as in real models (Liu et al., "KIVI", 2024, arXiv:2402.02750). Latent rows have
/// none: they pass a norm first.
Inputs make_inputs(const Case& of, int pages, std::vector<int> contexts,
                   std::vector<std::vector<int>> tables);
/// Requests of these lengths, their pages in an order that `of.seed` shuffles. Full pages of the prefix are the first
/// request's.
Inputs make_inputs(const Case& of, const std::vector<int>& contexts);

/// Of Q, O, and a cache that is not quantized: BF16.
std::vector<std::uint16_t> words_of(const std::vector<float>& values);
std::vector<float> values_of(const std::vector<std::uint16_t>& words);

}  // namespace tilestep::kv_cache

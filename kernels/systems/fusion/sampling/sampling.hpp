#pragma once

#include <cstdint>
#include <span>
#include <string>

/// Picking a token from a row of logits.
namespace tilestep::fusion {

/// In this order: logits / temperature, the top_k largest, their softmax, of which the largest until their sum is top_p,
/// and one of those by its probability. Logits that tie with the last one kept are kept too, so that what is kept does
/// not depend on an order. NaN and −∞ are never picked; several +∞ share all probability. Of a row with nothing
/// above −∞ the token is −1. Holtzman et al., "The curious case of neural text degeneration", 2020 (arXiv:1904.09751);
/// Fan et al., "Hierarchical neural story generation", 2018 (arXiv:1805.04833).
struct SampleRule {
  float temperature =
      1;  ///< 0, as top_k = 1: the largest logit, of equal ones the first; else 0.001 – 1000
  int top_k = 0;    ///< 0: all
  float top_p = 1;  ///< above 0; 1: all
  std::uint64_t seed = 1;
  constexpr bool greedy() const { return temperature == 0 || top_k == 1; }
  bool operator==(const SampleRule&) const = default;
};

/// A row is the work of `cluster` blocks. The token depends neither on the order of threads nor on their number, nor on
/// that of blocks.
struct SampleShape {
  int rows = 0;
  int vocabulary = 0;
  int threads = 512;  ///< of a block: 32, 64, … 512
  int cluster = 1;    ///< 1, 2, 4, 8
};
inline constexpr int kMostSampleThreads = 512;
/// Packs that a block notes because one of their logits may be kept, and logits among which it then finds those that are.
/// If there are more, the row is searched in memory.
inline constexpr int kMostListed = 1024, kMostCandidates = 512;

/// Why `token` is not what the rule picks from row `row`; empty if it is, by sorting and sums in double. Where the last
/// logit kept, or the token, is decided by less than 10^-5 of the mass, both are right.
std::string wrong_token(std::span<const float> logits, const SampleRule& rule, std::uint32_t row,
                        int token);

}  // namespace tilestep::fusion

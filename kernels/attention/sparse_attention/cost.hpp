#pragma once

#include <array>

/// By formula, what a token costs in an attention layer of DeepSeek-V3.2 (DeepSeek-AI, "DeepSeek-V3.2", 2025): MLA of
/// 128 heads over rows of 512 + 64 numbers, an indexer of 64 heads of 128 numbers, 2048 tokens chosen.
namespace tilestep::sparse_attention {

inline constexpr int kModelHeads = 128, kLatent = 512, kRope = 64;
inline constexpr int kModelIndexHeads = 64, kModelIndexDim = 128;
inline constexpr int kModelTopK = 2048;
/// Bytes in the cache: a row of 512 numbers in E4M3, four scales and 64 numbers in BF16 (DeepSeek, "FlashMLA", 2025); an
/// index key of 128 numbers in E4M3 and a scale.
inline constexpr int kRowBytes = kLatent + 4 * 4 + kRope * 2, kIndexBytes = kModelIndexDim + 4;

/// FLOPs, or bytes read from the cache, of one token's query.
struct Cost {
  double dense = 0, index = 0, attention = 0;
  double sparse() const { return index + attention; }
  double times() const { return dense / sparse(); }
};
Cost flops_at(double context);
Cost bytes_at(double context);
/// The context from which on index and attention together take fewer FLOPs than attention to all.
double break_even();

inline constexpr std::array<int, 8> kContexts = {1024,  2048,  4096,  8192,
                                                 16384, 32768, 65536, 131072};

}  // namespace tilestep::sparse_attention

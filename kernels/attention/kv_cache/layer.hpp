#pragma once

#include <array>
#include <cstdint>
#include <string_view>

/// \file
/// An attention layer as its KV cache sees it: which heads share keys and values, their number format, and by formula
/// the bytes of a token.
namespace tilestep::kv_cache {

/// Which query heads share a key and a value.
enum class Scheme {
  mha,  ///< none: a K/V head for each query head
  gqa,  ///< query heads of a group
  mqa,  ///< all query heads
  mla,  ///< all query heads, a latent row from which each could compute its own keys and values
};
constexpr auto names_of(Scheme) {
  return std::to_array<std::string_view>({"mha", "gqa", "mqa", "mla"});
}

/// The number format of K and V in the cache. Q and O are BF16.
enum class KvType { bf16, fp8, int8, int4 };
constexpr auto names_of(KvType) {
  return std::to_array<std::string_view>({"bf16", "fp8", "int8", "int4"});
}
/// Whether the cache has scales.
constexpr bool is_quantized(KvType type) {
  return type >= KvType::fp8;
}
constexpr int bits_of(KvType type) {
  return type == KvType::int4 ? 4 : is_quantized(type) ? 8 : 16;
}

/// The numbers of a quantized cache that share a scale.
enum class Scales {
  token,    ///< those of a token of a K/V head
  channel,  ///< those of a channel of a K/V head, over all tokens; only for K: V has one per token
};
constexpr auto names_of(Scales) {
  return std::to_array<std::string_view>({"token", "channel"});
}

/// A row of K and of V of one head in the cache, and a query head's operands.
struct RowShape {
  int key = 0;    ///< numbers of a key
  int value = 0;  ///< numbers of a value
  int stored =
      0;  ///< numbers in the cache: for mla those of the key, the first of which are the value
  int latent = 0, rope = 0;  ///< of mla
};
/// MLA keeps DeepSeek's proportions: a latent of four head dimensions and a rotary key of half of one.
RowShape row_shape(Scheme scheme, int head_dim);
/// 1 / sqrt of the numbers that a query meets: mla's stands for one that meets a head's own key of head_dim + rope
/// numbers, absorbed.
double score_scale(const RowShape& row);

struct LayerShape {
  Scheme scheme = Scheme::gqa;
  int heads = 32;
  int cached_heads = 8;  ///< that have keys and values in the cache
  RowShape row;
};

/// The case of an explained launch, for any lesson.
struct Case {
  Scheme scheme = Scheme::gqa;
  int heads = 8;
  int kv_heads = 2;  ///< of gqa
  int head_dim = 32;
  int splits = 2;  ///< of the keys of a request, for each K/V head; 0: as many as fill the GPU
  int page_size = 16;
  KvType kv_dtype = KvType::bf16;
  Scales scales = Scales::token;
  int prefix = 0;          ///< first tokens that all requests share
  bool repeat_kv = false;  ///< K and V are read for each query head, as if there were no groups
  bool unmerged = false;   ///< the first split's answer is used as the whole
  std::int64_t seed = 1;

  /// Heads of the cache: gqa's, or the scheme's.
  int cached_heads() const;
};
LayerShape layer_shape(const Case& of);

/// Bytes that one token takes in the cache of one layer, without scales: cached heads × numbers stored × bits / 8.
double token_bytes(const LayerShape& layer, KvType type);
/// Bytes of one token's scales: FP32, one for K and one for V of each head; with scales by channel only V's.
double scale_bytes(const LayerShape& layer, KvType type, Scales scales);

/// NVIDIA's H200 SXM.
inline constexpr int kMultiprocessors = 132;

/// The memory traffic of one K/V head's keys in one page: contiguous bytes, and, on average over the pages of a pool,
/// 32-byte sectors that hold some of them.
struct Piece {
  double bytes = 0, sectors = 0;
  double of_sectors() const { return bytes / (32 * sectors); }
};
Piece piece_of(const LayerShape& layer, KvType type, int page_size);

}  // namespace tilestep::kv_cache

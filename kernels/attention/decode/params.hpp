#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/lessons.hpp"

/// \file
/// What the lesson on decoding is asked.

/// The lesson on decoding: one query of each request attends to all tokens before it, whose keys and values lie in a
/// cache of pages. Shazeer, "Fast transformer decoding: one write-head is all you need", 2019 (arXiv:1911.02150, MQA);
/// Ainslie et al., "GQA", 2023 (arXiv:2305.13245); DeepSeek-AI, "DeepSeek-V2", 2024 (arXiv:2405.04434, MLA); Kwon et
/// al., "PagedAttention", 2023 (arXiv:2309.06180); Dao et al., "Flash-Decoding", 2023 (splits over the keys).
namespace tilestep::decode {

/// Who shares a key and a value.
enum class Scheme {
  mha,  ///< nobody: a K/V head for each query head
  gqa,  ///< query heads of a group
  mqa,  ///< all query heads
  mla,  ///< all query heads, a latent row from which each would make keys and values of its own
};
constexpr auto names_of(Scheme) {
  return std::to_array<std::string_view>({"mha", "gqa", "mqa", "mla"});
}

/// How a number of K and V lies in the cache. Q and O are BF16.
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

/// Which numbers of a quantized cache share a scale.
enum class Scales {
  token,    ///< those of a token of a K/V head
  channel,  ///< those of a channel of a K/V head, over all tokens; of K alone: V has one a token
};
constexpr auto names_of(Scales) {
  return std::to_array<std::string_view>({"token", "channel"});
}

/// What an explained run does wrong.
enum class Break {
  none,
  stale_page,       ///< a block table still names a page that was given back and is another's now
  repeat_kv,        ///< K and V are copied for each query head first, as if there were no groups
  unmerged_splits,  ///< the first split's answer is taken for the whole one
};
constexpr auto names_of(Break) {
  return std::to_array<std::string_view>({"none", "stale-page", "repeat-kv", "unmerged-splits"});
}

/// Tokens of a page.
enum class PageSize { p1, p4, p16, p64, p256 };
constexpr auto names_of(PageSize) {
  return std::to_array<std::string_view>({"1", "4", "16", "64", "256"});
}
constexpr int tokens_of(PageSize size) {
  return 1 << (2 * static_cast<int>(size));
}

inline constexpr int kMostHeads = 128;
inline constexpr int kMostContext = 131072;
inline constexpr int kMostBatch = 256;
inline constexpr int kMostSplits = 64;
inline constexpr int kMostRequests = 1024;
/// Steps of the engine before the kernel is looked at.
inline constexpr int kServingSteps = 8;

struct Params {
  Scheme scheme = Scheme::gqa;
  int heads = 8;
  int kv_heads = 2;   ///< of gqa
  int head_dim = 32;  ///< no knob: the explained kernels' heads; timed ones have 128
  int context = 64;   ///< tokens of a request, on average
  int batch = 4;      ///< requests that run together
  int splits = 2;     ///< of the keys of a request, for each K/V head; 0: as many as fill the GPU
  PageSize page_size = PageSize::p16;
  KvType kv_dtype = KvType::bf16;
  Scales scales = Scales::token;
  int requests = 6;  ///< that come, one after the other
  int prefix = 0;    ///< first tokens that all of them have in common
  Break broken = Break::none;
  std::int64_t seed = 1;

  /// Heads of the cache: those of gqa, or what the scheme has.
  int cached_heads() const;
};

/// A row of K and of V of one head in the cache, and what a query head multiplies.
struct RowShape {
  int key = 0;    ///< numbers of a key
  int value = 0;  ///< numbers of a value
  int stored =
      0;  ///< numbers that lie in the cache: of mla those of the key, whose first are the value
  int latent = 0, rope = 0;  ///< of mla
};
/// MLA keeps DeepSeek's proportions, a latent of four head dimensions and a rotary key of half a one.
RowShape row_shape(Scheme scheme, int head_dim);

/// The knobs, bound to Params. What cannot be together is refused with what can.
const lab::KnobTable<Params>& knob_table();

}  // namespace tilestep::decode

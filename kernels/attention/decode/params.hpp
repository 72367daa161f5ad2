#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/attention/kv_cache/layer.hpp"
#include "kernels/lessons.hpp"

/// \file
/// The parameters of the lesson on decoding.

/// The lesson on decoding: one query of each request attends to all tokens before it, whose keys and values are in a
/// cache, here request by request. Shazeer, "Fast transformer decoding: one write-head is all you need", 2019
/// (arXiv:1911.02150, MQA); Ainslie et al., "GQA", 2023 (arXiv:2305.13245); DeepSeek-AI, "DeepSeek-V2", 2024
/// (arXiv:2405.04434, MLA); Dao et al., "Flash-Decoding", 2023 (splits over the keys).
namespace tilestep::decode {

using namespace kv_cache;

/// A deliberate error of an explained run.
enum class Break {
  none,
  repeat_kv,        ///< K and V are copied for each query head first, as if there were no groups
  unmerged_splits,  ///< the first split's answer is used as the whole
};
constexpr auto names_of(Break) {
  return std::to_array<std::string_view>({"none", "repeat-kv", "unmerged-splits"});
}

inline constexpr int kMostHeads = 128;
inline constexpr int kMostContext = 131072;
inline constexpr int kMostBatch = 256;
inline constexpr int kMostSplits = 64;
/// Tokens of a page: a tile of the explained kernel for heads.
inline constexpr int kPageSize = 16;
/// Numbers of a head; those of mla's heads before absorption, of which its one kernel's latent rows are made.
inline constexpr int kHeadDim = 32, kLatentHeadDim = 128;

struct Params {
  Scheme scheme = Scheme::gqa;
  int heads = 8;
  int kv_heads = 2;  ///< of gqa
  int context = 64;  ///< average tokens per request
  int batch = 4;     ///< requests that run together
  int splits = 2;    ///< of the keys of a request, for each K/V head; 0: as many as fill the GPU
  KvType kv_dtype = KvType::bf16;
  Scales scales = Scales::token;
  Break broken = Break::none;
  std::int64_t seed = 1;

  /// The kernel's case.
  Case of() const;
  LayerShape layer() const { return layer_shape(of()); }
};

/// The knobs, bound to Params. Conflicting values are refused with the allowed ones.
const lab::KnobTable<Params>& knob_table();

}  // namespace tilestep::decode

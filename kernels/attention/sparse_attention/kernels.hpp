#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/attention/shared/mask.hpp"
#include "kernels/attention/sparse_attention/timed/kernels.hpp"
#include "kernels/base/lab/names.hpp"
#include "kernels/base/simt/cuda/cublas_lt.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/lessons.hpp"

/// The kernels' interface for the lesson's driver; implemented by launch.cu, once per backend.
namespace tilestep::sparse_attention {

using attention::TileKind;

/// Which keys a query sees. None looks ahead, but for `prefix` among its first keys.
enum class Method {
  causal,        ///< all up to its own position
  window,        ///< the last `window` of them, and the first kSinks
  strided,       ///< the last `window`, and each window-th before (Child et al., 2019)
  block_sparse,  ///< blocks of kBlock × kBlock pairs: its own, the first, and some drawn by lot
  documents,     ///< those of its own document
  prefix,        ///< all, and the first `window` keys for every query
  own,           ///< what mask_mod in masks.cu says
  dsa            ///< the top-k of an indexer, token by token
};
constexpr auto names_of(Method) {
  return std::to_array<std::string_view>(
      {"causal", "sliding-window", "strided", "block-sparse", "documents", "prefix", "own", "dsa"});
}
inline constexpr int kSinks = 2, kBlock = 8;

/// How a kernel finds out what a tile of pairs is.
enum class Finding {
  pairs,    ///< asks the mask for every pair
  corners,  ///< asks for the four corners, which is enough for some masks
  nothing   ///< does not ask: every tile counts as partial
};
constexpr auto names_of(Finding) {
  return std::to_array<std::string_view>({"pairs", "corners", "nothing"});
}

/// An error made on purpose in an explained run of dsa.
enum class Break {
  none,
  scattered_keys,  ///< a token's number is used as its place, without the page table
  stale_top_k,     ///< the choice of the token before is used
  topk_ties        ///< of equal scores the later token is taken, not the earlier one
};
constexpr auto names_of(Break) {
  return std::to_array<std::string_view>({"none", "scattered-keys", "stale-top-k", "topk-ties"});
}

// ---- attention through a mask -------------------------------------------------------------------

/// Numbers of a key in explained runs; the first kValue of a latent row are its value.
inline constexpr int kKey = 24, kValue = 16;
inline constexpr int kMostTile = 32;

struct MaskShape {
  Method method = Method::causal;  ///< not dsa
  int length = 0;                  ///< of queries and keys
  int window = 0;                  ///< of sliding-window, strided, prefix; of block-sparse about
  int tile = 8;                    ///< of queries and of keys: 4, 8, 16 or 32
};
constexpr int tiles_of(int length, int tile) {
  return (length + tile - 1) / tile;
}
/// On the device, row-major.
struct MaskArrays {
  simt::Span<const float> q, k;     ///< [length × kKey]
  simt::Span<const float> v;        ///< [length × kValue]
  simt::Span<const int> documents;  ///< [length]: of each token
  simt::Span<int> pairs;            ///< [length × length]: 1 where a query sees a key
  simt::Span<int> kinds;            ///< [tiles × tiles], a TileKind each
  simt::Span<float> o;              ///< [length × kValue]
  simt::Span<float> lse;            ///< [length], natural
};

// ---- sparse attention ---------------------------------------------------------------------------

/// Numbers of an index key, E4M3.
inline constexpr int kIndexDim = 16;
inline constexpr int kMostTopK = 4096;

/// Queries at the positions 0 … length − 1 choose among the tokens up to their own.
struct IndexShape {
  int length = 0;  ///< queries and tokens
  int heads = 4;   ///< of the indexer
  int top_k = 16;
  int tile = 8;  ///< tokens at a time, up to 32
  int room = 0;  ///< entries that are kept before the smallest go; at least top_k + tile
};
struct IndexArrays {
  simt::Span<const std::uint8_t> q;     ///< [length × heads × kIndexDim], E4M3
  simt::Span<const float> weights;      ///< [length × heads]
  simt::Span<const std::uint8_t> keys;  ///< [length × kIndexDim], E4M3
  simt::Span<const float> scales;       ///< [length], of the keys
  simt::Span<int> chosen;               ///< [length × top_k] tokens in order; −1 behind the last
};

/// A query's attention over the rows that it has chosen.
struct GatherShape {
  int length = 0;  ///< queries; and tokens, in the cache
  int heads = 1;   ///< that share the rows and the choice
  int top_k = 16;
  int page_size = 8;
  float scale = 1;  ///< 1 / √kKey
};
struct GatherArrays {
  simt::Span<const float> q;      ///< [length × heads × kKey]
  simt::Span<const float> cache;  ///< [pages × page_size × kKey]
  simt::Span<const int> table;    ///< [pages]: where the page of 8, 16 … tokens lies
  simt::Span<const int> chosen;   ///< [length × top_k]
  simt::Span<float> o;            ///< [length × heads × kValue]
};

/// Sites of the tapes.
enum Site : std::uint32_t {
  kVisit,   ///< of a tile: the kind that it was computed as
  kScore,   ///< of a pair in a visited tile
  kIndex,   ///< of a token: the last query's index score
  kPassed,  ///< of a tile of tokens: how many were above the floor
  kKept,    ///< of a tile and a place: a token that is among the top-k then
  kRow,     ///< of a place in the last query's choice: the row of the cache that was read
  kReached  ///< of a token: the score of the row that was read for it
};

class Kernels : public simt::KernelSet {
 public:
  /// All launches are asynchronous and throw Error for a shape that is not allowed.
  /// pairs[query][key], by asking the mask for each.
  virtual void pairs(simt::Device& device, const MaskShape& shape,
                     const MaskArrays& arrays) const = 0;
  /// The block mask: kinds[query tile][key tile].
  virtual void tiles(simt::Device& device, const MaskShape& shape, Finding finding,
                     const MaskArrays& arrays) const = 0;
  /// Attention over the tiles that are not skipped.
  virtual void attend(simt::Device& device, const MaskShape& shape, const MaskArrays& arrays,
                      const simt::Tape& tape) const = 0;
  /// Index scores and their top-k in one launch, for all queries; the last one is recorded.
  virtual void choose(simt::Device& device, const IndexShape& shape, const IndexArrays& arrays,
                      Break broken, const simt::Tape& tape) const = 0;
  /// Attention over chosen rows, for all queries; the last one is recorded.
  virtual void gather(simt::Device& device, const GatherShape& shape, const GatherArrays& arrays,
                      Break broken, const simt::Tape& tape) const = 0;

  /// The timed kernels: timed/kernels.hpp. Throw Error for shapes that they do not take, Error (unavailable) on a GPU
  /// other than Hopper.
  virtual void attend_listed(simt::Device& device, const timed::ListShape& shape,
                             const timed::ListArrays& arrays) const = 0;
  virtual void score(simt::Device& device, const timed::ScoreShape& shape,
                     const timed::ScoreArrays& arrays) const = 0;
  virtual void decode(simt::Device& device, const timed::DecodeShape& shape,
                      const timed::DecodeArrays& arrays) const = 0;
  /// cuBLASLt, where it is installed: base/simt/cuda/cublas_lt.hpp. Throw Error (unavailable) where it is not.
  virtual simt::LibraryStatus library() const = 0;
  virtual int library_algorithms(const simt::LibraryProduct& product,
                                 const simt::LibraryArrays& arrays) const = 0;
  virtual void library_multiply(const simt::LibraryProduct& product, int algorithm,
                                const simt::LibraryArrays& arrays) const = 0;
};

}  // namespace tilestep::sparse_attention

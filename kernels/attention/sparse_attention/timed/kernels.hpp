#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/flash_attention_3/schedule.hpp"
#include "kernels/base/simt/simt.hpp"

/// What the bench times on Hopper, for host and device: attention over lists of tiles, the indexer in FP8 with and without
/// its top-k, decoding over chosen rows.
namespace tilestep::sparse_attention::timed {

// ---- attention over lists of tiles -----------------------------------------------------------------

/// Of a tile of queries, and of keys. Shared memory as in the lesson FlashAttention-3.
inline constexpr flash_attention_3::TileSizes kListSizes{128, 128, 2, 2};
inline constexpr int kListRows = kListSizes.rows(), kListKeys = kListSizes.keys;

/// Queries and keys of `length` tokens, head_dim 128.
struct ListShape {
  int heads = 1, length = 0;
  attention::MaskRule rule;  ///< asked in partial tiles: none, causal, or a window without sinks
};
/// Row-major, BF16: q, k, v, o [heads × length × 128].
struct ListArrays {
  simt::Span<const std::uint16_t> q, k, v;
  simt::Span<std::uint16_t> o;
  simt::Span<float> lse;        ///< [heads × length]
  simt::Span<const int> first;  ///< [tiles of queries + 1]: where its keys' tiles begin
  simt::Span<const int>
      whole;  ///< [tiles of queries]: where its full tiles begin, behind the partial
  simt::Span<const int> tiles;  ///< tiles of keys; each tile of queries has at least one
};

// ---- the indexer -------------------------------------------------------------------------------------

inline constexpr int kHeads = 64, kDim = 128;  ///< of the indexer: DeepSeek-V3.2
inline constexpr int kQueriesOfBlock = 2;      ///< so many queries' heads are wgmma's 128 columns
inline constexpr int kTokensOfTile = 128, kIndexStages = 4;
inline constexpr int kCheckEvery = 16;  ///< tiles, between two looks at the room

/// The last `queries` of `context` tokens; each sees the tokens up to its own.
struct ScoreShape {
  int queries = 0;  ///< a multiple of kQueriesOfBlock
  int context = 0;
  int top_k = 0;  ///< 0: scores are stored instead
  int room = 0;   ///< entries a query; at least top_k + slack + kCheckEvery · kTokensOfTile
  int slack = 0;  ///< so many more than top_k may stay until the last look
};
struct ScoreArrays {
  simt::Span<const std::uint8_t> q;     ///< [queries × kHeads × kDim], E4M3
  simt::Span<const float> weights;      ///< [queries × kHeads]
  simt::Span<const std::uint8_t> keys;  ///< [context × kDim], E4M3
  simt::Span<const float> scales;       ///< [context]
  simt::Span<float> scores;             ///< [queries × context]: without top_k
  simt::Span<int> chosen;               ///< [queries × top_k]: with it, in no order; −1: none
};
constexpr std::size_t score_shared_bytes(const ScoreShape& shape) {
  constexpr std::size_t kCounts = 256 + 16;
  const std::size_t kept =
      shape.top_k > 0 ? kQueriesOfBlock * (8 * static_cast<std::size_t>(shape.room) + 4 * kCounts)
                      : 0;
  return 1024 + kDim * (kQueriesOfBlock * kHeads + kIndexStages * kTokensOfTile) +
         (1 + 2 * kIndexStages) * 8 + kept;
}

// ---- decoding over chosen rows -----------------------------------------------------------------------

inline constexpr int kRowNumbers = 576, kValueNumbers = 512, kHeadsOfBlock = 16;
inline constexpr int kRowsOfTile = 32, kRowStages = 2, kMostChosen = 2048;
/// Of a row in shared memory: 16 bytes more, so that eight rows' chunks lie in different banks.
inline constexpr int kRowPitch = kRowNumbers + 8;
/// Of a head's scores: eight more, so that two of each of four heads lie in different banks.
inline constexpr int kScorePitch = kRowsOfTile + 8;
inline constexpr int kGatherThreads = 256;

struct DecodeShape {
  int batch = 0;
  int top_k = 0;  ///< up to kMostChosen
  int page_size = 64;
  int table_pitch = 0;  ///< pages of a request
  float scale = 1;
};
/// BF16: q [batch × 16 × 576], cache [pages × page_size × 576], o [batch × 16 × 512].
struct DecodeArrays {
  simt::Span<const std::uint16_t> q, cache;
  simt::Span<const int> table;   ///< [batch × table_pitch]
  simt::Span<const int> chosen;  ///< [batch × top_k]; −1 behind the last
  simt::Span<std::uint16_t> o;
};
constexpr std::size_t decode_shared_bytes() {
  return sizeof(std::uint16_t) * kRowPitch * (kRowsOfTile * kRowStages + kHeadsOfBlock) +
         sizeof(float) * 2 * kHeadsOfBlock * kScorePitch + sizeof(int) * kMostChosen;
}

}  // namespace tilestep::sparse_attention::timed

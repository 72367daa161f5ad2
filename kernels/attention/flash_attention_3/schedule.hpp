#pragma once

/// \file
/// FlashAttention 3's kernels as the host knows them: the order of tiles, compile-time constants, and the events
/// that an explained kernel records.
///
/// A block has kConsumers · 64 rows of queries of one head, and walks over the tiles of keys from the last that
/// any of them sees down to the first: tiles masked at the right then come first.

#include <cstddef>
#include <cstdint>

#include "kernels/attention/shared/mask.hpp"
#include "kernels/attention/shared/task.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::flash_attention_3 {

using namespace attention;

/// The three kernels; each includes the features of those before it.
enum class Rung {
  tma,        ///< a warp copies, warpgroups multiply and do softmax, each on its own
  ping_pong,  ///< they take turns: softmax of one under products of another
  pipelined,  ///< and softmax also runs under the warpgroup's own products of the previous tile
};

// ---- sizes ----------------------------------------------------------------------------------------

inline constexpr int kWarpgroup = 128;                        ///< threads
inline constexpr int kRowsOfGroup = 64;                       ///< queries of a warpgroup
inline constexpr int kPanelBytes = 128;                       ///< of a row: the swizzle's width
inline constexpr int kPanelColumns = kPanelBytes / 2;         ///< numbers of 16 bits
inline constexpr int kBoxBytes = kRowsOfGroup * kPanelBytes;  ///< of 64 rows of a panel
inline constexpr int kAlignment = 1024;  ///< of a tile: required by the swizzle pattern
inline constexpr int kMostConsumers = 3;

/// A kernel's compile-time constants.
struct TileSizes {
  int head_dim, keys, consumers, stages;

  constexpr int rows() const { return consumers * kRowsOfGroup; }
  constexpr int threads() const { return (1 + consumers) * kWarpgroup; }
  constexpr int query_bytes() const { return kRowsOfGroup * head_dim * 2; }  ///< of a warpgroup
  constexpr int key_bytes() const { return keys * head_dim * 2; }            ///< of K, or of V
  /// Q, the same again for staging O, the stages, the barriers, and slack for alignment.
  constexpr int shared_bytes() const {
    return 2 * consumers * query_bytes() + 2 * stages * key_bytes() + (2 + 4 * stages) * 8 +
           kAlignment;
  }
};

// ---- which keys -----------------------------------------------------------------------------------

/// Placeholder for the documents of masks that have none.
struct NoDocuments {
  __host__ __device__ constexpr int operator[](int) const { return 0; }
};

/// Tiles of keys, both ends included; none where last < first.
struct KeyTiles {
  int first, last;

  __host__ __device__ constexpr int count() const { return last - first + 1; }
};
/// The tiles that any of the queries q0 … q1 sees; one that is all masked if they see none.
__host__ __device__ constexpr KeyTiles tiles_seen(const MaskRule& rule, int q0, int q1, int width) {
  const int last_key = rule.last_key(q1);
  const int last = (last_key < rule.length ? last_key : rule.length - 1) / width;
  const int first = rule.first_key(q0, NoDocuments{}) / width;
  return {first < last ? first : last, last};
}
/// Those of them in which all queries q0 … q1 see every key.
__host__ __device__ constexpr KeyTiles tiles_full(const MaskRule& rule, int q0, int q1, int width) {
  const int last_key = rule.last_key(q0);
  const int end = last_key < rule.length ? last_key + 1 : rule.length;
  return {(rule.first_key(q1, NoDocuments{}) + width - 1) / width, end / width - 1};
}

// ---- which tile of queries ------------------------------------------------------------------------

struct QueryTile {
  int head, tile;
};
/// The order of the tiles of queries. Head after head; or, where later tiles have more keys, the last
/// tiles of all heads first, so that the short ones are left for the end.
struct TileOrder {
  int tiles;  ///< of a head
  int heads;
  bool heavy_first;

  __host__ __device__ constexpr int count() const { return tiles * heads; }
  __host__ __device__ constexpr QueryTile place(int number) const {
    if (!heavy_first) return {number / tiles, number % tiles};
    return {number % heads, tiles - 1 - number / heads};
  }
  /// The tile number in a block's `turn`, given the number of blocks: alternately forwards and backwards, so that the
  /// block with the heaviest tile of one turn gets the lightest of the next. May be past the last one.
  __host__ __device__ constexpr int number_of(int block, int turn, int blocks) const {
    return turn * blocks + (heavy_first && turn % 2 == 1 ? blocks - 1 - block : block);
  }
};

// ---- records of an explained kernel ---------------------------------------------------------------

/// The events of a block. They are numbered by its tiles of keys, or by tiles of queries or turns where noted.
enum class What {
  waits_empty_q,  ///< the producer begins to wait until Q's tile is free (tiles of queries)
  copies_q,       ///< its copies of Q are issued (tiles of queries)
  waits_empty_k,  ///< it begins to wait for a stage of K
  copies_k,       ///< its copies of K are issued
  waits_empty_v,
  copies_v,
  full_k,  ///< the observer sees that K has arrived
  full_v,
  waits_k,         ///< a consumer begins to wait for K
  waits_turn,      ///< … for its turn (turns)
  takes_turn,      ///< it has the turn (turns)
  passes_turn,     ///< its products are issued: the next one's turn (turns)
  issues_s,        ///< it begins to issue S = Q Kᵀ
  commits_s,       ///< all of them are issued
  done_s,          ///< they are done
  releases_k,      ///< K's stage is released
  begins_softmax,  ///< scores become weights
  ends_softmax,
  waits_v,
  issues_o,  ///< it begins to issue O += P V
  commits_o,
  done_o,
  releases_v,
  stores,  ///< it begins to store O (tiles of queries)
  stored,  ///< it is done, except for TMA's part (tiles of queries)
};
/// A tape's site: of the kind of event, and of the consumer.
inline constexpr int kConsumerSites =
    static_cast<int>(What::stored) - static_cast<int>(What::waits_k) + 1;
constexpr int site_of(What what, int consumer = 0) {
  return static_cast<int>(what) + consumer * kConsumerSites;
}
inline constexpr int kSites = site_of(What::waits_k, kMostConsumers);

using Step = attention::SoftmaxStep;
/// Array of Step that the tape keeps: the chosen query's, at each of the block's tiles of keys.
inline constexpr std::uint32_t kSteps = 0;

/// The faults of an explained kernel: those of the knob `break` and, under emulation, each wait, fence and release
/// omitted, for tests.
enum class Fault {
  none,
  skip_rescale,
  mask_off_by_one,  ///< each query sees one key more
  last_of_knob = mask_off_by_one,
  no_publish,        ///< TMA is not told of the barriers
  no_meeting,        ///< no thread waits for the barriers' initialization
  skip_query_wait,   ///< a consumer does not wait for Q
  skip_key_wait,     ///< nor for K
  skip_value_wait,   ///< nor for V
  skip_empty_query,  ///< the producer does not wait until Q's tile is free
  skip_empty_key,
  skip_empty_value,
  early_query_release,  ///< released while products read it
  early_key_release,
  early_value_release,
  no_key_release,    ///< never released
  no_score_wait,     ///< scores are read while products are in flight
  no_output_wait,    ///< O is read, or scaled, while products are in flight
  missing_fence,     ///< TMA is not told that O was written
  no_store_wait,     ///< O is overwritten while TMA reads it
  no_store_meeting,  ///< TMA is asked to store before all have written
  no_write_meeting,  ///< O is written before the store's wait is over
};

}  // namespace tilestep::flash_attention_3

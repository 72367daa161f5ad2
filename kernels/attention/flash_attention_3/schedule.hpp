#pragma once

/// \file
/// FlashAttention 3's kernels as the host knows them: which tile comes when, what is fixed when they are
/// compiled, and what an explained kernel notes.
///
/// A block has kConsumers · 64 rows of queries of one head, and goes through the tiles of keys from the last
/// that any of them may look at down to the first: what is masked at the right then comes first.

#include <cstddef>
#include <cstdint>

#include "kernels/attention/shared/mask.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::flash_attention_3 {

using namespace attention;

/// The three kernels; each has what those before it have.
enum class Rung {
  tma,        ///< a warp copies, warpgroups multiply and weigh, each on its own
  ping_pong,  ///< they take turns: one weighs while another multiplies
  pipelined,  ///< and a warpgroup weighs while its own products of the tile before are under way
};

// ---- sizes ----------------------------------------------------------------------------------------

inline constexpr int kWarpgroup = 128;                        ///< threads
inline constexpr int kRowsOfGroup = 64;                       ///< queries of a warpgroup
inline constexpr int kPanelBytes = 128;                       ///< of a row: what the swizzle takes
inline constexpr int kPanelColumns = kPanelBytes / 2;         ///< numbers of 16 bits
inline constexpr int kBoxBytes = kRowsOfGroup * kPanelBytes;  ///< of 64 rows of a panel
inline constexpr int kAlignment = 1024;  ///< of a tile: what the swizzle's pattern takes
inline constexpr int kMostConsumers = 3;

/// What is fixed for a kernel .
struct TileSizes {
  int head_dim, keys, consumers, stages;

  constexpr int rows() const { return consumers * kRowsOfGroup; }
  constexpr int threads() const { return (1 + consumers) * kWarpgroup; }
  constexpr int query_bytes() const { return kRowsOfGroup * head_dim * 2; }  ///< of a warpgroup
  constexpr int key_bytes() const { return keys * head_dim * 2; }            ///< of K, or of V
  /// Q, as much again for O on its way out, the stages, the barriers, and what alignment may cost.
  constexpr int shared_bytes() const {
    return 2 * consumers * query_bytes() + 2 * stages * key_bytes() + (2 + 4 * stages) * 8 +
           kAlignment;
  }
};

// ---- which keys -----------------------------------------------------------------------------------

/// Stands for the documents of masks that have none.
struct NoDocuments {
  __host__ __device__ constexpr int operator[](int) const { return 0; }
};

/// Tiles of keys, both ends included; none where last < first.
struct KeyTiles {
  int first, last;
};
/// The tiles that some of the queries q0 … q1 may look at; one that is all masked where they may look at none.
__host__ __device__ constexpr KeyTiles tiles_seen(const MaskRule& rule, int q0, int q1, int width) {
  const int last_key = rule.last_key(q1);
  const int last = (last_key < rule.length ? last_key : rule.length - 1) / width;
  const int first = rule.first_key(q0, NoDocuments{}) / width;
  return {first < last ? first : last, last};
}
/// Of those the ones of which all queries q0 … q1 may look at every key.
__host__ __device__ constexpr KeyTiles tiles_full(const MaskRule& rule, int q0, int q1, int width) {
  const int last_key = rule.last_key(q0);
  const int end = last_key < rule.length ? last_key + 1 : rule.length;
  return {(rule.first_key(q1, NoDocuments{}) + width - 1) / width, end / width - 1};
}

// ---- which tile of queries ------------------------------------------------------------------------

struct QueryTile {
  int head, tile;
};
/// The order in which tiles of queries come. Head after head; or, where later tiles have more keys, the last
/// ones of all heads first, so that the short ones are left for the end.
struct TileOrder {
  int tiles;  ///< of a head
  int heads;
  bool heavy_first;

  __host__ __device__ constexpr int count() const { return tiles * heads; }
  __host__ __device__ constexpr QueryTile place(int number) const {
    if (!heavy_first) return {number / tiles, number % tiles};
    return {number % heads, tiles - 1 - number / heads};
  }
  /// Which number comes in a block's `turn`, of so many blocks: forwards and backwards by turns, so that who
  /// had the heaviest of one turn has the lightest of the next. May be past the last one.
  __host__ __device__ constexpr int number_of(int block, int turn, int blocks) const {
    return turn * blocks + (heavy_first && turn % 2 == 1 ? blocks - 1 - block : block);
  }
};

// ---- what an explained kernel notes ---------------------------------------------------------------

/// What happens, by whom; a site. Numbers count what the block does: tiles of keys, but where it says tiles of
/// queries or turns. Of consumer c at site + c · kConsumerSites.
enum Site : int {
  // The producer.
  kWaitsEmptyQ,  ///< begins to wait until Q's tile is free (tiles of queries)
  kCopiesQ,      ///< its copies are issued (tiles of queries)
  kWaitsEmptyK,
  kCopiesK,
  kWaitsEmptyV,
  kCopiesV,
  // Who looks on.
  kFullK,  ///< sees that K is there
  kFullV,
  // A consumer.
  kWaitsK,         ///< begins to wait for K
  kWaitsTurn,      ///< begins to wait for its turn (turns)
  kTakesTurn,      ///< has it (turns)
  kPassesTurn,     ///< its products are issued: the next one's turn (turns)
  kIssuesS,        ///< begins to issue S = Q Kᵀ
  kCommitsS,       ///< all are issued
  kDoneS,          ///< they are done
  kReleasesK,      ///< K's stage is given back
  kBeginsSoftmax,  ///< scores become weights
  kEndsSoftmax,
  kWaitsV,
  kIssuesO,  ///< begins to issue O += P V
  kCommitsO,
  kDoneO,
  kReleasesV,
  kStores,  ///< begins to store O (tiles of queries)
  kStored,  ///< is done with that, but for TMA's part (tiles of queries)
};
inline constexpr int kConsumerSites = kStored - kWaitsK + 1;
inline constexpr int kSites = kWaitsK + kMostConsumers * kConsumerSites;

/// What an explained kernel notes of the chosen row of queries at each tile of keys, as so many floats.
enum RowField : int {
  kRowTile,     ///< number of the tile of keys
  kRowHighest,  ///< highest score of the tile; −∞ where all are masked
  kRowMaximum,  ///< of all tiles so far
  kRowRescale,  ///< what ℓ and O are multiplied with
  kRowSum,      ///< ℓ afterwards
  kRowFields
};

/// What an explained kernel leaves out or does wrong: what the knob `break` has, and under emulation each wait,
/// fence and release, for tests.
enum class Fault {
  none,
  skip_rescale,
  mask_off_by_one,  ///< each query may look at one key more
  last_of_knob = mask_off_by_one,
  no_publish,        ///< TMA is not told of the barriers
  no_meeting,        ///< nobody waits until the barriers are there
  skip_query_wait,   ///< a consumer does not wait for Q
  skip_key_wait,     ///< nor for K
  skip_value_wait,   ///< nor for V
  skip_empty_query,  ///< the producer does not wait until Q's tile is free
  skip_empty_key,
  skip_empty_value,
  early_query_release,  ///< given back while products read it
  early_key_release,
  early_value_release,
  no_key_release,    ///< never given back
  no_score_wait,     ///< scores are read while products are under way
  no_output_wait,    ///< O is read, or scaled, while products are under way
  missing_fence,     ///< TMA is not told that O was written
  no_store_wait,     ///< O is written again while TMA reads it
  no_store_meeting,  ///< TMA is asked to store before all have written
  no_write_meeting,  ///< O is written before the store's wait is over
};

}  // namespace tilestep::flash_attention_3

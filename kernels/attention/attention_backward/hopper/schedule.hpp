#pragma once

/// \file
/// The backward pass for Hopper as the host knows it: which tiles meet, compile-time constants, and the events that
/// an explained kernel records.
///
/// A block has kConsumers · 64 keys of a key/value head, and walks over the tiles of queries that see any of
/// them, for all query heads that share the head.

#include <cstddef>
#include <cstdint>

#include "kernels/attention/flash_attention_3/schedule.hpp"
#include "kernels/attention/shared/mask.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::attention_backward::hopper {

using namespace attention;
namespace flash_3 = flash_attention_3;

using flash_3::kAlignment;
using flash_3::kBoxBytes;
using flash_3::kPanelBytes;
using flash_3::kPanelColumns;
using flash_3::kRowsOfGroup;
using flash_3::kWarpgroup;
using flash_3::NoDocuments;

// ---- sizes ----------------------------------------------------------------------------------------

inline constexpr int kConsumers = 2;                     ///< warpgroups that multiply
inline constexpr int kKeys = kConsumers * kRowsOfGroup;  ///< of a block
inline constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
/// A warpgroup stores sums of dQ as 64 × 64 FP32: as a row-major matrix with this many columns.
inline constexpr int kPieceColumns = 256;
inline constexpr int kPieceRows = kRowsOfGroup * kRowsOfGroup / kPieceColumns;
inline constexpr int kPieceBytes = kPieceRows * kPieceColumns * 4;

/// What is fixed for a kernel but for the format, which hopper.hpp has.
struct TileSizes {
  int head_dim, queries;
  int stages;           ///< of Q
  int gradient_stages;  ///< of dO

  constexpr int key_bytes() const { return kKeys * head_dim * 2; }      ///< of K, or of V
  constexpr int query_bytes() const { return queries * head_dim * 2; }  ///< of Q, or of dO
  constexpr int row_bytes() const { return 2 * queries * 4; }           ///< of log-sum-exp and D
  constexpr int score_bytes() const { return queries * kKeys * 2; }     ///< of dS
  constexpr int barriers() const { return 2 + 2 * stages + 2 * gradient_stages; }
  /// K, V, the stages, two tiles of dS, staging for dQ, the barriers, and slack for alignment.
  constexpr int shared_bytes() const {
    return 2 * key_bytes() + (stages + gradient_stages) * query_bytes() + 2 * score_bytes() +
           kConsumers * kPieceBytes + stages * row_bytes() + barriers() * 8 + kAlignment;
  }
};

// ---- which queries --------------------------------------------------------------------------------

/// Tiles of queries, both ends included; none where last < first.
struct SeenTiles {
  int first, last;

  __host__ __device__ constexpr int count() const { return last < first ? 0 : last - first + 1; }
};
/// Those of which some query may look at one of the keys k0 … k1, which are there. Without first keys, which
/// every query may look at, a key is looked at by a range of queries.
__host__ __device__ constexpr SeenTiles tiles_seen(const MaskRule& rule, int k0, int k1,
                                                   int height) {
  const int end = rule.length - 1;
  if (rule.mask == Mask::none) return {0, end / height};
  if (rule.mask != Mask::sliding_window) return {k0 / height, end / height};
  if (rule.window == 0) return {0, -1};
  const int last = k1 + rule.window - 1;
  return {k0 / height, (last < end ? last : end) / height};
}
/// Whether the queries q0 … q1, or as many of them as there are, may look at all keys k0 … k1.
__host__ __device__ constexpr bool all_seen(const MaskRule& rule, int q0, int q1, int k0, int k1) {
  const int last = q1 < rule.length ? q1 : rule.length - 1;
  return k1 < rule.length && k1 <= rule.last_key(q0) && rule.first_key(last, NoDocuments{}) <= k0;
}

// ---- which keys -----------------------------------------------------------------------------------

struct KeyTile {
  int head, tile;
};
/// The order of the tiles of keys. Head after head, or the first tiles of several heads together first:
/// under a causal mask these have the most queries.
struct TileOrder {
  int tiles;  ///< of a head
  int heads;
  int together;  ///< heads, 1 … heads

  __host__ __device__ constexpr int count() const { return tiles * heads; }
  __host__ __device__ constexpr KeyTile place(int number) const {
    const int group = number / (tiles * together);
    const int first = group * together;
    const int here = heads - first < together ? heads - first : together;
    const int rest = number - first * tiles;
    return {first + rest % here, rest / here};
  }
};

// ---- records of an explained kernel ---------------------------------------------------------------

/// A kind of event, per actor; a site. Events are numbered by the block's tiles of queries. Consumer c is at
/// site + c · kConsumerSites.
enum Site : int {
  // The producer.
  kWaitsEmptyQ,  ///< begins to wait until Q's stage is free
  kCopiesQ,      ///< its copies are issued
  kWaitsEmptyDo,
  kCopiesDo,
  // A consumer.
  kIssuesS,   ///< issues S^T = K Q^T
  kIssuesDp,  ///< issues dP^T = V dO^T
  kDoneS,
  kBeginsP,   ///< scores become weights
  kIssuesDv,  ///< issues dV += P^T dO
  kDoneDp,
  kStoresDs,  ///< dS = P ∘ (dP − D) is in shared memory
  kIssuesDk,  ///< issues dK += dS^T Q
  kWaitsDs,   ///< waits for the others' dS
  kIssuesDq,  ///< issues dQ = dS K
  kDoneDq,
  kReleases,  ///< Q's stage is released; dO's was when dV was done
  kStoresDq,  ///< dQ is in shared memory
  // The warp that adds to dQ in memory, for each consumer.
  kAddsDq,   ///< asks TMA to add
  kAddedDq,  ///< TMA has read
};
inline constexpr int kConsumerSites = kAddedDq - kIssuesS + 1;
inline constexpr int kSites = kIssuesS + kConsumers * kConsumerSites;

/// Omissions of an explained kernel, only under emulation: each wait, fence and release, for tests.
enum class Fault {
  none,
  last_of_knob = none,
  no_publish,          ///< TMA is not told of the barriers
  no_meeting,          ///< no thread waits for the barriers' initialization
  skip_key_wait,       ///< a consumer does not wait for K
  skip_value_wait,     ///< nor for V
  skip_query_wait,     ///< nor for Q, log-sum-exp and D
  skip_gradient_wait,  ///< nor for dO
  skip_empty_query,    ///< the producer does not wait until Q's stage is free
  skip_empty_gradient,
  early_query_release,  ///< released while products read it
  early_gradient_release,
  no_query_release,  ///< never released
  no_gradient_release,
  no_score_wait,      ///< S is read while products are in flight
  no_weight_wait,     ///< dP is
  no_query_sum_wait,  ///< dQ is
  no_ds_fence,        ///< wgmma is not told that dS was written
  no_ds_meeting,      ///< dQ is multiplied before all have written dS
  no_dq_fence,        ///< TMA is not told that dQ was written
  no_dq_full_wait,    ///< TMA is asked to add before all have written
  no_dq_full,         ///< no signal that it is written
  no_dq_free_wait,    ///< dQ is overwritten before it is free
  no_dq_free,         ///< no signal that it is free
  no_add_wait,        ///< it is released while TMA reads it
  no_key_meeting,     ///< dK is written over K while others multiply it
  no_store_fence,     ///< TMA is not told that dK, dV were written
  no_store_meeting,   ///< TMA is asked to store before all have written
  no_store_wait,      ///< the block ends while TMA reads
  last = no_store_wait,
};

}  // namespace tilestep::attention_backward::hopper

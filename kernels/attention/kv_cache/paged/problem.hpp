#pragma once

/// \file
/// The inputs of the kernels for paged heads (mha, gqa, mqa): a problem, its arrays on the device, how the work is
/// split, and the records of an explained launch. Plain data, known to host and kernels.

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/simt.hpp"

namespace tilestep::kv_cache::paged {

// ---- what is computed -----------------------------------------------------------------------------

/// The number format of K and V in the cache: BF16, as q and o, or fewer bits. int4: two per byte, low half first.
enum class Cache { same, fp8, int8, int4 };

constexpr int bits_of(Cache cache) {
  return cache == Cache::int4 ? 4 : cache == Cache::same ? 16 : 8;
}
constexpr bool has_scales(Cache cache) {
  return cache != Cache::same;
}

/// How the parts of a request are merged.
enum class Merging {
  weighted,    ///< each by its maximum and sum: online softmax again
  first_only,  ///< broken: the first part is used as the whole
};
/// Where the merge runs.
enum class MergedBy {
  last_block,    ///< the block that finishes last of those that share a row
  other_kernel,  ///< `merge`, launched afterwards
};

/// The most query rows of an item: a block's room.
inline constexpr int kMostRows = 64;

/// Numbers of a head that the explained and the timed kernels are compiled for.
inline constexpr int kExplainedDim = 32, kTimedDim = 128;

/// What an explained launch records apart from its items.
struct Followed {
  int request = 0, head = 0, component = 0;  ///< of O: its steps
  int step_pitch = 0;                        ///< steps of an item at most
  int traced_item =
      -1;  ///< whose copies of K and V and look-ups in the table go on the tape, by Tensor
};

struct Problem {
  Cache cache = Cache::same;
  int head_dim = kTimedDim;
  int heads = 1, kv_heads = 1;
  int page_size = 16;       ///< tokens; any from 1
  int table_pitch = 0;      ///< pages of a row of the block table
  int most_rows = 1;        ///< most query heads of an item and a request; the rows of a slot
  int most_requests = 1;    ///< of an item; most_rows · most_requests is 1 … kMostRows
  bool k_channels = false;  ///< a quantized K has a scale per channel, not per token
  MergedBy merged_by = MergedBy::last_block;
  Merging merging = Merging::weighted;
  Followed followed;
};

// ---- how work is split --------------------------------------------------------------------------

/// Pages for query heads that share a K/V head, of one request or of several successive ones whose tables begin with
/// them. The items of a request's heads have slots `first_slot` … `first_slot + splits - 1`, in order of their pages;
/// where there is only one it needs no slot (−1) and stores O itself. Shared pages are never all of a request: it has
/// an item of its own after them, without pages if need be, as has a request without tokens.
struct WorkItem {
  int request, requests;  ///< the first of them; how many
  int kv_head;
  int first_head, heads;  ///< of a request's queries; with repeat-kv one at a time
  int first_page, pages;  ///< places in a request's row of the block table
  int split, splits;  ///< of the first request; the others have as many parts as Arrays::parts says
  int first_slot;     ///< of the first request; the next one's is slot_stride further
  int slot_stride;
};
constexpr bool is_split(const WorkItem& item) {
  return item.splits > 1;
}
/// Query rows of an item: request by request, the heads of each.
constexpr int rows_of(const WorkItem& item) {
  return item.requests * item.heads;
}
/// The index of a row's part, in slots of `pitch` rows.
constexpr int part_of(const WorkItem& item, int row, int pitch) {
  const int slot = item.first_slot + row / item.heads * item.slot_stride + item.split;
  return slot * pitch + row % item.heads;
}
/// The index of a row's query among those of all requests, with `heads` heads each.
constexpr int query_of(const WorkItem& item, int row, int heads) {
  return (item.request + row / item.heads) * heads + item.first_head + row % item.heads;
}
/// The row of an item with the query of a head of a request; −1: none.
constexpr int row_with(const WorkItem& item, int request, int head) {
  const int which = request - item.request, mine = head - item.first_head;
  const bool has = which >= 0 && which < item.requests && mine >= 0 && mine < item.heads;
  return has ? which * item.heads + mine : -1;
}

// ---- arrays ---------------------------------------------------------------------------------------

/// On the device; all row-major.
struct Arrays {
  simt::Span<const std::uint16_t> q;  ///< [batch × heads × head_dim]
  simt::Span<const std::uint8_t> k,
      v;  ///< bytes of [pages × kv_heads × page_size × head_dim], aligned to 16
  simt::Span<const float>
      k_scales;  ///< [pages × kv_heads × page_size], or by channel [kv_heads × head_dim]
  simt::Span<const float> v_scales;  ///< [pages × kv_heads × page_size]
  simt::Span<const int> table;       ///< [batch × table_pitch]
  simt::Span<const int> context;     ///< [batch], tokens
  simt::Span<const WorkItem> items;
  simt::Span<const int>
      first_item;  ///< [blocks + 1]: block b has items first_item[b] … first_item[b + 1] - 1
  simt::Span<std::uint16_t> o;  ///< [batch × heads × head_dim]
  simt::Span<float> lse;        ///< [batch × heads], natural
  // Parts, one slot each.
  simt::Span<float> part_o;  ///< [slots × most_rows × head_dim]: Σ e^(s − m) v, undivided
  simt::Span<float> part_m, part_l;  ///< [slots × most_rows]: natural maximum and Σ e^(s − m)
  simt::Span<int> arrived;           ///< [slots], 0 before the first launch and left so
  simt::Span<const int> parts;       ///< [slots]: where a row's slots begin, its parts
};
/// Any array as bytes.
template <class T>
simt::Span<const std::uint8_t> bytes_of(simt::Span<T> array) {
  return {reinterpret_cast<const std::uint8_t*>(array.data), array.count * sizeof(T)};
}

// ---- records of an explained launch -------------------------------------------------------------

/// A tensor whose bytes are counted.
enum Tensor : int { kQ, kK, kV, kScales, kTable, kO, kLse, kParts, kTensors };

/// A work item as its block has done it.
struct ItemTrace {
  int request = 0;
  int kv_head = 0, first_head = 0, heads = 0;
  int first = 0, tokens = 0;  ///< of the request's
  int split = 0, splits = 1;
  int block = 0, order = 0;  ///< its block, and its number among the block's items
  int tiles = 0;
  int first_round = 0;  ///< tiles that the block took before
  /// On a GPU: ns since the first began; under emulation, which has no time: items that its block had finished.
  std::int64_t begin = 0, end = 0;
  bool operator==(const ItemTrace&) const = default;
};

/// A tile's effect on the followed row. Scaled scores, in natural units.
struct StepTrace {
  int item = 0, tile = 0;
  int tokens = 0;
  float tile_max = 0, m_before = 0, m_after = 0, rescale = 0, tile_sum = 0, l = 0;
  float o = 0;  ///< the followed component, undivided
  bool operator==(const StepTrace&) const = default;
};

/// Tokens of an explained kernel's tile; it processes an item's tiles one after another.
inline constexpr int kExplainedTile = 16;

/// The arrays that an explained launch's tape keeps.
enum Kept : std::uint32_t {
  kItems,  ///< ItemTrace [items]; clocks are not relative to the first yet, nor is first_round counted
  kSteps,    ///< StepTrace [items × step_pitch] of those with the followed row, without `o`
  kOutputs,  ///< float [items × step_pitch]: `o` of the steps
  kAsked,    ///< unsigned long long [kTensors × 2]: bytes loaded, bytes stored; 0 before
  kWeights,  ///< float [slots × most_rows]: what the merge gave each part, e^(m_part − m)
};

}  // namespace tilestep::kv_cache::paged

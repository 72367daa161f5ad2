#pragma once

/// \file
/// What the kernels for paged heads (mha, gqa, mqa) are asked for: a problem, its arrays on the device, how the work is
/// cut, and what an explained launch records. Plain data, known to host and kernels.

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/simt.hpp"

namespace tilestep::kv_cache::paged {

// ---- what is computed -----------------------------------------------------------------------------

/// How a number of K and V lies in the cache: as q and o do, in BF16, or in fewer bits. int4: two in a byte, the first of a row in the low half.
enum class Cache { same, fp8, int8, int4 };

constexpr int bits_of(Cache cache) {
  return cache == Cache::int4 ? 4 : cache == Cache::same ? 16 : 8;
}
constexpr bool has_scales(Cache cache) {
  return cache != Cache::same;
}

/// How the parts of a request are put together.
enum class Merging {
  weighted,    ///< each by its maximum and sum: online softmax once more
  first_only,  ///< broken: the first part is taken for the whole
};
/// Who does it.
enum class MergedBy {
  last_block,    ///< the block that finishes last of those that share a row
  other_kernel,  ///< `merge`, launched afterwards
};

/// Query rows of an item at most: what a block has room for.
inline constexpr int kMostRows = 64;

/// Numbers of a head that the explained and the timed kernels are compiled for.
inline constexpr int kExplainedDim = 32, kTimedDim = 128;

struct Problem {
  Cache cache = Cache::same;
  int head_dim = kTimedDim;
  int heads = 1, kv_heads = 1;
  int page_size = 16;     ///< tokens; any from 1
  int table_pitch = 0;    ///< pages of a row of the block table
  int most_rows = 1;      ///< query heads of an item and a request at most; a slot has so many rows
  int most_requests = 1;  ///< of an item; most_rows · most_requests is 1 … kMostRows
  bool k_channels = false;  ///< a quantized K has a scale a channel, not one a token
  MergedBy merged_by = MergedBy::last_block;
  Merging merging = Merging::weighted;
};

// ---- how the work is cut --------------------------------------------------------------------------

/// Pages for query heads that share a K/V head, of one request or of several successive ones whose tables begin with
/// them. The items of a request's heads have slots `first_slot` … `first_slot + splits - 1`, in order of their pages;
/// where there is only one it needs no slot (−1) and stores O itself. Pages that are shared are never all of a request:
/// it has an item of its own after them, without pages if need be, as has a request without tokens.
struct WorkItem {
  int request, requests;  ///< the first of them; how many
  int kv_head;
  int first_head, heads;  ///< of the queries of a request; with repeat-kv one a time
  int first_page, pages;  ///< places in a request's row of the block table
  int split, splits;  ///< of the first request; the others have as many parts as Arrays::parts says
  int first_slot;     ///< of the first request; the next one's is slot_stride further
  int slot_stride;
};
constexpr bool is_split(const WorkItem& item) {
  return item.splits > 1;
}
/// Query rows of an item: request by request, of each its heads.
constexpr int rows_of(const WorkItem& item) {
  return item.requests * item.heads;
}
/// Where a row's part lies, among rows of slots of `pitch` rows.
constexpr int part_of(const WorkItem& item, int row, int pitch) {
  const int slot = item.first_slot + row / item.heads * item.slot_stride + item.split;
  return slot * pitch + row % item.heads;
}
/// Where a row's query lies, among those of all requests of `heads` heads.
constexpr int query_of(const WorkItem& item, int row, int heads) {
  return (item.request + row / item.heads) * heads + item.first_head + row % item.heads;
}
/// Which row of an item has the queries of a head of a request; −1: none.
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
  simt::Span<float> part_o;  ///< [slots × most_rows × head_dim]: Σ e^(s − m) v, not divided
  simt::Span<float> part_m, part_l;  ///< [slots × most_rows]: natural maximum and Σ e^(s − m)
  simt::Span<int> arrived;           ///< [slots], 0 before the first launch and left so
  simt::Span<const int> parts;       ///< [slots]: where a row's slots begin, its parts
};
/// Any array as bytes.
template <class T>
simt::Span<const std::uint8_t> bytes_of(simt::Span<T> array) {
  return {reinterpret_cast<const std::uint8_t*>(array.data), array.count * sizeof(T)};
}

// ---- what an explained launch records -------------------------------------------------------------

/// A tensor whose bytes are counted.
enum Tensor : int { kQ, kK, kV, kScales, kTable, kO, kLse, kParts, kTensors };

/// Of one work item. Clocks: nanoseconds that all multiprocessors share; under emulation the items that the block was
/// done with before, and then those and this one.
struct Visit {
  int block, multiprocessor;  ///< emulated: the block twice
  int order;                  ///< of the block's items
  int tiles;
  long long begin, end;
};
/// What a tile does to the chosen row. Scores in natural units.
struct StepRecord {
  float tile_max, m_before, m_after, rescale, tile_sum, l;
  float o;     ///< the chosen component, not yet divided, of the row after this tile
  int tokens;  ///< of the tile that count
};
/// Explained kernels have tiles of so many tokens, and one tile of an item after the other.
inline constexpr int kExplainedTile = 16;
constexpr int explained_tiles(int tokens) {
  return (tokens + kExplainedTile - 1) / kExplainedTile;
}

struct Explanation {
  int request = 0, head = 0, component = 0;  ///< whose steps are noted
  int step_pitch = 0;                        ///< steps of an item at most
  simt::Span<Visit> visits;                  ///< [items]
  simt::Span<StepRecord>
      steps;  ///< [items × step_pitch]; those of items without the chosen row are left as they are
  simt::Span<unsigned long long> asked;  ///< [kTensors × 2]: bytes loaded, bytes stored; 0 before
  simt::Span<float>
      weights;  ///< [slots × most_rows]: what the merge gave each part, e^(m_part − m)
  int traced_item =
      -1;           ///< whose copies of K and V and look-ups in the table go on the tape, by Tensor
  simt::Tape tape;  ///< empty: none do
};

}  // namespace tilestep::kv_cache::paged

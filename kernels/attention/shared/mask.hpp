#pragma once

/// \file
/// The keys that a query sees. One description for kernels, references and pictures: all masks of the lesson
/// are ranges of keys whose ends never decrease from query to query, plus a few first keys.

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/base/lab/names.hpp"

namespace tilestep::attention {

enum class Mask {
  none,
  causal,          ///< keys up to the query's own position
  sliding_window,  ///< of those the last `window`, and the first `sinks`
  document,        ///< those of them in the query's own document
  prefix,          ///< those, and the first `window` keys for every query
};
constexpr auto names_of(Mask) {
  return std::to_array<std::string_view>(
      {"none", "causal", "sliding-window", "document", "prefix"});
}

/// The kind of a tile of scores.
enum class TileKind : std::uint8_t {
  skipped,  ///< no query sees any key: nothing is fetched or multiplied
  partial,  ///< some do: each score is checked
  full,     ///< all do: no score is checked
};
constexpr auto names_of(TileKind) {
  return std::to_array<std::string_view>({"skipped", "partial", "full"});
}

/// The tiles of keys that a tile of queries visits, computed once, so that the loop over them needs no checks:
/// those of the first keys, then, perhaps after a gap, those of the range.
///
///     for (int tile = tiles.next(0); tile < tiles.end; tile = tiles.next(tile + 1)) …
struct KeyTiles {
  int first_end = 0;                 ///< tiles 0 … first_end − 1 hold first keys
  int begin = 0, end = 0;            ///< of the range
  int full_begin = 0, full_end = 0;  ///< those of them whose scores are all allowed
  int first_full = 0;                ///< tiles 0 … first_full − 1 are full of first keys

  constexpr int next(int tile) const { return tile >= first_end && tile < begin ? begin : tile; }
  constexpr bool full(int tile) const {
    return (tile >= full_begin && tile < full_end) || tile < first_full;
  }
  /// The number of visited tiles.
  constexpr int count() const {
    const int gap = first_end < begin ? begin - first_end : 0;
    return end - gap;
  }
};

/// The tiles of queries that see any key of a tile of keys: one range without gaps.
struct QueryTiles {
  int begin = 0, end = 0;

  constexpr int count() const { return end > begin ? end - begin : 0; }
};

/// A mask with its numbers. `begins[q]` is the position at which the document of query q begins, and is read
/// for `document` only: begins[q] ≤ q, never decreasing.
struct MaskRule {
  Mask mask = Mask::none;
  int length = 0;  ///< of queries and of keys
  int window = 0;  ///< of sliding_window and prefix, 0 … length
  int sinks = 0;   ///< of sliding_window, 0 … length

  /// The first key of the query's range.
  template <class Begins>
  constexpr int first_key(int query, const Begins& begins) const {
    if (mask == Mask::sliding_window) return query < window ? 0 : query - window + 1;
    return mask == Mask::document ? static_cast<int>(begins[query]) : 0;
  }
  /// The last one.
  constexpr int last_key(int query) const {
    if (mask == Mask::none) return length - 1;
    return mask == Mask::prefix && query < window ? window - 1 : query;
  }
  constexpr int first_keys() const { return mask == Mask::sliding_window ? sinks : 0; }

  template <class Begins>
  constexpr bool allows(int query, int key, const Begins& begins) const {
    return key <= last_key(query) && (key >= first_key(query, begins) || key < first_keys());
  }

  /// The kind of the tile of queries q0 … q1 and keys k0 … k1, all in range.
  template <class Begins>
  constexpr TileKind kind(int q0, int q1, int k0, int k1, const Begins& begins) const {
    const int within = first_key(q1, begins);  // every query's range has begun here
    const int outside = within - 1 < k1 ? within - 1 : k1;
    if (k1 <= last_key(q0) && (k0 >= within || outside < first_keys())) return TileKind::full;
    // The first query whose range reaches the tile: those after it only begin later.
    const int reaches = mask == Mask::none || (mask == Mask::prefix && k0 < window) ? 0 : k0;
    const int query = reaches > q0 ? reaches : q0;
    if (query <= q1) {
      const int last = last_key(query) < k1 ? last_key(query) : k1;
      if (first_key(query, begins) <= last) return TileKind::partial;
      if (k0 < first_keys()) return TileKind::partial;
    }
    return TileKind::skipped;
  }

  /// The tiles of `width` keys that the queries q0 … q1 visit. A query's range contains the query itself, so the
  /// ranges of neighbours leave no gap between them.
  template <class Begins>
  constexpr KeyTiles tiles(int q0, int q1, int width, const Begins& begins) const {
    const int within = first_key(q1, begins);  // every query's range has begun here
    const int last = last_key(q0);             // and none has ended
    const int firsts = first_keys() < last_key(q1) + 1 ? first_keys() : last_key(q1) + 1;
    const int first_full = firsts < last + 1 ? firsts : last + 1;
    // The last tile of all may be narrower.
    const auto whole = [&](int keys) { return keys == length ? up(keys, width) : keys / width; };
    KeyTiles tiles;
    tiles.first_end = up(firsts, width);
    tiles.begin = first_key(q0, begins) / width;
    tiles.end = up(last_key(q1) + 1, width);
    if (mask == Mask::sliding_window && window == 0) tiles.begin = tiles.end = tiles.first_end;
    tiles.full_begin = first_keys() >= within ? 0 : up(within, width);
    tiles.full_end = whole(last + 1);
    tiles.first_full = whole(first_full);
    return tiles;
  }

  /// The tiles of `height` queries that see any of the keys k0 … k1. Neighbouring keys are seen by ranges of
  /// queries with no gap between them.
  template <class Begins>
  constexpr QueryTiles query_tiles(int k0, int k1, int height, const Begins& begins) const {
    const bool all_see = mask == Mask::none || (mask == Mask::prefix && k0 < window);
    int last = length - 1;
    if (mask == Mask::sliding_window && k0 >= sinks) {
      if (window == 0) return {};
      if (window < length - k1) last = k1 + window - 1;
    }
    if (mask == Mask::document) {
      // The last query whose document begins at k1 or before: it lies from k1 on.
      int low = k1;
      while (low < last) {
        const int middle = low + (last - low + 1) / 2;
        if (static_cast<int>(begins[middle]) <= k1) {
          low = middle;
        } else {
          last = middle - 1;
        }
      }
    }
    return {all_see ? 0 : k0 / height, last / height + 1};
  }

 private:
  static constexpr int up(int keys, int width) { return (keys + width - 1) / width; }
};

/// One line of the kernel that a user may change: the modification of a score (FlexAttention's idea).
enum class ScoreMod {
  none,
  alibi,    ///< minus the distance to the key times the head's slope
  softcap,  ///< kept within ±kSoftcap
};
constexpr auto names_of(ScoreMod) {
  return std::to_array<std::string_view>({"none", "alibi", "softcap"});
}
/// Gemma 2 caps the scores of attention at 50 and the logits at 30 (arXiv:2408.00118).
inline constexpr float kSoftcap = 50.0f;

}  // namespace tilestep::attention

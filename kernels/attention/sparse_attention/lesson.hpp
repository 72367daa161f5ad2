#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attention/sparse_attention/kernels.hpp"
#include "kernels/lessons.hpp"

/// The lesson on attention that does not look at everything: masks as tiles that are full, partial or skipped, and the
/// attention of few tokens that an indexer chooses. Whatever is left out must be known before it is computed.
namespace tilestep::sparse_attention {

inline constexpr std::string_view kMaskSource = "kernels/attention/sparse_attention/masks.cu";
inline constexpr std::string_view kAttendSource = "kernels/attention/sparse_attention/attend.cu";
inline constexpr std::string_view kIndexSource = "kernels/attention/sparse_attention/index.cu";
inline constexpr std::string_view kGatherSource = "kernels/attention/sparse_attention/gather.cu";

inline constexpr int kPageSize = 8;
inline constexpr int kTileSizes[] = {4, 8, 16, 32};

struct Params {
  Method method = Method::window;
  int window = 16;
  int tile_choice = 1;  ///< 4 << tile_choice
  Finding finding = Finding::pairs;
  int context = 64;
  int top_k = 16;
  int indexer_heads = 4;
  Break broken = Break::none;
  std::int64_t seed = 4;

  int tile() const { return 4 << tile_choice; }
};
const lab::KnobTable<Params>& knob_table();

/// What tiles of one size come to.
struct Tiling {
  int tile = 0, full = 0, partial = 0, skipped = 0;
  int computed = 0;  ///< pairs of the tiles that are not skipped
  bool operator==(const Tiling&) const = default;
};
/// What a method keeps.
struct Kept {
  Method method = Method::causal;
  int pairs = 0;     ///< that are seen
  int computed = 0;  ///< that are computed for it; of dsa those that are chosen
  double mass = 0;   ///< of causal attention's weights the part that it keeps, mean over queries
  bool operator==(const Kept&) const = default;
};

/// What went wrong in a run.
struct Result {
  std::string outcome;  ///< empty: nothing was to go wrong
  int wrong = 0, elements = 0;
  bool operator==(const Result&) const = default;
};

struct Trace {
  Method method = Method::causal;
  Finding finding = Finding::pairs;
  Break broken = Break::none;
  int length = 64, window = 16, tile = 8, top_k = 16, heads = 4;

  // Of masks.
  std::vector<int> pairs;     ///< length × length: 1 where the rule lets a query see a key
  std::vector<int> kinds;     ///< tiles × tiles: TileKind, as they were found
  std::vector<int> visited;   ///< tiles × tiles: the kind that a tile was computed as, or 0
  std::vector<Tiling> sizes;  ///< a block mask for each of kTileSizes

  // Of dsa, for the last query.
  std::vector<int> table;            ///< pages: where each lies in the cache
  std::vector<float> index;          ///< length: the indexer's scores
  std::vector<int> passed;           ///< tiles: scores above the floor
  std::vector<int> best;             ///< tiles × top_k: the best tokens then, in order; −1: none
  std::vector<int> chosen;           ///< top_k: tokens that attention was given; −1: none
  std::vector<int> rows;             ///< top_k: where it read them; −1: nowhere
  std::vector<float> dense, sparse;  ///< length: weights over all tokens, and over the chosen ones

  std::vector<Kept> methods;
  Result result;

  bool indexes() const { return method == Method::dsa; }
  int tiles() const { return tiles_of(length, tile); }
  /// Pairs of a tile, which may be cut off by the end.
  int pairs_of(int query_tile, int key_tile) const;
  TileKind kind(int query_tile, int key_tile) const {
    return static_cast<TileKind>(kinds[static_cast<std::size_t>(query_tile * tiles() + key_tile)]);
  }
  bool computes(int query_tile, int key_tile) const {
    return visited[static_cast<std::size_t>(query_tile * tiles() + key_tile)] != 0;
  }
  bool sees(int query, int key) const {
    return pairs[static_cast<std::size_t>(query * length + key)] != 0;
  }
  int pages() const { return tiles_of(length, kPageSize); }
  /// Where a token's row lies.
  int row_of(int token) const {
    return table[static_cast<std::size_t>(token / kPageSize)] * kPageSize + token % kPageSize;
  }
  /// Weights of the last query that its choice keeps.
  double mass() const;
  /// The picture's steps: the tiles, of queries or of tokens; the sizes of tiles, or dsa's gather; then the cost.
  int after() const { return tiles() + 1; }
  int costs() const { return tiles() + 2; }
  bool operator==(const Trace& other) const;
};

std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::sparse_attention

#pragma once

/// \file
/// Building blocks of the paged kernel: its compile-time shape, a launch's arguments, how a team of warps gathers its
/// tiles through the block table, and what an explained one records.

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/attention/kv_cache/paged/formats.hpp"
#include "kernels/base/simt/hopper.hpp"

namespace tilestep::kv_cache::paged::SIMT_BACKEND {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr float kLn2 = 0.693147180559945f;
constexpr float kLog2e = 1.442695040888963f;

// ---- what is fixed ---------------------------------------------------------------------------------

/// A block's first items, which are read only once; later ones are read whenever they are needed.
inline constexpr int kKeptPieces = 32, kPieceBytes = 52;

/// For a cache F: tiles of kTokens tokens, kS of them in flight or in use in each team's ring. A warp has kEights · 8
/// query heads; a block kW warps, or one team with kW 0.
template <class F, int kDim, int kEightsOfWarp, int kTokensOfTile, int kS, int kW>
struct Shape {
  using Format = F;
  static constexpr int kHeadDim = kDim, kEights = kEightsOfWarp, kTokens = kTokensOfTile;
  static constexpr int kStages = kS;
  static constexpr int kMostThreads = 32 * (kW == 0 ? 4 : kW);
  static constexpr int kRows = 8 * kEights;  ///< of a warp
  static constexpr int kPitch =
      kDim * F::kBits / 16;                   ///< of a row of the cache, in units of 16 bits
  static constexpr int kChunks = kPitch / 8;  ///< of 16 bytes
  static constexpr int kPairs = kChunks < 2 ? 1 : kChunks / 2;
  static constexpr int kSteps = kDim / 16;  ///< of 16 columns
  static constexpr int kStepsOfPair = kSteps / kPairs;
  static constexpr int kTileUnits = kTokens * kPitch;                   ///< of K or of V
  static constexpr int kScaleUnits = F::kScales ? 2 * 2 * kTokens : 0;  ///< FP32 of K and of V
  static constexpr int kStageUnits = 2 * kTileUnits + kScaleUnits;
  static constexpr int kSums =
      kSteps + (F::kOffset == 0 ? 0 : 1);  ///< rows of O^T, of 16, and ones
  static constexpr int kPartColumns =
      kEights == 1 ? kDim : 32;                        ///< of O, that teams merge at a time
  static constexpr int kPartPitch = kPartColumns + 4;  ///< keeps a quad's rows in other banks
  static constexpr int kQueryPitch =
      kDim + 8;  ///< of a query in shared memory: rows in other banks
  static_assert(kTokens % 16 == 0 && kTokens <= 32 && kPitch % 8 == 0);

  /// Strips per team, given those that an item's rows want, and warps per block.
  __host__ __device__ static constexpr int strips(int wanted) { return kEights == 1 ? 1 : wanted; }
  __host__ __device__ static constexpr int warps(int strips) { return kW == 0 ? strips : kW; }
};

/// The layout of dynamic shared memory: the rings, all warps' parts of O with their maxima and sums, the queries of
/// this item and the next, and the block's first items.
template <class T>
struct Layout {
  int warps, teams, rows;  ///< rows: of queries of an item, rounded up

  __host__ __device__ constexpr Layout(int strips)
      : warps(T::warps(strips)), teams(warps / strips), rows(strips * T::kRows) {}
  __host__ __device__ constexpr int parts() const {
    return teams * T::kStages * T::kStageUnits * 2;
  }
  __host__ __device__ constexpr int queries() const {
    return parts() + warps * T::kRows * (T::kPartPitch + 2) * 4;
  }
  __host__ __device__ constexpr int pieces() const {
    return queries() + 2 * rows * T::kQueryPitch * 2;
  }
  __host__ __device__ constexpr int bytes() const { return pieces() + kKeptPieces * kPieceBytes; }
};

// ---- what a launch is told -------------------------------------------------------------------------

struct Task {
  int heads, kv_heads, page_size, table_pitch;
  int most_rows;   ///< of a slot
  int page_shift;  ///< page_size is 2 to this power; −1: it is no power of two
  int strips;      ///< warps of a team, each of which has some of the rows
  bool k_channels, merges;
  Merging merging;
  float scale;  ///< 1 / sqrt(head_dim)
  Followed followed;

  __host__ __device__ float to_log2() const { return scale * kLog2e; }
};
struct Memory {
  simt::Global<const std::uint16_t> q;
  simt::Global<const std::uint16_t> k, v;  ///< in units of 16 bits, whatever the format
  simt::Global<const float> k_scales, v_scales;
  simt::Global<const int> table, context;
  simt::Global<const WorkItem> items;
  simt::Global<const int> first_item;
  simt::Global<std::uint16_t> o;
  simt::Global<float> lse, part_o, part_m, part_l;
  simt::Global<int> arrived;
  simt::Global<const int> parts;
};

// ---- roles -----------------------------------------------------------------------------------------

/// Teams share a block's tiles; the warps of a team share its tiles, and split its rows into `strips` strips.
struct Who {
  int lane, warp, team, strip, teams, strips;

  __device__ __forceinline__ Who(int warps, int of_strips)
      : lane(static_cast<int>(threadIdx.x) % 32),
        // From lane 0, so that the compiler knows that it is uniform in the warp.
        warp(__shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / 32, 0)),
        team(warp / of_strips),
        strip(warp % of_strips),
        teams(warps / of_strips),
        strips(of_strips) {}

  __device__ __forceinline__ int group() const { return lane / 4; }  ///< lanes that share a row
  __device__ __forceinline__ int place() const { return lane % 4; }  ///< in its group
  /// Barrier of the team: all of it have written, or read, their shared data.
  __device__ __forceinline__ void meet() const {
    if (strips == 1) {
      __syncwarp();
    } else {
      simt::hopper::named_barrier_sync(1 + team, 32 * strips);
    }
  }
};

/// Over the four lanes that share a row.
__device__ __forceinline__ float max_of_row(float x) {
  x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
}
__device__ __forceinline__ float sum_of_row(float x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}

/// An item, and its tokens first … end - 1.
struct Piece {
  WorkItem item;
  int first, end;

  __device__ __forceinline__ int tiles(int tokens_of_tile) const {
    return (end - first + tokens_of_tile - 1) / tokens_of_tile;
  }
};
static_assert(sizeof(Piece) <= kPieceBytes);

/// The block's items.
struct Pieces {
  const Task& task;
  const Memory& memory;
  simt::Shared<Piece> kept;
  int first, end;

  __device__ __forceinline__ Piece read(int number) const {
    const WorkItem item = memory.items[number];
    const int begin = item.first_page * task.page_size;
    const int all = min(begin + item.pages * task.page_size, memory.context[item.request]);
    return {item, begin, max(begin, all)};
  }
  /// By all threads, with a barrier afterwards.
  __device__ __forceinline__ void keep() const {
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < kKeptPieces && first + thread < end) kept[thread] = read(first + thread);
  }
  __device__ __forceinline__ Piece operator[](int number) const {
    if (number - first < kKeptPieces) return kept[number - first];
    return read(number);
  }
};

// ---- records ---------------------------------------------------------------------------------------

/// Counts bytes of a tensor that the kernel loads …
template <class Tape>
__device__ __forceinline__ void loads(const Tape& tape, Tensor tensor, int bytes) {
  tape.add(kAsked, 2 * tensor, static_cast<unsigned long long>(bytes));
}
/// … with the traced item's addresses: at byte `at` of the tensor.
template <class Tape>
__device__ __forceinline__ void loads(const Tape& tape, const Task& task, int item, Tensor tensor,
                                      std::ptrdiff_t at, int bytes) {
  loads(tape, tensor, bytes);
  if constexpr (Tape::kRecords) {
    if (item != task.followed.traced_item) return;
    tape.access(tensor, static_cast<std::uint64_t>(at), static_cast<std::uint16_t>(bytes),
                simt::AccessKind::load);
  }
}
template <class Tape>
__device__ __forceinline__ void stores(const Tape& tape, Tensor tensor, int bytes) {
  tape.add(kAsked, 2 * tensor + 1, static_cast<unsigned long long>(bytes));
}

/// Nanoseconds that all multiprocessors share; under emulation the items that the block has finished.
template <class Tape>
__device__ __forceinline__ long long now([[maybe_unused]] int items) {
#if defined(__CUDACC__)
  if constexpr (Tape::kRecords) return simt::device_clock();
  return 0;
#else
  return items;
#endif
}
/// By one thread, when the item is done. `order`: of the block's items.
template <class Tape>
__device__ __forceinline__ void note_item(const Tape& tape, int number, const Piece& piece,
                                          int block, int order, int tiles, long long begin) {
  const WorkItem& item = piece.item;
  tape.put(kItems, number,
           ItemTrace{item.request, item.kv_head, item.first_head, item.heads, piece.first,
                     piece.end - piece.first, item.split, item.splits, block, order, tiles, 0,
                     begin, now<Tape>(order + 1)});
}

/// A tile that counts `tokens`, and the followed row where its item has it, or −1.
struct TileOfItem {
  int item, tile, tokens, row;

  __device__ __forceinline__ TileOfItem(const Followed& followed, const WorkItem& of, int number,
                                        int which, int there)
      : item(number),
        tile(which),
        tokens(there),
        row(row_with(of, followed.request, followed.head)) {}
  /// Of its step.
  __device__ __forceinline__ std::ptrdiff_t at(const Followed& followed) const {
    return static_cast<std::ptrdiff_t>(item) * followed.step_pitch + tile;
  }
};
/// A tile's effect on a row, in units of log2.
template <class Tape>
__device__ __forceinline__ void note_step(const Tape& tape, const Task& task, const TileOfItem& of,
                                          float tile_max, float before, float after, float rescale,
                                          float tile_sum, float l) {
  tape.put(kSteps, of.at(task.followed),
           StepTrace{of.item, of.tile, of.tokens, tile_max * kLn2, before * kLn2, after * kLn2,
                     rescale, tile_sum, l, 0});
}

// ---- tiles in shared memory ------------------------------------------------------------------------

/// Chunk c of row r is stored at chunk c ^ chunk_key(r), so that the eight rows of a chunk that ldmatrix reads together
/// span all 32 banks. Rows of less than 128 bytes share a line of the banks.
template <class T>
__device__ constexpr int chunk_key(int row) {
  return T::kChunks % 8 == 0 ? row & 7
         : T::kChunks == 4   ? row >> 1 & 3
         : T::kChunks == 2   ? row >> 2 & 1
                             : 0;
}

/// A team's ring of stages: K, V and, where there are any, the scales of both.
template <class T>
struct Ring {
  simt::Shared<std::uint16_t> base;

  __device__ __forceinline__ simt::Shared<std::uint16_t> k(int stage) const {
    return base + stage * T::kStageUnits;
  }
  __device__ __forceinline__ simt::Shared<std::uint16_t> v(int stage) const {
    return k(stage) + T::kTileUnits;
  }
  __device__ __forceinline__ simt::Shared<float> scales(int stage, bool of_v) const {
    return simt::as<float>(k(stage) + 2 * T::kTileUnits) + (of_v ? T::kTokens : 0);
  }
};

/// Four 8 × 8 matrices of units of 16 bits: r[2c + h] has tokens first + 8h … and chunk 2 · pair + c.
template <class T, bool kTransposed>
__device__ __forceinline__ void load_pair(unsigned (&r)[4], simt::Shared<std::uint16_t> tile,
                                          int first, int pair) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = first + lane / 8 % 2 * 8 + lane % 8;
  const int second = T::kChunks == 1 ? 0 : lane / 16;
  const int chunk = 2 * pair ^ (second ^ chunk_key<T>(lane % 8));
  const auto from = tile + (row * T::kPitch + chunk * 8);
  if constexpr (kTransposed) {
    simt::ldmatrix_x4_trans(r, from);
  } else {
    simt::ldmatrix_x4(r, from);
  }
}

/// O^T: of each eight heads, columns down, heads across; below them, where a format has an offset, the sum of weights.
template <class T>
using Outputs = float[T::kEights][T::kSums][4];

/// An element of O, not yet divided by ℓ.
template <class T>
__device__ __forceinline__ float output_of(const Outputs<T>& o, int half, int step, int e) {
  using F = typename T::Format;
  const float sum = o[half][step][e] * (F::per_unit(e / 2) / F::kGain);
  if constexpr (F::kOffset == 0) return sum;
  constexpr float kTooMuch = static_cast<float>(F::kOffset) / F::kGain;
  return fmaf(-kTooMuch, o[half][T::kSums - 1][e % 2], sum);
}

// ---- gathering -------------------------------------------------------------------------------------

/// Walks a team's tiles of all the block's items ahead of the products, and starts their copies. Tile number n of the
/// block, counted across items, belongs to team n % teams.
template <class T, class Tape>
struct Feeder {
  const Task& task;
  const Memory& memory;
  const Pieces& pieces;
  const Who& me;
  Ring<T> ring;
  const Tape& tape;
  int item;  ///< of the block's
  int tile, tiles = 0;
  int request = 0, kv_head = 0, first = 0, end = 0;
  int page = -1, slot = 0;  ///< of this lane's token of the tile; −1: none

  __device__ __forceinline__ Feeder(const Pieces& of_block, const Who& who, Ring<T> into,
                                    const Tape& records)
      : task(of_block.task),
        memory(of_block.memory),
        pieces(of_block),
        me(who),
        ring(into),
        tape(records),
        item(of_block.first - 1),
        tile(who.team) {
    settle();
  }

  /// Starts the copies of this tile to a stage and moves on to the next one. Without a tile it commits an empty group,
  /// so that groups can be counted.
  __device__ __forceinline__ void feed(int stage) {
    if (item < pieces.end) {
      copy(stage);
      tile += me.teams;
      settle();
    }
    simt::cp_async_commit();
  }

 private:
  /// Finds the tile's item and loads its pages from the table: they have arrived when the copies begin, a tile later.
  __device__ __forceinline__ void settle() {
    while (tile >= tiles && item < pieces.end) {
      tile -= tiles;
      tiles = 0;
      ++item;
      if (item == pieces.end) break;
      const Piece next = pieces[item];
      request = next.item.request;
      kv_head = next.item.kv_head;
      first = next.first;
      end = next.end;
      tiles = next.tiles(T::kTokens);
    }
    if (item == pieces.end) return;
    const int token = first + tile * T::kTokens + me.lane % T::kTokens;
    page = -1;
    if (token < end) {
      const int entry = task.page_shift >= 0 ? token >> task.page_shift : token / task.page_size;
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(request) * task.table_pitch + entry;
      slot = token - entry * task.page_size;
      page = memory.table[at];  // [step: page]
      if (me.strip == 0 && me.lane < T::kTokens) loads(tape, task, item, kTable, at * 4, 4);
    }
  }
  __device__ __forceinline__ void copy(int stage) {
    const int row = page < 0 ? -1 : (page * task.kv_heads + kv_head) * task.page_size + slot;
    if (first + (tile + 1) * T::kTokens <= end) {
      copy_rows<true>(stage, row);
    } else {
      copy_rows<false>(stage, row);
    }
    if constexpr (T::Format::kScales) copy_scales(stage, row);
  }
  /// Each lane copies its chunk of the rows. kWhole: the tile has all its tokens.
  template <bool kWhole>
  __device__ __forceinline__ void copy_rows(int stage, int row) {
    const int thread = me.strip * 32 + me.lane;
    const int rows_at_once = 32 * me.strips / T::kChunks;
    const int chunk = thread % T::kChunks;
    const auto k = ring.k(stage);
    const auto v = ring.v(stage);
    const auto from_k = memory.k + chunk * 8;
    const auto from_v = memory.v + chunk * 8;
#pragma unroll
    for (int begin = 0; begin < T::kTokens; begin += rows_at_once) {
      const int token = begin + thread / T::kChunks;
      const int from = __shfl_sync(kAllLanes, row, token % T::kTokens);
      if (T::kTokens % rows_at_once != 0 && token >= T::kTokens) continue;
      const int to = token * T::kPitch + (chunk ^ chunk_key<T>(token)) * 8;
      if constexpr (kWhole) {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(from) * T::kPitch;
        simt::cp_async16(k + to, from_k + at);  // [step: copy]
        simt::cp_async16(v + to, from_v + at);
        note_copies(at + chunk * 8);
      } else {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(max(from, 0)) * T::kPitch;
        simt::cp_async16(k + to, from_k + at, from >= 0);
        simt::cp_async16(v + to, from_v + at, from >= 0);
        if (from >= 0) note_copies(at + chunk * 8);
      }
    }
  }
  /// 16 bytes of K and of V.
  __device__ __forceinline__ void note_copies(std::ptrdiff_t unit) const {
    loads(tape, task, item, kK, unit * 2, 16);
    loads(tape, task, item, kV, unit * 2, 16);
  }
  __device__ __forceinline__ void copy_scales(int stage, int row) {
    if (me.strip != 0 || me.lane >= T::kTokens) return;
    const int at = max(row, 0);
    if (!task.k_channels) {
      simt::cp_async4(ring.scales(stage, false) + me.lane, memory.k_scales + at, row >= 0);
    }
    simt::cp_async4(ring.scales(stage, true) + me.lane, memory.v_scales + at, row >= 0);
    if (row >= 0) loads(tape, kScales, task.k_channels ? 4 : 8);
  }
};

}  // namespace tilestep::kv_cache::paged::SIMT_BACKEND

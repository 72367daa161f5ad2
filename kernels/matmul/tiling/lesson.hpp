#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kernels/lessons.hpp"

/// The tiling lesson: C = A·B with A [m × k], B [k × n], C [m × n], row-major; a ladder of kernels
/// from one load per operand to tiles in shared memory, registers and tensor cores; the roofline.
/// Williams, Waterman & Patterson, "Roofline: an insightful visual performance model", 2009.
namespace tilestep::tiling {

/// The kernel source that `BlockTrace::lines` number.
inline constexpr std::string_view kSourcePath = "kernels/matmul/tiling/shared_tile.cu";

/// The rungs of the ladder, slowest idea first. The first three are drawn k-tile by k-tile, the others
/// by which thread has which elements of C.
enum class Variant {
  naive,
  coalesced,
  shared_tile,
  register_tile_1d,
  register_tile_2d,
  vectorized,
  double_buffered,
  warp_tile,
  tensor_core,
};
constexpr auto names_of(Variant) {
  return std::to_array<std::string_view>({"naive", "coalesced", "shared-tile", "register-tile-1d",
                                          "register-tile-2d", "vectorized", "double-buffered",
                                          "warp-tile", "tensor-core"});
}
constexpr auto reasons_of(Variant) {
  return std::to_array<std::string_view>(
      {"The starting point: one element of C a thread, threadIdx.x running down the rows, so that "
       "the lanes of a warp load addresses a whole row apart.",
       "threadIdx.x runs across the columns: a warp's loads of B and its stores to C are "
       "neighbours and need few memory sectors.",
       "The block loads a tile of A and one of B into shared memory once and reads every element "
       "of them once for each of its rows or columns.",
       "Eight rows of C a thread: an element of B stays in a register for eight products, so that "
       "nine shared reads serve eight products instead of sixteen.",
       "Eight by eight elements of C a thread: sixteen shared reads serve sixty-four products.",
       "float4 loads and reads, from an A tile that is turned on its way into shared memory: a "
       "quarter of the memory instructions for the same bytes.",
       "cp.async brings the next tiles into a second stage of shared memory while the current ones "
       "are multiplied, without passing through registers.",
       "Each warp has a rectangle of C whose lanes share what they read; deeper tiles in three or "
       "four stages, and blocks in an order that keeps their tiles in L2.",
       "BF16 inputs and mma.sync on tensor cores with FP32 accumulators: one instruction of a warp "
       "makes 2048 products instead of 32."});
}
inline constexpr int kVariants = static_cast<int>(count_of<Variant>());
constexpr bool has_picture(Variant variant) {
  return variant <= Variant::shared_tile;
}
/// The extent along k of the rung's innermost step: mma.m16n8k16 takes 16.
constexpr int k_at_once(Variant variant) {
  return variant == Variant::tensor_core ? 16 : 1;
}
/// Where the rung's kernel is: a path of the repository, built in as an asset.
constexpr std::string_view source_path(Variant variant) {
  if (has_picture(variant)) return kSourcePath;
  if (variant <= Variant::vectorized) return "kernels/matmul/tiling/register_tile.cu";
  if (variant == Variant::double_buffered) return "kernels/matmul/tiling/double_buffered.cu";
  if (variant == Variant::warp_tile) return "kernels/matmul/tiling/warp_tile.cu";
  return "kernels/matmul/tiling/tensor_core.cu";
}

enum class RemovedBarrier { none, after_load, after_multiply };
constexpr auto names_of(RemovedBarrier) {
  return std::to_array<std::string_view>({"none", "after-load", "after-multiply"});
}

struct Params {
  Variant variant = Variant::shared_tile;
  int tile = 8;  ///< edge of the picture's square tiles; a block has tile × tile threads
  int m = 32, n = 32, k = 32;
  bool padding = false;                                  ///< of the A tile in shared memory
  RemovedBarrier remove_barrier = RemovedBarrier::none;  ///< breaks `shared-tile` on purpose
  std::int64_t seed = 1;

  int blocks_down() const { return (m + tile - 1) / tile; }    ///< of C
  int blocks_across() const { return (n + tile - 1) / tile; }  ///< of C
  int k_tiles() const { return (k + tile - 1) / tile; }
};

/// The knobs, bound to Params: variant tile m n k padding remove_barrier seed.
const lab::KnobTable<Params>& knob_table();

/// The phases of a k-tile of `shared-tile`, in order. naive and coalesced have only `multiply`.
enum class Phase { load, barrier_after_load, multiply, barrier_after_multiply };
inline constexpr int kPhases = 4;
/// 1-based lines of kSourcePath, as this build has it; 0 where the kernel has no such phase.
std::array<int, kPhases> phase_lines(Variant variant);

/// One block's work in one k-tile, as its accesses recorded it. The A tile has `tile` rows of C's
/// block and `tile` columns from k = k_tile·tile on; the B tile is the other way round. All vectors
/// have tile × tile elements: of the A tile at [row·tile + kk], of the B tile at [kk·tile +
/// column], `sums` at [row·tile + column]. Beyond the matrices' edges loads are 0.
struct KTile {
  struct Operand {
    std::vector<int> loads;  ///< how often the block loaded the element from global memory
    /// Only for `shared-tile`, otherwise empty. The linear thread that loaded the element (−1: none, it is
    /// outside), the slot of the tile in shared memory that it was stored to (in floats from the
    /// tile's own start), and how often the block read that slot.
    std::vector<int> loader, slot, reads;
    bool operator==(const Operand&) const = default;
  };
  Operand a, b;
  int along_k = 1;                ///< 1: all threads read up along k, −1: down, 0: neither
  std::vector<float> sums;        ///< each thread's partial sum after this k-tile
  std::int64_t loads_so_far = 0;  ///< global loads of the block up to and including this k-tile
  bool operator==(const KTile&) const = default;
};

/// The chosen block in one kernel. Thread (x, y) of the block has number y·tile + x. In `naive` x
/// runs down C's rows; in `coalesced` and `shared-tile` x runs across its columns.
struct BlockTrace {
  Variant variant = Variant::shared_tile;
  std::vector<KTile> k_tiles;
  std::array<int, kPhases> lines{};  ///< as `phase_lines` gives them, whatever a recording says
  std::int64_t loads() const { return k_tiles.empty() ? 0 : k_tiles.back().loads_so_far; }
  /// Which element of C's block (row·tile + column) thread `number` computes.
  int element_of(int number, int tile) const {
    return variant == Variant::naive ? number % tile * tile + number / tile : number;
  }
  bool operator==(const BlockTrace&) const = default;
};

/// How many passes shared memory needed for the worst warp access of a kind (1: no bank
/// conflict), from the traced addresses.
struct BankWays {
  int store_a = 1, store_b = 1, read_a = 1, read_b = 1;
  int worst() const;
  bool operator==(const BankWays&) const = default;
};

/// The effect of removing the barrier, over many thread orders.
struct Races {
  int orders = 0;             ///< 0: no barrier was removed (or the kernel has none)
  int wrong_orders = 0;       ///< in which at least one element of C was wrong
  std::string where;          ///< "emulated, chosen block" or "on the GPU, all blocks"
  int order = -1;             ///< the first order that went wrong; −1: none did
  int row = -1, column = -1;  ///< the first wrong element of C in that order, row-major
  float got = 0;
  double want = 0;
  std::vector<int> wrong_elements;  ///< of C's chosen block in that order, row·tile + column
  bool operator==(const Races&) const = default;
};

/// One block of a rung with tiles, alone on matrices of its size: which thread stored which element of
/// C, and a thread's reads of shared memory.
struct Rung {
  Variant variant = Variant::shared_tile;
  int rows = 1, columns = 1, depth = 1;  ///< of the tile of C, and of the tiles along k
  int threads = 1;
  int owned = 0;     ///< elements of C that a thread stored
  int reads = 0;     ///< numbers that it read from shared memory per further k-tile
  int requests = 0;  ///< in this many instructions
  /// Only for the chosen rung: for each unit_rows × unit_columns rectangle, the thread that stored it; −1:
  /// not a single one.
  int unit_rows = 1, unit_columns = 1;
  std::vector<int> owners = {};

  int fmas() const { return owned * depth; }  ///< per thread and k-tile
  double reads_per_fma() const { return fmas() > 0 ? static_cast<double>(reads) / fmas() : 0; }
  int owner(int row, int column) const {
    const int across = columns / unit_columns;
    return owners.at(static_cast<std::size_t>(row / unit_rows * across + column / unit_columns));
  }
  bool operator==(const Rung&) const = default;
};
/// The phases in which the picture of a rung above shared-tile shows who owns which part of C.
enum class Share { warps, thread, reads };
inline constexpr int kShares = 3;

/// All data that the picture is drawn from: one block of C, in the chosen kernel and beside it in
/// `naive`, k-tile by k-tile; or for a rung above shared-tile, each thread's elements of a block.
struct Trace {
  Variant variant = Variant::shared_tile;  ///< chosen; the picture is of `block.variant`
  int tile = 0, m = 0, n = 0, k = 0;
  int padding = 0;                   ///< floats added to a row of the A tile in shared memory
  int block_row = 0, block_col = 0;  ///< the chosen block, in blocks of C
  std::vector<float> a_band;         ///< rows of the block × k
  std::vector<float> b_band;         ///< k × columns of the block
  std::vector<float> c_block;        ///< rows × columns of the block, as the kernel wrote it
  std::vector<double> exact;         ///< the same in double
  BlockTrace block;                  ///< the chosen variant; no k-tiles for rungs above shared-tile
  BlockTrace naive;                  ///< the same block of C in `naive`
  BankWays bank_ways;                ///< shared-tile; all 1 for kernels without shared memory
  std::int64_t global_loads = 0;  ///< elements of A and B loaded by the whole launch of `variant`
  std::int64_t naive_global_loads = 0;  ///< the same for `naive`
  Races races;
  /// For a rung above shared-tile: it and those below, from shared-tile on; otherwise none.
  std::vector<Rung> rungs;

  int first_row() const { return block_row * tile; }
  int first_column() const { return block_col * tile; }
  int rows() const { return m - first_row() < tile ? m - first_row() : tile; }
  int columns() const { return n - first_column() < tile ? n - first_column() : tile; }
  int k_tiles() const { return static_cast<int>(block.k_tiles.size()); }
  bool operator==(const Trace&) const = default;
};

/// The report's tables that follow from a trace.
std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::tiling

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/lessons.hpp"

/// The lesson on feeding Hopper's tensor cores: C = A·B^T with A [m × k] and B [n × k], k fastest in
/// both, C [m × n] row-major; from mma.sync to a persistent kernel with TMA, mbarriers and wgmma.
/// NVIDIA, "PTX ISA", 8.7; "CUDA C++ Programming Guide", "Asynchronous Data Copies using the Tensor Memory
/// Accelerator (TMA)".
namespace tilestep::hopper_gemm {

/// The rungs of the ladder.
enum class Variant {
  mma_sync,
  wgmma,
  tma,
  pipelined,
  warp_specialized,
  multicast,
  persistent,
  ping_pong,
};
constexpr auto names_of(Variant) {
  return std::to_array<std::string_view>({"mma-sync", "wgmma", "tma", "pipelined",
                                          "warp-specialized", "multicast", "persistent",
                                          "ping-pong"});
}
constexpr auto reasons_of(Variant) {
  return std::to_array<std::string_view>(
      {"For comparison: the tensor-core instruction of a warp, with operands in registers that "
       "ldmatrix fills.",
       "A warpgroup's instruction: 64 rows by up to 256 columns straight from shared memory. "
       "Ordinary loads fill one stage, and everybody waits for everybody.",
       "One thread asks TMA for whole tiles and an mbarrier says when they are there; there is "
       "still one stage, so that copies and products take turns.",
       "More stages: the copies of the next k-tiles are under way while one is multiplied.",
       "One warpgroup only copies, the others only multiply; full and empty barriers take the "
       "place of __syncthreads, and registers go to those who multiply.",
       "Two blocks form a cluster and share their columns of B: each fetches a half, and TMA puts "
       "it into both.",
       "As many blocks as fit, each with tile after tile: the next tile's copies run while TMA "
       "stores this one.",
       "Each consumer has tiles of its own, and they take the tensor cores in turn: while one "
       "multiplies, the other stores."});
}
/// The rung's kernel: a path in the repository, built in as an asset.
constexpr std::string_view source_path(Variant variant) {
  if (variant == Variant::mma_sync) return "kernels/matmul/hopper_gemm/mma_sync.cu";
  if (variant <= Variant::pipelined) return "kernels/matmul/hopper_gemm/together.cu";
  return "kernels/matmul/hopper_gemm/specialized.cu";
}
/// Whether one warpgroup only copies.
constexpr bool has_producer(Variant variant) {
  return variant >= Variant::warp_specialized;
}
/// Whether TMA brings the tiles.
constexpr bool has_tma(Variant variant) {
  return variant >= Variant::tma;
}

/// Whether it has no ring.
constexpr bool has_one_stage(Variant variant) {
  return variant == Variant::wgmma || variant == Variant::tma;
}

/// The operands' format; C is FP32 (BF16 in timed kernels).
enum class DataType { bf16, fp16, fp8_e4m3 };
constexpr auto names_of(DataType) {
  return std::to_array<std::string_view>({"bf16", "fp16", "fp8-e4m3"});
}
constexpr int element_bytes(DataType type) {
  return type == DataType::fp8_e4m3 ? 1 : 2;
}

/// The output of one wgmma instruction: 64 rows by 64, 128 or 256 columns of C, a warpgroup's tile.
enum class WarpgroupTile { n64, n128, n256 };
constexpr auto names_of(WarpgroupTile) {
  return std::to_array<std::string_view>({"64x64", "64x128", "64x256"});
}
constexpr int columns_of(WarpgroupTile tile) {
  return 64 << static_cast<int>(tile);
}

/// The swizzle of a stage's rows, in bytes.
enum class Swizzle { none, bytes32, bytes64, bytes128 };
constexpr auto names_of(Swizzle) {
  return std::to_array<std::string_view>({"0", "32", "64", "128"});
}
constexpr int bytes_of(Swizzle swizzle) {
  return swizzle == Swizzle::none ? 0 : 16 << static_cast<int>(swizzle);
}

/// The matrices' contents, as timed.
enum class Data { random, zeros };
constexpr auto names_of(Data) {
  return std::to_array<std::string_view>({"random", "zeros"});
}

/// The order in which C's tiles are computed.
enum class Raster { rows, columns, grouped };
constexpr auto names_of(Raster) {
  return std::to_array<std::string_view>({"rows", "columns", "grouped"});
}

/// A kernel's deliberate omission or mistake.
enum class Break { none, skip_full_wait, skip_empty_wait, missing_fence, wrong_bytes };
constexpr auto names_of(Break) {
  return std::to_array<std::string_view>(
      {"none", "skip-full-wait", "skip-empty-wait", "missing-fence", "wrong-bytes"});
}

/// Whether the break applies to a variant.
constexpr bool can_break(Variant variant, Break fault) {
  switch (fault) {
    case Break::none:
      return true;
    case Break::skip_full_wait:
    case Break::skip_empty_wait:
    case Break::wrong_bytes:
      return has_tma(variant);
    case Break::missing_fence:  // where ordinary stores meet wgmma or TMA
      return variant == Variant::wgmma || variant >= Variant::persistent;
  }
  return false;
}

/// The largest m, n, k of a run.
inline constexpr int kMostEdge = 1024;

struct Params {
  Variant variant = Variant::warp_specialized;
  WarpgroupTile tile = WarpgroupTile::n128;
  int stages = 4;
  int consumers = 2;
  Swizzle swizzle = Swizzle::bytes128;
  DataType dtype = DataType::bf16;
  int m = 256, n = 256, k = 384;
  Break broken = Break::none;
};

/// The knobs, bound to Params: variant tile stages consumers swizzle dtype m n k break.
const lab::KnobTable<Params>& knob_table();

/// C [m × n] = A [m × k] · B^T, B [n × k].
struct GemmShape {
  int m = 0, n = 0, k = 0;
  bool operator==(const GemmShape&) const = default;
};

/// Params applied to a variant: the stages that it uses and that fit, and its cluster size.
struct Plan : GemmShape {
  Variant variant = Variant::warp_specialized;
  DataType dtype = DataType::bf16;
  Raster raster = Raster::rows;
  int rows = 0;     ///< of the block's tile of C: 64 per consumer that works on it
  int columns = 0;  ///< of it
  int depth = 0;    ///< of a k-tile, in elements: 128 bytes of k
  int stages = 0, consumers = 0, cluster = 0, swizzle = 0;
  int stage_bytes = 0;                   ///< of A and B in a stage
  int shared_bytes = 0;                  ///< of a block
  int tiles_down = 0, tiles_across = 0;  ///< of C, in tiles of a block
  int blocks = 0;                        ///< of the launch

  int k_tiles() const { return (k + depth - 1) / depth; }
  bool operator==(const Plan&) const = default;
};
Plan plan_of(const Params& params);

// ---- a run's trace --------------------------------------------------------------------------------

/// Events in the chosen block, in clock order.
enum class What {
  waits_empty,  ///< the producer begins to wait for a stage
  expects,      ///< it tells the barrier how many bytes to expect
  copies,       ///< it has issued the copies
  lands,        ///< some of the bytes are in the stage (known only under emulation)
  flips,       ///< the phase of the stage's full barrier ends (on a GPU: a watching thread sees it)
  waits_full,  ///< a consumer begins to wait for the stage
  issues,      ///< it has it, and issues wgmma
  commits,     ///< all of the stage's products are issued
  waited,      ///< they are complete
  releases,    ///< the consumer releases the stage
  stores,      ///< a consumer begins to store its tile of C
  stored,      ///< it is done
};
constexpr auto names_of(What) {
  return std::to_array<std::string_view>({"waits-empty", "expects", "copies", "lands", "flips",
                                          "waits-full", "issues", "commits", "waited", "releases",
                                          "stores", "stored"});
}
inline constexpr int kWhats = 12;

struct Event {
  What what = What::expects;
  int lane = 0;  ///< 0: the copying thread; 1, 2: a consumer; −1: the copy engine, or a barrier
  int number =
      0;  ///< of the k-tile, counted over all tiles of the block; for stores: of the block's tile
  int stage = 0;  ///< of the ring; 0 for stores
  int parity =
      0;  ///< waits-empty: the wait's argument; otherwise of the phase of the stage's full barrier
  std::int64_t clock = 0;  ///< since the first event; see Trace::clock_unit
  int bytes = 0;           ///< expects: announced; lands: arrived
  int pending = 0;         ///< lands: bytes that the phase still waits for
  bool operator==(const Event&) const = default;
};

/// A tile of C that the chosen block computed.
struct BlockTile {
  int number = 0;           ///< in the launch's order
  int row = 0, column = 0;  ///< in tiles
  bool operator==(const BlockTile&) const = default;
};

/// The outcome of a deliberately broken kernel.
struct Broken {
  std::string
      outcome;  ///< "right", "wrong numbers", "hang", "ended by the GPU"; empty: it was not broken
  std::string where;          ///< "emulated, copies at the latest moment", "on the GPU"
  std::string report;         ///< the emulator's report of what is unsafe; the abandoned wait
  int wrong = 0;              ///< elements of C
  int row = -1, column = -1;  ///< of the first of them
  double got = 0, want = 0;
  bool operator==(const Broken&) const = default;
};

/// The picture's data: one block of a launch.
struct Trace : Plan {
  int k_pitch_bytes = 0;
  int block = 0;                 ///< the chosen one
  std::string clock_unit;        ///< "cycles" on a GPU, "words" under emulation: order, not time
  std::vector<BlockTile> tiles;  ///< of the chosen block, one after the other
  std::vector<Event> events;     ///< of the chosen block
  std::vector<int> wrong;  ///< of the block's first tile: wrong elements of each 8 × 8, row by row
  Broken broken;
  std::array<int, kWhats> lines{};  ///< in the variant's source; 0: no such step

  int steps() const { return static_cast<int>(events.size()); }
  /// Whether consumer `c` (0 or 1) works on the block's tile `tile`: all do, except in ping-pong.
  bool computes(int c, int tile) const { return variant != Variant::ping_pong || tile % 2 == c; }
  /// Whether it reads k-tile `number`.
  bool reads(int c, int number) const { return computes(c, number / (k > 0 ? k_tiles() : 1)); }
  /// The number of consumers that read a k-tile.
  int readers() const { return variant == Variant::ping_pong ? 1 : consumers; }
  bool operator==(const Trace&) const = default;
};

/// The kernel's source lines of each step.
std::array<int, kWhats> step_lines(Variant variant);

}  // namespace tilestep::hopper_gemm

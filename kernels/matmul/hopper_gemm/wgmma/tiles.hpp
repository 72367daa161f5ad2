#pragma once

/// \file
/// Shared by the lesson's kernels: the ring of stages in shared memory, the current stage and parity, the
/// order of C's tiles, and the recording of events.
///
/// A stage holds 128 bytes of k: 64 numbers of BF16 or FP16, 128 of E4M3. It has 64 rows of A for each
/// consumer warpgroup, and the tile's columns of B (B is stored transposed, n × k, so that k is the fastest
/// index of both). With a W-byte swizzle a tile is stored in panels of W bytes of k: 128 / W panels, each with
/// all rows; without one the panels have 16 bytes, as wgmma then requires.

#include <cstdint>

#include "kernels/base/simt/hopper.hpp"
#include "kernels/matmul/hopper_gemm/kernels.hpp"

namespace tilestep::hopper_gemm::SIMT_BACKEND {

using namespace simt::hopper;

constexpr int kWarpgroup = 128;   // threads
constexpr int kDepthBytes = 128;  // of k, in a stage
constexpr int kSteps = kDepthBytes / kWgmmaBytes;
constexpr int kAlignment = 1024;   // of a tile: the period of the widest swizzle
constexpr int kStoredBytes = 128;  // of a row of C in a tile stored by TMA
constexpr int kStoredTile = kWgmmaRows * kStoredBytes;
constexpr int kStoredTiles = 2;  // per warpgroup

/// Fixed per kernel: kColumns of C per block, kRows of it per warpgroup, and the format of the operands.
template <int kC, Format kF>
struct Tile {
  static constexpr int kColumns = kC;
  static constexpr int kRows = kWgmmaRows;
  static constexpr Format kFormat = kF;
  static constexpr int kElementBytes = kF == Format::e4m3 ? 1 : 2;
  static constexpr int kDepth = kDepthBytes / kElementBytes;
  using Sums = float[kC / 2];
};

/// The layout of the ring: chosen at run time …
struct AnyRing {
  int stages, swizzle, consumers;
  int sharing;  ///< consumers that read a stage: all, 64 rows each, or one, in turn
};
/// … or at compile time, as for the timed kernels.
template <int kStages, int kConsumers, int kSwizzle = 128, int kSharing = kConsumers>
struct FixedRing {
  static constexpr int stages = kStages, swizzle = kSwizzle, consumers = kConsumers,
                       sharing = kSharing;
};

/// The stages in shared memory, as addresses for the instructions, then the tiles of C to be stored, then
/// the barriers.
template <class T, class R>
struct Stages {
  R ring;
  unsigned tiles;

  __device__ __forceinline__ int rows() const { return ring.sharing * T::kRows; }  ///< of A
  __device__ __forceinline__ int a_bytes() const { return rows() * kDepthBytes; }
  __device__ __forceinline__ static constexpr int b_bytes() { return T::kColumns * kDepthBytes; }
  __device__ __forceinline__ int bytes() const { return a_bytes() + b_bytes(); }
  __device__ __forceinline__ int panel_bytes() const {
    return ring.swizzle == 0 ? 16 : ring.swizzle;
  }

  __device__ __forceinline__ unsigned a(int stage) const {
    return tiles + static_cast<unsigned>(stage * bytes());
  }
  __device__ __forceinline__ unsigned b(int stage) const {
    return a(stage) + static_cast<unsigned>(a_bytes());
  }
  __device__ __forceinline__ unsigned stored(int consumer, int tile) const {
    return a(ring.stages) + static_cast<unsigned>((consumer * kStoredTiles + tile) * kStoredTile);
  }
  __device__ __forceinline__ unsigned full(int stage) const {
    return stored(ring.consumers, 0) + static_cast<unsigned>(stage * 8);
  }
  __device__ __forceinline__ unsigned empty(int stage) const { return full(ring.stages + stage); }

  /// Describes 32 bytes of k of `rows` rows, from `first` on, to wgmma.
  __device__ __forceinline__ std::uint64_t operand(unsigned tile, int rows, int first,
                                                   int step) const {
    const int byte = step * kWgmmaBytes;
    const int width = panel_bytes();
    const int at = (byte / width * rows + first) * width + byte % width;
    // Without a swizzle the next 16 bytes of k are in the next panel.
    return make_descriptor(tile + static_cast<unsigned>(at), ring.swizzle == 0 ? rows * 16 : 16,
                           8 * width, ring.swizzle);
  }
};

/// Lays the ring out in dynamic shared memory and names its parts.
template <class T, class R>
__device__ __forceinline__ Stages<T, R> lay_out(const R& ring, int shared_bytes) {
  const unsigned raw = simt::shared_address(
      simt::dynamic_shared<std::uint8_t>(static_cast<std::size_t>(shared_bytes), 0, "stages"));
  const Stages<T, R> stages{ring, (raw + kAlignment - 1) / kAlignment * kAlignment};
  for (int stage = 0; stage < ring.stages; ++stage) {
    name_shared(stages.a(stage), stages.bytes(), "stage", stage);
    name_shared(stages.full(stage), 8, "full", stage);
    name_shared(stages.empty(stage), 8, "empty", stage);
  }
  for (int consumer = 0; consumer < ring.consumers; ++consumer) {
    name_shared(stages.stored(consumer, 0), kStoredTiles * kStoredTile, "tile of C", consumer);
  }
  return stages;
}

/// The next stage, and the parity of its phase.
struct Turn {
  int stage = 0;
  unsigned parity = 0;

  template <class R>
  __device__ __forceinline__ void pass(const R& ring) {
    if (++stage == ring.stages) {
      stage = 0;
      parity ^= 1;
    }
  }
  /// Skips `count` stages that the other consumer reads.
  template <class R>
  __device__ __forceinline__ void skip(const R& ring, int count) {
    const int ahead = stage + count;
    stage = ahead % ring.stages;
    parity ^= static_cast<unsigned>(ahead / ring.stages) & 1u;
  }
};

// ---- which tile of C ------------------------------------------------------------------------------

/// The tiles of the calling block, one after the other. The kCluster blocks of a cluster have neighbouring
/// tiles down C and count as one; block b computes tile b, then b + the number of clusters in the launch …
template <class T, int kCluster>
class TileWalk {
 public:
  __device__ __forceinline__ TileWalk(const GemmShape& shape, Raster raster, int rows)
      : rows_(rows),
        number_(static_cast<int>(blockIdx.x) / kCluster),
        tiles_(tiles_of(shape, rows * kCluster, T::kColumns, raster)) {}

  __device__ __forceinline__ bool there() const { return number_ < tiles_.count(); }
  __device__ __forceinline__ bool is_last() const {
    return number_ + static_cast<int>(gridDim.x) / kCluster >= tiles_.count();
  }
  __device__ __forceinline__ void advance() { number_ += static_cast<int>(gridDim.x) / kCluster; }
  __device__ __forceinline__ int number() const { return number_; }
  /// First row and column of the block's tile; they may be outside C where C's edge cuts a cluster.
  __device__ __forceinline__ TilePlace place(int rank) const {
    const TilePlace tile = tiles_.place(number_);
    return {(tile.row * kCluster + rank) * rows_, tile.column * T::kColumns};
  }

 private:
  int rows_, number_;
  TileOrder tiles_;
};

// ---- recording events -----------------------------------------------------------------------------

/// A timed kernel records nothing and is not broken.
struct Timed {
  static constexpr bool kRecords = false;
  static constexpr bool kSwizzledStores = true;

  __device__ __forceinline__ void note(int, int) const {}
  __device__ __forceinline__ constexpr bool does(Fault) const { return false; }
  __device__ __forceinline__ void linger() const {}
  __device__ __forceinline__ void wait(unsigned barrier, unsigned parity, int, int) const {
    wait_for(barrier, parity);
  }
};

/// Stores C's tiles without a swizzle, to count what it saves.
struct PlainStores : Timed {
  static constexpr bool kSwizzledStores = false;
};

/// In an explained kernel the first thread of each warpgroup of the chosen block records the clock at each
/// event: one store, so that the explained kernel stays as close as possible to the timed one. It may omit
/// something on purpose; a wait may then never end, so it is abandoned after a while.
struct Explained {
  static constexpr bool kRecords = true;
  static constexpr bool kSwizzledStores = true;

  simt::Global<long long>
      clocks;  ///< kSites + 1 rows of `numbers`; the last: abandoned waits, by site
  int numbers;
  int block;
  Fault fault;

  __device__ __forceinline__ bool chosen() const { return static_cast<int>(blockIdx.x) == block; }
  __device__ __forceinline__ void note(int site, int number) const {
    if (chosen() && threadIdx.x % kWarpgroup == 0) clocks[site * numbers + number] = cycles();
  }
  __device__ __forceinline__ void seen(int site, int number) const {
    clocks[site * numbers + number] = cycles();
  }
  __device__ __forceinline__ bool does(Fault what) const {
#if defined(__CUDACC__)
    // A product wait that can be omitted would keep the compiler from overlapping products.
    if (what > Fault::last_of_knob) return false;
#endif
    return fault == what;
  }
  /// Copies that no thread has waited for must not land in memory that has gone to another block.
  __device__ __forceinline__ void linger() const {
    if (fault == Fault::none || threadIdx.x != 0) return;
    const long long start = clock64();
    while (clock64() - start < kPatience / 10) {
    }
  }
  __device__ __forceinline__ void wait(unsigned barrier, unsigned parity, int site,
                                       int number) const {
    // Under a sanitizer a wait may take a hundred times as long; only a broken kernel's never ends.
    const long long patience = fault == Fault::none ? 1000 * kPatience : kPatience;
    if (!wait_at_most(barrier, parity, patience)) clocks[kSites * numbers + site] = number;
  }
};

}  // namespace tilestep::hopper_gemm::SIMT_BACKEND

#pragma once

/// \file
/// Shared by the lesson's kernels: the stages in shared memory, the order of C's tiles, and what an explained kernel may
/// leave out.
///
/// A stage holds 128 bytes of k: 64 numbers of BF16 or FP16, 128 of E4M3. It has 64 rows of A for each
/// consumer warpgroup, and the tile's columns of B (B is stored transposed, n × k, so that k is the fastest
/// index of both). With a W-byte swizzle a tile is stored in panels of W bytes of k: 128 / W panels, each with
/// all rows; without one the panels have 16 bytes, as wgmma then requires.

#include <cstdint>
#include <utility>

#include "kernels/base/simt/ring.hpp"
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

/// The layout of the stages: chosen at run time …
struct AnyRing {
  int stages, swizzle, consumers;
  int sharing;  ///< consumers that read a stage: all, 64 rows each, or one, in turn

  static constexpr bool kSwizzledStores = true;

  __device__ __forceinline__ int count() const { return stages; }
};
/// … or at compile time, as for the timed kernels.
template <int kStages, int kConsumers, int kSwizzle = 128, int kSharing = kConsumers>
struct FixedRing {
  static constexpr int stages = kStages, swizzle = kSwizzle, consumers = kConsumers,
                       sharing = kSharing;
  static constexpr bool kSwizzledStores = true;  ///< of tiles of C, by TMA

  __device__ __forceinline__ static constexpr Count<kStages> count() { return {}; }
};

/// The stages in shared memory, as addresses for the instructions, then the tiles of C to be stored, then
/// the barriers.
template <class T, class R>
struct Stages {
  using Barriers = Ring<decltype(std::declval<R>().count())>;
  static constexpr bool kSwizzledStores = R::kSwizzledStores;

  R layout;
  unsigned tiles;

  __device__ __forceinline__ int rows() const { return layout.sharing * T::kRows; }  ///< of A
  __device__ __forceinline__ int a_bytes() const { return rows() * kDepthBytes; }
  __device__ __forceinline__ static constexpr int b_bytes() { return T::kColumns * kDepthBytes; }
  __device__ __forceinline__ int bytes() const { return a_bytes() + b_bytes(); }
  __device__ __forceinline__ int panel_bytes() const {
    return layout.swizzle == 0 ? 16 : layout.swizzle;
  }

  __device__ __forceinline__ unsigned a(int stage) const {
    return tiles + static_cast<unsigned>(stage * bytes());
  }
  __device__ __forceinline__ unsigned b(int stage) const {
    return a(stage) + static_cast<unsigned>(a_bytes());
  }
  __device__ __forceinline__ unsigned stored(int consumer, int tile) const {
    return a(layout.stages) + static_cast<unsigned>((consumer * kStoredTiles + tile) * kStoredTile);
  }
  __device__ __forceinline__ Barriers ring() const {
    return {stored(layout.consumers, 0), layout.count()};
  }

  /// Describes 32 bytes of k of `rows` rows, from `first` on, to wgmma.
  __device__ __forceinline__ std::uint64_t operand(unsigned tile, int rows, int first,
                                                   int step) const {
    const int byte = step * kWgmmaBytes;
    const int width = panel_bytes();
    const int at = (byte / width * rows + first) * width + byte % width;
    // Without a swizzle the next 16 bytes of k are in the next panel.
    return make_descriptor(tile + static_cast<unsigned>(at), layout.swizzle == 0 ? rows * 16 : 16,
                           8 * width, layout.swizzle);
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
  }
  stages.ring().name("full", "empty");
  for (int consumer = 0; consumer < ring.consumers; ++consumer) {
    name_shared(stages.stored(consumer, 0), kStoredTiles * kStoredTile, "tile of C", consumer);
  }
  return stages;
}

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

// ---- what an explained kernel may leave out -------------------------------------------------------

/// Whether it leaves this out, for a test. Not on a GPU: a wait for products that can be omitted would keep the compiler
/// from overlapping products.
template <class Tape>
__device__ __forceinline__ bool omits([[maybe_unused]] const Tape& tape,
                                      [[maybe_unused]] Fault what) {
#if defined(__CUDACC__)
  return false;
#else
  return tape.does(what);
#endif
}

/// Waits for a phase. That of a broken kernel may never end, so it is given up, and the tape has the item's number.
/// Under a sanitizer a wait may take a hundred times as long; only a broken kernel's never ends.
template <class Tape>
__device__ __forceinline__ void wait(const Tape& tape, unsigned barrier, unsigned parity,
                                     [[maybe_unused]] Turn turn, [[maybe_unused]] What what,
                                     [[maybe_unused]] int who = 0 SIMT_CALLER) {
  if constexpr (Tape::kRecords) {
    const long long patience = tape.does(Fault::none) ? 1000 * kPatience : kPatience;
    if (!wait_at_most(barrier, parity, patience SIMT_AT_CALLER)) {
      tape.tick(kGivenUp, site_of(what, who), turn.number);
    }
  } else {
    wait_for(barrier, parity SIMT_AT_CALLER);
  }
}

/// Copies that no thread of a broken kernel has waited for must not land in memory that has gone to another block.
template <class Tape>
__device__ __forceinline__ void linger([[maybe_unused]] const Tape& tape) {
  if constexpr (Tape::kRecords) {
    if (tape.does(Fault::none) || threadIdx.x != 0) return;
    const long long start = clock64();
    while (clock64() - start < kPatience / 10) {
    }
  }
}

}  // namespace tilestep::hopper_gemm::SIMT_BACKEND

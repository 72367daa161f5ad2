#pragma once

/// \file
/// What the lesson's kernels share: the ring of stages in shared memory, whose turn it is, which tile of
/// C comes when, and who witnesses what happens.
///
/// A stage holds 128 bytes of k: 64 numbers of BF16 or FP16, 128 of E4M3. Of A it has 64 rows for each
/// warpgroup that multiplies, of B the tile's columns (B is given turned, n × k, so that k is the fastest
/// index of both). With a swizzle of W bytes a tile lies in panels of W bytes of k: 128 / W panels, each with
/// all rows; without one the panels have 16 bytes, as wgmma then wants them.

#include <cstdint>

#include "kernels/base/simt/hopper.hpp"
#include "kernels/matmul/hopper_gemm/kernels.hpp"

namespace tilestep::hopper_gemm::SIMT_BACKEND {

using namespace simt::hopper;

constexpr int kWarpgroup = 128;   // threads
constexpr int kDepthBytes = 128;  // of k, in a stage
constexpr int kSteps = kDepthBytes / kWgmmaBytes;
constexpr int kAlignment = 1024;   // of a tile: what the pattern of the widest swizzle takes
constexpr int kStoredBytes = 128;  // of a row of C that is on its way out by TMA
constexpr int kStoredTile = kWgmmaRows * kStoredBytes;
constexpr int kStoredTiles = 2;  // of a warpgroup

/// What is fixed for a kernel: kColumns of C a block, kRows of it a warpgroup, and what is multiplied.
template <int kC, Format kF>
struct Tile {
  static constexpr int kColumns = kC;
  static constexpr int kRows = kWgmmaRows;
  static constexpr Format kFormat = kF;
  static constexpr int kElementBytes = kF == Format::e4m3 ? 1 : 2;
  static constexpr int kDepth = kDepthBytes / kElementBytes;
  using Sums = float[kC / 2];
};

/// How the ring is laid out: chosen when the kernel runs …
struct AnyRing {
  int stages, swizzle, consumers;
  int sharing;  ///< consumers that read a stage: all, each its 64 rows, or one, in turn
};
/// … or when it is compiled, as for the kernels that are timed.
template <int kStages, int kConsumers, int kSwizzle = 128, int kSharing = kConsumers>
struct FixedRing {
  static constexpr int stages = kStages, swizzle = kSwizzle, consumers = kConsumers,
                       sharing = kSharing;
};

/// The stages in shared memory, by addresses that the instructions take, then what is on its way out, then
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

/// Lays the ring out in dynamic shared memory and gives its parts their names.
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

/// Which stage is next, and the parity of its phase.
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
  /// Over so many stages that another reads.
  template <class R>
  __device__ __forceinline__ void skip(const R& ring, int count) {
    const int ahead = stage + count;
    stage = ahead % ring.stages;
    parity ^= static_cast<unsigned>(ahead / ring.stages) & 1u;
  }
};

// ---- which tile of C ------------------------------------------------------------------------------

/// The tiles of the calling block, one after the other. kCluster blocks of a cluster have neighbours down
/// C and count as one; a block computes tile b, then b + the number of clusters of the launch …
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
  /// First row and column of the block's tile; they may lie outside C where C's edge cuts a cluster.
  __device__ __forceinline__ TilePlace place(int rank) const {
    const TilePlace tile = tiles_.place(number_);
    return {(tile.row * kCluster + rank) * rows_, tile.column * T::kColumns};
  }

 private:
  int rows_, number_;
  TileOrder tiles_;
};

// ---- who looks on ---------------------------------------------------------------------------------

/// In a timed kernel nobody does, and all is as it should be.
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

/// C's tiles leave without a swizzle, to count what it saves.
struct PlainStores : Timed {
  static constexpr bool kSwizzledStores = false;
};

/// In an explained one the first thread of each warpgroup of the chosen block writes down the clock when
/// something happens: one store, so that what is explained is as nearly as can be what is timed. It may leave
/// something out on purpose; a wait may then last for ever, so it is given up after a while.
struct Explained {
  static constexpr bool kRecords = true;
  static constexpr bool kSwizzledStores = true;

  simt::Global<long long>
      clocks;  ///< kSites + 1 rows of `numbers`; the last: waits given up, by their site
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
    // A product's wait that may be left out would keep the compiler from running products side by side.
    if (what > Fault::last_of_knob) return false;
#endif
    return fault == what;
  }
  /// Copies that nobody has waited for must not land in what is another block's by then.
  __device__ __forceinline__ void linger() const {
    if (fault == Fault::none || threadIdx.x != 0) return;
    const long long start = clock64();
    while (clock64() - start < kPatience / 10) {
    }
  }
  __device__ __forceinline__ void wait(unsigned barrier, unsigned parity, int site,
                                       int number) const {
    // Under a sanitizer a wait may take a hundred times as long; only a broken kernel's lasts for ever.
    const long long patience = fault == Fault::none ? 1000 * kPatience : kPatience;
    if (!wait_at_most(barrier, parity, patience)) clocks[kSites * numbers + site] = number;
  }
};

}  // namespace tilestep::hopper_gemm::SIMT_BACKEND

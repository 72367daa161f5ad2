#pragma once

/// \file
/// Building blocks of the latent kernel: the layout of shared memory, the two products.

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/attention/decode/latent/problem.hpp"
#include "kernels/attention/kv_cache/paged/merge.cu"
#include "kernels/base/simt/ring.hpp"
#include "kernels/base/simt/softmax_step.hpp"

namespace tilestep::decode::latent::SIMT_BACKEND {

using namespace simt::hopper;
using paged::WorkItem;
using paged::SIMT_BACKEND::kAllLanes, paged::SIMT_BACKEND::kLn2, paged::SIMT_BACKEND::kPieceBytes;
using paged::SIMT_BACKEND::loads, paged::SIMT_BACKEND::stores, paged::SIMT_BACKEND::TileOfItem;
using paged::SIMT_BACKEND::max_of_row, paged::SIMT_BACKEND::sum_of_row;
using paged::SIMT_BACKEND::Memory, paged::SIMT_BACKEND::Task, paged::SIMT_BACKEND::Piece;
using paged::SIMT_BACKEND::Pieces, paged::SIMT_BACKEND::kKeptPieces;

constexpr int kWarpgroup = 128;  ///< threads
constexpr int kConsumers = 2;    ///< warpgroups
constexpr int kThreads = (1 + kConsumers) * kWarpgroup;
constexpr int kPanelBytes = 128;             ///< of a row: what the swizzle takes
constexpr int kPanel = kPanelBytes / 2;      ///< numbers
constexpr int kPanels = kRow / kPanel;       ///< of a row: eight latent ones and a rotary one
constexpr int kBoxBytes = 64 * kPanelBytes;  ///< of a panel of 64 rows
constexpr int kTileBytes = kPanels * kBoxBytes;
constexpr int kColumns = kLatent / kConsumers;  ///< of O, per warpgroup
constexpr int kAlignment = 1024;                ///< what the swizzle's pattern takes
/// A tile arrives in parts, so that scores begin when the first is ready.
constexpr int kParts = 3, kPanelsOfPart = kPanels / kParts;
/// Stages of tiles, and of Q. The two tiles' stages take turns of their own: an item's last tile may be a first one.
using Tiles = Ring<Count<2>, kParts>;
using Queries = Ring<Count<1>>;
constexpr int kBarriers = Queries::barriers_of(1) + Tiles::barriers_of(2);
constexpr int kReaders = kConsumers * kWarpgroup / 32;  ///< warps that empty a stage
/// Q, two tiles, the barriers, each consumer's maxima and sums, the block's first items, and room for alignment.
constexpr int kStatsBytes = kConsumers * kHeadsOfBlock * 4;
constexpr int kSharedBytes =
    3 * kTileBytes + kBarriers * 8 + kStatsBytes + kKeptPieces * kPieceBytes + kAlignment;
// A multiprocessor has 65536.
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;

// ---- shared memory --------------------------------------------------------------------------------

/// Addresses, as the instructions take them. A tile's weights overwrite its last panel, which only scores
/// need.
struct Layout {
  unsigned base;

  __device__ __forceinline__ unsigned at(int bytes) const {
    return base + static_cast<unsigned>(bytes);
  }
  __device__ __forceinline__ unsigned q() const { return base; }
  __device__ __forceinline__ unsigned tile(int stage) const { return at((1 + stage) * kTileBytes); }
  __device__ __forceinline__ unsigned weights(int stage) const {
    return tile(stage) + static_cast<unsigned>((kPanels - 1) * kBoxBytes);
  }
  __device__ __forceinline__ Queries queries() const { return {at(3 * kTileBytes)}; }
  __device__ __forceinline__ Tiles tiles() const {
    return {at(3 * kTileBytes + 8 * Queries::barriers_of(1))};
  }
  /// Bytes from the base on: floats that the consumers exchange, and the items.
  static constexpr int stats() { return 3 * kTileBytes + kBarriers * 8; }
  static constexpr int pieces() { return stats() + kStatsBytes; }
};

/// Lays it out and names the parts. `slack`: bytes before the base.
__device__ __forceinline__ Layout lay_out(int& slack) {
  const unsigned raw = simt::shared_address(simt::dynamic_shared<std::uint8_t>(
      static_cast<std::size_t>(kSharedBytes), 0, "shared memory"));
  const Layout layout{(raw + kAlignment - 1) / kAlignment * kAlignment};
  slack = static_cast<int>(layout.base - raw);
  name_shared(layout.q(), kTileBytes, "Q", 0);
  for (int stage = 0; stage < 2; ++stage) {
    name_shared(layout.tile(stage), kTileBytes, "tile", stage);
  }
  layout.queries().name("full Q", "empty Q");
  layout.tiles().name("full", "empty");
  return layout;
}

/// This warp is done with a tile: signals all blocks that copy there.
template <int kBlocks>
__device__ __forceinline__ void release_to_all(const Tiles& tiles, int stage, unsigned rank) {
  tiles.consumer_release(stage);
  if constexpr (kBlocks == 2) {
    if (threadIdx.x % 32 == 0) arrive_at(tiles.empty(stage), rank ^ 1);
  }
}

/// Of Q, and of the cache in boxes of as many rows as lie together, and of one.
struct Maps {
  TensorMap q, rows, row;
  int rows_at_once;
  int end;  ///< the row after the last: what lies there reads as 0
};

// ---- products -------------------------------------------------------------------------------------

using Scores = float[kTile / 2];
using Weights = unsigned[kTile / 16][4];
using Outputs = float[kColumns / 2];

/// Issues S = Q·K^T of 64 heads and part of a tile's panels.
__device__ __forceinline__ void issue_scores(Scores& s, unsigned q, unsigned tile, int part) {
  constexpr int kSteps = kPanelBytes / kWgmmaBytes;  // of a panel
  const auto first = static_cast<unsigned>(part * kPanelsOfPart * kBoxBytes);
  const std::uint64_t a = descriptor(q + first);
  const std::uint64_t b = descriptor(tile + first);
#pragma unroll
  for (int step = 0; step < kPanelsOfPart * kSteps; ++step) {
    const auto further =
        static_cast<std::uint64_t>((step / kSteps * kBoxBytes + step % kSteps * kWgmmaBytes) / 16);
    wgmma<Format::bf16, kTile>(s, a + further, b + further, part == 0 && step == 0);
  }
}
/// Issues O += P·V of half of the columns: the tile as it came, whose columns are the fastest. P is the warpgroup's
/// own, from registers, …
__device__ __forceinline__ void issue_own(Outputs& o, const Weights& p, unsigned tile, int half) {
  const std::uint64_t b = turned_descriptor(
      tile + static_cast<unsigned>(half * kColumns / kPanel * kBoxBytes), kBoxBytes);
#pragma unroll
  for (int step = 0; step < kTile / 16; ++step) {
    wgmma<Format::bf16, kColumns, Major::n>(
        o, p[step], b + static_cast<std::uint64_t>(step * 16 * kPanelBytes / 16), false);
  }
}
/// … or the other's, from shared memory.
__device__ __forceinline__ void issue_other(Outputs& o, unsigned p, unsigned tile, int half) {
  const std::uint64_t a = descriptor(p);
  const std::uint64_t b = turned_descriptor(
      tile + static_cast<unsigned>(half * kColumns / kPanel * kBoxBytes), kBoxBytes);
#pragma unroll
  for (int step = 0; step < kTile / 16; ++step) {
    wgmma<Format::bf16, kColumns, Major::n>(
        o, a + static_cast<std::uint64_t>(step * kWgmmaBytes / 16),
        b + static_cast<std::uint64_t>(step * 16 * kPanelBytes / 16), false);
  }
}

// ---- weights --------------------------------------------------------------------------------------

/// A thread's accumulators are where wgmma needs the numbers of A: two neighbours of a row in a register.
__device__ __forceinline__ void pack_weights(Weights& p, const Scores& s) {
#pragma unroll
  for (int i = 0; i < kTile / 4; ++i) p[i / 4][i % 4] = pack_bf16(s[2 * i], s[2 * i + 1]);
}
/// Writes a tile's weights to a panel with the 128-byte swizzle, 64 rows of 64 tokens.
__device__ __forceinline__ void show_weights(const Weights& p, unsigned panel) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) % kWarpgroup / 32 * 16 + lane % 16;
#pragma unroll
  for (int step = 0; step < kTile / 16; ++step) {
    const int chunk = simt::swizzled_chunk(row, 2 * step + lane / 16);
    stmatrix_x4(panel + static_cast<unsigned>(chunk * 16), p[step]);
  }
}

}  // namespace tilestep::decode::latent::SIMT_BACKEND

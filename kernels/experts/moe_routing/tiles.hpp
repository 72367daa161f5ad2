#pragma once

/// \file
/// Shared by the kernels of the grouped products: which block computes which tile, and what it
/// records about it.

#include <cstdint>

#include "kernels/base/simt/packed.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/experts/moe_routing/kernels.hpp"

namespace tilestep::moe_routing::SIMT_BACKEND {

/// The arrays of the grouped product as its kernels take them.
struct GroupedOperands {
  simt::Global<const std::uint16_t> x, weights;
  simt::Global<float> y;
  simt::Global<const int> first_slot, first_tile, order;
};

/// A tile's position.
struct TilePlace {
  int first_slot;   ///< first row in x and y
  int rows;         ///< of x and y: the tile's tokens, or fewer where the expert ends
  int first_width;  ///< first row of W
};

/// The calling block's tiles, one after another. A tile is kTileTokens slots of one expert by
/// kTileWidth rows of its W. Tiles are numbered expert by expert: the expert's `first_tile` times
/// the tiles across `width` is its first number.
///
/// `packed`: block b computes the tiles b, b + gridDim.x, b + 2·gridDim.x … of the list `order`.
/// Otherwise blockIdx.y is the expert and blockIdx.x the tile among the expert's; a block beyond
/// them has none. Where kBlocks neighbours compute a tile together, they count as one block.
///
/// It holds only four numbers, because it stays in registers through the whole product.
template <int kTileTokens, int kTileWidth, int kBlocks = 1>
class TileWalk {
 public:
  __device__ __forceinline__ TileWalk(const GroupedOperands& operands, const GroupedShape& shape) {
    const bool packed = shape.scheme == Scheme::packed;
    expert_ = packed ? 0 : static_cast<int>(blockIdx.y);
    position_ = static_cast<int>(blockIdx.x) / kBlocks;
    if (!packed) position_ += operands.first_tile[expert_] * across(shape);
    end_ = operands.first_tile[packed ? shape.experts : expert_ + 1] * across(shape);
    find(operands, shape);
  }

  __device__ __forceinline__ bool there() const { return position_ < end_; }
  __device__ __forceinline__ void advance(const GroupedOperands& operands,
                                          const GroupedShape& shape) {
    position_ += static_cast<int>(gridDim.x) / kBlocks;
    find(operands, shape);
  }

  __device__ __forceinline__ int number() const { return number_; }
  __device__ __forceinline__ int expert() const { return expert_; }

  /// The position of the current tile, which must exist. Blocks that run together should share rows
  /// of x and W, which L2 then holds: in groups of 8 tiles down an expert's tokens, the tiles are
  /// taken column by column.
  __device__ __forceinline__ TilePlace place(const GroupedOperands& operands,
                                             const GroupedShape& shape) const {
    const int first_tile = operands.first_tile[expert_];
    const int tiles_down = operands.first_tile[expert_ + 1] - first_tile;
    const int in_expert = number_ - first_tile * across(shape);
    const int in_group = kTilesInGroup * across(shape);
    const int first_down = in_expert / in_group * kTilesInGroup;
    const int down = min(tiles_down - first_down, kTilesInGroup);
    const int position = in_expert % in_group;
    const int first_token = (first_down + position % down) * kTileTokens;
    const int first_slot = operands.first_slot[expert_] + first_token;
    return {first_slot, min(operands.first_slot[expert_ + 1] - first_slot, kTileTokens),
            position / down * kTileWidth};
  }

 private:
  static __device__ __forceinline__ int across(const GroupedShape& shape) {
    return shape.width / kTileWidth;
  }
  /// Moves on to the expert that has the tile.
  __device__ __forceinline__ void find(const GroupedOperands& operands, const GroupedShape& shape) {
    if (!there()) return;
    number_ = position_;
    if (operands.order) {
      number_ = operands.order[position_];
      expert_ = 0;
    }
    while (number_ >= operands.first_tile[expert_ + 1] * across(shape)) ++expert_;
  }

  int position_, end_, number_ = 0, expert_;
};

/// Records when the calling block computed a tile; one thread calls it, of the first block where
/// several compute a tile together. The clock: on a GPU nanoseconds that all multiprocessors share;
/// under emulation, where time says nothing, the mma instructions that the block has issued.
class TileRecorder {
 public:
  __device__ __forceinline__ explicit TileRecorder(int mma_of_a_tile)
      : mma_of_a_tile_(static_cast<unsigned>(mma_of_a_tile)) {}

  template <class Tape>
  __device__ __forceinline__ void begins(const Tape&) {
    if constexpr (Tape::kRecords) begin_ = now();
  }
  template <class Tape>
  __device__ __forceinline__ void ends(const Tape& tape, int number, int blocks_together = 1,
                                       int mma = 0) {
    if constexpr (Tape::kRecords) {
      ++tiles_;
      const int block = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x) / blocks_together;
      tape.note(kTileSite, number, TileRun{block, processor(block), mma, begin_, now()});
    }
  }

 private:
  __device__ __forceinline__ unsigned long long now() const {
#if defined(__CUDACC__)
    return static_cast<unsigned long long>(simt::device_clock());
#else
    return std::uint64_t{tiles_} * mma_of_a_tile_;
#endif
  }
  static __device__ __forceinline__ int processor([[maybe_unused]] int block) {
#if defined(__CUDACC__)
    return simt::multiprocessor();
#else
    return block;
#endif
  }

  unsigned mma_of_a_tile_;
  unsigned tiles_ = 0;
  unsigned long long begin_ = 0;
};

}  // namespace tilestep::moe_routing::SIMT_BACKEND

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/base/simt/cublas.hpp"
#include "kernels/base/simt/resources.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/matmul/hopper_gemm/lesson.hpp"

/// \file
/// The lesson's kernels as the host calls them, the same for both backends.

namespace tilestep::hopper_gemm {

using simt::LibraryStatus;

/// C [m × n] = A [m × k] · Bᵀ, B [n × k].
struct GemmShape {
  int m = 0, n = 0, k = 0;
};

/// Rows of a matrix in memory are a multiple of 16 bytes apart, because TMA takes no others.
__host__ __device__ constexpr int pitch_bytes(int columns, int element_bytes) {
  return (columns * element_bytes + 15) / 16 * 16;
}
template <class T>
__host__ __device__ constexpr int pitch_of(int columns) {
  return pitch_bytes(columns, sizeof(T)) / static_cast<int>(sizeof(T));
}

/// Where a tile lies, or which it is: row and column, of C or in tiles.
struct TilePlace {
  int row, column;
};

/// K-tiles that mma-sync copies ahead, where its ring has the stages.
inline constexpr int kMmaAhead = 2;

/// The order in which C's tiles come. `grouped` takes kGroup rows of tiles column by column, so that the
/// tiles that are multiplied at a time share rows of A and of B.
struct TileOrder {
  static constexpr int kGroup = 16;
  int down, across;
  Raster raster;

  __host__ __device__ constexpr int count() const { return down * across; }
  __host__ __device__ constexpr TilePlace place(int number) const {
    if (raster == Raster::rows) return {number / across, number % across};
    if (raster == Raster::columns) return {number % down, number / down};
    const int group = number / (kGroup * across);
    const int left = down - group * kGroup;
    const int high = left < kGroup ? left : kGroup;
    const int in_group = number - group * kGroup * across;
    return {group * kGroup + in_group % high, in_group / high};
  }
};
__host__ __device__ constexpr TileOrder tiles_of(const GemmShape& shape, int rows, int columns,
                                                 Raster raster) {
  return {(shape.m + rows - 1) / rows, (shape.n + columns - 1) / columns, raster};
}

// ---- what an explained kernel notes ---------------------------------------------------------------

/// What happens to a stage, in order; a site of the tape. Of k-tile i of all that the block multiplies
/// (number i) by the producer; of consumer c (0 or 1) at site + c · kConsumerSites.
enum Site : int {
  kWaitsEmpty,  ///< the producer begins to wait for the stage
  kExpects,     ///< it has it, and tells the barrier how many bytes come
  kCopies,      ///< the copies are issued
  kFlips,       ///< a watcher sees the phase end
  kWaitsFull,   ///< a consumer begins to wait for the stage
  kIssues,      ///< it has it, and issues wgmma
  kCommits,     ///< all of the stage's are issued, and closed as a group
  kWaited,      ///< all but the newest group are done
  kReleases,    ///< the stage whose products are done is given back
  kStores,      ///< the consumer begins to store its tile of C (number: of the block's tile)
  kStored,      ///< it is done with that
};
inline constexpr int kConsumerSites = 7;  ///< from kWaitsFull on
inline constexpr int kGaveUp = 32;        ///< site + this: a wait that was given up
/// After so many cycles.
inline constexpr long long kPatience = 2'000'000;
struct GaveUp {
  int block, parity;
};

}  // namespace tilestep::hopper_gemm

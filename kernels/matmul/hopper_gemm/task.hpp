#pragma once

/// \file
/// The kernels' arguments, and how they request a stage's rows from TMA and multiply it.

#include "kernels/matmul/hopper_gemm/wgmma/tiles.hpp"

namespace tilestep::hopper_gemm::SIMT_BACKEND {

/// The arguments of a launch.
struct Task {
  GemmShape shape;
  Raster raster;
  int shared_bytes;
  bool stored_by_tma;
};

/// TMA's maps of the three matrices. `c` is for tiles that it stores.
struct TensorMaps {
  TensorMap a, b, c;
};

/// The address of a 16-byte chunk of a stage's row: with a W-byte swizzle, in a panel of W bytes of k.
template <class S>
__device__ __forceinline__ unsigned chunk_address(const S& stages, unsigned tile, int rows, int row,
                                                  int chunk) {
  const int width = stages.panel_bytes();
  const int panel = chunk * 16 / width;
  const unsigned plain =
      tile + static_cast<unsigned>((panel * rows + row) * width + chunk * 16 % width);
  return swizzled_address(plain, stages.layout.swizzle);
}

/// Issues the products of a stage for the warpgroup's 64 rows.
template <class T, class S>
__device__ __forceinline__ void multiply_stage(typename T::Sums& sums, const S& stages, int stage,
                                               int consumer, bool fresh) {
  wgmma_begin();
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    wgmma<T::kFormat, T::kColumns>(
        sums, stages.operand(stages.a(stage), stages.rows(), consumer * T::kRows, step),
        stages.operand(stages.b(stage), T::kColumns, 0, step), fresh && step == 0);
  }
}

/// Requests one operand's rows of a stage from TMA, to row `first` of its tile: panel by panel.
template <int kBlocks, class S>
__device__ __forceinline__ void fetch_rows(const TensorMap& map, const S& stages, unsigned tile,
                                           int rows, int first, unsigned full, int k, int row,
                                           int element_bytes) {
  const int width = stages.panel_bytes();
  for (int panel = 0; panel < kDepthBytes / width; ++panel) {
    const auto to = static_cast<unsigned>((panel * rows + first) * width);
    fetch<kBlocks>(map, tile + to, full, k + panel * width / element_bytes, row);
  }
}

/// Requests a k-tile's boxes for a stage: the tile's rows of A, and this block's share of those of B, which TMA writes to
/// all kCluster blocks.
template <class T, int kCluster, class S>
__device__ __forceinline__ void fetch_stage(const TensorMaps& maps, const S& stages, int stage,
                                            int k, const TilePlace& place, int rank) {
  constexpr int kShare = T::kColumns / kCluster;
  const unsigned full = stages.ring().full(stage);
  fetch_rows<1>(maps.a, stages, stages.a(stage), stages.rows(), 0, full, k, place.row,
                T::kElementBytes);
  fetch_rows<kCluster>(maps.b, stages, stages.b(stage), T::kColumns, rank * kShare, full, k,
                       place.column + rank * kShare, T::kElementBytes);
}

}  // namespace tilestep::hopper_gemm::SIMT_BACKEND

#pragma once

/// \file
/// What the kernels with TMA are told, and how they ask it for the rows of a stage.

#include "kernels/matmul/hopper_gemm/tiles.hpp"

namespace tilestep::hopper_gemm::SIMT_BACKEND {

/// What a launch is told.
struct Task {
  GemmShape shape;
  Raster raster;
  int shared_bytes;
  bool stored_by_tma;
};

/// What TMA must know of the three matrices. `c` is for tiles that it stores.
struct TensorMaps {
  TensorMap a, b, c;
};

/// Asks TMA for one operand's rows of a stage, to row `first` of its tile: panel by panel.
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

}  // namespace tilestep::hopper_gemm::SIMT_BACKEND

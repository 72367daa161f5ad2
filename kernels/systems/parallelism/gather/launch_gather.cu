// Many GPUs: the shapes that a product of coming tokens accepts, and its launch.

#include <algorithm>

#include "kernels/matmul/hopper_gemm/wgmma/launches.hpp"
#include "kernels/systems/parallelism/gather/coming.cu"
#include "kernels/systems/parallelism/gather/launch_gather.hpp"
#if defined(__CUDACC__)
#include "kernels/base/simt/cuda/ranks_cuda.hpp"
#endif

namespace tilestep::parallelism::SIMT_BACKEND {
namespace {

using ComingTile = product::Bf16Tile<256>;
using ComingRing = product::TimedRing;

}  // namespace

bool multiplies_coming(simt::Device& device) {
  const int capability = device.info().compute_capability;
  return capability == 0 || capability / 10 == 9;
}

const void* coming_kernel() {
  return reinterpret_cast<const void*>(&multiply_coming<ComingTile, ComingRing>);
}

void start_coming(simt::Ranks& ranks, int rank, const ComingShape& shape,
                  const ComingArrays& arrays) {
  simt::require_within("parallelism: rows that come", shape.m, 1, 1 << 20);
  simt::require_within("parallelism: rows of a chunk", shape.rows, 1, shape.m);
  simt::require_within("parallelism: columns", shape.n, 1, 1 << 20);
  simt::require_multiple("parallelism: columns", shape.n, 8);
  simt::require_multiple("parallelism: width", shape.k, 8);
  constexpr int kRows = ComingRing::sharing * ComingTile::kRows;
  constexpr int kSharedBytes =
      hopper_gemm::shared_bytes_of((kRows + ComingTile::kColumns) * product::kDepthBytes,
                                   ComingRing::stages, ComingRing::consumers);
  constexpr auto kRaster = hopper_gemm::Raster::grouped;
  const hopper_gemm::GemmShape gemm{shape.m, shape.n, shape.k};
  const int tiles = hopper_gemm::tiles_of(gemm, kRows, ComingTile::kColumns, kRaster).count();
  simt::Device& device = ranks.at(rank);
  const int blocks = std::min(tiles, std::max(device.info().multiprocessors, 1));
  const simt::Launch launch{
      .name = "multiply_coming",
      .grid = dim3(static_cast<unsigned>(blocks)),
      .block = dim3(static_cast<unsigned>((ComingRing::consumers + 1) * product::kWarpgroup)),
      .shared_bytes = static_cast<std::size_t>(kSharedBytes)};
  const auto maps =
      product::maps_of<ComingTile>(ComingRing{}, 1, gemm, {arrays.a, arrays.b}, arrays.c);
  const Chunks chunks{simt::global(arrays.flags, "flags"), ranks.world(rank, shape.call),
                      shape.rows, (shape.m + shape.rows - 1) / shape.rows};
  simt::launch_at(ranks, rank, launch, multiply_coming<ComingTile, ComingRing>, maps,
                  simt::global(arrays.c, "C"), product::Task{gemm, kRaster, kSharedBytes, true},
                  ComingRing{}, chunks);
}

}  // namespace tilestep::parallelism::SIMT_BACKEND

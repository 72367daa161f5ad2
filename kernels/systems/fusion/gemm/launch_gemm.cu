// Fusion: the shapes that products with an epilogue accept, and their launches.

#include <algorithm>
#include <cassert>
#include <type_traits>

#include "kernels/base/numeric/index.hpp"
#include "kernels/matmul/hopper_gemm/wgmma/launches.hpp"
#include "kernels/systems/fusion/gemm/epilogues.cu"

namespace tilestep::fusion::SIMT_BACKEND {
namespace {

void check_product(const simt::DeviceInfo& device, const ProductShape& shape) {
  if (device.compute_capability != 0 && device.compute_capability / 10 != 9)
    simt::refuse_device(device, "a product with an epilogue", "compute capability 9.0 (Hopper)");
  simt::require_within("fusion: rows of X", shape.m, 1, 1 << 20);
  simt::require_within("fusion: rows of W", shape.n, 1, 1 << 20);
  simt::require_multiple("fusion: rows of W", shape.n, 16);
  simt::require_within("fusion: columns of X", shape.k, 1, 1 << 20);
  simt::require_multiple("fusion: columns of X", shape.k, 8);
}

/// A launch over the tiles of a product: as many blocks as multiprocessors, tile after tile.
template <class T, class R, int kCluster, class Then>
void start_as(simt::Device& device, const hopper_gemm::GemmShape& shape,
              const ProductArrays& arrays, const Then& then) {
  constexpr int kRows = R::sharing * T::kRows;
  constexpr int kSharedBytes = hopper_gemm::shared_bytes_of(
      (kRows + T::kColumns) * product::kDepthBytes, R::stages, R::consumers);
  static_assert(kSharedBytes <= hopper_gemm::kMostSharedBytes);
  constexpr auto kRaster = hopper_gemm::Raster::grouped;
  const int tiles = hopper_gemm::tiles_of(shape, kRows * kCluster, T::kColumns, kRaster).count();
  const int clusters = std::min(tiles, std::max(device.info().multiprocessors / kCluster, 1));
  const simt::Launch launch{
      .name = "multiply_then",
      .grid = dim3(static_cast<unsigned>(clusters * kCluster)),
      .block = dim3(static_cast<unsigned>((R::consumers + 1) * product::kWarpgroup)),
      .shared_bytes = static_cast<std::size_t>(kSharedBytes),
      .cluster = kCluster};
  constexpr int kNarrower = T::kColumns / Then::template Stored<T>::kColumns;
  const product::TensorMaps maps{
      product::map_of<T>(arrays.x, shape.m, shape.k, kRows, R::swizzle),
      product::map_of<T>(arrays.w, shape.n, shape.k, T::kColumns / kCluster, R::swizzle),
      product::map_of_c(arrays.out, {shape.m, shape.n / kNarrower, shape.k}, true)};
  simt::launch(device, launch, multiply_then<Then, T, R, kCluster>, maps,
               product::Task{shape, kRaster, kSharedBytes, true}, R{}, then);
}

template <class Then>
void start_with(simt::Device& device, TileSize size, const ProductShape& s,
                const ProductArrays& arrays, const Then& then) {
  if (size == TileSize::large)
    return start_as<product::Bf16Tile<256>, product::TimedRing, 2>(device, {s.m, s.n, s.k}, arrays,
                                                                   then);
  using Ring = product::FixedRing<8, 1>;
  if (size == TileSize::small)
    return start_as<product::Bf16Tile<128>, Ring, 1>(device, {s.m, s.n, s.k}, arrays, then);
  if constexpr (!std::is_same_v<Then, Swiglu>)
    start_as<product::Bf16Tile<64>, Ring, 1>(device, {s.m, s.n, s.k}, arrays, then);
}

}  // namespace

void start_product(simt::Device& device, Epilogue epilogue, TileSize size,
                   const ProductShape& shape, const ProductArrays& arrays) {
  check_product(device.info(), shape);
  if (epilogue == Epilogue::swiglu && size == TileSize::narrow)  // 64 columns are stored at a time
    throw Error("fusion: SwiGLU in narrow tiles; allowed: large, small");
  assert(arrays.out.count == numeric::elements_of(shape.m, output_columns(epilogue, shape.n)));
  if (epilogue == Epilogue::none)
    return start_with(device, size, shape, arrays, product::SumsAlone{});
  if (epilogue == Epilogue::swiglu) return start_with(device, size, shape, arrays, Swiglu{});
  const int across = shape.n / 2;
  start_with(device, size, shape, arrays,
             Added{simt::as<const unsigned>(simt::global(arrays.second, "added")), shape.m, across,
                   epilogue == Epilogue::bias ? 0 : across});
}

void start_bias(simt::Device& device, const ProductShape& shape, const ProductArrays& arrays) {
  check_product(device.info(), shape);
  const int packs = shape.n / 8;
  const simt::Launch launch{
      .name = "add_bias",
      .grid = dim3(static_cast<unsigned>(simt::blocks_for(packs, 256)),
                   static_cast<unsigned>(simt::blocks_for(shape.m, kBiasRows))),
      .block = dim3(256)};
  simt::launch(device, launch, add_bias, simt::as<const uint4>(simt::global(arrays.x, "C")),
               simt::as<const uint4>(simt::global(arrays.second, "bias")),
               simt::as<uint4>(simt::global(arrays.out, "out")), shape.m, packs);
}

}  // namespace tilestep::fusion::SIMT_BACKEND

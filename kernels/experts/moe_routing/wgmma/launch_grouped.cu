// How the grouped product on wgmma is launched, in its four configurations.

#include <algorithm>

#include "kernels/base/simt/tensor_map.hpp"
#include "kernels/experts/moe_routing/grouped_wgmma.cu"
#include "kernels/experts/moe_routing/wgmma/launches.hpp"

namespace tilestep::moe_routing::SIMT_BACKEND {
namespace {

template <class T, class Tape>
void launch_as(simt::Device& device, const Configuration& tile, const GroupedShape& shape,
               const GroupedArrays& arrays, const Tape& tape) {
  const auto boxes_of = [&](simt::Span<const std::uint16_t> array, std::int64_t rows,
                            int box_rows) {
    return simt::tensor_map(array, {.rows = rows,
                                    .columns = shape.hidden,
                                    .box_rows = box_rows,
                                    .box_columns = grouped_wgmma::kDepth,
                                    .swizzle = grouped_wgmma::kRowBytes});
  };
  const grouped_wgmma::TensorMaps maps{
      boxes_of(arrays.weights, std::int64_t{shape.experts} * shape.width, T::kBlockWidth),
      boxes_of(arrays.x, shape.slots, T::kFetchedTokens),
      boxes_of(arrays.x, shape.slots, T::kHalves ? T::kFetchedTokens / 2 : T::kFetchedTokens)};
  simt::Launch launch{.name = "grouped_gemm_hopper",
                      .grid = dim3(1),
                      .block = dim3(grouped_wgmma::kThreads),
                      .shared_bytes = T::kSharedBytes,
                      .cluster = T::kBlocks};
  // A block fills a multiprocessor.
  const int persistent = std::max(device.info().multiprocessors / T::kBlocks, 1);
  launch.grid = grid_of(shape, tile, persistent);
  launch.grid.x *= T::kBlocks;
  simt::launch(device, launch, grouped_wgmma::grouped_gemm_hopper<T, Tape>, maps,
               operands_of(arrays), shape, tape);
}

template <class Tape>
void launch_tile(simt::Device& device, const Configuration& tile, const GroupedShape& shape,
                 const GroupedArrays& arrays, const Tape& tape) {
  const auto is = [&]<class T>(std::type_identity<T>) {
    const bool same = tile.tile_tokens == T::kTileTokens && tile.tile_width == T::kTileWidth;
    if (same) launch_as<T>(device, tile, shape, arrays, tape);
    return same;
  };
  using grouped_wgmma::HopperTiling;
  const bool found = is(std::type_identity<HopperTiling<256, 1, 1>>{}) ||
                     is(std::type_identity<HopperTiling<128, 2, 1>>{}) ||
                     is(std::type_identity<HopperTiling<256, 1, 2>>{}) ||
                     is(std::type_identity<HopperTiling<128, 2, 2>>{});
  assert(found);
  (void)found;
}

}  // namespace

void launch_wgmma(simt::Device& device, const Configuration& tile, const GroupedShape& shape,
                  const GroupedArrays& arrays, const simt::Tape& tape) {
  launch_tile(device, tile, shape, arrays, tape);
}
void launch_wgmma(simt::Device& device, const Configuration& tile, const GroupedShape& shape,
                  const GroupedArrays& arrays, const simt::NoTape& tape) {
  launch_tile(device, tile, shape, arrays, tape);
}

}  // namespace tilestep::moe_routing::SIMT_BACKEND

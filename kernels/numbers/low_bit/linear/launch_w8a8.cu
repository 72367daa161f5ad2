// W8A8: the shapes that the kernels of w8a8.cu accept, and their launches.

#include <algorithm>
#include <cassert>
#include <cstddef>

#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/tensor_map.hpp"
#include "kernels/numbers/low_bit/linear/launches.hpp"
#include "kernels/numbers/low_bit/linear/w8a8.cu"

namespace tilestep::low_bit::SIMT_BACKEND {
namespace {

/// A product's arguments.
struct EightCall {
  simt::Device& device;
  LinearShape shape;
  const EightBits& w;
  const EightBits& x;
  simt::Span<std::uint16_t> y;

  simt::Launch launch(const char* name, int blocks, int tile, unsigned cluster) const {
    return {.name = name,
            .grid = dim3(static_cast<unsigned>(blocks)),
            .block = dim3(3 * 128),
            .shared_bytes = static_cast<std::size_t>(eight_shared_bytes(tile)),
            .cluster = cluster,
            .early = true};
  }
  TensorMap map(const EightBits& of, int rows, int box_rows) const {
    return simt::tensor_map(of.codes, {.rows = rows,
                                       .columns = shape.columns,
                                       .box_rows = box_rows,
                                       .box_columns = kEightColumns,
                                       .swizzle = 128});
  }
  template <Format kFormat>
  RowScales<kFormat> scales() const {
    using Scale = const typename Eight<kFormat>::Scale;
    return {simt::as<Scale>(simt::global(w.scales, "scales of W")),
            simt::as<Scale>(simt::global(x.scales, "scales of X"))};
  }
  int tiles(int rows, int n) const {
    return (shape.rows + rows - 1) / rows * ((shape.batch + n - 1) / n);
  }

  template <Format kFormat, int kN, int kSplits>
  void start_few() const {
    const simt::Launch it = launch("gemm_w8a8", tiles(kLinearRows, kN) * kSplits, kN, kSplits);
    simt::launch(device, it, gemm_w8a8<kFormat, kN, kSplits>,
                 EightMaps{map(w, shape.rows, kLinearRows), map(x, shape.batch, kN), {}},
                 scales<kFormat>(), shape, static_cast<int>(it.shared_bytes), simt::global(y, "Y"));
  }
  template <Format kFormat>
  void start_many() const {
    constexpr int kCluster = EightWalk::kCluster;
    const int clusters = std::min(tiles(kCluster * kLinearRows, kPersistentTile),
                                  std::max(device.info().multiprocessors / kCluster, 1));
    const simt::Launch it =
        launch("persistent_w8a8", clusters * kCluster, kPersistentTile, kCluster);
    const EightMaps maps{map(w, shape.rows, kLinearRows),
                         map(x, shape.batch, kPersistentTile / kCluster),
                         simt::tensor_map(y, {.rows = shape.batch,
                                              .columns = shape.rows,
                                              .box_rows = 64,
                                              .box_columns = 64,
                                              .swizzle = 128})};
    simt::launch(device, it, persistent_w8a8<kFormat>, maps, scales<kFormat>(), shape,
                 static_cast<int>(it.shared_bytes));
  }

  template <Format kFormat>
  void start(const LinearPlan& plan) const {
    simt::with_constant<16, 32, 64, 128, kPersistentTile>(
        "low_bit: rows of X in a tile of W8A8", plan.tile, [&](auto tile) {
          if constexpr (tile == kPersistentTile) {
            simt::require_within("low_bit: blocks that share a tile of 256", plan.splits, 1, 1);
            start_many<kFormat>();
          } else {
            simt::with_constant<1, 2, 4, 8>(
                "low_bit: blocks that share a tile", plan.splits, [&](auto splits) {
                  simt::require_multiple("low_bit: stages of a row", shape.columns / kEightColumns,
                                         splits);
                  start_few<kFormat, tile, splits>();
                });
          }
        });
  }
};

}  // namespace

void start_linear_eight(simt::Device& device, const Matrix& matrix, const EightBits& w,
                        const LinearPlan& plan, int batch, const EightBits& x,
                        simt::Span<std::uint16_t> y) {
  simt::require_multiple("low_bit: rows", matrix.rows, kLinearRows);
  simt::require_within("low_bit: rows", matrix.rows, kLinearRows, 1 << 16);
  simt::require_multiple("low_bit: columns", matrix.columns, kSuperBlock);
  simt::require_within("low_bit: columns", matrix.columns, kSuperBlock, 1 << 15);
  simt::require_within("low_bit: batch", batch, 1, 1 << 14);
  assert(w.codes.count == numeric::elements_of(matrix.rows, matrix.columns));
  assert(x.codes.count == numeric::elements_of(batch, matrix.columns));
  assert(y.count == numeric::elements_of(batch, matrix.rows));
  if (w.format != x.format || (w.format != Format::int8 && w.format != Format::fp8_e4m3)) {
    throw Error(std::string("low_bit: W8A8 of ") + std::string(name_of(w.format)) + " and " +
                std::string(name_of(x.format)) + "; allowed: int8, fp8-e4m3, the same of both");
  }
  const int capability = device.info().compute_capability;
  if (capability != 0 && capability / 10 != 9) {
    simt::refuse_device(device.info(), "W8A8", "compute capability 9.0 (Hopper)");
  }
  const EightCall call{device, {matrix.rows, matrix.columns, batch}, w, x, y};
  if (w.format == Format::int8) {
    call.start<Format::int8>(plan);
  } else {
    call.start<Format::fp8_e4m3>(plan);
  }
}

}  // namespace tilestep::low_bit::SIMT_BACKEND

// W4A16: the shapes that the kernels of w4a16.cu accept, and their launches.

#include <cassert>
#include <cstddef>

#include "kernels/base/numeric/index.hpp"
#include "kernels/base/simt/tensor_map.hpp"
#include "kernels/numbers/low_bit/linear/launches.hpp"
#include "kernels/numbers/low_bit/linear/w4a16.cu"

namespace tilestep::low_bit::SIMT_BACKEND {
namespace {

constexpr int kThreads = 256;

void check(const Matrix& matrix, const Arranged& w) {
  simt::require_multiple("low_bit: rows", matrix.rows, kLinearRows);
  simt::require_within("low_bit: rows", matrix.rows, kLinearRows, 1 << 16);
  simt::require_multiple("low_bit: columns", matrix.columns, kSuperBlock);
  simt::require_within("low_bit: columns", matrix.columns, kSuperBlock, 1 << 15);
  assert(w.codes.count == numeric::elements_of(matrix.rows, matrix.columns) / 8);
  assert(w.scales.count == numeric::elements_of(matrix.rows, matrix.columns / kGroupColumns) / 2);
  (void)w;
}

template <int kN, int kSplits>
void start_gemm(simt::Device& device, const LinearShape& shape, const Arranged& w,
                simt::Span<const std::uint16_t> x, simt::Span<std::uint16_t> y) {
  const int tiles = shape.rows / kLinearRows * ((shape.batch + kN - 1) / kN);
  const simt::Launch launch{.name = "gemm_w4a16",
                            .grid = dim3(static_cast<unsigned>(tiles * kSplits)),
                            .block = dim3(3 * 128),
                            .shared_bytes = static_cast<std::size_t>(linear_shared_bytes(kN)),
                            .cluster = kSplits,
                            .early = true};
  const LinearMaps maps{simt::tensor_map(w.codes, {.rows = shape.rows / kFragmentRows,
                                                   .columns = 2 * shape.columns,
                                                   .box_rows = kLinearRows / kFragmentRows,
                                                   .box_columns = 2 * kGroupColumns}),
                        simt::tensor_map(x, {.rows = shape.batch,
                                             .columns = shape.columns,
                                             .box_rows = kN,
                                             .box_columns = 64,
                                             .swizzle = 128})};
  simt::launch(device, launch, gemm_w4a16<kN, kSplits>, maps,
               simt::global(simt::Span<const unsigned>(w.scales), "scales"), shape,
               static_cast<int>(launch.shared_bytes), simt::global(y, "Y"));
}

void start_gemv(simt::Device& device, const LinearShape& shape, const Arranged& w,
                const LinearPlan& plan, simt::Span<const std::uint16_t> x,
                simt::Span<std::uint16_t> y) {
  const int tiles = shape.rows / kFragmentRows, groups = shape.columns / kGroupColumns;
  const int blocks = plan.blocks == 0 ? tiles : plan.blocks;
  simt::require_within("low_bit: blocks of the GEMV", blocks, 1, tiles);
  GemvRoom room = gemv_room(most_gemv_tiles(tiles, blocks), shape);
  simt::require_within("low_bit: bytes of X and of the warps' sums that the GEMV holds",
                       room.stages_at, 1, 200 * 1024);
  if (plan.stages != 0) {
    simt::require_within("low_bit: stages", plan.stages, 2, room.stages);
    simt::require_multiple("low_bit: stages", plan.stages, 2);
    room.stages = plan.stages;
  }
  simt::Launch launch = simt::row_of_blocks("gemv_w4a16", blocks, (kGemvWarps + 1) * 32,
                                            static_cast<std::size_t>(room.bytes));
  launch.early = true;
  // A group of a tile is 1024 bytes of codes and 32 of scales, one after the other.
  const GemvMaps maps{
      simt::tensor_map(w.codes, {.rows = tiles * groups * 8,
                                 .columns = 32,
                                 .box_rows = kGemvGroups * 8,
                                 .box_columns = 32}),
      simt::tensor_map(
          w.scales,
          {.rows = tiles * groups, .columns = 8, .box_rows = kGemvGroups, .box_columns = 8})};
  const auto start = [&](auto pairs) {
    simt::launch(device, launch, gemv_w4a16<decltype(pairs)::value>, maps, simt::global(x, "X"),
                 shape, room, simt::global(y, "Y"));
  };
  if (shape.batch <= 2) return start(std::integral_constant<int, 1>{});
  if (shape.batch <= 4) return start(std::integral_constant<int, 2>{});
  start(std::integral_constant<int, 4>{});
}

}  // namespace

void start_arrange(simt::Device& device, const Matrix& matrix, const Quantized& from,
                   const Arranged& to) {
  check(matrix, to);
  assert(from.format == Format::int4 && from.group == Group::g128);
  const auto lanes = static_cast<std::int64_t>(to.codes.count / 4);
  simt::launch(device, simt::row_of_blocks("arrange", simt::blocks_for(lanes, kThreads), kThreads),
               arrange, simt::global(simt::Span<const std::uint8_t>(from.codes), "codes"),
               simt::as<const std::uint16_t>(
                   simt::global(simt::Span<const std::uint8_t>(from.scales), "scales")),
               matrix, simt::as<uint4>(simt::global(to.codes, "arranged codes")),
               simt::as<std::uint16_t>(simt::global(to.scales, "arranged scales")));
  // The products' launches ask for codes before they await the launch ahead of them.
  device.synchronize();
}

void start_read(simt::Device& device, simt::Span<const std::uint32_t> words,
                simt::Span<std::uint32_t> sums) {
  simt::require_multiple("low_bit: sums", static_cast<int>(sums.count), kThreads);
  simt::require_multiple("low_bit: words", static_cast<int>(words.count), 4);
  simt::launch(
      device,
      simt::row_of_blocks("read_words", static_cast<std::int64_t>(sums.count) / kThreads, kThreads),
      read_words, simt::as<const uint4>(simt::global(words, "words")),
      static_cast<int>(words.count), simt::global(sums, "sums"));
}

void start_linear(simt::Device& device, const Matrix& matrix, const Arranged& w,
                  const LinearPlan& plan, int batch, simt::Span<const std::uint16_t> x,
                  simt::Span<std::uint16_t> y) {
  check(matrix, w);
  simt::require_within("low_bit: batch", batch, 1, plan.tile == 0 ? kGemvBatch : 1 << 14);
  assert(x.count == numeric::elements_of(batch, matrix.columns));
  assert(y.count == numeric::elements_of(batch, matrix.rows));
  const LinearShape shape{matrix.rows, matrix.columns, batch};
  simt::require_capability(device.info(), "W4A16", 90);
  if (plan.tile == 0) {
    start_gemv(device, shape, w, plan, x, y);
    return;
  }
  simt::with_constant<16, 32, 64, 128>("low_bit: rows of X in a tile", plan.tile, [&](auto tile) {
    simt::with_constant<1, 2, 4>(
        "low_bit: blocks that share a tile", plan.splits, [&](auto splits) {
          simt::require_multiple("low_bit: groups of a row", matrix.columns / kGroupColumns,
                                 splits);
          start_gemm<decltype(tile)::value, decltype(splits)::value>(device, shape, w, x, y);
        });
  });
}

}  // namespace tilestep::low_bit::SIMT_BACKEND

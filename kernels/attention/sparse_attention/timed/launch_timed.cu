// How the timed kernels are launched; the same text for both backends.

#include <algorithm>
#include <cmath>

#include "kernels/attention/sparse_attention/timed/decode.cu"
#include "kernels/attention/sparse_attention/timed/index_fp8.cu"
#include "kernels/attention/sparse_attention/timed/launches.hpp"
#include "kernels/attention/sparse_attention/timed/lists.cu"
#include "kernels/base/simt/tensor_map.hpp"

namespace tilestep::sparse_attention::timed::SIMT_BACKEND {
namespace {

void require_hopper(const simt::DeviceInfo& device) {
  if (device.compute_capability == 0 || device.compute_capability / 10 == 9) return;
  simt::refuse_device(device, "sparse-attention's timed kernels",
                      "compute capability 9.0 (Hopper)");
}

template <bool kChooses>
void start_scores(simt::Device& device, const ScoreShape& shape, const ScoreArrays& arrays) {
  const IndexMaps maps{simt::tensor_map(arrays.q, {.rows = shape.queries * kHeads,
                                                   .columns = kDim,
                                                   .box_rows = kColumns,
                                                   .box_columns = kDim,
                                                   .swizzle = 128}),
                       simt::tensor_map(arrays.keys, {.rows = shape.context,
                                                      .columns = kDim,
                                                      .box_rows = kTokensOfTile,
                                                      .box_columns = kDim,
                                                      .swizzle = 128})};
  const Scoring scoring{
      simt::global(arrays.weights, "weights"), simt::global(arrays.scales, "scales"),
      simt::global(arrays.scores, "scores"), simt::global(arrays.chosen, "chosen")};
  const simt::Launch launch = simt::row_of_blocks("index_fp8", shape.queries / kQueriesOfBlock,
                                                  3 * kGroup, score_shared_bytes(shape));
  simt::launch(device, launch, index_kernel<kChooses>, maps, scoring, shape,
               static_cast<int>(launch.shared_bytes));
}

}  // namespace

void attend_here(simt::Device& device, const ListShape& shape, const ListArrays& arrays) {
  require_hopper(device.info());
  simt::require_within("sparse-attention: heads", shape.heads, 1, 1 << 12);
  simt::require_within("sparse-attention: length", shape.length, 1, 1 << 20);
  const int tiles = (shape.length + kListRows - 1) / kListRows;
  const flash_attention_3::TileOrder order{tiles, shape.heads,
                                           shape.rule.mask == attention::Mask::causal};
  const int blocks = std::min(order.count(), std::max(device.info().multiprocessors, 1));
  const simt::Launch launch = simt::row_of_blocks(
      "lists", blocks, kListSizes.threads(), static_cast<std::size_t>(kListSizes.shared_bytes()));
  const auto map_of = [&](auto array, int box_rows) {
    return simt::tensor_map(array, {.rows = shape.length,
                                    .columns = kListSizes.head_dim,
                                    .box_rows = box_rows,
                                    .box_columns = flash_attention_3::kPanelColumns,
                                    .swizzle = flash_attention_3::kPanelBytes,
                                    .matrices = shape.heads});
  };
  constexpr int kRows = flash_attention_3::kRowsOfGroup;
  const flash::TensorMaps maps{map_of(arrays.q, kRows), map_of(arrays.k, kListKeys),
                               map_of(arrays.v, kListKeys), map_of(arrays.o, kRows)};
  const double scale = kToLog2 / std::sqrt(static_cast<double>(kListSizes.head_dim));
  const flash::Task task{shape.rule, order, 1, static_cast<float>(scale)};
  const Lists lists{simt::global(arrays.first, "first"), simt::global(arrays.whole, "whole"),
                    simt::global(arrays.tiles, "tiles")};
  simt::launch(device, launch, listed_kernel, maps, simt::global(arrays.lse, "log-sum-exp"), task,
               lists);
}

void score_here(simt::Device& device, const ScoreShape& shape, const ScoreArrays& arrays) {
  require_hopper(device.info());
  simt::require_multiple("sparse-attention: queries", shape.queries, kQueriesOfBlock);
  simt::require_within("sparse-attention: context", shape.context, shape.queries, 1 << 20);
  simt::require_within("sparse-attention: top_k", shape.top_k, 0, 4096);
  if (shape.top_k == 0) return start_scores<false>(device, shape, arrays);
  simt::require_within("sparse-attention: slack", shape.slack, 0, 4096);
  simt::require_within("sparse-attention: room", shape.room,
                       shape.top_k + shape.slack + kCheckEvery * kTokensOfTile, 8192);
  start_scores<true>(device, shape, arrays);
}

void decode_here(simt::Device& device, const DecodeShape& shape, const DecodeArrays& arrays) {
  require_hopper(device.info());
  simt::require_within("sparse-attention: batch", shape.batch, 1, 1 << 16);
  simt::require_within("sparse-attention: top_k", shape.top_k, 1, kMostChosen);
  simt::require_within("sparse-attention: page_size", shape.page_size, 1, 1 << 16);
  const Decode decode{simt::global(arrays.q, "q"), simt::global(arrays.cache, "cache"),
                      simt::global(arrays.table, "table"), simt::global(arrays.chosen, "chosen"),
                      simt::global(arrays.o, "o")};
  const simt::Launch launch =
      simt::row_of_blocks("decode", shape.batch, kGatherThreads, decode_shared_bytes());
  simt::launch(device, launch, decode_kernel, decode, shape);
}

}  // namespace tilestep::sparse_attention::timed::SIMT_BACKEND

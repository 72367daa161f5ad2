// The launch of the latent kernel; the same text for both backends.

#include <cassert>

#include "kernels/attention/decode/latent/kernels.hpp"
#include "kernels/attention/decode/latent/latent.cu"
#include "kernels/attention/kv_cache/paged/launch.hpp"
#include "kernels/base/simt/tensor_map.hpp"

namespace tilestep::decode::latent::SIMT_BACKEND {
namespace {

using paged::SIMT_BACKEND::Timed, paged::SIMT_BACKEND::witness_of;

void check(const simt::DeviceInfo& device, const Problem& problem) {
  if (device.compute_capability != 0 && device.compute_capability / 10 != 9) {
    simt::refuse_device(device, "latent decode", "compute capability 9.0 (Hopper)");
  }
  simt::require_within("latent decode: heads", problem.heads, 1, 1 << 12);
  if (problem.heads > kHeadsOfBlock) {
    simt::require_multiple("latent decode: heads", problem.heads, kHeadsOfBlock);
  }
  simt::require_within("latent decode: page_size", problem.page_size, 1, 1 << 20);
}

/// Rows that are contiguous wherever a tile begins.
int rows_at_once(int page_size) {
  int rows = 1;
  while (rows < kTile && page_size % (2 * rows) == 0) rows *= 2;
  return rows;
}

simt::hopper::TensorMap map_of(simt::Span<const std::uint16_t> array, int rows, int box_rows) {
  return simt::tensor_map(array, {.rows = rows,
                                  .columns = kRow,
                                  .box_rows = box_rows,
                                  .box_columns = kPanel,
                                  .swizzle = kPanelBytes});
}

Task task_of(const Problem& problem) {
  return {.heads = problem.heads,
          .kv_heads = 1,
          .page_size = problem.page_size,
          .table_pitch = problem.table_pitch,
          .most_rows = heads_of_item(problem.heads),
          .page_shift = -1,
          .strips = 1,
          .k_channels = false,
          .merges = false,
          .merging = problem.merging,
          .scale = problem.scale};
}
Memory memory_of(const Arrays& a) {
  Memory memory{};
  memory.table = simt::global(a.table, "block table");
  memory.context = simt::global(a.context, "context");
  memory.items = simt::global(a.items, "work items");
  memory.first_item = simt::global(a.first_item, "first items");
  memory.o = simt::global(a.o, "O");
  memory.lse = simt::global(a.lse, "log-sum-exp");
  memory.part_o = simt::global(a.part_o, "parts of O");
  memory.part_m = simt::global(a.part_m, "maxima of parts");
  memory.part_l = simt::global(a.part_l, "sums of parts");
  return memory;
}

simt::Launch shape_of(std::int64_t clusters, int blocks_of_cluster) {
  simt::Launch shape = simt::row_of_blocks("latent", clusters * blocks_of_cluster, kThreads,
                                           static_cast<std::size_t>(kSharedBytes));
  shape.cluster = static_cast<unsigned>(blocks_of_cluster);
  return shape;
}

template <class W>
void launch(simt::Device& device, const Problem& problem, const Arrays& arrays, const W& witness) {
  check(device.info(), problem);
  const int rows = problem.pages * problem.page_size;
  const int at_once = rows_at_once(problem.page_size);
  const Maps maps{map_of(arrays.q, problem.batch * problem.heads, kHeadsOfBlock),
                  map_of(arrays.cache, rows, at_once), map_of(arrays.cache, rows, 1), at_once,
                  rows};
  simt::with_constant<1, 2>(
      "latent decode: blocks", blocks_of_item(problem.heads), [&](auto blocks) {
        constexpr int kBlocks = decltype(blocks)::value;
        simt::launch(device,
                     shape_of(static_cast<std::int64_t>(arrays.first_item.count) - 1, kBlocks),
                     latent<kBlocks, W>, maps, memory_of(arrays), task_of(problem), witness);
      });
}

/// The members that merge_rows needs of a shape.
struct MergedShape {
  static constexpr int kHeadDim = kLatent;
};
template <class W>
void merge_with(simt::Device& device, const Problem& problem, const Arrays& arrays,
                const W& witness) {
  check(device.info(), problem);
  constexpr int kMerging = 256;  // threads
  simt::Launch shape =
      simt::row_of_blocks("merge", static_cast<std::int64_t>(arrays.items.count), kMerging);
  shape.grid.y = static_cast<unsigned>(
      simt::blocks_for(heads_of_item(problem.heads) * (kLatent / 4), kMerging));
  simt::launch(device, shape, paged::SIMT_BACKEND::merge<MergedShape, W>, memory_of(arrays),
               task_of(problem), witness);
}

}  // namespace

void attend(simt::Device& device, const Problem& problem, const Arrays& arrays) {
  launch(device, problem, arrays, Timed{});
}
void explain(simt::Device& device, const Problem& problem, const Arrays& arrays,
             const paged::Explanation& what) {
  launch(device, problem, arrays, witness_of(what));
}
void merge(simt::Device& device, const Problem& problem, const Arrays& arrays,
           const paged::Explanation* what) {
  if (what != nullptr) {
    merge_with(device, problem, arrays, witness_of(*what));
  } else {
    merge_with(device, problem, arrays, Timed{});
  }
}
simt::Resources resources(simt::Device& device, const Problem& problem) {
  check(device.info(), problem);
  simt::Resources found;
  simt::with_constant<1, 2>(
      "latent decode: blocks", blocks_of_item(problem.heads), [&](auto blocks) {
        constexpr int kBlocks = decltype(blocks)::value;
        found = simt::resources_of(shape_of(1, kBlocks), latent<kBlocks, Timed>);
      });
  return found;
}

}  // namespace tilestep::decode::latent::SIMT_BACKEND

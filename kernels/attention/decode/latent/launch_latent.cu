// The launch of the latent kernel; the same text for both backends.

#include "kernels/attention/decode/latent/kernels.hpp"
#include "kernels/attention/decode/latent/latent.cu"
#include "kernels/attention/kv_cache/paged/launch.hpp"
#include "kernels/base/simt/tensor_map.hpp"

namespace tilestep::decode::latent::SIMT_BACKEND {
namespace {

void check(const simt::DeviceInfo& device, const paged::Problem& problem) {
  if (device.compute_capability != 0 && device.compute_capability / 10 != 9) {
    simt::refuse_device(device, "latent decode", "compute capability 9.0 (Hopper)");
  }
  simt::require_within("latent decode: heads", problem.heads, 1, 1 << 12);
  simt::require_multiple("latent decode: heads", problem.heads, heads_of_item(problem.heads));
  simt::require_within("latent decode: head_dim", problem.head_dim, kRow, kRow);
  simt::require_within("latent decode: page_size", problem.page_size, 1, 1 << 20);
}

simt::hopper::TensorMap map_of(simt::Span<const std::uint16_t> array, int rows, int box_rows) {
  return simt::tensor_map(array, {.rows = rows,
                                  .columns = kRow,
                                  .box_rows = box_rows,
                                  .box_columns = kPanel,
                                  .swizzle = kPanelBytes});
}
Maps maps_of(const paged::Problem& problem, const paged::Arrays& arrays) {
  const simt::Span<const std::uint16_t> cache{reinterpret_cast<const std::uint16_t*>(arrays.k.data),
                                              arrays.k.count / 2};
  const auto rows = static_cast<int>(cache.count / kRow);
  const int at_once = rows_at_once(problem.page_size);
  return {map_of(arrays.q, static_cast<int>(arrays.q.count / kRow), kHeadsOfBlock),
          map_of(cache, rows, at_once), map_of(cache, rows, 1), at_once, rows};
}

Task task_of(const paged::Problem& problem) {
  Task task = paged::SIMT_BACKEND::task_of(problem);
  task.scale = static_cast<float>(kScale);
  return task;
}

/// The members that merge_rows needs of a shape.
struct MergedShape {
  static constexpr int kHeadDim = kLatent;
};

template <class Tape>
void launch(simt::Device& device, const paged::Problem& problem, const paged::Arrays& arrays,
            const Tape& tape) {
  const Memory memory = paged::SIMT_BACKEND::memory_of(arrays);
  const Task task = task_of(problem);
  simt::with_constant<1, 2>(
      "latent decode: blocks", blocks_of_item(problem.heads), [&](auto blocks) {
        constexpr int kBlocks = decltype(blocks)::value;
        const auto clusters = static_cast<std::int64_t>(arrays.first_item.count) - 1;
        simt::Launch shape = simt::row_of_blocks("latent", clusters * kBlocks, kThreads,
                                                 static_cast<std::size_t>(kSharedBytes));
        shape.cluster = kBlocks;
        simt::launch(device, shape, latent<kBlocks, Tape>, maps_of(problem, arrays), memory, task,
                     tape);
      });
  if (arrays.part_m.count == 0) return;
  constexpr int kMerging = 256;  // threads
  simt::Launch shape =
      simt::row_of_blocks("merge", static_cast<std::int64_t>(arrays.items.count), kMerging);
  shape.grid.y = static_cast<unsigned>(
      simt::blocks_for(heads_of_item(problem.heads) * (kLatent / 4), kMerging));
  simt::launch(device, shape, paged::SIMT_BACKEND::merge<MergedShape, Tape>, memory, task, tape);
}

}  // namespace

void attend(simt::Device& device, const paged::Problem& problem, const paged::Arrays& arrays,
            const simt::Tape& tape) {
  check(device.info(), problem);
  simt::with_tape(tape, [&](const auto& records) { launch(device, problem, arrays, records); });
}

}  // namespace tilestep::decode::latent::SIMT_BACKEND

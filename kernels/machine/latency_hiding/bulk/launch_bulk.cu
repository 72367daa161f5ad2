// Latency hiding: how the copy by TMA is launched.

#include <cassert>

#include "kernels/base/simt/tensor_map.hpp"
#include "kernels/machine/latency_hiding/bulk/bulk_copy.cu"
#include "kernels/machine/latency_hiding/bulk/launch_bulk.hpp"

namespace tilestep::latency_hiding::SIMT_BACKEND {

constexpr int kHopper = 90;

void check_device(const simt::DeviceInfo& info) {
  if (info.compute_capability != 0 && info.compute_capability != kHopper) {
    simt::refuse_device(info, "bulk-copy", "compute capability 9.0");
  }
}

/// Under emulation the words take a matrix that is not empty.
hopper::TensorMap map_of(simt::Span<float> array, const BulkShape& shape) {
  const auto rows = static_cast<std::int64_t>(array.count) / shape.columns;
  if (rows == 0) return {};
  return simt::tensor_map(array, {.rows = rows,
                                  .columns = shape.columns,
                                  .box_rows = shape.rows,
                                  .box_columns = shape.columns});
}

void start_bulk_copy(simt::Device& device, const Grid& grid, const BulkShape& shape,
                     simt::Span<const float> in, simt::Span<float> out, const simt::Tape& on) {
  check_device(device.info());
  assert(in.count == out.count && grid.shared_bytes >= shape.shared_bytes());
  simt::require_within("bulk-copy: stages", shape.stages, 1, kMostStages);
  const simt::Launch launch = simt::row_of_blocks("bulk_copy", grid.blocks, grid.threads,
                                                  static_cast<std::size_t>(grid.shared_bytes));
  const auto in_map = map_of({const_cast<float*>(in.data), in.count}, shape);
  const auto out_map = map_of(out, shape);
  simt::with_tape(on, [&](auto tape) {
    simt::launch(device, launch, SIMT_BACKEND::bulk_copy<decltype(tape)>, in_map, out_map,
                 simt::global(in, "in"), simt::global(out, "out"), static_cast<Index>(in.count),
                 shape, shape.shared_bytes(), tape);
  });
}

simt::Resources bulk_resources(simt::Device& device, const Grid& grid) {
  check_device(device.info());
  return simt::resources_of(simt::row_of_blocks("bulk_copy", grid.blocks, grid.threads,
                                                static_cast<std::size_t>(grid.shared_bytes)),
                            SIMT_BACKEND::bulk_copy<simt::Tape>);
}

}  // namespace tilestep::latency_hiding::SIMT_BACKEND

#pragma once

/// \file
/// What FlashAttention 3's kernels take, forward and backward, and what TMA is told of their matrices. For both backends.

#include <string>

#include "kernels/attention/flash_attention_3/schedule.hpp"
#include "kernels/attention/shared/task.hpp"
#include "kernels/base/simt/tensor_map.hpp"

namespace tilestep::flash_attention_3::SIMT_BACKEND {

/// Throws Error for what the kernels do not take but head_dim; Error (unavailable) on a GPU other than Hopper.
inline void check(const simt::DeviceInfo& device, const attention::Task& task, const char* kernel) {
  if (device.compute_capability != 0 && device.compute_capability / 10 != 9) {
    simt::refuse_device(device, kernel, "compute capability 9.0 (Hopper)");
  }
  const std::string name = std::string(kernel) + ": ";
  simt::require_within((name + "length").c_str(), task.rule.length, 1, 1 << 20);
  simt::require_within((name + "kv_heads").c_str(), task.kv_heads, 1, 1 << 12);
  simt::require_multiple((name + "heads").c_str(), task.heads, task.kv_heads);
  simt::require_within((name + "heads").c_str(), task.heads, 1, 1 << 12);
  const Mask mask = task.rule.mask;
  const bool has_it = mask == Mask::none || mask == Mask::causal ||
                      (mask == Mask::sliding_window && task.rule.sinks == 0);
  if (!has_it) throw Error(name + "masks are none, causal and sliding-window without sinks");
}

/// Boxes of `box_rows` rows by 128 bytes of one of `heads` matrices [length × head_dim].
template <class T>
TensorMap map_of(simt::Span<T> array, const attention::Task& task, int heads, int box_rows) {
  return simt::tensor_map(array, {.rows = task.rule.length,
                                  .columns = task.head_dim,
                                  .box_rows = box_rows,
                                  .box_columns = kPanelBytes / static_cast<int>(sizeof(T)),
                                  .swizzle = kPanelBytes,
                                  .matrices = heads});
}

}  // namespace tilestep::flash_attention_3::SIMT_BACKEND

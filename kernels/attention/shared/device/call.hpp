#pragma once

/// \file
/// What the launches of forward and backward kernels share.

#include <cmath>

#include "kernels/attention/shared/device/softmax.hpp"
#include "kernels/base/simt/resources.hpp"

namespace tilestep::attention::SIMT_BACKEND {

inline Setting setting_of(const Task& task) {
  const float scale = 1 / std::sqrt(static_cast<float>(task.head_dim));
  return {task.rule, task.heads, task.kv_heads,
          task.mod,  scale,      task.mod == ScoreMod::none ? scale : 1.0f};
}

/// The tape of an explained kernel that records as `records` says, with a fault.
inline simt::Tape tape_of(const Records& records, const Task& task, Break broken) {
  simt::Tape tape;
  tape.keep(kVisits, records.visits).keep(kSteps, records.steps);
  tape.keep(kAsked, records.asked).keep(kRows, records.rows);
  tape.chosen_thread = records.head * task.length() + records.query;
  tape.fault = static_cast<int>(broken);
  return tape;
}

/// An array as a kernel with such a tape takes it.
template <class T>
simt::Global<T> array_for(const simt::NoTape&, simt::Span<T> span, Tensor tensor) {
  return simt::global(span, name_of(tensor).data());
}
template <class T>
Counted<T> array_for(const simt::Tape& tape, simt::Span<T> span, Tensor tensor) {
  const simt::Tape::Kept& asked = tape.kept[kAsked];
  const simt::Span<unsigned long long> bytes{static_cast<unsigned long long*>(asked.data),
                                             asked.count};
  return {simt::global(span, name_of(tensor).data()),
          simt::global(bytes, "asked") + 2 * static_cast<int>(tensor)};
}

/// Launches a kernel, or asks what it takes.
struct Call {
  simt::Device& device;
  simt::Resources* resources = nullptr;

  template <class... Params, class... Args>
  void operator()(const char* name, std::int64_t blocks, int threads, std::size_t shared_bytes,
                  void (*kernel)(Params...), const Args&... args) const {
    const simt::Launch launch = simt::row_of_blocks(name, blocks, threads, shared_bytes);
    if (resources != nullptr) {
      *resources = simt::resources_of(launch, kernel);
    } else {
      simt::launch(device, launch, kernel, args...);
    }
  }
};

}  // namespace tilestep::attention::SIMT_BACKEND

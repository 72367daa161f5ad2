#pragma once

/// \file
/// What launch.cu and backward_launch.cu share.

#include <cmath>

#include "kernels/attention/shared/device/softmax.hpp"
#include "kernels/base/simt/resources.hpp"

namespace tilestep::attention::SIMT_BACKEND {

inline Setting setting_of(const Task& task) {
  const float scale = 1 / std::sqrt(static_cast<float>(task.head_dim));
  return {task.rule, task.heads, task.kv_heads,
          task.mod,  scale,      task.mod == ScoreMod::none ? scale : 1.0f};
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

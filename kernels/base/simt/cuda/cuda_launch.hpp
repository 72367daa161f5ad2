#pragma once

/// \file
/// What a launch does on the host, around the `<<<>>>` that only nvcc can spell.

#include <cuda_runtime.h>

#include "kernels/base/simt/launch.hpp"

namespace tilestep::simt::cuda {

/// Where simt::watch writes to: the variable `simt_watch_page` of an edited kernel's image.
struct WatchPage {
  unsigned long long count;
  struct Entry {
    char name[32];
    unsigned line, block, thread, unused;
    double value;
  } entries[kMostWatched];
};

/// The arrays among a launch's arguments: null for what is none.
struct PointerArgument {
  const void* begin;
  bool written;
};
template <class T>
PointerArgument pointer_argument(const T& argument) {
  if constexpr (std::is_pointer_v<T>) {
    return {argument, !std::is_const_v<std::remove_pointer_t<T>>};
  } else {
    return {nullptr, false};
  }
}
/// For the log of the stream that the launch is given to; nothing outside Streams::in.
void note_launch(Device& device, const Launch& shape, const PointerArgument* arguments,
                 std::size_t count);

/// Checks the launch against the device's limits, allows the kernel its dynamic shared memory, and
/// opens a profiler range. Answers the stream to launch in. Throws Error that names the kernel.
cudaStream_t before_launch(Device& device, const Launch& shape, const void* kernel);
/// The function to launch in place of `kernel`: the kernel of that name in the image that the device was
/// given, else null.
const void* edited_kernel(Device& device, const void* kernel);
/// Launches a function of which only the parameters are known.
template <class... Params>
void launch_edited(const cudaLaunchConfig_t& config, const void* function, Params... params) {
  void* addresses[] = {const_cast<void*>(static_cast<const void*>(&params))..., nullptr};
  static_cast<void>(cudaLaunchKernelExC(&config, function, addresses));
}
/// Closes the range. Throws Error that names the kernel if the device refused the launch.
void after_launch(Device& device, const Launch& shape);

}  // namespace tilestep::simt::cuda

#pragma once

/// \file
/// What a launch does on the host, around the `<<<>>>` that only nvcc can spell.

#include <cuda_runtime.h>

#include "kernels/base/simt/launch.hpp"

namespace tilestep::simt::cuda {

/// Checks the launch against the device's limits, allows the kernel its dynamic shared memory, and
/// opens a profiler range. Answers the stream to launch in. Throws Error that names the kernel.
cudaStream_t before_launch(Device& device, const Launch& shape, const void* kernel);
/// Closes the range. Throws Error that names the kernel if the device refused the launch.
void after_launch(Device& device, const Launch& shape);

}  // namespace tilestep::simt::cuda

#pragma once

#include "kernels/base/simt/backends.hpp"

namespace tilestep::simt {

// What the CUDA module exports, by these names.

/// Fills in `available`, `reason` and `device`.
using CudaStatusFunction = void (*)(CudaStatus& status);
inline constexpr const char* kCudaStatusSymbol = "tilestep_cuda_status";

/// Makes the device; its caller owns it. Throws Error.
using CudaDeviceFunction = Device* (*)();
inline constexpr const char* kCudaDeviceSymbol = "tilestep_cuda_make_device";

}  // namespace tilestep::simt

#pragma once

#include <filesystem>
#include <string>

#include "kernels/base/simt/backends.hpp"

namespace tilestep::simt {

// What the CUDA module exports, by these names.

/// The `source_hash()` that it was built with. Asked before anything else: the other functions take
/// and give classes, which both sides must have from the same headers.
using CudaHashFunction = const char* (*)();
inline constexpr const char* kCudaHashSymbol = "tilestep_cuda_source_hash";

/// Fills in `available`, `reason` and `device`.
using CudaStatusFunction = void (*)(CudaStatus& status);
inline constexpr const char* kCudaStatusSymbol = "tilestep_cuda_status";

/// Makes the device; its caller owns it. Throws Error.
using CudaDeviceFunction = Device* (*)();
inline constexpr const char* kCudaDeviceSymbol = "tilestep_cuda_make_device";

/// Name of the kernel that was launched last, by any device; null: none was. From any thread.
using CudaLastLaunchFunction = const char* (*)();
inline constexpr const char* kCudaLastLaunchSymbol = "tilestep_cuda_last_launch";

/// Whether devices launch the kernels of their images in place of those that were built in; at first they do.
using CudaUseEditedFunction = void (*)(bool use);
inline constexpr const char* kCudaUseEditedSymbol = "tilestep_cuda_use_edited";

/// What stands between a kernel's name and the reason in the sentence of a DeviceLost.
inline constexpr const char* kFailedOnGpu = ": the kernel failed on the GPU: ";

/// The module as found.
struct CudaModule {
  bool built = false;  ///< its file is there
  CudaStatusFunction status = nullptr;
  CudaDeviceFunction make_device = nullptr;
  CudaLastLaunchFunction last_launch = nullptr;
  CudaUseEditedFunction use_edited = nullptr;
  std::string reason;  ///< why it cannot be used; empty if it can
};
/// Loads the module in the file `path`, for the rest of this process. Refuses one that was built
/// from other sources than this program.
CudaModule load_cuda_module(const std::filesystem::path& path);

/// The kernel that this process launched last on a GPU; empty: none. From any thread.
std::string last_cuda_launch();

/// Whether launches on a GPU are of the kernels that a device was given (Device::use_image), where it has them, or
/// of those that were built in.
void use_edited_kernels(bool use);

}  // namespace tilestep::simt

#pragma once

#include <memory>
#include <span>

#include "kernels/base/simt/backends.hpp"

namespace tilestep::simt::cuda {

/// What the CUDA runtime says of this machine. Never throws; `built` is true.
CudaStatus status();

/// The first CUDA device, with the kernels of `table` (which must outlive it). Throws Error.
std::unique_ptr<Device> make_device(std::span<const KernelEntry> table);

/// The name of the kernel that was launched last, by any device; null: none was. From any thread: another one may
/// be waiting for that kernel's end.
const char* last_launch();
/// The stream whose launches become a graph (Device::graph_of), for libraries; otherwise null, the default one.
void* captured_stream();

/// Whether devices launch the kernels of their images; see cuda_module.hpp.
void use_edited(bool use);

}  // namespace tilestep::simt::cuda

#pragma once

#include <memory>

#include "kernels/base/simt/backends.hpp"

namespace tilestep::simt {

/// Another emulated device with the kernels of `device`, which may be edited ones, for a lesson that wants to run them in
/// other ways. For a device that is not emulated: one with the kernels of `table`.
std::unique_ptr<Device> make_emulated_like(const Device& device, std::span<const KernelEntry> table,
                                           EmulationOptions options);

}  // namespace tilestep::simt

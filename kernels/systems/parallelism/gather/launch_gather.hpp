#pragma once

#include "kernels/base/simt/ranks.hpp"
#include "kernels/systems/parallelism/gather/gather.hpp"

namespace tilestep::parallelism::SIMT_BACKEND {

/// Whether the device is a Hopper GPU, or emulated.
bool multiplies_coming(simt::Device& device);
void start_coming(simt::Ranks& ranks, int rank, const ComingShape& shape,
                  const ComingArrays& arrays);
/// The kernel, to be loaded.
const void* coming_kernel();

}  // namespace tilestep::parallelism::SIMT_BACKEND

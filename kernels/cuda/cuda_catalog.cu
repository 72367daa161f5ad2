// The table of lessons that have CUDA kernels, and what the module exports.

#include "accumulator_precision/accumulator_precision_kernels.hpp"
#include "coalescing/coalescing_kernels.hpp"
#include "moe_routing/moe_routing_kernels.hpp"
#include "online_softmax/online_softmax_kernels.hpp"
#include "simt/cuda_device.hpp"
#include "simt/cuda_module.hpp"
#include "tiling/tiling_kernels.hpp"

namespace tilestep {
namespace {

constexpr simt::KernelEntry kKernels[] = {
    {"online-softmax", online_softmax::kernels_cuda},
    {"coalescing", coalescing::kernels_cuda},
    {"tiling", tiling::kernels_cuda},
    {"accumulator-precision", accumulator_precision::kernels_cuda},
    {"moe-routing", moe_routing::kernels_cuda},
};

}  // namespace
}  // namespace tilestep

#define TILESTEP_EXPORT extern "C" __attribute__((visibility("default")))

/// See simt/cuda_module.hpp.
TILESTEP_EXPORT void tilestep_cuda_status(tilestep::simt::CudaStatus& status) {
  status = tilestep::simt::cuda::status();
}

/// See simt/cuda_module.hpp.
TILESTEP_EXPORT tilestep::simt::Device* tilestep_cuda_make_device() {
  return tilestep::simt::cuda::make_device(tilestep::kKernels).release();
}

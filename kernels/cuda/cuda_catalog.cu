// The table of lessons that have CUDA kernels, and what the module exports.

#include "coalescing/coalescing_kernels.hpp"
#include "online_softmax/online_softmax_kernels.hpp"
#include "simt/cuda_device.hpp"
#include "simt/cuda_module.hpp"

namespace tilestep {
namespace {

constexpr simt::KernelEntry kKernels[] = {
    {"online-softmax", online_softmax::kernels_cuda},
    {"coalescing", coalescing::kernels_cuda},
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

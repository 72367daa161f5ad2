// The table of lessons that have CUDA kernels, and what the module exports.

#include "kernels/base/simt/cuda/cuda_device.hpp"
#include "kernels/base/simt/cuda/cuda_module.hpp"
#include "kernels/base/simt/source_hash.hpp"

namespace tilestep {

#define LESSON(chapter, id, title)       \
  namespace id {                         \
  const simt::KernelSet& kernels_cuda(); \
  }
#include "kernels/lessons.def"

namespace {

constexpr simt::KernelEntry kKernels[] = {
#define LESSON(chapter, id, title) {#id, id::kernels_cuda},
#include "kernels/lessons.def"
};

}  // namespace
}  // namespace tilestep

#define TILESTEP_EXPORT extern "C" __attribute__((visibility("default")))

/// See kernels/base/simt/cuda/cuda_module.hpp.
TILESTEP_EXPORT const char* tilestep_cuda_source_hash() {
  return tilestep::simt::source_hash();
}

/// See kernels/base/simt/cuda/cuda_module.hpp.
TILESTEP_EXPORT void tilestep_cuda_status(tilestep::simt::CudaStatus& status) {
  status = tilestep::simt::cuda::status();
#if defined(TILESTEP_CUDA_HASTE)
  // Lest its times be taken for the kernels'.
  if (status.available) {
    status.available = false;
    status.reason =
        "the CUDA backend was compiled for tests on a machine without a GPU, its kernels not "
        "optimized; build it again on this machine, or there by ./run";
  }
#endif
}

/// See kernels/base/simt/cuda/cuda_module.hpp.
TILESTEP_EXPORT tilestep::simt::Device* tilestep_cuda_make_device() {
  return tilestep::simt::cuda::make_device(tilestep::kKernels).release();
}

/// See kernels/base/simt/cuda/cuda_module.hpp.
TILESTEP_EXPORT const char* tilestep_cuda_last_launch() {
  return tilestep::simt::cuda::last_launch();
}

/// See kernels/base/simt/cuda/cuda_module.hpp.
TILESTEP_EXPORT void tilestep_cuda_use_edited(bool use) {
  tilestep::simt::cuda::use_edited(use);
}

// A CUDA module without CUDA: it names a GPU that nobody has, and the sources that its build says.

#include "kernels/base/simt/cuda/cuda_module.hpp"
#include "kernels/base/simt/source_hash.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

#if defined(FAKE_SAME)
EXPORT const char* tilestep_cuda_source_hash() {
  return tilestep::simt::source_hash();
}
#elif defined(FAKE_OTHER)
EXPORT const char* tilestep_cuda_source_hash() {
  return "0123";
}
#endif

EXPORT void tilestep_cuda_status(tilestep::simt::CudaStatus& status) {
  status.available = true;
  status.device.name = "a GPU that nobody has";
}

EXPORT tilestep::simt::Device* tilestep_cuda_make_device() {
  return nullptr;
}

EXPORT const char* tilestep_cuda_last_launch() {
  return nullptr;
}
EXPORT void tilestep_cuda_use_edited(bool) {}

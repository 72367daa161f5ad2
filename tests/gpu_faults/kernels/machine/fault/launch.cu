#include "kernels/machine/fault/fault.cu"
#include "kernels/machine/fault/kernels.hpp"

namespace tilestep::fault::SIMT_BACKEND {

struct KernelsHere final : Kernels {
  void misbehave(simt::Device& device, simt::Span<int> numbers, int kind) const override {
    simt::launch(device, {.name = "misbehave", .block = dim3(1)}, fault::SIMT_BACKEND::misbehave,
                 simt::global(numbers, "numbers"), kind);
  }
};

}  // namespace tilestep::fault::SIMT_BACKEND
SIMT_KERNEL_SET(fault, KernelsHere)

#include "kernels/systems/triage/kernels.hpp"
#include "kernels/systems/triage/tree_sum.cu"

namespace tilestep::triage::SIMT_BACKEND {

struct KernelsHere final : Kernels {
  void sum(simt::Device& device, simt::Span<float> sums, const simt::Tape& tape) const override {
    const auto n = static_cast<unsigned>(sums.count);
    simt::launch(device, {.name = "tree_sum", .block = dim3(n)}, tree_sum,
                 simt::global(sums, "sums"), n, tape);
  }
};

}  // namespace tilestep::triage::SIMT_BACKEND
SIMT_KERNEL_SET(triage, KernelsHere)

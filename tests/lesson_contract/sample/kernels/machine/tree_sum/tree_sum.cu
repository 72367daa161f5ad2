#include "kernels/base/simt/simt.hpp"
#include "kernels/machine/tree_sum/lesson.hpp"

namespace tilestep::tree_sum {
namespace SIMT_BACKEND {

__global__ void tree_sum(simt::Global<const float> in, simt::Global<float> sums,
                         simt::Global<int> line, int count) {
  const auto partial = simt::dynamic_shared<float>(static_cast<std::size_t>(count));
  const int i = static_cast<int>(threadIdx.x);
  partial[i] = in[i];
  if (i == 0) line[0] = __LINE__ + 3;
  __syncthreads();  // every number is there before another thread adds it
  for (int half = count / 2, round = 0; half > 0; half /= 2, ++round) {
    if (i < half) partial[i] += partial[i + half];
    __syncthreads();  // this round's sums are complete before the next round reads them
    sums[round * count + i] = partial[i];
  }
}

struct KernelsHere final : Kernels {
  void sum(simt::Device& device, simt::Span<const float> in, simt::Span<float> sums,
           simt::Span<int> line) const override {
    simt::launch(device,
                 simt::Launch{.name = "tree_sum",
                              .block = dim3(static_cast<unsigned>(in.count)),
                              .shared_bytes = in.count * sizeof(float)},
                 tree_sum, simt::global(in, "in"), simt::global(sums, "sums"),
                 simt::global(line, "line"), static_cast<int>(in.count));
  }
};

}  // namespace SIMT_BACKEND

const simt::KernelSet& SIMT_KERNELS(kernels)() {
  static const SIMT_BACKEND::KernelsHere kernels;
  return kernels;
}

}  // namespace tilestep::tree_sum

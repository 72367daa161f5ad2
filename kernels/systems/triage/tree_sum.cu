// Tree sum: n threads, n a power of two, add up n numbers in log2(n) rounds.

#include "kernels/base/simt/simt.hpp"

namespace tilestep::triage::SIMT_BACKEND {

__global__ void tree_sum(simt::Global<float> sums, unsigned n, simt::Tape tape) {
  const unsigned i = threadIdx.x;
  tape.note(0, i, sums[i]);
  for (unsigned half = n / 2, row = n; half > 0; half /= 2, row += n) {
    __syncthreads();  // the sums of the round before are there before another thread adds them
    if (i < half) sums[i] += sums[i + half];  // [step: add]
    tape.note(0, row + i, sums[i]);
  }
}

}  // namespace tilestep::triage::SIMT_BACKEND

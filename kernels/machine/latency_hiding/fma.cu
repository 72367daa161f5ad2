// Latency hiding without memory: chains of FMAs. Each waits about four cycles for the one before it in its
// chain; other chains of the thread (instruction-level parallelism) and other warps (thread-level
// parallelism) fill them, and the scheduler does not care which.

#include "kernels/machine/latency_hiding/kernels.hpp"
#include "kernels/machine/latency_hiding/probes/clocks.hpp"

namespace tilestep::latency_hiding::SIMT_BACKEND {

/// out[thread]: the sum of kChains chains x ← x · scale + in[thread], chain c starting at c, after
/// segments · steps FMAs of each. Warps of a block that `active` excludes exit immediately.
template <int kChains, class Tape>
__global__ void fma(simt::Global<const float> in, simt::Global<float> out, float scale,
                    int segments, int steps, unsigned active, Tape tape) {
  if ((active >> (threadIdx.x / kLanes) & 1) == 0) return;
  const Index thread = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  const float add = in[thread];
  // 64 to 128 FMAs per branch, however many chains: the branch's instructions take issue slots too.
  [[maybe_unused]] constexpr int kUnrolled = kChains <= 2 ? 64 : kChains <= 4 ? 32 : 16;
  float x[kChains];
  for (int c = 0; c < kChains; ++c) x[c] = static_cast<float>(c);
  out[thread] = add;  // it is stored before the first clock
  Clocks<Tape> probe(tape, max(segments - kProbes, 0));
  probe.start();
  for (int s = 0; s < segments; ++s) {
    const unsigned issued = probe.now();
#pragma unroll kUnrolled
    for (int i = 0; i < steps; ++i) {
#pragma unroll
      for (int c = 0; c < kChains; ++c) x[c] = fmaf(x[c], scale, add);  // [step: issue]
    }
    float sum = 0;
    for (int c = 0; c < kChains; ++c) sum += x[c];
    out[thread] = sum;  // [step: use]
    probe.used(s, issued);
  }
  probe.finish();
}

}  // namespace tilestep::latency_hiding::SIMT_BACKEND

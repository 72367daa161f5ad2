// Latency hiding: the cost of registers. The fragment keeps kLive values live in each thread. Compiled for
// fewer registers, it keeps some of them in local memory (spills) and makes room for more warps.

#include "kernels/machine/latency_hiding/kernels.hpp"
#include "kernels/machine/latency_hiding/probes/clocks.hpp"

namespace tilestep::latency_hiding::SIMT_BACKEND {

/// x[i] starts as i. A round loads the thread's number c, in[round · threads + thread], and computes
/// x[i] ← x[i + 7] / 2 + c, in order of i and in a ring; at the end out[thread] is x[0] + ….
template <int kRegisters, class Tape>
__global__ void __maxnreg__(kRegisters)
    spill(simt::Global<const float> in, simt::Global<float> out, int rounds, Tape tape) {
  const Index threads = static_cast<Index>(gridDim.x) * blockDim.x;
  const Index thread = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  float x[kLive];
#pragma unroll
  for (int i = 0; i < kLive; ++i) x[i] = static_cast<float>(i);
  Clocks<Tape> probe(tape, max(rounds - kProbes, 0));
  probe.start();
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    const unsigned issued = probe.now();
    const float c = in[round * threads + thread];  // [step: issue]
#pragma unroll
    for (int i = 0; i < kLive; ++i) x[i] = fmaf(x[(i + 7) % kLive], 0.5f, c);  // [step: use]
    if constexpr (Tape::kRecords) out[thread] = x[kLive - 1];
    probe.used(round, issued);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kLive; ++i) sum += x[i];
  out[thread] = sum;
  probe.finish();
}

}  // namespace tilestep::latency_hiding::SIMT_BACKEND

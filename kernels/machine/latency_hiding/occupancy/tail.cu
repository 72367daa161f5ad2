// Latency hiding: the tail of a launch. Blocks start as others finish; when the last wave has fewer blocks
// than fit, multiprocessors idle.

#include "kernels/machine/latency_hiding/kernels.hpp"
#include "kernels/machine/latency_hiding/probes/clocks.hpp"

namespace tilestep::latency_hiding::SIMT_BACKEND {

/// out[thread] is x after `steps` times x ← x · scale + in[thread], from 0. All blocks do the same work.
template <class Tape>
__global__ void tail(simt::Global<const float> in, simt::Global<float> out, Index count,
                     float scale, int steps, Tape tape) {
  const Index thread = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  Clocks<Tape> probe(tape);
  probe.start();  // [step: issue]
  if (thread < count) {
    const float add = in[thread];
    float x = 0;
    for (int i = 0; i < steps; ++i) x = fmaf(x, scale, add);
    out[thread] = x;
  }
  probe.finish();  // [step: use]
}

}  // namespace tilestep::latency_hiding::SIMT_BACKEND

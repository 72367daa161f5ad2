// Latency hiding: a branch by lane. The lanes of a warp execute one instruction at a time: when they take
// different arms, the arms run one after another, each with the other lanes idle.

#include "kernels/machine/latency_hiding/kernels.hpp"
#include "kernels/machine/latency_hiding/probes/clocks.hpp"

namespace tilestep::latency_hiding::SIMT_BACKEND {

/// Lane l takes arm l mod ways. Arm a computes x ← x · scale + a + in[thread], `steps` times; this repeats
/// for `rounds` rounds. out[thread] is x; voted[arm], written by the first warp, the lanes that voted for it.
template <class Tape>
__global__ void diverge(simt::Global<const float> in, simt::Global<float> out,
                        simt::Global<unsigned> voted, float scale, int ways, int rounds, int steps,
                        Tape tape) {
  const Index thread = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const float start = in[thread];
  float x = start;
  out[thread] = x;                 // it is stored before the first clock
  Clocks<Tape> probe(tape, ways);  // the first round warms up
  probe.start();
  for (int round = 0; round < rounds; ++round) {
    for (int arm = 0; arm < ways; ++arm) {
      const unsigned votes = __ballot_sync(0xFFFFFFFFu, lane % ways == arm);
      if (thread == 0) voted[arm] = votes;
      if (lane % ways == arm) {  // [step: arm]
        const unsigned issued = probe.now();
        const float add = start + static_cast<float>(arm);
#pragma unroll 4
        for (int i = 0; i < steps; ++i) x = fmaf(x, scale, add);  // [step: issue]
        out[thread] = x;                                          // [step: use]
        probe.used(round * ways + arm, issued, lane == arm);
      }
      __syncwarp();  // the lanes of the next arm have waited here
    }
  }
  probe.finish();
}

}  // namespace tilestep::latency_hiding::SIMT_BACKEND

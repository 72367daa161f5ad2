// Latency hiding: the pointer chase. Each hop's address is the value loaded by the hop before, so no two
// are in flight together: a hop takes the whole latency of the level that holds the node.
//
//   link        makes nodes[order[i]].next point to nodes[order[i + 1]], in a ring
//   chase       a few hops in each level, with the clocks of each; every warp has its own nodes
//   walk        many hops, timed as a whole
//   time_hops   many hops past L1, each timed

#include "kernels/machine/latency_hiding/kernels.hpp"
#include "kernels/machine/latency_hiding/probes/clocks.hpp"

namespace tilestep::latency_hiding::SIMT_BACKEND {

__global__ void link(simt::Global<Node> nodes, simt::Global<const unsigned> order, Index count) {
  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const Node& next = nodes[order[i + 1 < count ? i + 1 : 0]];
  nodes[order[i]].next = reinterpret_cast<unsigned long long>(&next);
}

/// The node after this one. An ordinary load leaves the line in L1; a load past L1 goes to L2.
template <bool kPastL1>
__device__ const Node* next_of(const Node* at) {
  const unsigned long long next = kPastL1 ? __ldcg(&at->next) : at->next;
  return reinterpret_cast<const Node*>(next);
}

/// The same address, but the compiler does not know that it was loaded before.
__device__ inline const Node* forgotten(const Node* at) {
#if defined(__CUDACC__)
  asm volatile("" : "+l"(at)::"memory");
#endif
  return at;
}

/// kHops hops of a warp from `at`, walked before unless they must come from DRAM. All lanes take the
/// same path.
template <bool kPastL1, class Tape>
__device__ void hop(const Node* at, simt::Global<unsigned long long> visited, int number,
                    Clocks<Tape>& probe) {
  for (int h = 0; h < kHops; ++h) {
    const unsigned issued = probe.now();
    at = next_of<kPastL1>(at);                                       // [step: issue]
    visited[number + h] = reinterpret_cast<unsigned long long>(at);  // [step: use]
    probe.used(number + h, issued);
  }
}

/// `starts` has a node for each of the levels L1, L2 and HBM of each warp; `visited`, where its hops led it.
template <class Tape>
__global__ void chase(simt::Global<const Node> nodes, simt::Global<const unsigned> starts,
                      simt::Global<unsigned long long> visited, Tape tape) {
  const auto ring = simt::dynamic_shared<unsigned>(kLanes, 0, "ring");
  if (threadIdx.x < kLanes) ring[threadIdx.x] = (threadIdx.x * 5 + 3) % kLanes;
  __syncthreads();  // the whole ring must be there before any warp hops
  const Index warp = (static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  const auto mine = visited + warp * kProbes;
  Clocks<Tape> probe(tape);
  probe.start();
  unsigned place = 0;
  for (int h = 0; h < kHops; ++h) {  // shared memory
    const unsigned issued = probe.now();
    place = ring[place];
    mine[h] = place;
    probe.used(h, issued);
  }
  const Node* const l1 = &nodes[starts[warp * 3]];
  const Node* const l2 = &nodes[starts[warp * 3 + 1]];
  const Node* at = l1;
  for (int h = 0; h < kHops; ++h) at = next_of<false>(at);
  const Node* other = l2;
  for (int h = 0; h < kHops; ++h) other = next_of<true>(other);
  // The end of the walk is not needed, but the compiler does not know that.
  if (at == nullptr || other == nullptr) return;
  hop<false>(forgotten(l1), mine, kHops, probe);
  hop<true>(forgotten(l2), mine, 2 * kHops, probe);
  hop<true>(&nodes[starts[warp * 3 + 2]], mine, 3 * kHops, probe);
  probe.finish();
}

/// One thread walks `warm` hops, then `hops`, and records the time of the latter.
template <bool kPastL1>
__global__ void walk(simt::Global<const Node> nodes, Index warm, Index hops,
                     simt::Global<Walked> walked) {
  const Node* at = &nodes[0];
  for (Index h = 0; h < warm; ++h) at = next_of<kPastL1>(at);
  walked[0].node = static_cast<unsigned>(at - &nodes[0]);
  const long long begin_ns = device_nanoseconds();
  const long long begin = clock64();
#pragma unroll 8
  for (Index h = 0; h < hops; ++h) at = next_of<kPastL1>(at);
  walked[0].node = static_cast<unsigned>(at - &nodes[0]);
  walked[0].cycles = clock64() - begin;
  walked[0].nanoseconds = device_nanoseconds() - begin_ns;
}

/// The same in shared memory.
__global__ void walk_shared(Index hops, simt::Global<Walked> walked) {
  const auto ring = simt::dynamic_shared<unsigned>(kLanes, 0, "ring");
  if (threadIdx.x < kLanes) ring[threadIdx.x] = (threadIdx.x * 5 + 3) % kLanes;
  __syncthreads();  // the whole ring must be there before the walk
  unsigned place = 0;
  const long long begin_ns = device_nanoseconds();
  const long long begin = clock64();
#pragma unroll 8
  for (Index h = 0; h < hops; ++h) place = ring[place];
  if (threadIdx.x > 0) return;
  walked[0].node = place;
  walked[0].cycles = clock64() - begin;
  walked[0].nanoseconds = device_nanoseconds() - begin_ns;
}

/// cycles[h]: of hop h, including the probe's own; the last one is an empty probe's.
__global__ void time_hops(simt::Global<const Node> nodes, Index warm, Index hops,
                          simt::Global<unsigned> visited, simt::Global<unsigned> cycles) {
  const Node* at = &nodes[0];
  for (Index h = 0; h < warm; ++h) at = next_of<true>(at);
  visited[0] = static_cast<unsigned>(at - &nodes[0]);
  for (Index h = 0; h < hops; ++h) {
    const long long begin = clock64();
    at = next_of<true>(at);
    visited[h] = static_cast<unsigned>(at - &nodes[0]);
    cycles[h] = static_cast<unsigned>(clock64() - begin);
  }
  const long long begin = clock64();
  cycles[hops] = static_cast<unsigned>(clock64() - begin);
}

}  // namespace tilestep::latency_hiding::SIMT_BACKEND

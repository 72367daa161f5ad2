// Coalescing: the kernels that the bench times over strides, offsets and patterns. The accesses are
// those of access.cu, but a thread has kLoads in flight, kThreadsPerBlock elements apart: so sectors
// limit it, not the latency of a lone load. If there are more chunks than blocks, a block takes
// several in turn, so that no block has to be replaced.

#include "kernels/memory/coalescing/access.cu"

namespace tilestep::coalescing::SIMT_BACKEND {

/// A register in place of an array.
template <class E>
struct Register {
  E* value;
  __device__ E& operator[](Index) const { return *value; }
};

template <int kLoads, class E, class Which, class In, class Out>
__global__ void gather_sweep(In in, Out out, PatternShape s, Which pattern) {
  constexpr Index kChunk = kLoads * kThreadsPerBlock;
#pragma unroll 1
  for (Index first = blockIdx.x * kChunk + threadIdx.x; first < s.elements;
       first += gridDim.x * kChunk) {
    E held[kLoads];
    for (int k = 0; k < kLoads; ++k) {
      const Index i = first + k * kThreadsPerBlock;
      if (i < s.elements) gather_element(in, Register<E>{&held[k]}, i, s, pattern);
    }
    for (int k = 0; k < kLoads; ++k) {
      const Index i = first + k * kThreadsPerBlock;
      if (i < s.elements) out[i] = held[k];
    }
  }
}

template <int kLoads, class E, class Which, class In, class Out>
__global__ void scatter_sweep(In in, Out out, PatternShape s, Which pattern) {
  constexpr Index kChunk = kLoads * kThreadsPerBlock;
#pragma unroll 1
  for (Index first = blockIdx.x * kChunk + threadIdx.x; first < s.elements;
       first += gridDim.x * kChunk) {
    E held[kLoads];
    for (int k = 0; k < kLoads; ++k) {
      const Index i = first + k * kThreadsPerBlock;
      if (i < s.elements) held[k] = in[i];
    }
    for (int k = 0; k < kLoads; ++k) {
      const Index i = first + k * kThreadsPerBlock;
      if (i < s.elements) scatter_element(Register<E>{&held[k]}, out, i, s, pattern);
    }
  }
}

}  // namespace tilestep::coalescing::SIMT_BACKEND

// Coalescing: what the bench times over strides, offsets and patterns. The accesses are those of
// access.cu, but a thread has kLoads under way, kThreadsPerBlock elements apart: so it is sectors that
// count, and not the latency of a lone load. A block takes chunk after chunk if there are more chunks
// than blocks: so none has to be replaced.

#include "kernels/memory/coalescing/access.cu"

namespace tilestep::coalescing::SIMT_BACKEND {

/// A register in the place of an array.
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

// Latency hiding: a streaming copy, which does nothing but wait.
//
// A thread issues kLoads loads of sizeof(Vector) bytes, then stores the values: the first store waits
// for the first load, so the whole warp waits. Meanwhile kLoads · sizeof(Vector) · 32 bytes of the warp
// are in flight. Only as many blocks are launched as are resident at a time; each takes chunk after
// chunk.
//
// Nothing is read twice, so loads and stores bypass L1 (PTX ISA, "ld.global.cg"), which is small when
// shared memory is allocated to keep blocks out: on an H200 that is worth up to 3 % of the bandwidth.

#include <cstdint>

#include "kernels/machine/latency_hiding/kernels.hpp"
#include "kernels/machine/latency_hiding/probes/clocks.hpp"

namespace tilestep::latency_hiding::SIMT_BACKEND {

/// kLoads loads of this thread, `apart` vectors apart, all issued before the first is used.
template <int kLoads, class From, class To, class Tape>
__device__ void copy_group(const From& from, const To& to, Index first, Index apart, int number,
                           bool writer, Clocks<Tape>& probe) {
  std::remove_cvref_t<decltype(to[0])> held[kLoads];
  unsigned issued[kLoads];
#pragma unroll
  for (int k = 0; k < kLoads; ++k) {
    issued[k] = probe.now();
    held[k] = __ldcg(&from[first + k * apart]);  // [step: issue]
  }
#pragma unroll
  for (int k = 0; k < kLoads; ++k) {
    __stcg(&to[first + k * apart], held[k]);  // [step: use]
    probe.used(number + k, issued[k], writer);
  }
}

template <class Vector, int kLoads, class Tape>
__global__ void copy(simt::Global<const float> in, simt::Global<float> out, Index count,
                     Order order, int ways, Tape tape) {
  Clocks<Tape> probe(tape, kFirstProbed);
  const auto from = simt::as<const Vector>(in);
  const auto to = simt::as<Vector>(out);
  constexpr Index kFloats = sizeof(Vector) / sizeof(float);
  const Index vectors = count / kFloats;
  const Index threads = blockDim.x;
  const Index chunk = threads * kLoads;
  const Index stride = gridDim.x * chunk;
  const Index whole =
      vectors - chunk + threadIdx.x;  // where this thread's last whole chunk may begin
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  Index first = blockIdx.x * chunk + threadIdx.x;
  int number = 0;  // of the warp's loads
  probe.start();
  if (order == Order::together) {
#pragma unroll 1
    for (; first <= whole; first += stride, number += kLoads) {
      copy_group<kLoads>(from, to, first, threads, number, lane == 0, probe);
    }
  } else if (order == Order::serialized) {
#pragma unroll 1
    for (; first <= whole; first += stride, number += kLoads) {
#pragma unroll 1
      for (int k = 0; k < kLoads; ++k) {
        copy_group<1>(from, to, first + k * threads, threads, number + k, lane == 0, probe);
      }
    }
  } else {
#pragma unroll 1
    for (; first <= whole; first += stride) {
#pragma unroll 1
      for (int arm = 0; arm < ways; ++arm, number += kLoads) {
        if (lane % ways == arm) {  // [step: arm]
          copy_group<kLoads>(from, to, first, threads, number, lane == arm, probe);
        }
        __syncwarp();  // the lanes of the next arm have waited here
      }
    }
  }
  // One block has a partial chunk, and up to 3 floats do not fill a vector.
#pragma unroll 1
  for (Index i = first; i < vectors; i += threads) to[i] = from[i];
  const Index rest = vectors * kFloats + threadIdx.x;
  if (blockIdx.x == 0 && rest < count) out[rest] = in[rest];
  probe.finish();
}

/// Random bits for word i, and a count of the words of a copy that differ.
__device__ inline unsigned word_of(Index i, unsigned seed) {
  unsigned x = static_cast<unsigned>(i) * 0x9E3779B1u + static_cast<unsigned>(i >> 32) + seed;
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  return x ^ (x >> 13);
}
__global__ void fill_words(simt::Global<unsigned> words, Index count, unsigned seed) {
  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) words[i] = word_of(i, seed);
}
__global__ void count_wrong(simt::Global<const unsigned> words, Index count, unsigned seed,
                            simt::Global<unsigned long long> wrong) {
  const Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count && words[i] != word_of(i, seed)) atomicAdd(&wrong[0], 1ULL);
}

}  // namespace tilestep::latency_hiding::SIMT_BACKEND

#pragma once

/// \file
/// A barrier of all blocks of a launch, for kernels whose blocks all fit on the device at once:
///
///     simt::grid_barrier(arrived, round)   by all threads of all blocks, with round 0, 1, 2, …: what they stored before
///                                          is visible to all behind it. `arrived` is a counter that starts at 0
///     simt::load_early(packs, i)           packs[i], 16 bytes that stay as they are, asked for here, however late it is used
///
/// On a GPU a block's first thread counts the block in and polls until all have come (CUDA C++ Programming Guide, "Memory
/// Fence Functions"). Under emulation threads of different OS threads must not wait for each other: such a launch has
/// blocks of one cluster (Launch::cluster, at most 8), which meet at the cluster's barrier.

#include "kernels/base/simt/simt.hpp"

#if defined(__CUDACC__)

namespace tilestep::simt {

__device__ __forceinline__ void grid_barrier(unsigned* arrived, int round) {
  __syncthreads();  // all of the block's stores are before the fence
  if (threadIdx.x == 0) {
    const unsigned all = static_cast<unsigned>(round + 1) * gridDim.x;
    __threadfence();
    atomicAdd(arrived, 1u);
    unsigned now = 0;
    do {
      asm volatile("ld.global.relaxed.gpu.u32 %0, [%1];\n" : "=r"(now) : "l"(arrived) : "memory");
    } while (now < all);
    __threadfence();
  }
  __syncthreads();  // nobody goes on before the first thread has seen them all
}

__device__ __forceinline__ uint4 load_early(const uint4* packs, std::ptrdiff_t at) {
  uint4 four;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w)
               : "l"(packs + at));
  return four;
}

}  // namespace tilestep::simt

#else

#include "kernels/base/simt/hopper.hpp"

namespace tilestep::simt {

inline void grid_barrier(const Global<unsigned>& arrived, int round,
                         Location at = Location::current()) {
  hopper::cluster_barrier(at);
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    arrived[0] = static_cast<unsigned>(round + 1) * gridDim.x;
  }
}
inline uint4 load_early(const Global<const uint4>& packs, std::ptrdiff_t at) {
  return packs[at];
}

}  // namespace tilestep::simt

#endif

#pragma once

// The best that memory can do: every byte of two arrays is read once, in order, and added up. The peer of kernels that
// read a cache: they also compute, and find its pages through a table.
//
// k, v: equally many 16-byte words each; sum: one number, to which all their 32-bit parts are added modulo 2^32.

#include "kernels/base/simt/simt.hpp"

namespace tilestep::kv_cache::SIMT_BACKEND {

constexpr int kReadThreads = 512;
/// Loads that a thread has in flight.
constexpr int kReadAhead = 8;

__global__ void __launch_bounds__(kReadThreads)
    read_all(simt::Global<const uint4> k, simt::Global<const uint4> v, long long words,
             simt::Global<unsigned> sum) {
  const auto from = blockIdx.x % 2 == 0 ? k : v;
  const long long threads = static_cast<long long>(gridDim.x) / 2 * blockDim.x;
  const long long first = static_cast<long long>(blockIdx.x / 2) * blockDim.x + threadIdx.x;
  unsigned mine = 0;
  for (long long at = first; at < words; at += threads * kReadAhead) {
    uint4 taken[kReadAhead];
#pragma unroll
    for (int i = 0; i < kReadAhead; ++i) {
      const long long word = at + i * threads;
      taken[i] = word < words ? from[word] : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < kReadAhead; ++i) mine += taken[i].x + taken[i].y + taken[i].z + taken[i].w;
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) mine += __shfl_xor_sync(0xFFFFFFFFu, mine, lanes);
  if (threadIdx.x % 32 == 0) atomicAdd(&sum[0], mine);
}

}  // namespace tilestep::kv_cache::SIMT_BACKEND

#pragma once

// What the kernels of a decode step share.

#include "kernels/base/simt/grid.hpp"
#include "kernels/base/simt/packed.hpp"
#include "kernels/systems/launches/kernels.hpp"

namespace tilestep::launches::SIMT_BACKEND {

/// A launch that is not timed.
struct NoClock {
  __device__ void begin(int = 0) const {}
  __device__ void end(int = 0) const {}
};
/// Notes the first begin and the last end of a launch's blocks.
struct Clock {
  simt::Global<unsigned long long> begins, ends;
  int slot;
  __device__ void begin() const { begin(slot); }
  __device__ void end() const { end(slot); }
  __device__ void begin(int at) const {
    if (threadIdx.x == 0)
      atomicMin(&begins[at], static_cast<unsigned long long>(simt::device_clock()));
  }
  __device__ void end(int at) const {
    __syncthreads();  // the block's last thread is done
    if (threadIdx.x == 0)
      atomicMax(&ends[at], static_cast<unsigned long long>(simt::device_clock()));
  }
};

/// Numbers of 16 bytes, and the packs that a thread asks for before it uses the first.
inline constexpr int kPack = 8, kAhead = 8;

__device__ __forceinline__ float bf16_value(unsigned bits) {
  return __uint_as_float(bits << 16);
}
__device__ __forceinline__ float warp_sum(float sum) {
  for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, apart);
  return sum;
}
/// Of all threads of a block, to all of them. In dynamic shared memory: a number per warp.
__device__ __forceinline__ float block_sum(float mine) {
  const auto parts = simt::dynamic_shared<float>(32, 0, "sums of warps");
  mine = warp_sum(mine);
  __syncthreads();  // an earlier sum has been read
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
  __syncthreads();  // all parts are there
  float sum = 0.0f;
  for (int warp = 0; warp < static_cast<int>(blockDim.x) / 32; ++warp) sum += parts[warp];
  return sum;
}
inline constexpr int kSumBytes = 32 * 4;

__device__ __forceinline__ float swiglu(float gate, float up) {
  return gate / (1.0f + expf(-gate)) * up;
}

/// sum += a pack of weights times the eight numbers that `low` and `high` hold.
__device__ __forceinline__ void add_pack(const uint4& pack, const float4& low, const float4& high,
                                         float& sum) {
  const unsigned words[4] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float4& four = half == 0 ? low : high;
    const unsigned first = words[2 * half], second = words[2 * half + 1];
    sum += bf16_value(first & 0xFFFFu) * four.x;
    sum += bf16_value(first >> 16) * four.y;
    sum += bf16_value(second & 0xFFFFu) * four.z;
    sum += bf16_value(second >> 16) * four.w;
  }
}

/// Packs of a row of weights in flight: those of lanes at, at + 32, …
struct Ahead {
  uint4 packs[kAhead];

  /// Pack i of a row of `count`, or zeros behind its end.
  __device__ __forceinline__ void take(int i, const simt::Global<const uint4>& w,
                                       std::ptrdiff_t row, int at, int count) {
    const int pack = at + 32 * i;
    packs[i] = pack < count ? simt::load_early(w, row + pack) : uint4{0, 0, 0, 0};
  }
  __device__ __forceinline__ void load(const simt::Global<const uint4>& w, std::ptrdiff_t row,
                                       int at, int count) {
#pragma unroll  // the packs are registers
    for (int i = 0; i < kAhead; ++i) take(i, w, row, at, count);
  }
};

/// Calls `run` with the clock of these stamps.
template <class Run>
void with_clock(const Stamps& stamps, Run run) {
  if (stamps.begins.count == 0) return run(NoClock{});
  run(Clock{simt::global(stamps.begins, "begins"), simt::global(stamps.ends, "ends"), stamps.slot});
}
/// Calls `run` with the tokens that a product of this batch is compiled for.
template <class Run>
void with_tokens(int batch, Run run) {
  simt::require_within("launches: batch", batch, 1, kMostBatch);
  simt::with_constant<1, 2, 4, 8>("launches: tokens",
                                  batch <= 1   ? 1
                                  : batch <= 2 ? 2
                                  : batch <= 4 ? 4
                                               : 8,
                                  run);
}

}  // namespace tilestep::launches::SIMT_BACKEND

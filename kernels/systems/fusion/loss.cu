#pragma once

// Fusion: softmax and cross entropy in one kernel. A row of logits comes to one number, so neither the
// probabilities nor their sums leave the chip: the row is read once and loss = log Σ exp(x) − x[target].

#include <cstddef>

#include "kernels/base/simt/softmax_step.hpp"
#include "kernels/systems/fusion/packs.hpp"

namespace tilestep::fusion::SIMT_BACKEND {

/// A maximum, in units of log2, and the sum of 2^(x − maximum) of the numbers seen.
struct MaxSum {
  float m, l;
};
/// Both sums relative to the larger maximum.
__device__ inline MaxSum merged(MaxSum a, MaxSum b) {
  const float m = fmaxf(a.m, b.m), base = simt::softmax_reference(m);
  return {m, a.l * exp2f(a.m - base) + b.l * exp2f(b.m - base)};
}
__device__ inline MaxSum merged_over_warp(MaxSum mine) {
  for (int apart = 16; apart > 0; apart /= 2) {
    mine = merged(mine, {__shfl_xor_sync(0xFFFFFFFFu, mine.m, apart),
                         __shfl_xor_sync(0xFFFFFFFFu, mine.l, apart)});
  }
  return mine;
}

/// A block per row.
template <class Pack>
__global__ void cross_entropy(simt::Global<const typename Pack::Memory> logits,
                              simt::Global<const int> targets, simt::Global<float> loss,
                              int vocabulary) {
  constexpr float kLog2e = 1.4426950408889634f;
  constexpr int kNumbers = Pack::kNumbers;
  __shared__ simt::Array<float, 32> maxima;
  __shared__ simt::Array<float, 32> sums;
  const int row = static_cast<int>(blockIdx.x), packs = vocabulary / kNumbers;
  const auto x = logits + static_cast<std::ptrdiff_t>(row) * packs;
  MaxSum mine = {-INFINITY, 0.0f};
  for (int i = static_cast<int>(threadIdx.x); i < packs; i += static_cast<int>(blockDim.x)) {
    typename Pack::Numbers n;
    Pack::unpack(x[i], n);
    float most = n[0];
    for (int j = 1; j < kNumbers; ++j) most = fmaxf(most, n[j]);
    const auto step = simt::raise_maximum<simt::BinaryExp>(mine.m, most * kLog2e);
    mine.l *= step.rescale;  // [step: rescale]
    for (int j = 0; j < kNumbers; ++j) mine.l += step.weight(n[j], kLog2e);
  }
  mine = merged_over_warp(mine);
  const unsigned lane = threadIdx.x % 32;
  if (lane == 0) {
    maxima[threadIdx.x / 32] = mine.m;
    sums[threadIdx.x / 32] = mine.l;
  }
  __syncthreads();  // every warp's pair must be written before the first warp reads them
  if (threadIdx.x >= 32) return;
  const bool is_pair = lane < blockDim.x / 32;
  mine = merged_over_warp({is_pair ? maxima[lane] : -INFINITY, is_pair ? sums[lane] : 0.0f});
  if (lane != 0) return;
  const int target = targets[row];
  typename Pack::Numbers n;
  Pack::unpack(x[target / kNumbers], n);
  loss[row] = (mine.m + log2f(mine.l)) / kLog2e - n[target % kNumbers];  // [step: loss]
}

}  // namespace tilestep::fusion::SIMT_BACKEND

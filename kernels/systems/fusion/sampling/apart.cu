#pragma once

// Fusion: the steps of sampling.cu as kernels of their own. Each reads what the one before has written, a block per row.

#include "kernels/systems/fusion/sampling/sampling.cu"

namespace tilestep::fusion::SIMT_BACKEND {

/// Over a block; all threads get it.
template <class T, class Add>
__device__ T over_block(T mine, Add add) {
  __shared__ simt::Array<T, 32> parts;
  mine = simt::over_warp(mine, add);
  __syncthreads();  // no warp may write its part before every warp has read the last ones
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
  __syncthreads();  // every warp's part must be written before any thread reads the parts
  mine = parts[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) mine = add(mine, parts[warp]);
  return mine;
}

/// 1. Logits / temperature, in FP32.
template <class Pack>
__global__ void scale_logits(simt::Global<const typename Pack::Memory> logits,
                             simt::Global<float> scaled, int packs, float per_temperature) {
  const std::ptrdiff_t start = static_cast<std::ptrdiff_t>(blockIdx.x) * packs;
  for (int i = static_cast<int>(threadIdx.x); i < packs; i += static_cast<int>(blockDim.x)) {
    typename Pack::Numbers x;
    Pack::unpack(logits[start + i], x);
    for (int j = 0; j < Pack::kNumbers; ++j) {
      scaled[(start + i) * Pack::kNumbers + j] = x[j] * per_temperature;
    }
  }
}

/// 2. Softmax, in place: the largest, the sum, the probabilities.
__global__ void softmax_logits(simt::Global<float> rows, int width) {
  constexpr float kLog2e = 1.4426950408889634f;
  const auto x = rows + static_cast<std::ptrdiff_t>(blockIdx.x) * width;
  const int first = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);
  float most = -INFINITY;
  for (int i = first; i < width; i += step) most = fmaxf(most, x[i]);
  const Weights weight{over_block(most, [](float a, float b) { return fmaxf(a, b); }), kLog2e};
  Mass sum = 0;
  for (int i = first; i < width; i += step) sum += whole_mass(weight(x[i]));
  sum = over_block(sum, sum_of);
  const float inverse = sum > 0 ? 0x1p40f / static_cast<float>(sum) : 0.0f;
  for (int i = first; i < width; i += step) x[i] = weight(x[i]) * inverse;
}

/// 3. The least probability that is kept, by its digits from the highest on: what reaches a digit is counted, or added.
__global__ void find_threshold(simt::Global<const float> rows, simt::Global<float> thresholds,
                               int width, int top_k, float top_p) {
  __shared__ simt::Array<Mass, 256> digits;
  const auto p = rows + static_cast<std::ptrdiff_t>(blockIdx.x) * width;
  const int first = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);
  unsigned threshold = 1;  // as bits: of probabilities, they have the same order
  for (const bool by_mass : {false, true}) {
    if (by_mass ? top_p >= 1.0f : top_k == 0) continue;
    const unsigned least = threshold;
    Mass need = static_cast<Mass>(top_k);
    if (by_mass) {
      Mass kept = 0;
      for (int i = first; i < width; i += step) {
        if (__float_as_uint(p[i]) >= least) kept += whole_mass(p[i]);
      }
      const auto part = static_cast<Mass>(top_p * static_cast<float>(over_block(kept, sum_of)));
      need = part > 0 ? part : 1;
    }
    unsigned known = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
      __syncthreads();  // no sum may be cleared while a thread still reads it
      for (int i = first; i < 256; i += step) digits[i] = 0;
      __syncthreads();  // none may be added to before it is cleared
      for (int i = first; i < width; i += step) {
        const unsigned bits = __float_as_uint(p[i]);
        if (bits < least || (shift < 24 && bits >> (shift + 8) != known >> (shift + 8))) continue;
        atomicAdd(&digits[bits >> shift & 255u], by_mass ? whole_mass(p[i]) : Mass{1});
      }
      __syncthreads();  // all must be added before any thread reads the sums
      int digit = 255;
      while (digit > 0 && need > digits[digit]) need -= digits[digit--];
      known |= static_cast<unsigned>(digit) << shift;
    }
    threshold = known > least ? known : least;
  }
  if (threadIdx.x == 0) thresholds[blockIdx.x] = __uint_as_float(threshold);
}

/// 4. A token by its probability among those kept. A warp has neighbouring tokens, 32 at a time.
__global__ void pick_token(simt::Global<const float> rows, simt::Global<const float> thresholds,
                           simt::Global<int> tokens, int width, Mass seed) {
  __shared__ simt::Array<Mass, 1024> masses;
  const auto p = rows + static_cast<std::ptrdiff_t>(blockIdx.x) * width;
  const int threads = static_cast<int>(blockDim.x), me = static_cast<int>(threadIdx.x);
  const float least = thresholds[blockIdx.x];
  Mass total = 0;
  const int lane = me % 32, warps = threads / 32, of_warp = (width + warps - 1) / warps;
  const int from = me / 32 * of_warp, end = min(from + of_warp, width);
  for (int i = from + lane; i < end; i += 32) total += p[i] >= least ? whole_mass(p[i]) : Mass{0};
  masses[me] = total;
  total = over_block(total, sum_of);
  if (total == 0 && me == 0) tokens[blockIdx.x] = -1;
  Mass target = numeric::high_product(numeric::philox(seed, blockIdx.x), total), before = 0;
  for (int i = lane; i < me - lane; i += 32) before += masses[i];
  before = over_warp(before);
  const Mass own = over_warp(masses[me]);
  if (target < before || target - before >= own) return;
  target -= before;
  for (int i = from; i < end; i += 32) {
    const bool inside = i + lane < end && p[i + lane] >= least;
    const Mass mass = inside ? whole_mass(p[i + lane]) : Mass{0}, upto = simt::up_to_lane(mass);
    const Mass all = __shfl_sync(kWholeWarp, upto, 31);
    if (target < all) {
      if (target >= upto - mass && target < upto) tokens[blockIdx.x] = i + lane;
      return;
    }
    target -= all;
  }
}

}  // namespace tilestep::fusion::SIMT_BACKEND

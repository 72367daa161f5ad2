// What a decode step does between its products and its attention: norms, residuals, experts, the choice of a token.

#include "kernels/systems/triage/watch.hpp"

namespace tilestep::triage::SIMT_BACKEND {

using parts::add_pack, parts::block_sum, parts::kPack, parts::kSumBytes, parts::swiglu,
    parts::warp_sum;

inline constexpr float kEpsilon = 1e-5f;

/// A block per row.
template <class Its>
__global__ void embed(simt::Global<const int> tokens, simt::Global<const float4> table,
                      simt::Global<float4> h, int width, Its watch) {
  watch.begin();
  const int row = blockIdx.x, fours = width / 4;
  for (int i = threadIdx.x; i < fours; i += blockDim.x) {
    watch.store(h, row * fours + i, watch.load(table, tokens[row] * fours + i));  // [step: embed]
  }
  watch.end();
}

/// A block per row.
template <class Its>
__global__ void norm(simt::Global<const float4> h, simt::Global<const float4> gain,
                     simt::Global<float4> n, int width, Its watch) {
  watch.begin();
  const int fours = width / 4, first = blockIdx.x * fours;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < fours; i += blockDim.x) {
    const float4 one = watch.load(h, first + i);
    squares += one.x * one.x + one.y * one.y + one.z * one.z + one.w * one.w;
  }
  const float inverse =
      rsqrtf(block_sum(squares) / static_cast<float>(width) + kEpsilon);  // [step: norm]
  for (int i = threadIdx.x; i < fours; i += blockDim.x) {
    const float4 one = h[first + i], by = gain[i];
    watch.store(n, first + i,
                float4{one.x * by.x * inverse, one.y * by.y * inverse, one.z * by.z * inverse,
                       one.w * by.w * inverse});
  }
  watch.end();
}

/// The same in two launches, each for one row: what a model is that calls an operator per line and per user.
template <class Its>
__global__ void squares(simt::Global<const float> h, simt::Global<float> inverse, int row,
                        int width, Its watch) {
  watch.begin();
  float sum = 0.0f;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const float one = watch.load(h, row * width + i);
    sum += one * one;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    watch.store(inverse, row, rsqrtf(sum / static_cast<float>(width) + kEpsilon));
  }
  watch.end();
}
template <class Its>
__global__ void scale(simt::Global<const float> h, simt::Global<const float> gain,
                      simt::Global<const float> inverse, simt::Global<float> n, int row, int width,
                      Its watch) {
  watch.begin();
  const int i = blockIdx.x * blockDim.x + threadIdx.x, at = row * width + i;
  if (i < width) watch.store(n, at, watch.load(h, at) * gain[i] * inverse[row]);
  watch.end();
}

/// h += d, from number `first` on.
template <class Its>
__global__ void add(simt::Global<const float> d, simt::Global<float> h, int first, int count,
                    Its watch) {
  watch.begin();
  const int i = blockIdx.x * blockDim.x + threadIdx.x, at = first + i;
  if (i < count) watch.store(h, at, watch.load(h, at) + watch.load(d, at));  // [step: add]
  watch.end();
}

/// A warp per row and expert scores it; then one thread gives each row the best expert that has room. One block.
template <class Its>
__global__ void route(simt::Global<const float4> n, simt::Global<const float4> router,
                      simt::Global<const float> bias, simt::Global<int> chosen, int rows, int width,
                      int capacity, Its watch) {
  watch.begin();
  const auto scores = simt::dynamic_shared<float>(kMostRows * kExperts, 0, "scores");
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 / kExperts,
            expert = threadIdx.x / 32 % kExperts;
  if (row < rows) {
    const int fours = width / 4;
    float sum = 0.0f;
#pragma unroll 8  // loads in flight
    for (int i = lane; i < fours; i += 32) {
      const float4 w = watch.load(router, expert * fours + i), x = n[row * fours + i];
      sum += w.x * x.x + w.y * x.y + w.z * x.z + w.w * x.w;
    }
    sum = warp_sum(sum);
    if (lane == 0) scores[row * kExperts + expert] = sum + bias[expert];
  }
  __syncthreads();  // all rows have their scores
  if (threadIdx.x == 0) {
    int taken[kExperts] = {};
    for (int its = 0; its < rows; ++its) {
      int best = -1;
      for (int one = 0; one < kExperts; ++one) {
        if (taken[one] >= capacity) continue;
        if (best < 0 || scores[its * kExperts + one] > scores[its * kExperts + best]) {
          best = one;  // [step: route]
        }
      }
      ++taken[best];
      watch.store(chosen, its, best);
    }
  }
  watch.end();
}

/// Rows of weights that a warp of an expert has at a time, and their packs in flight.
inline constexpr int kExpertAhead = 4;

/// The sum of a row of weights times a row of numbers, in all lanes.
template <class Its>
__device__ __forceinline__ float row_sum(const simt::Global<const uint4>& w, std::ptrdiff_t first,
                                         const simt::Global<const float>& x, std::ptrdiff_t x_first,
                                         int packs, const Its& watch) {
  const int lane = threadIdx.x % 32;
  float sum = 0.0f;
  for (int at = lane; at < packs; at += 32 * kExpertAhead) {
    uint4 ahead[kExpertAhead];
#pragma unroll  // the packs are registers
    for (int i = 0; i < kExpertAhead; ++i) {
      ahead[i] = at + 32 * i < packs ? watch.early(w, first + at + 32 * i) : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (int i = 0; i < kExpertAhead; ++i) {
      const int pack = at + 32 * i;
      if (pack >= packs) continue;
      const auto fours = simt::as<const float4>(x);
      const std::ptrdiff_t four = (x_first + static_cast<std::ptrdiff_t>(pack) * kPack) / 4;
      add_pack(ahead[i], fours[four], fours[four + 1], sum);
    }
  }
  return warp_sum(sum);
}

/// Grid: blocks × experts. An expert's blocks share its rows, and have its tokens one after another.
template <class Its>
__global__ void experts_up(simt::Global<const uint4> gate, simt::Global<const uint4> up,
                           simt::Global<const int> chosen, simt::Global<const float> n,
                           simt::Global<float> a, Shape shape, Its watch) {
  watch.begin();
  const int expert = blockIdx.y, warps = blockDim.x / 32;
  const int packs = shape.width / kPack;
  for (int row = 0; row < shape.rows; ++row) {
    if (chosen[row] != expert) continue;  // [step: expert]
    for (int i = blockIdx.x * warps + threadIdx.x / 32; i < shape.inner; i += gridDim.x * warps) {
      const std::ptrdiff_t first = (static_cast<std::ptrdiff_t>(expert) * shape.inner + i) * packs;
      const std::ptrdiff_t x = static_cast<std::ptrdiff_t>(row) * shape.width;
      const float of_gate = row_sum(gate, first, n, x, packs, watch);
      const float of_up = row_sum(up, first, n, x, packs, watch);
      if (threadIdx.x % 32 == 0) watch.store(a, row * shape.inner + i, swiglu(of_gate, of_up));
    }
  }
  watch.end();
}
template <class Its>
__global__ void experts_down(simt::Global<const uint4> down, simt::Global<const int> chosen,
                             simt::Global<const float> a, simt::Global<float> d, Shape shape,
                             Its watch) {
  watch.begin();
  const int expert = blockIdx.y, warps = blockDim.x / 32;
  const int packs = shape.inner / kPack;
  for (int row = 0; row < shape.rows; ++row) {
    if (chosen[row] != expert) continue;
    for (int i = blockIdx.x * warps + threadIdx.x / 32; i < shape.width; i += gridDim.x * warps) {
      const std::ptrdiff_t first = (static_cast<std::ptrdiff_t>(expert) * shape.width + i) * packs;
      const float sum =
          row_sum(down, first, a, static_cast<std::ptrdiff_t>(row) * shape.inner, packs, watch);
      if (threadIdx.x % 32 == 0) watch.store(d, row * shape.width + i, sum);
    }
  }
  watch.end();
}

/// A block per row finds the largest logit; of equal ones the first.
template <class Its>
__global__ void sample(simt::Global<const float> logits, simt::Global<int> sampled, int vocabulary,
                       Its watch) {
  watch.begin();
  const auto most = simt::dynamic_shared<float>(blockDim.x, 0, "most");
  const auto at = simt::dynamic_shared<int>(blockDim.x, blockDim.x * sizeof(float), "at");
  float best = -3.0e38f;
  int where = 0;
  for (int i = threadIdx.x; i < vocabulary; i += blockDim.x) {
    const float one = watch.load(logits, static_cast<std::ptrdiff_t>(blockIdx.x) * vocabulary + i);
    if (one > best) {
      best = one;
      where = i;
    }
  }
  most[threadIdx.x] = best;
  at[threadIdx.x] = where;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();  // the pairs of the round before are written
    if (threadIdx.x >= half) continue;
    const float other = most[threadIdx.x + half];
    const int its = at[threadIdx.x + half];
    if (other > most[threadIdx.x] || (other == most[threadIdx.x] && its < at[threadIdx.x])) {
      most[threadIdx.x] = other;
      at[threadIdx.x] = its;
    }
  }
  if (threadIdx.x == 0) watch.store(sampled, blockIdx.x, at[0]);
  watch.end();
}

template <class Its>
__global__ void move(simt::Global<const uint4> from, simt::Global<uint4> to, long long packs,
                     Its watch) {
  watch.begin();
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs;
       i += step) {
    watch.store(to, static_cast<std::ptrdiff_t>(i),
                watch.load(from, static_cast<std::ptrdiff_t>(i)));  // [step: move]
  }
  watch.end();
}

}  // namespace tilestep::triage::SIMT_BACKEND

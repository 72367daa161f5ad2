// A decode step as a stream of small kernels: embedding, and for each layer RMSNorm, gate and up, SwiGLU, down, residual.
// The products have few tokens, so each weight is read once and used for all of them: memory is their limit.

#include "kernels/systems/launches/device.hpp"

namespace tilestep::launches::SIMT_BACKEND {

/// A block per token.
template <class Clock>
__global__ void embed(simt::Global<const int> tokens, simt::Global<const float> table,
                      simt::Global<float> h, int width, Clock clock) {
  clock.begin();
  const int token = blockIdx.x;
  const int from = tokens[token];  // [step: embed]
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    h[token * width + i] = table[from * width + i];
  }
  clock.end();
}

/// A block per token.
template <class Clock>
__global__ void norm(simt::Global<const float> h, simt::Global<const float> gain,
                     simt::Global<float> n, int width, Clock clock) {
  clock.begin();
  const int first = blockIdx.x * width;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < width; i += blockDim.x) squares += h[first + i] * h[first + i];
  squares = block_sum(squares);
  const float inverse =
      1.0f / sqrtf(squares / static_cast<float>(width) + kEpsilon);  // [step: norm]
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    n[first + i] = h[first + i] * gain[i] * inverse;
  }
  clock.end();
}

/// A warp per row of W; kTokens is at least `batch`.
template <int kTokens, class Clock>
__global__ void product(simt::Global<const uint4> w, simt::Global<const float> x,
                        simt::Global<float> y, int rows, int k, int batch, Clock clock) {
  clock.begin();
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  const int packs = k / kPack;
  for (int row = blockIdx.x * warps + threadIdx.x / 32; row < rows; row += gridDim.x * warps) {
    float sums[kTokens] = {};
    for (int at = lane; at < packs; at += 32 * kAhead) {
      Ahead ahead;
      ahead.load(w, static_cast<std::ptrdiff_t>(row) * packs, at, packs);  // [step: vectors]
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        const int pack = at + 32 * i;
        if (pack >= packs) continue;
#pragma unroll
        for (int token = 0; token < kTokens; ++token) {
          if (token >= batch) continue;
          const std::ptrdiff_t four = (token * k + pack * kPack) / 4;
          const auto fours = simt::as<const float4>(x);
          add_pack(ahead.packs[i], fours[four], fours[four + 1], sums[token]);
        }
      }
    }
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      const float sum = warp_sum(sums[token]);
      if (lane == 0 && token < batch) y[token * rows + row] = sum;
    }
  }
  clock.end();
}

/// The same where rows do not begin at multiples of 16 bytes: eight times as many loads.
template <int kTokens, class Clock>
__global__ void product_single(simt::Global<const std::uint16_t> w, simt::Global<const float> x,
                               simt::Global<float> y, int rows, int k, int batch, Clock clock) {
  clock.begin();
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (int row = blockIdx.x * warps + threadIdx.x / 32; row < rows; row += gridDim.x * warps) {
    float sums[kTokens] = {};
    for (int i = lane; i < k; i += 32) {
      const float weight =
          bf16_value(w[static_cast<std::ptrdiff_t>(row) * k + i]);  // [step: single]
#pragma unroll
      for (int token = 0; token < kTokens; ++token) {
        if (token < batch) sums[token] += weight * x[token * k + i];
      }
    }
#pragma unroll
    for (int token = 0; token < kTokens; ++token) {
      const float sum = warp_sum(sums[token]);
      if (lane == 0 && token < batch) y[token * rows + row] = sum;
    }
  }
  clock.end();
}

template <class Clock>
__global__ void act(simt::Global<const float> gate, simt::Global<const float> up,
                    simt::Global<float> a, int count, Clock clock) {
  clock.begin();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) a[i] = swiglu(gate[i], up[i]);  // [step: act]
  clock.end();
}

template <class Clock>
__global__ void add(simt::Global<const float> d, simt::Global<float> h, int count, Clock clock) {
  clock.begin();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) h[i] = h[i] + d[i];  // [step: add]
  clock.end();
}

template <class Clock>
__global__ void nothing(Clock clock) {
  clock.begin();
  clock.end();
}

}  // namespace tilestep::launches::SIMT_BACKEND

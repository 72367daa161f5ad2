// Attention of one token per row over a cache: heads that share keys share their reads, and blocks share the context.

#include "kernels/base/simt/softmax_step.hpp"
#include "kernels/systems/triage/watch.hpp"

namespace tilestep::triage::SIMT_BACKEND {

using parts::bf16_value;

/// Numbers of a key that a lane has, so that dim / 8 lanes have a key; and keys that they ask for before they use the first.
inline constexpr int kNumbers = 8, kKeysAhead = 2;

/// The nearest BF16 number, ties to even.
__device__ __forceinline__ std::uint16_t bf16_bits(float x) {
  const unsigned bits = __float_as_uint(x);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

/// The step's keys and values, rounded to BF16, to the last place of the cache. A block per row.
template <class Its>
__global__ void store(simt::Global<const float> qkv, simt::Global<std::uint16_t> keys,
                      simt::Global<std::uint16_t> values, Shape shape, Its watch) {
  watch.begin();
  const int row = blockIdx.x, cached = shape.cached();
  const std::ptrdiff_t to =
      (static_cast<std::ptrdiff_t>(row) * shape.context + shape.context - 1) * cached;
  for (int i = threadIdx.x; i < cached; i += blockDim.x) {
    const int from = row * shape.qkv() + shape.queries() + i;
    watch.store(keys, to + i, bf16_bits(watch.load(qkv, from)));
    watch.store(values, to + i, bf16_bits(watch.load(qkv, from + cached)));
  }
  watch.end();
}

__device__ __forceinline__ float pack_number(const uint4& pack, int i) {
  const unsigned word = i < 2 ? pack.x : i < 4 ? pack.y : i < 6 ? pack.z : pack.w;
  return bf16_value(i % 2 == 0 ? word & 0xFFFFu : word >> 16);
}

/// Weights are powers of 2, and scores multiplied by log2(e) before.
inline constexpr float kToLog2 = 1.442695040888963f;

/// A softmax in progress: its largest score, the sum of weights, and a lane's part of the weighted values.
struct Running {
  float most = -3.0e38f, sum = 0.0f;
  float values[kNumbers] = {};
};

/// Grid: splits × heads of the cache × (rows · 4 / kHeads). With fewer than 4 heads per block each key is read by several
/// blocks, those of the second half behind all of the first. Shared memory: a Running per head and group of kLanes lanes.
template <int kHeads, int kLanes, class Its>
__global__ void attend(simt::Global<const float> qkv, simt::Global<const uint4> keys,
                       simt::Global<const uint4> values, simt::Global<float> parts_out, Shape shape,
                       Its watch) {
  watch.begin();
  constexpr int kKeysOfWarp = 32 / kLanes;
  const int row = blockIdx.z % shape.rows, half = blockIdx.z / shape.rows;
  const int cache_head = blockIdx.y, split = blockIdx.x;
  const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / kLanes, mine = threadIdx.x % kLanes;
  const int warps = blockDim.x / 32;
  const int head = cache_head * kGroup + half * kHeads;
  const float scale = rsqrtf(static_cast<float>(shape.dim)) * kToLog2;

  float query[kHeads][kNumbers];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) {
      query[h][i] = qkv[row * shape.qkv() + (head + h) * shape.dim + mine * kNumbers + i] * scale;
    }
  }
  Running running[kHeads];

  const int length = (shape.context + shape.splits - 1) / shape.splits;
  const int first = split * length, end = min(first + length, shape.context);
  const int packs_of_key = shape.cached() / kNumbers;
  for (int base = first; base < end; base += warps * kKeysOfWarp * kKeysAhead) {
    uint4 k[kKeysAhead], v[kKeysAhead];
    bool has[kKeysAhead];
#pragma unroll
    for (int p = 0; p < kKeysAhead; ++p) {
      const int key = base + (p * warps + warp) * kKeysOfWarp + group;
      has[p] = key < end;
      const std::ptrdiff_t at =
          (static_cast<std::ptrdiff_t>(row) * shape.context + key) * packs_of_key +
          cache_head * kLanes + mine;
      k[p] = has[p] ? watch.early(keys, at) : uint4{0, 0, 0, 0};  // [step: keys]
      v[p] = has[p] ? watch.early(values, at) : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      float scores[kKeysAhead];
#pragma unroll
      for (int p = 0; p < kKeysAhead; ++p) {
        scores[p] = 0.0f;
#pragma unroll
        for (int i = 0; i < kNumbers; ++i) scores[p] += query[h][i] * pack_number(k[p], i);
        for (int apart = kLanes / 2; apart > 0; apart /= 2) {
          scores[p] += __shfl_xor_sync(0xFFFFFFFFu, scores[p], apart);
        }
        if (!has[p]) scores[p] = -3.0e38f;
      }
      Running& its = running[h];
      float top = scores[0];
#pragma unroll
      for (int p = 1; p < kKeysAhead; ++p) top = fmaxf(top, scores[p]);
      const auto step = simt::raise_maximum<simt::BinaryExp, true>(its.most, top);
      its.sum *= step.rescale;
#pragma unroll
      for (int i = 0; i < kNumbers; ++i) its.values[i] *= step.rescale;
#pragma unroll
      for (int p = 0; p < kKeysAhead; ++p) {
        const float weight = has[p] ? step.weight(scores[p]) : 0.0f;
        its.sum += weight;
#pragma unroll
        for (int i = 0; i < kNumbers; ++i) its.values[i] += weight * pack_number(v[p], i);
      }
    }
  }

  // The groups' results, one head at a time, through shared memory.
  const int groups = warps * kKeysOfWarp;
  const int stride = shape.dim + 2;
  const auto shared = simt::dynamic_shared<float>(groups * stride, 0, "parts");
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    const int at = (warp * kKeysOfWarp + group) * stride;
    if (mine == 0) {
      shared[at] = running[h].most;
      shared[at + 1] = running[h].sum;
    }
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) shared[at + 2 + mine * kNumbers + i] = running[h].values[i];
    __syncthreads();  // all groups' parts are there
    float most = -3.0e38f, sum = 0.0f;
    for (int g = 0; g < groups; ++g) most = fmaxf(most, shared[g * stride]);
    for (int g = 0; g < groups; ++g) {
      sum += shared[g * stride + 1] * simt::exp2_approx(shared[g * stride] - most);
    }
    const std::ptrdiff_t out =
        ((static_cast<std::ptrdiff_t>(row) * shape.heads + head + h) * shape.splits + split) *
        stride;
    for (int i = threadIdx.x; i < shape.dim; i += blockDim.x) {
      float value = 0.0f;
      for (int g = 0; g < groups; ++g) {
        value += shared[g * stride + 2 + i] * simt::exp2_approx(shared[g * stride] - most);
      }
      watch.store(parts_out, out + 2 + i, value);
    }
    if (threadIdx.x == 0) {
      watch.store(parts_out, out, most);
      watch.store(parts_out, out + 1, sum);
    }
    __syncthreads();  // the parts have been read before the next head's come
  }
  watch.end();
}

/// A block per row and head puts the splits together.
template <class Its>
__global__ void merge(simt::Global<const float> parts_in, simt::Global<float> attended, Shape shape,
                      Its watch) {
  watch.begin();
  const int row = blockIdx.x / shape.heads, head = blockIdx.x % shape.heads;
  const int stride = shape.dim + 2;
  const std::ptrdiff_t from = static_cast<std::ptrdiff_t>(blockIdx.x) * shape.splits * stride;
  float most = -3.0e38f, sum = 0.0f;
  for (int s = 0; s < shape.splits; ++s) most = fmaxf(most, parts_in[from + s * stride]);
  for (int s = 0; s < shape.splits; ++s) {
    sum += parts_in[from + s * stride + 1] * simt::exp2_approx(parts_in[from + s * stride] - most);
  }
  for (int i = threadIdx.x; i < shape.dim; i += blockDim.x) {
    float value = 0.0f;
    for (int s = 0; s < shape.splits; ++s) {
      value += watch.load(parts_in, from + s * stride + 2 + i) *
               simt::exp2_approx(parts_in[from + s * stride] - most);
    }
    watch.store(attended, row * shape.queries() + head * shape.dim + i, value / sum);
  }
  watch.end();
}

}  // namespace tilestep::triage::SIMT_BACKEND

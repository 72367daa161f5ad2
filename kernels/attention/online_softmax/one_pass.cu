// Online softmax: the kernels of the lesson.
//
//   online_softmax     attention, one block per query, keys in tiles, one pass: the kernel in the
//                      picture. scores [queries × keys], values [keys × head_dim],
//                      output [queries × head_dim]
//   naive_softmax_sum  softmax's two sums without the maximum, to see them overflow
//
// and a ladder over a matrix [rows × columns], softmax of each row, one block per row:
//
//   three_pass         maximum, sum, write: every element is read three times
//   online_two_pass    maximum and sum in one sweep: read twice
//   online_one_read    the row stays in registers: read once
//
// All arrays are FP32 and row-major. The accessors are declared in simt/simt.hpp: compiled by nvcc,
// an accessor is a plain pointer. A tape records the picture's data and compiles to nothing in the
// timed kernel.

#include <cstddef>

#include "kernels/attention/online_softmax/kernels.hpp"
#include "kernels/base/numeric/float_format.hpp"
#include "kernels/base/simt/simt.hpp"

namespace tilestep::online_softmax::SIMT_BACKEND {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr int kMaxWarps = 32;

// ---- small parts --------------------------------------------------------------------------------

/// The number subtracted in exp's argument. While every key so far is masked the maximum is −inf, and
/// −inf − (−inf) would be NaN; with any finite base, exp(−inf) is 0 as it should be.
__device__ inline float finite_base(float m) {
  return m == -INFINITY ? 0.0f : m;
}

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// Combines the values of the first `lanes` lanes (a power of two) of a warp; lane 0 gets the
/// result, with 32 lanes all lanes do.
template <class Combine>
__device__ float warp_reduce(float value, int lanes, Combine combine) {
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(kAllLanes, value, offset));
  }
  return value;
}

/// Combines the values of a block; every thread gets the result. `lanes` as for warp_reduce, `slots`
/// is shared memory for one number per warp.
template <class Combine>
__device__ float block_reduce(float value, int lanes, simt::Shared<float> slots, Combine combine) {
  value = warp_reduce(value, lanes, combine);
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = value;
  __syncthreads();  // every warp's slot must be written before any thread reads the slots
  value = slots[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) value = combine(value, slots[warp]);
  return value;
}

/// Product and sum in an accumulator of this format: one rounding each. The _rn functions keep the
/// compiler from fusing the two into one FMA with a single rounding.
template <class Format>
__device__ float times(float a, float b) {
  return Format::round(__fmul_rn(a, b));
}
template <class Format>
__device__ float plus(float a, float b) {
  return Format::round(__fadd_rn(a, b));
}

// ---- the lesson's kernel ------------------------------------------------------------------------

/// Block b computes query first_query + b: output = Σ softmax(scores)_j values_j. All threads hold
/// m and l; thread c owns component c of O. Shared memory: tile_width weights. `lanes` is the number
/// of lanes of a warp that a tile can occupy, rounded up to a power of two.
template <class Format, class Tape>
__global__ void online_softmax(simt::Global<const float> scores, simt::Global<const float> values,
                               simt::Global<float> output, AttentionShape shape, int first_query,
                               int lanes, Tape tape) {
  // Separate slots: a fast warp writes its sum while a slow one still reads the maxima.
  __shared__ simt::Array<float, kMaxWarps> warp_maxima;
  __shared__ simt::Array<float, kMaxWarps> warp_sums;
  const auto weights = simt::dynamic_shared<float>(static_cast<std::size_t>(shape.tile_width));
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int query = first_query + static_cast<int>(blockIdx.x);
  const auto row = scores + static_cast<std::size_t>(query) * shape.keys;

  float m = -INFINITY;  // no key has been seen yet
  float l = 0.0f;
  float o = 0.0f;
  for (int tile = 0, first = 0; first < shape.keys; ++tile, first += shape.tile_width) {
    const int width = min(shape.tile_width, shape.keys - first);
    float tile_max = -INFINITY;
    for (int j = thread; j < width; j += threads) tile_max = fmaxf(tile_max, row[first + j]);
    tile_max = block_reduce(tile_max, lanes, warp_maxima, Larger{});

    // 1. The maximum of all keys so far.
    const float m_new = fmaxf(m, tile_max);  // [step: maximum]

    // 2. l and O are still relative to the old maximum: rescale them to the new one.
    const float base = finite_base(m_new);
    const float rescale = shape.skip_rescale ? 1.0f : expf(m - base);  // [step: rescale]

    // 3. The weights of this tile's keys, none larger than 1. This time the scores hit L1. The
    // barrier in the first block_reduce separates these writes from the last tile's reads.
    float tile_sum = 0.0f;
    for (int j = thread; j < width; j += threads) {
      const float p = expf(row[first + j] - base);  // [step: weights]
      weights[j] = p;
      tile_sum += p;
      tape.note(kWeightSite, first + j, p);
    }
    // The barrier inside also separates writing `weights` from reading them below.
    tile_sum = block_reduce(tile_sum, lanes, warp_sums, Plus{});

    // 4. Add the tile to l and O.
    const float l_new = plus<Format>(times<Format>(l, rescale), tile_sum);  // [step: sums]
    float o_new = times<Format>(o, rescale);
    if (thread < shape.head_dim) {
      const auto column = values + (static_cast<std::size_t>(first) * shape.head_dim + thread);
      for (int j = 0; j < width; ++j) {
        const float value = column[static_cast<std::size_t>(j) * shape.head_dim];
        o_new = plus<Format>(o_new, times<Format>(weights[j], value));
      }
    }

    if (tape.chosen(thread)) {
      tape.note(kStepSite, tile,
                StepRecord{tile_max, m, m_new, rescale, tile_sum, l, l_new, o, o_new,
                           l_new > 0.0f ? o_new / l_new : 0.0f});
    }
    m = m_new;
    l = l_new;
    o = o_new;
  }
  // The weights are divided by their sum once, at the very end. If every key is masked, the sum is 0
  // and the output is 0 by definition.
  if (thread < shape.head_dim) {
    const std::size_t at = static_cast<std::size_t>(query) * shape.head_dim + thread;
    output[at] = l > 0.0f ? o / l : 0.0f;
  }
}

/// Softmax straight from its formula, without the maximum: exp(s) overflows FP32 above 88.7. One block.
__global__ void naive_softmax_sum(simt::Global<const float> scores,
                                  simt::Global<const float> values, simt::Global<float> sums,
                                  int keys) {
  __shared__ simt::Array<float, kMaxWarps> numerators;
  __shared__ simt::Array<float, kMaxWarps> denominators;
  float numerator = 0.0f;
  float denominator = 0.0f;
  for (int j = static_cast<int>(threadIdx.x); j < keys; j += static_cast<int>(blockDim.x)) {
    const float weight = expf(scores[j]);
    numerator += weight * values[j];
    denominator += weight;
  }
  numerator = block_reduce(numerator, 32, numerators, Plus{});
  denominator = block_reduce(denominator, 32, denominators, Plus{});
  if (threadIdx.x == 0) {
    sums[0] = numerator;
    sums[1] = denominator;
  }
}

// ---- the ladder ---------------------------------------------------------------------------------

// A row is read in packs: float4 if every row is 16-byte aligned, otherwise float. A warp that reads
// float4 requests 512 bytes with one instruction.

__device__ inline float largest(float4 x) {
  return fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w));
}
__device__ inline float largest(float x) {
  return x;
}
__device__ inline float total(float4 x) {
  return (x.x + x.y) + (x.z + x.w);
}
__device__ inline float total(float x) {
  return x;
}
__device__ inline float4 exp_from(float4 x, float base) {
  return make_float4(expf(x.x - base), expf(x.y - base), expf(x.z - base), expf(x.w - base));
}
__device__ inline float exp_from(float x, float base) {
  return expf(x - base);
}
__device__ inline float4 scaled(float4 x, float by) {
  return make_float4(x.x * by, x.y * by, x.z * by, x.w * by);
}
__device__ inline float scaled(float x, float by) {
  return x * by;
}

/// A pack with x in every element.
template <class Pack>
__device__ Pack every(float x) {
  if constexpr (sizeof(Pack) == sizeof(float))
    return x;
  else
    return make_float4(x, x, x, x);
}

/// A maximum and the sum of exp(x − maximum) of the elements seen.
struct MaxSum {
  float m;
  float l;
};

/// Rescales the sums of a warp's lanes to one maximum, each with one exp, and adds them up.
__device__ inline MaxSum warp_merge(MaxSum mine) {
  const float m = warp_reduce(mine.m, 32, Larger{});
  return {m, warp_reduce(mine.l * expf(mine.m - finite_base(m)), 32, Plus{})};
}

/// The same for a block: one barrier, because maximum and sum travel together.
__device__ inline MaxSum block_merge(MaxSum mine, simt::Shared<float> maxima,
                                     simt::Shared<float> sums) {
  mine = warp_merge(mine);
  const unsigned lane = threadIdx.x % 32;
  if (lane == 0) {
    maxima[threadIdx.x / 32] = mine.m;
    sums[threadIdx.x / 32] = mine.l;
  }
  __syncthreads();  // every warp's pair must be written before any warp reads the pairs
  const bool pair = lane < blockDim.x / 32;
  return warp_merge({pair ? maxima[lane] : -INFINITY, pair ? sums[lane] : 0.0f});
}

/// The reciprocal of the row's sum; 0 if the row is all −inf, whose weights are 0 by definition.
__device__ inline float inverse(float l) {
  return l > 0.0f ? 1.0f / l : 0.0f;
}

/// The textbook's safe softmax. `packs` per row.
template <class Pack>
__global__ void three_pass(simt::Global<const Pack> input, simt::Global<Pack> output, int packs) {
  __shared__ simt::Array<float, kMaxWarps> maxima;
  __shared__ simt::Array<float, kMaxWarps> sums;
  const auto x = input + static_cast<std::size_t>(blockIdx.x) * packs;
  const auto y = output + static_cast<std::size_t>(blockIdx.x) * packs;
  const int first = static_cast<int>(threadIdx.x);
  const int stride = static_cast<int>(blockDim.x);

  float m = -INFINITY;
  for (int i = first; i < packs; i += stride) m = fmaxf(m, largest(x[i]));
  const float base = finite_base(block_reduce(m, 32, maxima, Larger{}));

  float l = 0.0f;
  for (int i = first; i < packs; i += stride) l += total(exp_from(x[i], base));
  const float scale = inverse(block_reduce(l, 32, sums, Plus{}));

  for (int i = first; i < packs; i += stride) __stcs(&y[i], scaled(exp_from(x[i], base), scale));
}

/// Each thread keeps the maximum and the sum of its own elements and rescales the sum when the
/// maximum rises, so one sweep gives both; the write needs a second.
template <class Pack>
__global__ void online_two_pass(simt::Global<const Pack> input, simt::Global<Pack> output,
                                int packs) {
  __shared__ simt::Array<float, kMaxWarps> maxima;
  __shared__ simt::Array<float, kMaxWarps> sums;
  const auto x = input + static_cast<std::size_t>(blockIdx.x) * packs;
  const auto y = output + static_cast<std::size_t>(blockIdx.x) * packs;
  const int first = static_cast<int>(threadIdx.x);
  const int stride = static_cast<int>(blockDim.x);

  MaxSum mine = {-INFINITY, 0.0f};
  for (int i = first; i < packs; i += stride) {
    const Pack pack = x[i];
    const float m = fmaxf(mine.m, largest(pack));
    const float base = finite_base(m);
    mine.l = mine.l * expf(mine.m - base) + total(exp_from(pack, base));
    mine.m = m;
  }
  const MaxSum all = block_merge(mine, maxima, sums);
  const float base = finite_base(all.m);
  const float scale = inverse(all.l);

  for (int i = first; i < packs; i += stride) __stcs(&y[i], scaled(exp_from(x[i], base), scale));
}

/// The row stays in the block's registers from its one read to its one write: `kPacks` packs per
/// thread, whose loads are all in flight together. A thread computes exp relative to its own
/// maximum, before the row's is known; the merge then rescales thread by thread, the online step
/// again, and needs one barrier where reducing maximum and sum separately would need two.
template <int kThreads, int kPacks, class Pack>
__global__ void __launch_bounds__(kThreads)
    online_one_read(simt::Global<const Pack> input, simt::Global<Pack> output, int packs) {
  __shared__ simt::Array<float, kMaxWarps> maxima;
  __shared__ simt::Array<float, kMaxWarps> sums;
  const auto x = input + static_cast<std::size_t>(blockIdx.x) * packs;
  const auto y = output + static_cast<std::size_t>(blockIdx.x) * packs;
  const int thread = static_cast<int>(threadIdx.x);

  Pack held[kPacks];
  for (int k = 0; k < kPacks; ++k) {
    const int i = k * kThreads + thread;
    held[k] = i < packs ? __ldcs(&x[i]) : every<Pack>(-INFINITY);
  }

  MaxSum mine = {-INFINITY, 0.0f};
  for (int k = 0; k < kPacks; ++k) mine.m = fmaxf(mine.m, largest(held[k]));
  const float own_base = finite_base(mine.m);
  for (int k = 0; k < kPacks; ++k) {
    held[k] = exp_from(held[k], own_base);
    mine.l += total(held[k]);
  }
  const MaxSum all = block_merge(mine, maxima, sums);
  const float scale = expf(mine.m - finite_base(all.m)) * inverse(all.l);

  // Streaming stores: the result is not read soon, so it should not evict other rows from L2.
  for (int k = 0; k < kPacks; ++k) {
    const int i = k * kThreads + thread;
    if (i < packs) __stcs(&y[i], scaled(held[k], scale));
  }
}

}  // namespace tilestep::online_softmax::SIMT_BACKEND

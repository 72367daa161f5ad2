#pragma once

// Fusion: a row of logits for sampling.cu, as its warps read it; logits in order, and what they weigh.

#include <cstddef>
#include <cstdint>

#include "kernels/base/numeric/philox.hpp"
#include "kernels/base/simt/packed.hpp"
#include "kernels/base/simt/warp_rounds.hpp"
#include "kernels/systems/fusion/packs.hpp"
#include "kernels/systems/fusion/sampling/sampling.hpp"

namespace tilestep::fusion::SIMT_BACKEND {

/// A sum of weights, in 2^-40 of the largest: as whole numbers they add up to the same in every order.
using Mass = unsigned long long;
constexpr unsigned kWholeWarp = 0xFFFFFFFFu;

// ---- logits in order ----------------------------------------------------------------------------

/// Bits at the end of an FP32 that numbers of the format do not need.
template <Dtype kType>
constexpr int kSpare = kType == Dtype::bf16   ? 16
                       : kType == Dtype::fp16 ? 13
                                              : 0;

/// A whole number that is the larger the larger the logit is; 0 for NaN.
template <Dtype kType>
__device__ inline unsigned key_of(float x) {
  const unsigned bits = __float_as_uint(x + 0.0f);  // −0 is +0
  const unsigned key = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return x == x ? key >> kSpare<kType> : 0u;
}
/// The logit of a key, or the next of the format's numbers.
template <Dtype kType>
__device__ inline float logit_of(unsigned key) {
  const unsigned bits = key << kSpare<kType>;
  const unsigned exact = ~bits & ~((1u << kSpare<kType>)-1u);
  return __uint_as_float((bits >> 31) != 0 ? bits ^ 0x80000000u : exact);
}
/// The lowest key of a finite number.
template <Dtype kType>
constexpr unsigned kLowestKey = 0x00800000u >> kSpare<kType>;

/// The largest of `low` … `high` that is `enough`, or `low`. What is enough stays so for less.
template <class Enough>
__device__ inline unsigned largest_of(unsigned low, unsigned high, Enough enough) {
  while (low < high) {
    const unsigned middle = low + (high - low + 1) / 2;
    if (enough(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// ---- weights ------------------------------------------------------------------------------------

struct Weights {
  float largest, scale;
  __device__ float operator()(float x) const {
    if (largest == INFINITY) return x == INFINITY ? 1.0f : 0.0f;
    return fmaxf(simt::exp2_approx((x - largest) * scale), 0.0f);  // NaN has none  [step: weight]
  }
};
__device__ inline Mass whole_mass(float weight) {
  return static_cast<Mass>(weight * 0x1p40f);
}

__device__ inline Mass sum_of(Mass a, Mass b) {
  return a + b;
}
__device__ inline Mass over_warp(Mass mine) {
  return simt::over_warp(mine, sum_of);
}

// ---- the largest of a pack ----------------------------------------------------------------------

/// Of a pack of BF16 a register holds two maxima, of the numbers in low and in high halves: an instruction compares two.
template <Dtype kType>
__device__ inline auto largest_in(const uint4& pack) {
  if constexpr (kType == Dtype::bf16) {
    return simt::max_bf16x2(simt::max_bf16x2(pack.x, pack.y), simt::max_bf16x2(pack.z, pack.w));
  } else {
    typename Wide<kType>::Numbers x;
    Wide<kType>::unpack(pack, x);
    float largest = x[0];
    for (int j = 1; j < Wide<kType>::kNumbers; ++j) largest = fmaxf(largest, x[j]);
    return largest;
  }
}
template <Dtype kType>
__device__ inline float largest_in(typename Narrow<kType>::Memory number) {
  typename Narrow<kType>::Numbers x;
  Narrow<kType>::unpack(number, x);
  return x[0];
}
__device__ inline unsigned larger(unsigned a, unsigned b) {
  return simt::max_bf16x2(a, b);
}
__device__ inline float larger(float a, float b) {
  return fmaxf(a, b);
}
__device__ inline float larger_half(unsigned pair) {
  return fmaxf(simt::unpack_bf16(pair, 0), simt::unpack_bf16(pair, 1));
}
__device__ inline float larger_half(float number) {
  return number;
}

// ---- a row in segments --------------------------------------------------------------------------

/// A warp takes a row's logits a segment at a time: kPacks neighbouring stretches of 32 packs, a lane the same pack of
/// each. So all of a lane's loads are under way together, and a segment does not depend on the launch's shape.
template <class Format>
struct Row {
  using Pack = Format;
  using Memory = typename Pack::Memory;
  static constexpr Dtype kType = Pack::kDtype;
  static constexpr int kPacks = Pack::kNumbers == 1 ? 8 : 4, kSegment = 32 * kPacks;
  using Batch = Memory[kPacks];

  simt::Global<const Memory> memory;
  int packs, lane;

  /// Behind the end of the row are logits of −∞.
  __device__ void load(int segment, Batch& batch) const {
    const int first = segment * kSegment + lane;
    if (segment * kSegment + kSegment <= packs) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) batch[p] = memory[first + 32 * p];
    } else {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        batch[p] = nothing();
        if (first + 32 * p < packs) batch[p] = memory[first + 32 * p];
      }
    }
  }
  /// The first token of a lane's pack.
  __device__ int token(int segment, int p) const {
    return (segment * kSegment + 32 * p + lane) * Pack::kNumbers;
  }
  __device__ static Memory nothing() {
    constexpr unsigned kPair = kType == Dtype::bf16   ? 0xFF80FF80u
                               : kType == Dtype::fp16 ? 0xFC00FC00u
                                                      : 0xFF800000u;
    if constexpr (Pack::kNumbers > 1) {
      return make_uint4(kPair, kPair, kPair, kPair);
    } else if constexpr (kType == Dtype::fp32) {
      return -INFINITY;
    } else {
      return static_cast<Memory>(kPair & 0xFFFFu);
    }
  }
};

/// The mass of a pack's first `count` numbers, without those below `least`.
template <class Pack>
__device__ inline Mass mass_of(const typename Pack::Memory& pack, const Weights& weight,
                               float least, int count = Pack::kNumbers) {
  typename Pack::Numbers x;
  Pack::unpack(pack, x);
  Mass mass = 0;
  for (int j = 0; j < Pack::kNumbers; ++j) {
    if (j < count && x[j] >= least) mass += whole_mass(weight(x[j]));
  }
  return mass;
}

/// By a warp: the token of a segment at which the mass before it is at most `target`, and beyond it more. The
/// segment's mass is thought to be `own`; where it is not quite that, the target moves with it.
template <class Row>
__device__ void pick(const Row& row, int segment, const Weights& weight, float least, Mass target,
                     Mass own, simt::Global<int> token) {
  using Pack = typename Row::Pack;
  typename Row::Batch batch;
  row.load(segment, batch);
  Mass mine = 0;
#pragma unroll
  for (int p = 0; p < Row::kPacks; ++p) mine += mass_of<Pack>(batch[p], weight, least);
  const Mass sum = over_warp(mine);
  if (sum != own) {
    target = static_cast<Mass>(static_cast<double>(target) / static_cast<double>(own) *
                               static_cast<double>(sum));
    if (target >= sum) target = sum - 1;
  }
#pragma unroll
  for (int p = 0; p < Row::kPacks; ++p) {
    const Mass mass = mass_of<Pack>(batch[p], weight, least), upto = simt::up_to_lane(mass);
    if (target < upto && target >= upto - mass) {
      int j = 1;
      while (mass_of<Pack>(batch[p], weight, least, j) <= target - (upto - mass)) ++j;
      token[0] = row.token(segment, p) + j - 1;  // [step: pick]
    }
    const Mass all = __shfl_sync(kWholeWarp, upto, 31);
    target = target >= all ? target - all : ~Mass{0};  // found: no other pack has it
  }
}

/// By a warp: the segment in which a share `random` / 2^64 of all mass is reached, and the token in it.
template <class Row>
__device__ void pick(const Row& row, simt::Shared<const Mass> masses, int segments,
                     const Weights& weight, float least, Mass random, simt::Global<int> token) {
  const int each = (segments + 31) / 32, first = min(row.lane * each, segments),
            end = min(first + each, segments);
  Mass mine = 0;
  for (int i = first; i < end; ++i) mine += masses[i];
  const Mass upto = simt::up_to_lane(mine);
  Mass target = numeric::high_product(random, __shfl_sync(kWholeWarp, upto, 31)), own = 0;
  const bool here = target < upto && target >= upto - mine;
  int segment = first;
  if (here) {
    target -= upto - mine;
    while (target >= masses[segment]) target -= masses[segment++];
    own = masses[segment];
  }
  const int lane = __ffs(static_cast<int>(__ballot_sync(kWholeWarp, here ? 1 : 0))) - 1;
  pick(row, __shfl_sync(kWholeWarp, segment, lane), weight, least,
       __shfl_sync(kWholeWarp, target, lane), __shfl_sync(kWholeWarp, own, lane), token);
}

}  // namespace tilestep::fusion::SIMT_BACKEND

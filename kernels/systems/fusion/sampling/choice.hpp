#pragma once

// Which logits a sampling kernel keeps, and which of them is the token: of a row's records and candidates, or by passes
// over the row.

#include "kernels/systems/fusion/sampling/row.hpp"

namespace tilestep::fusion::SIMT_BACKEND {

/// What a launch samples.
struct Sampling {
  int packs, segments, cluster;  ///< of a row; blocks of a row
  float scale;                   ///< log2 e / temperature
  int top_k;                     ///< 0: all
  int listed;                    ///< so many of the largest logits go to the list; 0: no list
  Mass top_p;                    ///< in 2^-64
  bool greedy, by_mass;          ///< by_mass: top_p is below 1
  Mass seed;
};

/// What warps of a block tell each other.
using Rounds = simt::Rounds<Mass>;

struct alignas(16) Candidate {
  unsigned key;
  int token;
  Mass mass;
};

/// A segment's reference in units of log2: what 2^x is relative to. Rounded, but the same wherever it is needed.
__device__ inline float reference_of(float largest, float scale) {
  return fmaxf(largest * scale, -1e38f);
}

/// By a warp: the first token whose logit is the largest one.
template <class Row>
__device__ void pick_largest(const Row& row, simt::Shared<const Mass> records, int segments,
                             float largest, simt::Global<int> token) {
  const unsigned key = key_of<Dtype::fp32>(largest);
  unsigned segment = ~0u, first = ~0u;
  for (int i = row.lane; i < segments; i += 32) {
    if (static_cast<unsigned>(records[i]) == key) segment = min(segment, static_cast<unsigned>(i));
  }
  segment = __reduce_min_sync(kWholeWarp, segment);
  typename Row::Batch batch;
  row.load(static_cast<int>(segment), batch);
#pragma unroll
  for (int p = 0; p < Row::kPacks; ++p) {
    typename Row::Pack::Numbers x;
    Row::Pack::unpack(batch[p], x);
    for (int j = 0; j < Row::Pack::kNumbers; ++j) {
      if (x[j] == largest) {
        first = min(first, static_cast<unsigned>(row.token(static_cast<int>(segment), p) + j));
      }
    }
  }
  first = __reduce_min_sync(kWholeWarp, first);
  if (row.lane == 0) token[0] = static_cast<int>(first);
}

/// By a warp: records become masses relative to the row's largest logit. Their sum.
__device__ inline Mass rescale(simt::Shared<Mass> records, int segments, float reference,
                               float scale) {
  Mass sum = 0;
  const int lane = static_cast<int>(threadIdx.x % 32), each = (segments + 31) / 32;
  for (int i = lane * each; i < min(lane * each + each, segments); ++i) {
    const Mass record = records[i];
    const float own =
        reference_of(logit_of<Dtype::fp32>(static_cast<unsigned>(record)), scale) - reference;
    const auto mass =
        static_cast<Mass>(simt::exp2_approx(own) * static_cast<float>(record >> 32) * 0x1p19f);
    // Of so little it is not sure that any number weighs 1 unit.
    records[i] = mass < 1024 ? 0 : mass;
    sum += records[i];
  }
  return over_warp(sum);
}

__device__ inline Mass needed(const Sampling& sampling, Mass total) {
  const Mass part = numeric::high_product(sampling.top_p, total);
  return part > 0 ? part : 1;
}
__device__ inline Mass told_sum(const Rounds& rounds) {
  return over_warp(rounds.part(Mass{0}, sum_of));
}

/// The token, from the `count` largest logits and the mass of all. False if a nucleus needs more of them.
template <Dtype kType>
__device__ bool pick_candidate(const Sampling& sampling, const Weights& weight, Rounds& rounds,
                               simt::Shared<Candidate> candidates, simt::Shared<Mass> larger,
                               int count, Mass total, Mass random, simt::Global<int> token) {
  const int me = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int i = me; i < count; i += threads) {
    candidates[i].mass = whole_mass(weight(logit_of<kType>(candidates[i].key)));
  }
  __syncthreads();  // all masses must be there before they are added
  constexpr Mass kOut = ~Mass{0};
  Mass mine = 0;
  for (int i = me; i < count; i += threads) {
    const Candidate own = candidates[i];
    int rank = 0;
    Mass mass = 0;
    for (int j = 0; j < count; ++j) {
      const Candidate other = candidates[j];
      if (other.key > own.key) {
        ++rank;
        mass += other.mass;
      }
    }
    const bool in = sampling.top_k == 0 || rank < sampling.top_k;
    larger[i] = in ? mass : kOut;
    if (in) mine += own.mass;
  }
  rounds.tell(over_warp(mine));
  const Mass known = told_sum(rounds);
  Mass need = kOut;
  if (sampling.by_mass) {
    need = needed(sampling, sampling.top_k > 0 ? known : total);
    if (known < need) return false;
  }
  mine = 0;
  for (int i = me; i < count; i += threads) {
    if (larger[i] >= need) candidates[i].mass = 0;
    mine += candidates[i].mass;
  }
  rounds.tell(over_warp(mine));
  const Mass target = numeric::high_product(random, told_sum(rounds));
  for (int i = me; i < count; i += threads) {
    const Candidate own = candidates[i];
    Mass before = 0;
    for (int j = 0; j < count; ++j) {
      const Candidate other = candidates[j];
      if (other.token < own.token) before += other.mass;
    }
    if (target >= before && target - before < own.mass) token[0] = own.token;
  }
  return true;
}

constexpr int kBins = 256;

/// A bin's mass is in two words, as shared memory adds words.
__device__ inline void add_to(simt::Shared<unsigned> bins, int bin, Mass mass) {
  const auto low = static_cast<unsigned>(mass);
  const unsigned before = atomicAdd(&bins[bin], low);
  const unsigned high = static_cast<unsigned>(mass >> 32) + (before + low < before ? 1 : 0);
  if (high != 0) atomicAdd(&bins[kBins + bin], high);
}
/// By a warp: the first bin up to which there is `need`, or the last one; and what those before it have.
struct Reached {
  int bin;
  Mass before;
};
__device__ inline Reached reached_in(simt::Shared<const unsigned> bins, Mass need) {
  constexpr int kEach = kBins / 32;
  const auto mass = [&](int i) { return static_cast<Mass>(bins[kBins + i]) << 32 | bins[i]; };
  const int first = static_cast<int>(threadIdx.x % 32) * kEach;
  Mass mine = 0;
  for (int i = 0; i < kEach; ++i) mine += mass(first + i);
  const Mass upto = simt::up_to_lane(mine);
  const auto lanes = __ballot_sync(kWholeWarp, upto >= need ? 1 : 0);
  const int lane = lanes != 0 ? __ffs(static_cast<int>(lanes)) - 1 : 31;
  Reached reached{first, upto - mine};
  while (reached.bin < first + kEach - 1 && reached.before + mass(reached.bin) < need) {
    reached.before += mass(reached.bin++);
  }
  return {__shfl_sync(kWholeWarp, reached.bin, lane),
          __shfl_sync(kWholeWarp, reached.before, lane)};
}

/// By a block: use(segment, batch) for each segment.
template <class Row, class Use>
__device__ void each_segment(const Row& row, int segments, const Use& use) {
  const int warps = static_cast<int>(blockDim.x / 32);
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x / 32); i < segments; i += warps) {
    typename Row::Batch batch;
    row.load(i, batch);
    use(i, batch);
  }
}

/// The token by passes over the row in memory: the least logit that is kept, then the masses of segments. `total` is the
/// mass of all logits, 0 if it is not known.
template <class Row>
__device__ void search_row(const Row& row, const Sampling& sampling, const Weights& weight,
                           Rounds& rounds, simt::Shared<Mass> masses, simt::Shared<unsigned> bins,
                           Mass total, Mass random, simt::Global<int> token) {
  using Pack = typename Row::Pack;
  constexpr Dtype kType = Row::kType;
  // The mass of what reaches a key.
  const auto measure = [&](unsigned key) {
    const float least = logit_of<kType>(key);
    Mass mass = 0;
    each_segment(row, sampling.segments, [&](int segment, const typename Row::Batch& batch) {
      Mass own = 0;
#pragma unroll
      for (int p = 0; p < Row::kPacks; ++p) own += mass_of<Pack>(batch[p], weight, least);
      mass += own;
      own = over_warp(own);
      if (row.lane == 0) masses[segment] = own;
    });
    rounds.tell(over_warp(mass));
  };
  // The largest key from `low` on up to which, from `high` down, there is `need` of mass, or so many logits.
  const auto least_key = [&](unsigned low, unsigned high, Mass need, bool by_mass) {
    // At first bins are as wide in their weights' logarithms: logits differ less than the exponents of all numbers.
    bool by_weight = weight.largest < INFINITY;
    while (low < high) {
      const int shift = max(24 - __clz(static_cast<int>(high - low)), 0);
      const auto bin_of = [&](unsigned key) {
        if (!by_weight) return static_cast<int>((high - key) >> shift);
        const float below = (weight.largest - logit_of<kType>(key)) * weight.scale;
        return static_cast<int>(fminf(below * 5.0f, kBins - 1.0f));
      };
      __syncthreads();  // what stood here has been read by all
      for (int i = static_cast<int>(threadIdx.x); i < 2 * kBins;
           i += static_cast<int>(blockDim.x)) {
        bins[i] = 0;
      }
      __syncthreads();  // all bins must be empty before anything is added
      each_segment(row, sampling.segments, [&](int, const typename Row::Batch& batch) {
#pragma unroll
        for (int p = 0; p < Row::kPacks; ++p) {
          typename Pack::Numbers x;
          Pack::unpack(batch[p], x);
#pragma unroll
          for (int j = 0; j < Pack::kNumbers; ++j) {
            const unsigned key = key_of<kType>(x[j]);
            if (key < low || key > high) continue;
            const Mass mass = by_mass ? whole_mass(weight(x[j])) : 1;
            if (mass != 0) add_to(bins, bin_of(key), mass);
          }
        }
      });
      __syncthreads();  // all must have been added before any warp reads
      const Reached reached = reached_in(bins, need);
      need -= reached.before;
      const unsigned end =
          largest_of(low, high, [&](unsigned key) { return bin_of(key) >= reached.bin; });
      if (bin_of(low) > reached.bin) {
        low = largest_of(low, high, [&](unsigned key) { return bin_of(key) > reached.bin; }) + 1;
      }
      high = end;
      by_weight = false;
    }
    return low;
  };
  const unsigned top = key_of<kType>(weight.largest);
  unsigned kept = kLowestKey<kType>;
  if (sampling.top_k > 0) kept = least_key(kept, top, static_cast<Mass>(sampling.top_k), false);
  if (sampling.by_mass) {
    if (sampling.top_k > 0 || total == 0) {
      measure(kept);
      total = told_sum(rounds);
    }
    kept = least_key(kept, top, needed(sampling, total), true);
  }
  measure(kept);
  if (threadIdx.x >= 32) return;
  pick<Row>(row, masses, sampling.segments, weight, logit_of<kType>(kept), random, token);
}

}  // namespace tilestep::fusion::SIMT_BACKEND

#pragma once

// Fusion: temperature, top-k, top-p and the choice of a token in one kernel. A row of logits streams once from memory
// through the registers of a cluster's warps, which keep little of it, and all that in shared memory:
//
//   records     of each segment its largest logit and its mass, the sum of 2^((x − largest) · scale), where scale is
//               log2 e / temperature: an online softmax, whose parts are brought to the row's largest logit at the end
//   a list      of packs with a logit that may be among the k largest. So many threads' largest logits so far bound
//               those from below; the bound is raised when the stream has gone twice as far, so a list stays short
//
// The first block has the records and candidates of all; then few instructions are left. Of the candidates each one's
// rank is counted: how many are larger, and what they weigh. That says whether it is kept; and what the kept ones
// before it weigh whether it is the token. Without top-k and top-p the records lead to a segment, which is read again.
//
// Where more logits are kept than the list and the candidates have room for, the first block searches the row in
// memory: each pass narrows down the least logit that is kept to one of 256 bins (search_row). Masses of candidates are whole numbers and segments are the same in every
// launch: the token depends neither on an order nor on the launch's shape.

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

// ---- shared memory ------------------------------------------------------------------------------

/// What warps of a block tell each other.
using Rounds = simt::Rounds<Mass>;

/// A bound on the k-th largest logit as a block knows it: its own k-th; and its own k / cluster-th, which counts once
/// all blocks have as many.
struct Bounds {
  unsigned own, shared;
};
struct alignas(16) Candidate {
  unsigned key;
  int token;
  Mass mass;
};

/// Bytes of a block's shared memory: counts, bounds, what warps tell, records, candidates, the list's packs and their
/// places. The candidates' ranks have the place of the packs, which are not needed any more.
struct Places {
  int told, records, candidates, list, at, end;
};
__host__ __device__ constexpr Places places_of(int warps, int segments, int bytes_of_pack,
                                               bool lists) {
  Places at{};
  at.told = 16 + static_cast<int>(sizeof(Bounds)) * kMostCluster;
  at.records = at.told + Rounds::bytes(warps);
  at.candidates = at.records + (segments + 1) / 2 * 16;
  at.list = at.candidates + (lists ? 16 * kMostCandidates : 0);
  const int list = kMostListed * bytes_of_pack, ranks = 8 * kMostCandidates;
  at.at = at.list + (lists ? (list > ranks ? list : ranks) : 0);
  at.end = at.at + (lists ? 4 * kMostListed : 0);
  return at;
}

__device__ inline void meet(int cluster) {
  if (cluster > 1) {
    simt::hopper::cluster_barrier();  // what blocks tell each other, and that they have begun
  } else {
    __syncthreads();  // the same of warps
  }
}

// ---- the stream ---------------------------------------------------------------------------------

/// The largest key, of its upper 16 bits, that `rank` threads of the block reach.
__device__ inline unsigned reached(unsigned key, int rank) {
  unsigned known = 0;
  for (unsigned bit = 0x80000000u; bit >= 0x10000u; bit /= 2) {
    const unsigned tried = known | bit;
    if (__syncthreads_count(key >= tried ? 1 : 0) >= rank) known = tried;
  }
  return known > kLowestKey<Dtype::fp32> ? known : kLowestKey<Dtype::fp32>;
}

/// A segment's reference in units of log2: what 2^x is relative to. Rounded, but the same wherever it is needed.
__device__ inline float reference_of(float largest, float scale) {
  return fmaxf(largest * scale, -1e38f);
}
/// The mass of a lane's numbers relative to the reference, NaN apart.
template <class Row>
__device__ float lane_mass(const typename Row::Batch& batch, float scale, float reference) {
  using Pack = typename Row::Pack;
  float sums[Row::kPacks];
#pragma unroll
  for (int p = 0; p < Row::kPacks; ++p) {
    typename Pack::Numbers x;
    Pack::unpack(batch[p], x);
    sums[p] = 0;
#pragma unroll
    for (int j = 0; j < Pack::kNumbers; ++j) {
      sums[p] += simt::exp2_approx(fmaf(x[j], scale, -reference));
    }
  }
  float sum = sums[0];
#pragma unroll
  for (int p = 1; p < Row::kPacks; ++p) sum += sums[p];
  if (sum < 64.0f) return sum;
  // A number is NaN, or the reference so large that it is rounded by 1 or more.
  sum = 0;
#pragma unroll
  for (int p = 0; p < Row::kPacks; ++p) {
    typename Pack::Numbers x;
    Pack::unpack(batch[p], x);
    for (int j = 0; j < Pack::kNumbers; ++j) {
      sum += simt::exp2_approx(fmaf(fmaxf(x[j], -INFINITY), scale, -reference));
    }
  }
  return fminf(sum, 64.0f);
}
/// Lanes' masses are added as whole numbers of 2^-21: at most 1024 numbers of weight 1.
constexpr float kUnit = 0x1p21f;

// ---- the choice ---------------------------------------------------------------------------------

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

// ---- the kernel ---------------------------------------------------------------------------------

template <class Row>
__global__ void __launch_bounds__(kMostSampleThreads, 2)
    sample_rows(simt::Global<const typename Row::Memory> logits, simt::Global<int> tokens,
                Sampling sampling) {
  using Pack = typename Row::Pack;
  using Memory = typename Row::Memory;
  constexpr Dtype kType = Row::kType;
  constexpr int kPacks = Row::kPacks;
  const int threads = static_cast<int>(blockDim.x), warps = threads / 32;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int cluster = sampling.cluster, segments = sampling.segments;
  const int rank = static_cast<int>(blockIdx.x) % cluster,
            number = static_cast<int>(blockIdx.x) / cluster;
  const Row row{logits + static_cast<std::ptrdiff_t>(number) * sampling.packs, sampling.packs,
                lane};
  const auto token = tokens + number;

  const bool lists = sampling.listed > 0, weighs = !sampling.greedy && sampling.top_k == 0;
  const Places place = places_of(warps, segments, sizeof(Memory), lists);
  const unsigned base = simt::shared_address(simt::dynamic_shared<uint4>(1));
  const auto counts = simt::dynamic_shared<unsigned>(4);
  const auto bounds = simt::dynamic_shared<Bounds>(kMostCluster, 16);
  const auto list_of = [&](auto one, int at) {
    return simt::dynamic_shared<decltype(one)>(lists ? kMostListed : 1,
                                               static_cast<std::size_t>(lists ? at : 0));
  };
  const auto list = list_of(Memory{}, place.list);
  const auto list_at = list_of(int{}, place.at);
  const auto candidates = simt::dynamic_shared<Candidate>(
      lists ? kMostCandidates : 1, static_cast<std::size_t>(lists ? place.candidates : 0));
  // Of the first block.
  const auto records = simt::hopper::remote<Mass>(base + static_cast<unsigned>(place.records), 0,
                                                  static_cast<std::size_t>(segments), "records");

  const int stride = warps * cluster;
  int segment = rank * warps + warp;
  typename Row::Batch batch;
  row.load(segment, batch);
  if (threadIdx.x < 4) counts[static_cast<int>(threadIdx.x)] = 0;
  meet(cluster);

  // 1. The stream: a segment is computed while the next one comes.
  float most = -INFINITY, least = 0;
  for (int i = 0; i * stride < segments; ++i, segment += stride) {
    typename Row::Batch next;
    row.load(segment + stride, next);
    auto of_pack = largest_in<kType>(batch[0]), of_lane = of_pack;
    decltype(of_pack) largest[kPacks] = {of_pack};
#pragma unroll
    for (int p = 1; p < kPacks; ++p) {
      largest[p] = largest_in<kType>(batch[p]);
      of_lane = larger(of_lane, largest[p]);
    }
    const float own = larger_half(of_lane);
    most = fmaxf(most, own);
    if (lists) {
      // Each warp knows 1, 2, 4 … segments, and as many are to come.
      if (i == 0 || ((i & (i + 1)) == 0 && 2 * (i + 1) * stride <= segments)) {
        least = logit_of<Dtype::fp32>(reached(key_of<Dtype::fp32>(most), sampling.listed));
      }
      if (own >= least) {
#pragma unroll
        for (int p = 0; p < kPacks; ++p) {
          if (!(larger_half(largest[p]) >= least)) continue;
          const unsigned at = atomicAdd(&counts[0], 1u);
          if (at >= kMostListed) continue;
          list[static_cast<int>(at)] = batch[p];
          list_at[static_cast<int>(at)] = row.token(segment, p);
        }
      }
    }
    if (weighs || sampling.greedy) {
      const unsigned key = __reduce_max_sync(kWholeWarp, key_of<Dtype::fp32>(own));
      unsigned mass = 0;
      if (weighs) {
        const float reference = reference_of(logit_of<Dtype::fp32>(key), sampling.scale);
        mass = __reduce_add_sync(
            kWholeWarp,
            static_cast<unsigned>(lane_mass<Row>(batch, sampling.scale, reference) * kUnit + 0.5f));
      }
      if (lane == 0 && segment < segments) records[segment] = static_cast<Mass>(mass) << 32 | key;
    }
#pragma unroll
    for (int p = 0; p < kPacks; ++p) batch[p] = next[p];
  }

  // 2. The largest logit, and candidates: all that reach a bound on the k-th largest.
  const unsigned top = __reduce_max_sync(kWholeWarp, key_of<Dtype::fp32>(most));
  if (lane == 0) atomicMax(&counts[2], top);
  if (lists) {
    unsigned bound = reached(key_of<Dtype::fp32>(most), sampling.listed);
    if (cluster > 1) {
      const int part = (sampling.listed + cluster - 1) / cluster;
      const Bounds mine{bound, reached(key_of<Dtype::fp32>(most), part)};
      if (threadIdx.x < static_cast<unsigned>(cluster)) {
        simt::hopper::remote<Bounds>(base + 16, threadIdx.x, kMostCluster, "bounds")[rank] = mine;
      }
      simt::hopper::cluster_barrier();  // all blocks' bounds must be there before any reads them
      unsigned shared = ~0u;
      for (int i = 0; i < cluster; ++i) {
        bound = max(bound, bounds[i].own);
        shared = min(shared, bounds[i].shared);
      }
      bound = max(bound, shared);
    }
    least = logit_of<Dtype::fp32>(bound);
    const unsigned count = counts[0];
    // Of a list that was full nothing is worth knowing.
    if (count > kMostListed && threadIdx.x == 0) atomicAdd(&counts[1], kMostListed);
    for (int i = static_cast<int>(threadIdx.x);
         i < static_cast<int>(min(count, unsigned{kMostListed})); i += threads) {
      typename Pack::Numbers x;
      Pack::unpack(list[i], x);
      for (int j = 0; j < Pack::kNumbers; ++j) {
        if (!(x[j] >= least)) continue;
        const unsigned at = atomicAdd(&counts[1], 1u);
        if (at >= kMostCandidates) continue;
        candidates[static_cast<int>(at)] = {key_of<kType>(x[j]), list_at[i] + j, 0};
      }
    }
  }
  meet(cluster);
  unsigned found = counts[1], top_key = counts[2];
  if (cluster > 1) {
    if (rank == 0) {
      for (unsigned block = 1; block < static_cast<unsigned>(cluster); ++block) {
        const auto theirs = simt::hopper::remote<unsigned>(base, block, 4, "counts");
        const unsigned before = found, more = theirs[1];
        found += more;
        top_key = max(top_key, static_cast<unsigned>(theirs[2]));
        if (!lists) continue;
        const auto those = simt::hopper::remote<Candidate>(
            base + static_cast<unsigned>(place.candidates), block, kMostCandidates, "candidates");
        for (unsigned i = threadIdx.x; found <= kMostCandidates && i < more; i += blockDim.x) {
          candidates[static_cast<int>(before + i)] = those[i];
        }
      }
    }
    simt::hopper::cluster_barrier();  // the first block has read: the others may end
    if (rank > 0) return;
  }

  // 3. The choice, by the first block.
  const float largest = logit_of<Dtype::fp32>(top_key);
  const auto masses = simt::dynamic_shared<Mass>(static_cast<std::size_t>(segments),
                                                 static_cast<std::size_t>(place.records));
  if (top_key <= key_of<Dtype::fp32>(-INFINITY)) {
    if (threadIdx.x == 0) token[0] = -1;
    return;
  }
  if (sampling.greedy) {
    if (warp == 0) pick_largest(row, masses, segments, largest, token);
    return;
  }
  const Weights weight{largest, sampling.scale};
  const Mass random = numeric::philox(sampling.seed, static_cast<unsigned>(number));
  const float reference = reference_of(largest, sampling.scale);
  const bool weighed = weighs && fabsf(reference) < 0x1p20f;  // and rounded by little
  Rounds rounds(warps, warp, static_cast<std::size_t>(place.told));
  if (weighed && !lists) {
    if (warp > 0) return;
    rescale(masses, segments, reference, sampling.scale);
    __syncwarp();  // all lanes' masses must be there before any lane reads them
    return pick<Row>(row, masses, segments, weight, -INFINITY, random, token);
  }
  Mass total = 0;
  if (weighed) {
    if (warp == 0) total = rescale(masses, segments, reference, sampling.scale);
    rounds.tell(total);
    total = told_sum(rounds);
  }
  if (lists && found <= kMostCandidates && (weighed || !weighs)) {
    const auto ranks =
        simt::dynamic_shared<Mass>(kMostCandidates, static_cast<std::size_t>(place.list));
    if (pick_candidate<kType>(sampling, weight, rounds, candidates, ranks, static_cast<int>(found),
                              total, random, token)) {
      return;
    }
  }
  search_row(row, sampling, weight, rounds, masses, list_of(unsigned{}, place.list), total, random,
             token);
}

}  // namespace tilestep::fusion::SIMT_BACKEND

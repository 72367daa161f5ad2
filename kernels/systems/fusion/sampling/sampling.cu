#pragma once

// Fusion: temperature, top-k, top-p and the choice of a token in one kernel. A row of logits streams once from memory
// through the registers of a cluster's warps, which keep little of it, and all that in shared memory:
//
//   records     of each segment its largest logit and its mass, the sum of 2^((x − largest) · scale), where scale is
//               log2 e / temperature: an online softmax, whose parts are brought to the row's largest logit at the end
//   a list      of packs with a logit that may be among the k largest. So many threads' largest logits so far bound
//               those from below; the bound is raised when the stream has gone twice as far, so a list stays short
//
// The first block has the records and candidates of all; then few instructions are left. Each candidate's
// rank is counted: how many are larger, and what they weigh. That says whether it is kept; and what the kept ones
// before it weigh whether it is the token. Without top-k and top-p the records lead to a segment, which is read again.
//
// Where more logits are kept than the list and the candidates have room for, the first block searches the row in
// memory: each pass narrows down the least logit that is kept to one of 256 bins (search_row). Masses of candidates are
// whole numbers and segments are the same in every launch: the token depends neither on an order nor on the launch's
// shape.

#include "kernels/systems/fusion/sampling/choice.hpp"

namespace tilestep::fusion::SIMT_BACKEND {

// ---- shared memory ------------------------------------------------------------------------------

/// A bound on the k-th largest logit as a block knows it: its own k-th; and its own k / cluster-th, which counts once
/// all blocks have as many.
struct Bounds {
  unsigned own, shared;
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
  // The first block's.
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
    // A list that was full tells nothing.
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

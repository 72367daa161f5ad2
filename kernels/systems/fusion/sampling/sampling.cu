#pragma once

// Fusion: temperature, top-k, top-p and the choice of a token in one kernel. Logits come once from memory, into the
// shared memory of a cluster; a token leaves. Three rounds of a row's warps are enough nearly always:
//
//   largest  the largest logit; and, from the warps' own largest ones, a number that k logits reach
//   mass     the sum of all weights, 2^(log2 e · (x − largest) / temperature). Logits that may be kept, which are few,
//            go to the first block
//   search   one warp finds among those what is kept, and the token
//
// Where too many may be kept, all blocks search together, a round for each bit. Weights are added as whole numbers of
// 2^-40, so that sums depend on no order.

#include <cstddef>
#include <cstdint>

#include "kernels/base/numeric/philox.hpp"
#include "kernels/base/simt/warp_rounds.hpp"
#include "kernels/systems/fusion/packs.hpp"
#include "kernels/systems/fusion/sampling/sampling.hpp"

namespace tilestep::fusion::SIMT_BACKEND {

using Mass = unsigned long long;
constexpr unsigned kWholeWarp = 0xFFFFFFFFu;

/// What a launch samples.
struct Sampling {
  int packs, cluster, slots;  ///< of a row, blocks of a row, packs of a thread
  float scale;                ///< log2 e / temperature
  int top_k;                  ///< 0: all
  Mass top_p;                 ///< in 2^-64
  bool greedy, by_mass;       ///< by_mass: top_p is below 1
  Mass seed;
};

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
__device__ inline Mass larger(Mass a, Mass b) {
  return a > b ? a : b;
}
__device__ inline Mass over_warp(Mass mine) {
  return simt::over_warp(mine, sum_of);
}

// ---- a row in a cluster -------------------------------------------------------------------------

/// What a warp tells the others of its row, in the order of their logits.
struct alignas(16) Told {
  Mass first, second;
};
using Rounds = simt::Rounds<Told>;
__device__ inline Mass first_sum(const Rounds& rounds) {
  return over_warp(rounds.part(Mass{0}, [](Mass sum, Told one) { return sum + one.first; }));
}
__device__ inline Mass second_sum(const Rounds& rounds) {
  return over_warp(rounds.part(Mass{0}, [](Mass sum, Told one) { return sum + one.second; }));
}

/// A block's shared memory, in bytes: what warps tell, a count, candidates, logits.
__host__ __device__ constexpr int count_at(int warps, int cluster) {
  return Rounds::bytes(warps, cluster);
}
__host__ __device__ constexpr int list_at(int warps, int cluster) {
  return count_at(warps, cluster) + 16;
}
__host__ __device__ constexpr int logits_at(int warps, int cluster) {
  return list_at(warps, cluster) + 16 * kMostCandidates * cluster;
}

/// A thread's logits: each warp has neighbouring packs, 32 at a time, warp after warp and block after block.
template <class Pack>
struct HeldLogits {
  simt::Shared<typename Pack::Memory> slot;
  int threads, first, mine;  ///< its first pack, and how many it has, 32 apart

  __device__ typename Pack::Memory pack(int k) const { return slot[k * threads]; }
  __device__ int index(int k) const { return (first + 32 * k) * Pack::kNumbers; }
};

/// The mass of a pack's first `count` numbers. Of a row that is not restricted it is of their sum, rounded once.
template <class Pack, bool kRestricted>
__device__ inline Mass mass_of(const typename Pack::Numbers& x, const Weights& weight, float least,
                               int count) {
  Mass mass = 0;
  float sum = 0.0f;
  for (int j = 0; j < Pack::kNumbers; ++j) {
    if constexpr (kRestricted) {
      if (j < count && x[j] >= least) mass += whole_mass(weight(x[j]));
    } else {
      if (j < count) sum += weight(x[j]);
    }
  }
  return kRestricted ? mass : whole_mass(sum);
}

/// The token at which the mass before it, in the order of tokens, is at most `target`, and beyond it more. The first
/// numbers of the last round are the warps' masses; the warp that has the token stores it.
template <class Pack, bool kRestricted>
__device__ void pick(const HeldLogits<Pack>& held, const Rounds& rounds, const Weights& weight,
                     float least, Mass target, simt::Global<int> token) {
  int i = 0;  // a lane's warps are 0, 32, … on from its own number
  const Mass before = over_warp(rounds.part(Mass{0}, [&](Mass sum, Told one) {
    const int warp = static_cast<int>(threadIdx.x % 32) + 32 * i++;
    return warp < rounds.own() ? sum + one.first : sum;
  }));
  const Mass own = rounds[rounds.own()].first;
  if (target < before || target - before >= own) return;
  target -= before;
  // Lanes have packs one after another; a lane without a pack has no mass.
  for (int k = 0;; ++k) {
    typename Pack::Numbers x;
    Mass mass = 0;
    if (k < held.mine) {
      Pack::unpack(held.pack(k), x);
      mass = mass_of<Pack, kRestricted>(x, weight, least, Pack::kNumbers);
    }
    const Mass upto = simt::up_to_lane(mass), all = __shfl_sync(kWholeWarp, upto, 31);
    if (target >= all) {
      target -= all;
      continue;
    }
    if (target >= upto - mass && target < upto) {
      int j = 1;
      while (mass_of<Pack, kRestricted>(x, weight, least, j) <= target - (upto - mass)) ++j;
      token[0] = held.index(k) + j - 1;  // [step: pick]
    }
    return;
  }
}

/// The `rank`-th largest key of the warps' second numbers, rounded down to 16 bits: so many logits are no smaller.
__device__ inline unsigned reached_by(const Rounds& rounds, int rank) {
  unsigned key = 0;
  for (int bit = 31; bit >= 16; --bit) {
    const unsigned tried = key | 1u << bit;
    const int mine =
        rounds.part(0, [&](int sum, Told one) { return sum + (one.second >= tried ? 1 : 0); });
    if (__reduce_add_sync(kWholeWarp, mine) >= rank) key = tried;
  }
  return key;
}

/// What one warp finds among the candidates: those of key `least` on are enough of them, or of their mass; token.
struct Candidates {
  unsigned address, counts;  ///< of the list; how many a block has, in lane 0 … cluster − 1
  int cluster;

  template <class Take>
  __device__ void each(Take take) const {
    for (int block = 0; block < cluster; ++block) {
      const auto list = simt::hopper::staged<uint4>(
          address + 16u * static_cast<unsigned>(block * kMostCandidates), kMostCandidates,
          "candidates");
      const unsigned count = __shfl_sync(kWholeWarp, counts, block);
      for (unsigned i = threadIdx.x % 32; i < count; i += 32) {
        const uint4 one = list[i];
        take(one.x, one.y, one.z | static_cast<Mass>(one.w) << 32);
      }
    }
  }
  __device__ int count(unsigned least) const {
    int mine = 0;
    each([&](unsigned key, unsigned, Mass) { mine += key >= least ? 1 : 0; });
    return __reduce_add_sync(kWholeWarp, mine);
  }
  /// Of tokens below `end`.
  __device__ Mass mass(unsigned least, unsigned end) const {
    Mass mine = 0;
    each([&](unsigned key, unsigned index, Mass one) {
      if (key >= least && index < end) mine += one;
    });
    return over_warp(mine);
  }
};

__device__ inline Mass needed(const Sampling& sampling, Mass total) {
  const Mass part = numeric::high_product(sampling.top_p, total);
  return part > 0 ? part : 1;
}

template <class Pack>
__global__ void __launch_bounds__(kMostSampleThreads, 2)
    sample_rows(simt::Global<const typename Pack::Memory> logits, simt::Global<int> tokens,
                Sampling sampling) {
  using Memory = typename Pack::Memory;
  constexpr Dtype kType = Pack::kDtype;
  constexpr int kNumbers = Pack::kNumbers;
  const int threads = static_cast<int>(blockDim.x), warps = threads / 32;
  const int lane = static_cast<int>(threadIdx.x % 32), cluster = sampling.cluster;
  const int row = static_cast<int>(blockIdx.x) / cluster;
  const int rank = static_cast<int>(blockIdx.x) % cluster;
  const unsigned base = simt::shared_address(simt::dynamic_shared<Told>(1));
  Rounds rounds(warps * cluster, rank * warps + static_cast<int>(threadIdx.x / 32), cluster);
  const int first = rounds.own() * sampling.slots * 32 + lane, left = sampling.packs - first;
  const HeldLogits<Pack> held{
      simt::dynamic_shared<Memory>(static_cast<std::size_t>(sampling.slots * threads),
                                   static_cast<std::size_t>(logits_at(warps, cluster))) +
          static_cast<int>(threadIdx.x),
      threads, first, left <= 0 ? 0 : min((left + 31) / 32, sampling.slots)};
  const auto count =
      simt::dynamic_shared<unsigned>(1, static_cast<std::size_t>(count_at(warps, cluster)));
  const auto token = tokens + row;

  // 1. The row comes, all of a thread's loads in flight together.
  const auto from = logits + static_cast<std::ptrdiff_t>(row) * sampling.packs;
  for (int k = 0; k < held.mine; ++k) {
    if constexpr (kNumbers > 1) {
      simt::cp_async16(held.slot + k * threads, from + (first + 32 * k));
    } else {
      held.slot[k * threads] = from[first + 32 * k];
    }
  }
  simt::cp_async_commit();
  if (threadIdx.x == 0) count[0] = 0;
  if (cluster > 1) simt::hopper::cluster_barrier();  // none may be told a number before it began
  simt::cp_async_wait<0>();

  // 2. The largest logit.
  float most = -INFINITY;
  int at = 0;
  for (int k = 0; k < held.mine; ++k) {
    typename Pack::Numbers x;
    Pack::unpack(held.pack(k), x);
    float of_pack = x[0];
    for (int j = 1; j < kNumbers; ++j) of_pack = fmaxf(of_pack, x[j]);
    if (of_pack > most) at = k;
    most = fmaxf(most, of_pack);
  }
  unsigned key = key_of<Dtype::fp32>(most);
  const unsigned warp_key = __reduce_max_sync(kWholeWarp, key);
  const auto most_told = [&] {
    return simt::over_warp(
        rounds.part(Mass{0}, [](Mass sum, Told one) { return larger(sum, one.first); }), larger);
  };
  if (sampling.greedy) {
    unsigned index = ~0u;
    if (most > -INFINITY) {
      typename Pack::Numbers x;
      Pack::unpack(held.pack(at), x);
      for (int j = kNumbers - 1; j >= 0; --j) {
        if (x[j] == most) index = static_cast<unsigned>(held.index(at) + j);
      }
    }
    // Of equal logits the first: the largest of what is left to the end.
    const unsigned rest = __reduce_max_sync(kWholeWarp, key == warp_key ? ~index : 0u);
    rounds.tell({static_cast<Mass>(warp_key) << 32 | rest, 0});
    const Mass best = most_told();
    if (rank == 0 && threadIdx.x == 0) token[0] = static_cast<int>(~static_cast<unsigned>(best));
    return;
  }
  // Of each warp the n-th largest of its lanes' largest logits: of the k / n-th warp's n times as many are no smaller.
  const int n = (sampling.top_k + rounds.all() - 1) / rounds.all();
  unsigned nth = warp_key;
  for (int i = 1; i < n && i < 32; ++i) {
    const unsigned has = __ballot_sync(kWholeWarp, key == nth ? 1 : 0);
    if (lane == __ffs(static_cast<int>(has)) - 1) key = 0;
    nth = __reduce_max_sync(kWholeWarp, key);
  }
  rounds.tell({warp_key, n > 32 ? 0u : nth});
  const auto top = static_cast<unsigned>(most_told());
  const float largest = logit_of<Dtype::fp32>(top);
  if (largest == -INFINITY) {
    if (rank == 0 && threadIdx.x == 0) token[0] = -1;
    return;
  }
  const Weights weight{largest, sampling.scale};

  // 3. The mass of all logits, and those that may be kept.
  const bool by_count = sampling.top_k > 0, restricted = by_count || sampling.by_mass;
  float least = INFINITY;
  if (by_count) {
    const unsigned reached = reached_by(rounds, (sampling.top_k + n - 1) / n);
    least = logit_of<Dtype::fp32>(max(reached, kLowestKey<Dtype::fp32>));
  } else if (sampling.by_mass) {
    least = largest - 10.0f / sampling.scale;  // 2^-10 of the largest weight: seldom too many
  }
  Mass total = 0, upper = 0;
  for (int k = 0; k < held.mine; ++k) {
    typename Pack::Numbers x;
    Pack::unpack(held.pack(k), x);
    if (!by_count) total += mass_of<Pack, false>(x, weight, 0.0f, kNumbers);
    if (!restricted) continue;
    float of_pack = x[0];
    for (int j = 1; j < kNumbers; ++j) of_pack = fmaxf(of_pack, x[j]);
    if (!(of_pack >= least)) continue;
    for (int j = 0; j < kNumbers; ++j) {
      if (!(x[j] >= least)) continue;
      const Mass mass = whole_mass(weight(x[j]));
      upper += mass;
      const unsigned place = atomicAdd(&count[0], 1u);
      if (place >= kMostCandidates) continue;
      simt::hopper::remote<uint4>(
          base + static_cast<unsigned>(list_at(warps, cluster) + 16 * kMostCandidates * rank), 0,
          kMostCandidates, "candidates")[place] =
          make_uint4(key_of<kType>(x[j]), static_cast<unsigned>(held.index(k) + j),
                     static_cast<unsigned>(mass), static_cast<unsigned>(mass >> 32));
    }
  }
  rounds.tell({over_warp(total), over_warp(upper)});
  total = first_sum(rounds);
  const Mass random = numeric::philox(sampling.seed, static_cast<unsigned>(row));
  if (!restricted) {
    return pick<Pack, false>(held, rounds, weight, 0.0f, numeric::high_product(random, total),
                             token);
  }

  // 4. What is kept, by one warp if it is among the candidates.
  const unsigned top_key = key_of<kType>(largest);
  unsigned kept = kLowestKey<kType>;
  const unsigned counted =
      simt::hopper::remote<unsigned>(base + static_cast<unsigned>(count_at(warps, cluster)),
                                     static_cast<unsigned>(lane % cluster), 1, "a count")[0];
  if (__reduce_max_sync(kWholeWarp, counted) <= kMostCandidates &&
      (by_count || second_sum(rounds) >= needed(sampling, total))) {
    if (cluster > 1) simt::hopper::cluster_barrier();  // counts have been read: blocks may end
    if (rank > 0 || threadIdx.x >= 32) return;
    const Candidates all{base + static_cast<unsigned>(list_at(warps, cluster)), counted, cluster};
    constexpr unsigned kEnd = ~0u;
    kept = key_of<kType>(least);  // enough are candidates
    if (by_count) {
      kept = largest_of(kept, top_key,
                        [&](unsigned tried) { return all.count(tried) >= sampling.top_k; });
      total = all.mass(kept, kEnd);
    }
    if (sampling.by_mass) {
      const Mass need = needed(sampling, total);
      kept =
          largest_of(kept, top_key, [&](unsigned tried) { return all.mass(tried, kEnd) >= need; });
    }
    const Mass target = numeric::high_product(random, all.mass(kept, kEnd));
    const unsigned found = largest_of(0, static_cast<unsigned>(sampling.packs * kNumbers - 1),
                                      [&](unsigned end) { return all.mass(kept, end) <= target; });
    if (lane == 0) token[0] = static_cast<int>(found);
    return;
  }
  // By all blocks, a round for each number that is tried.
  const auto measure = [&](unsigned tried) {
    const float from_here = logit_of<kType>(tried);
    int mine = 0;
    Mass mass = 0;
    for (int k = 0; k < held.mine; ++k) {
      typename Pack::Numbers x;
      Pack::unpack(held.pack(k), x);
      for (int j = 0; j < kNumbers; ++j) mine += x[j] >= from_here ? 1 : 0;
      mass += mass_of<Pack, true>(x, weight, from_here, kNumbers);
    }
    rounds.tell({over_warp(mass), static_cast<Mass>(__reduce_add_sync(kWholeWarp, mine))});
  };
  if (by_count) {
    kept = largest_of(kept, top_key, [&](unsigned tried) {
      measure(tried);
      return second_sum(rounds) >= static_cast<Mass>(sampling.top_k);
    });
    measure(kept);
    total = first_sum(rounds);
  }
  if (sampling.by_mass) {
    const Mass need = needed(sampling, total);
    kept = largest_of(kept, top_key, [&](unsigned tried) {
      measure(tried);
      return first_sum(rounds) >= need;
    });
  }
  measure(kept);
  pick<Pack, true>(held, rounds, weight, logit_of<kType>(kept),
                   numeric::high_product(random, first_sum(rounds)), token);
}

}  // namespace tilestep::fusion::SIMT_BACKEND

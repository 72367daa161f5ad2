#pragma once

// Fusion: steps of a chain on rows, in one kernel or in several.
//
//   add       h = x + residual, rounded; h is stored, the next layer needs it
//   norm      n = h · gain / √(mean of h² + ε), rounded
//   quantize  E4M3 codes of n, and the row's scale: its largest magnitude / 448
//
// One source for all of them: a launch has one step or several. A row stays in the registers of its block from the one
// load to the last store, so that a step which follows in the same launch moves nothing. Arrays are row-major.

#include <cstddef>
#include <cstdint>

#include "kernels/base/numeric/float_format.hpp"
#include "kernels/systems/fusion/packs.hpp"

namespace tilestep::fusion::SIMT_BACKEND {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr int kMostWarps = 32;

/// Parts known to the compiler, which leaves the others out.
template <First kFirstPart, bool kNormPart, bool kQuantizePart>
struct Compiled {
  static constexpr First first = kFirstPart;
  static constexpr bool norm = kNormPart, quantize = kQuantizePart;
};

/// The arrays of a launch as its kernel has them.
template <class Pack>
struct Arrays {
  simt::Global<const typename Pack::Memory> first, second, gain;
  simt::Global<typename Pack::Memory> sum, out;
  simt::Global<typename Pack::Codes> codes;
  simt::Global<float> scale;
};

/// The rows of a launch.
struct Rows {
  int rows, width;
  float per_width;  ///< 1 / width
  int cluster;      ///< blocks of a row
};

/// A row's sum, and its largest magnitude.
struct Reduced {
  float sum, most;
};
/// Over groups of `lanes` lanes of a warp, a power of two. Magnitudes are compared as whole numbers, which have the same
/// order: that takes one instruction for the warp.
__device__ inline Reduced over_lanes(Reduced mine, int lanes, Break broken) {
  for (int apart = lanes / 2; apart > 0; apart /= 2) {
    mine.sum += __shfl_xor_sync(kAllLanes, mine.sum, apart);
    if (broken == Break::fp16_sum) mine.sum = numeric::Fp16::round(mine.sum);
  }
  mine.most = __uint_as_float(__reduce_max_sync(kAllLanes, __float_as_uint(mine.most)));
  return mine;
}

/// Over all threads of a row: warps by shared memory, the blocks of a cluster by each other's.
__device__ inline Reduced over_row(Reduced mine, int cluster, Break broken) {
  const unsigned address = simt::shared_address(simt::dynamic_shared<float>(2 * kMostWarps + 2));
  const auto slots =
      simt::hopper::staged<float>(address, 2 * kMostWarps + 2, "the warps' sums and maxima");
  const int lane = static_cast<int>(threadIdx.x % 32), warps = static_cast<int>(blockDim.x / 32);
  const int first = static_cast<int>(threadIdx.y) * warps;  // of the row
  mine = over_lanes(mine, 32, broken);
  if (lane == 0) {
    slots[2 * (first + static_cast<int>(threadIdx.x / 32))] = mine.sum;
    slots[2 * (first + static_cast<int>(threadIdx.x / 32)) + 1] = mine.most;
  }
  __syncthreads();  // every warp's pair must be written before any warp reads the pairs
  const int pair = 2 * (first + (lane & (warps - 1)));
  mine = over_lanes({slots[pair], slots[pair + 1]}, warps, broken);
  if (cluster == 1) return mine;
  if (threadIdx.x == 0) {
    slots[2 * kMostWarps] = mine.sum;
    slots[2 * kMostWarps + 1] = mine.most;
  }
  simt::hopper::
      cluster_barrier();  // every block's pair must be written before another block reads it
  // A lane for each block, so that the blocks' pairs come together.
  const auto there =
      simt::hopper::remote<float>(address, static_cast<unsigned>(lane & (cluster - 1)),
                                  2 * kMostWarps + 2, "another block's pair");
  const Reduced one = {there[2 * kMostWarps], there[2 * kMostWarps + 1]};
  mine = {0.0f, 0.0f};
  for (int block = 0; block < cluster; ++block) {
    mine.sum += __shfl_sync(kAllLanes, one.sum, block);
    mine.most = fmaxf(mine.most, __shfl_sync(kAllLanes, one.most, block));
  }
  return mine;
}

template <class Pack>
__device__ inline float squares_added(float sum, const typename Pack::Numbers& h) {
  for (int j = 0; j < Pack::kNumbers; ++j) sum = fmaf(h[j], h[j], sum);
  return sum;
}

/// The part of shared memory that holds a thread's packs: each thread's are its own, so that no barrier is needed.
constexpr std::size_t kStashAt = 512;
template <class Pack>
__device__ inline auto stash_of(int packs) {
  return simt::dynamic_shared<typename Pack::Memory>(static_cast<std::size_t>(packs) * blockDim.x,
                                                     kStashAt) +
         (packs > 0 ? threadIdx.x : 0);
}

/// The numbers of a pack, if they are among those that are shown.
template <class Pack, class Tape>
__device__ inline void note_shown(const Tape& tape, Site site, int i,
                                  const typename Pack::Memory& pack) {
  if constexpr (Tape::kRecords) {
    if (i * Pack::kNumbers >= kShownNumbers) return;
    typename Pack::Numbers n;
    Pack::unpack(pack, n);
    for (int j = 0; j < Pack::kNumbers && i * Pack::kNumbers + j < kShownNumbers; ++j) {
      tape.note(site, i * Pack::kNumbers + j, n[j]);
    }
  }
}

__device__ inline float silu(float x) {
  constexpr float kLog2e = 1.4426950408889634f;
  return __fdividef(x, 1.0f + simt::exp2_approx(-kLog2e * x));
}

/// Where a thread is in its row.
struct Place {
  int row, first, apart;  ///< its packs are first, first + apart, …
};
/// A cluster has a power of two of blocks, and so has a block of warps: dividing would cost as much as a row's sums.
__device__ inline Place place_of(int cluster) {
  const int block = static_cast<int>(blockIdx.x), threads = static_cast<int>(blockDim.x);
  const int rank = block & (cluster - 1);
  return {(block >> (__ffs(cluster) - 1)) * static_cast<int>(blockDim.y) +
              static_cast<int>(threadIdx.y),
          rank * threads + static_cast<int>(threadIdx.x), cluster * threads};
}

/// A row is the work of blockDim.x threads in each of `cluster` blocks; a block has blockDim.y rows. A thread takes
/// kPacks packs at a time. They stay in its registers, if that is all of them, or in shared memory (kShared). Where there
/// are registers for it (kKeeps), a thread keeps h · gain, which the norm divides, as numbers; otherwise it unpacks and
/// multiplies once more.
template <class Pack, int kPacks, bool kShared, bool kKeeps, class Steps, class Tape>
__device__ void row_chain(const Arrays<Pack>& arrays, const Rows& rows, Steps parts, Break broken,
                          const Tape& tape) {
  constexpr int kNumbers = Pack::kNumbers;
  const Place place = place_of(rows.cluster);
  const int packs = rows.width / kNumbers;
  const bool is_row = place.row < rows.rows;
  const std::ptrdiff_t start = static_cast<std::ptrdiff_t>(is_row ? place.row : 0) * packs;
  const int end = is_row ? packs : 0;  // a row past the last has no packs
  const int batches = kShared ? (packs + kPacks * place.apart - 1) / (kPacks * place.apart) : 1;
  const bool adds = parts.first == First::add, gates = parts.first == First::swiglu;
  const auto first = tape.traced(arrays.first + (gates ? 2 * start : start), kFirst);
  const auto second = tape.traced(
      gates ? arrays.first + (2 * start + packs) : arrays.second + (adds ? start : 0), kSecond);
  const auto gain = tape.traced(arrays.gain, kGain);
  const auto sum = tape.traced(arrays.sum + (adds ? start : 0), kSum);
  const auto stash = stash_of<Pack>(kShared ? batches * kPacks : 0);

  // 1. The row comes, several loads of a thread in flight together, and stays.
  typename Pack::Memory held[kPacks];
  float kept[kKeeps ? kPacks : 1][kNumbers];
  Reduced mine = {0.0f, 0.0f};
  for (int batch = 0; batch < batches; ++batch) {
    const int from = place.first + batch * kPacks * place.apart;
    typename Pack::Memory other[kPacks], gains[kPacks];
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int i = from + k * place.apart;
      if (i < end) held[k] = first[i];
      if ((adds || gates) && i < end) other[k] = second[i];
      if (kKeeps && parts.norm && i < end) gains[k] = gain[i];
    }
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int i = from + k * place.apart;
      if (i >= end) continue;
      typename Pack::Numbers h, b, g;
      Pack::unpack(held[k], h);
      const bool early = Tape::kRecords && broken == Break::stats_before_residual;
      if (early) mine.sum = squares_added<Pack>(mine.sum, h);
      if (adds || gates) {
        Pack::unpack(other[k], b);
        for (int j = 0; j < kNumbers; ++j)
          h[j] = gates ? silu(h[j]) * b[j] : h[j] + b[j];  // [step: add]
        held[k] = Pack::pack(h);  // rounded as if it had been stored and read back
        Pack::unpack(held[k], h);
      }
      if (adds) sum[i] = held[k];
      note_shown<Pack>(tape, kHeld, i, held[k]);
      if constexpr (kShared) stash[(batch * kPacks + k) * static_cast<int>(blockDim.x)] = held[k];
      // 2. Sum of squares and largest magnitude, both in one round: dividing by the norm, which is positive, changes no
      // order, so that the largest number before it is also the largest after it.
      if (parts.norm && !early) {
        if (Tape::kRecords && broken == Break::fp16_sum) {
          for (int j = 0; j < kNumbers; ++j)
            mine.sum = numeric::Fp16::round(fmaf(h[j], h[j], mine.sum));
        } else {
          mine.sum = squares_added<Pack>(mine.sum, h);  // [step: squares]
        }
      }
      if (!kKeeps && !parts.quantize) continue;
      if (parts.norm) {
        if (!kKeeps) gains[k] = gain[i];
        Pack::unpack(gains[k], g);
        for (int j = 0; j < kNumbers; ++j) h[j] *= g[j];
      }
      for (int j = 0; j < kNumbers; ++j) {
        if (kKeeps) kept[k][j] = h[j];
        if (parts.quantize) mine.most = fmaxf(mine.most, fabsf(h[j]));
      }
    }
  }
  if (adds && !parts.norm && !parts.quantize) return;
  if (parts.norm || parts.quantize) mine = over_row(mine, rows.cluster, broken);
  const float mean = fmaf(mine.sum, rows.per_width, kEpsilon);
  const float inverse = parts.norm ? 1.0f / sqrtf(mean) : 1.0f;  // [step: norm]

  // 3. The largest number, rounded as the others will be, is the row's scale.
  typename Pack::Numbers largest = {};
  largest[0] = mine.most * inverse;
  const typename Pack::Memory rounded = Pack::pack(largest);
  Pack::unpack(rounded, largest);
  const float scale = largest[0] * (1.0f / kLargestCode);  // [step: scale]
  const float to_code = largest[0] > 0.0f ? kLargestCode / largest[0] : 0.0f;
  if (Tape::kRecords && place.first == 0) {
    tape.note(kStats, 0, RowStats{mine.sum, inverse, largest[0], scale});
  }

  // 4. What the launch is for leaves the chip.
  const auto out = tape.traced(arrays.out + (parts.quantize ? 0 : start), kOut);
  const auto codes = tape.traced(arrays.codes + (parts.quantize ? start : 0), kCodes);
  for (int batch = 0; batch < batches; ++batch) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const int i = place.first + (batch * kPacks + k) * place.apart;
      if (i >= end) continue;
      typename Pack::Numbers n, g;
      if constexpr (kShared) held[k] = stash[(batch * kPacks + k) * static_cast<int>(blockDim.x)];
      if constexpr (!kKeeps) Pack::unpack(held[k], n);
      if (!kKeeps && parts.norm) Pack::unpack(gain[i], g);
      for (int j = 0; j < kNumbers; ++j) {
        if constexpr (kKeeps) {
          n[j] = kept[k][j];
        } else if (parts.norm) {
          n[j] *= g[j];
        }
        if (parts.norm) n[j] *= inverse;
      }
      const typename Pack::Memory result = Pack::pack(n);
      note_shown<Pack>(tape, kNormed, i, result);
      if (!parts.quantize) {
        out[i] = result;
        continue;
      }
      Pack::unpack(result, n);
      for (int j = 0; j < kNumbers; ++j) n[j] *= to_code;
      codes[i] = Pack::codes(n);  // [step: quantize]
    }
  }
  if (parts.quantize && is_row && place.first == 0) {
    tape.traced(arrays.scale, kScale)[place.row] = scale;
  }
  if (rows.cluster > 1)
    simt::hopper::cluster_barrier();  // no block ends while another reads its pair
}

constexpr bool keeps(int packs, bool shared) {
  return !shared && packs <= 2;
}
/// Threads of a block that has registers for more.
constexpr int kFewThreads = 256;

/// The timed kernel.
template <class Pack, int kPacks, bool kShared, class Steps>
__global__ void __launch_bounds__(kMostThreads)
    rows_kernel(Arrays<Pack> arrays, Rows rows, Steps parts) {
  row_chain<Pack, kPacks, kShared, keeps(kPacks, kShared)>(arrays, rows, parts, Break::none,
                                                           simt::NoTape{});
}
/// With as many registers for each as its four packs take as numbers.
template <class Pack, class Steps>
__global__ void __launch_bounds__(kFewThreads)
    few_kernel(Arrays<Pack> arrays, Rows rows, Steps parts) {
  row_chain<Pack, 4, false, true>(arrays, rows, parts, Break::none, simt::NoTape{});
}

/// The explained one: the same for a single row.
template <class Pack, int kPacks, bool kShared>
__global__ void explained_kernel(Arrays<Pack> arrays, Rows rows, Parts parts, Break broken,
                                 simt::Tape tape) {
  row_chain<Pack, kPacks, kShared, keeps(kPacks, kShared)>(arrays, rows, parts, broken, tape);
}

/// Few threads that hold much: no limit on registers but the hardware's.
template <int kValues>
__global__ void holding_kernel(Arrays<Wide<Dtype::bf16>> arrays, Rows rows) {
  row_chain<Wide<Dtype::bf16>, kValues / 8, false, keeps(kValues / 8, false)>(
      arrays, rows, Compiled<First::add, true, true>{}, Break::none, simt::NoTape{});
}

}  // namespace tilestep::fusion::SIMT_BACKEND

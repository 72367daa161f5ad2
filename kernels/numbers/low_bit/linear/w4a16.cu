#pragma once

// Y = X · W^T with W in INT4, a scale for 128 weights, and X and Y in BF16 (W4A16). Codes become BF16 in registers; the
// tensor cores add up a group's products, and its scale multiplies the sum.
//
//   arrange   W's codes, as `quantize` writes them, into the order in which lanes need them
//   gemv      up to 8 rows of X: mma.m16n8k16, a block has 16 or 32 rows of W
//   gemm      any number of rows: wgmma with W as the operand in registers and X from shared memory. A producer copies
//             ahead; two consumers have 64 rows of W each. The blocks of a cluster share the groups of the same tile and
//             add up their sums through each other's shared memory
//
// A fragment of W: 16 rows × 64 columns, 16 bytes of each lane, a word for each step of 16 columns.

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/hopper.hpp"
#include "kernels/base/simt/packed.hpp"
#include "kernels/numbers/low_bit/linear/launches.hpp"

namespace tilestep::low_bit::SIMT_BACKEND {

using namespace simt::hopper;

// ---- a word of codes ----------------------------------------------------------------------------

/// Register i of mma's A has the codes in bits 4i … 4i+3 and 16 higher; a code is stored plus 8.
__device__ __forceinline__ unsigned place_codes(unsigned low, unsigned high, int i) {
  return (low ^ 8u) << 4 * i | (high ^ 8u) << (16 + 4 * i);
}
/// 0x4300 is 128 in BF16, whose last bits count ones there: with the code in them, less 136, it is the code.
__device__ __forceinline__ void codes_to_bf16(unsigned word, unsigned (&a)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned raised = simt::mask_and_turn(word >> 4 * i, 0x000F000Fu, 0x43004300u);
    a[i] = simt::fma_bf16x2(raised, 0x3F803F80u, 0xC308C308u);
  }
}

/// A thread has a lane's 16 bytes of a fragment.
__global__ void arrange(simt::Global<const std::uint8_t> codes,
                        simt::Global<const std::uint16_t> scales, Matrix matrix,
                        simt::Global<uint4> arranged, simt::Global<std::uint16_t> pairs) {
  const int place = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int lane = place % 32, fragment = place / 32;
  const int across = matrix.columns / kFragmentColumns;
  if (fragment >= matrix.rows / kFragmentRows * across) return;
  const int row = fragment / across * kFragmentRows + lane / 4;
  const int column = fragment % across * kFragmentColumns + lane % 4 * 2;
  unsigned words[4] = {};
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < 4; ++i) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row + i % 2 * 8) * matrix.columns +
                                column + step * 16 + i / 2 * 8;
      const unsigned both = codes[at / 2];
      words[step] |= place_codes(both & 15, both >> 4, i);
    }
  }
  arranged[place] = make_uint4(words[0], words[1], words[2], words[3]);
  if (fragment % across % 2 == 0 && lane % 4 < 2) {
    const int groups = matrix.columns / kGroupColumns, group = fragment % across / 2;
    const int of = row + lane % 4 * 8;
    pairs[((fragment / across * groups + group) * 8 + lane / 4) * 2 + lane % 4] =
        scales[of * groups + group];
  }
}

/// Adds up all words, each thread some: as fast as memory is read. `count` is a multiple of 4 · threads.
__global__ void read_words(simt::Global<const uint4> words, int count,
                           simt::Global<unsigned> sums) {
  const int threads = static_cast<int>(gridDim.x * blockDim.x);
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  unsigned sum = 0;
#pragma unroll 8
  for (int i = thread; i < count / 4; i += threads) {
    const uint4 four = words[i];
    sum += four.x + four.y + four.z + four.w;
  }
  sums[thread] = sum;
}

// ---- few rows of X ------------------------------------------------------------------------------

/// A warp's own piece of shared memory: 128 columns of 8 rows of X, in chunks of 16 bytes, each row's turned by its number
/// so that ldmatrix meets all banks.
using Pieces = simt::Shared<std::uint16_t>;
__device__ __forceinline__ int place_of(int row, int chunk) {
  return row * kGroupColumns + (chunk ^ row) * 8;
}

__device__ __forceinline__ unsigned word_of(const uint4& four, int i) {
  return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

/// What a lane has of a group: of kFragments fragments of 16 rows of W.
template <int kFragments>
struct GroupOfLane {
  uint4 codes[kFragments][2];
  unsigned scales[kFragments];
};

/// A warp of the GEMV: where its lane's part of a tile begins, and of X.
template <int kFragments>
struct Lane {
  simt::Global<const uint4> codes;
  simt::Global<const unsigned> scales;
  simt::Global<const std::uint16_t> x;
  int groups, columns, batch;

  __device__ __forceinline__ Lane(const LinearArrays& w, const LinearShape& shape)
      : codes(w.codes +
              static_cast<std::ptrdiff_t>(blockIdx.x) * kFragments *
                  (shape.columns / kGroupColumns) * 64 +
              threadIdx.x % 32),
        scales(w.scales +
               static_cast<std::ptrdiff_t>(blockIdx.x) * kFragments *
                   (shape.columns / kGroupColumns) * 8 +
               threadIdx.x % 32 / 4),
        x(w.x + threadIdx.x % 16 * 8),
        groups(shape.columns / kGroupColumns),
        columns(shape.columns),
        batch(shape.batch) {}

  __device__ __forceinline__ void load(GroupOfLane<kFragments>& to, int group) const {
#pragma unroll
    for (int i = 0; i < kFragments; ++i) {
      const int at = i * groups + group;
      to.codes[i][0] = codes[at * 64];
      to.codes[i][1] = codes[at * 64 + 32];
      to.scales[i] = scales[at * 8];
    }
  }
  /// Starts the copy of a group's columns of X, two rows at a time.
  __device__ __forceinline__ void fetch_x(Pieces piece, int group) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < kGemvBatch / 2; ++i) {
      const int row = 2 * i + lane / 16;
      if (2 * i >= batch) break;  // nobody reads what the other rows' products come to
      simt::cp_async16(piece + place_of(row, lane % 16),
                       x + (row < batch ? row : 0) * columns + group * kGroupColumns);
    }
  }
};

/// Adds a group's products of the fragments' rows of W and 8 of X.
template <int kFragments>
__device__ __forceinline__ void add_group(float (&sums)[kFragments][4],
                                          const GroupOfLane<kFragments>& group, Pieces x) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float products[kFragments][4] = {};
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    unsigned b[4];
    simt::ldmatrix_x4(b, x + place_of(lane % 8, 4 * pair + lane / 8));
#pragma unroll
    for (int step = 0; step < 2; ++step) {
#pragma unroll
      for (int i = 0; i < kFragments; ++i) {
        unsigned a[4];
        codes_to_bf16(word_of(group.codes[i][pair / 2], pair % 2 * 2 + step), a);
        simt::mma_m16n8k16_bf16(products[i], a, b[2 * step], b[2 * step + 1]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kFragments; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      sums[i][j] += products[i][j] * simt::unpack_fp16(group.scales[i], j / 2);
    }
  }
}

/// A block has a tile of W, its warps every kWarps-th group of it; two of a warp are on their way. The first ones' codes,
/// which no launch before writes, are asked for while that one still runs.
template <int kFragments, int kWarps>
__global__ void __launch_bounds__(kWarps * 32, 32 / kWarps - (kFragments == 2 ? 1 : 0))
    gemv_w4a16(LinearArrays w, LinearShape shape, simt::Global<std::uint16_t> y) {
  constexpr int kRows = kFragments * kFragmentRows, kSums = kRows * kGemvBatch;
  __shared__ simt::Array<float, kWarps * kSums> parts;
  const Pieces pieces =
      simt::dynamic_shared<std::uint16_t>(static_cast<std::size_t>(kWarps * 2 * kPiece), 0, "X");
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  const Lane<kFragments> from(w, shape);
  const Pieces mine = pieces + warp * 2 * kPiece;
  others_may_begin();
  float sums[kFragments][4] = {};
  GroupOfLane<kFragments> ahead[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (warp + i * kWarps < from.groups) from.load(ahead[i], warp + i * kWarps);
  }
  await_launch_before();
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (warp + i * kWarps < from.groups) from.fetch_x(mine + i * kPiece, warp + i * kWarps);
    simt::cp_async_commit();
  }
  for (int first = warp; first < from.groups; first += 2 * kWarps) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int group = first + i * kWarps, next = group + 2 * kWarps;
      if (group >= from.groups) break;
      simt::cp_async_wait<1>();
      __syncwarp();  // X of all lanes is there
      add_group<kFragments>(sums, ahead[i], mine + i * kPiece);
      __syncwarp();  // and read
      if (next < from.groups) {
        from.load(ahead[i], next);
        from.fetch_x(mine + i * kPiece, next);
      }
      simt::cp_async_commit();
    }
  }
#pragma unroll
  for (int i = 0; i < kFragments; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int row = i * kFragmentRows + lane / 4 + j / 2 * 8, n = lane % 4 * 2 + j % 2;
      parts[warp * kSums + n * kRows + row] = sums[i][j];
    }
  }
  __syncthreads();
  const int n = thread / kRows;
  if (n >= shape.batch || n >= kGemvBatch) return;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) sum += parts[i * kSums + thread];
  y[n * shape.rows + static_cast<int>(blockIdx.x) * kRows + thread % kRows] =
      static_cast<std::uint16_t>(simt::pack_bf16(sum, 0.0f));
}

// ---- many rows of X -----------------------------------------------------------------------------

/// Shared memory: stages of a group's codes, then X, in panels of 64 columns; then the barriers.
template <int kN>
struct LinearStages {
  static constexpr int kCodes = kLinearRows * kGroupColumns / 2;
  static constexpr int kPanel = kN * 128;
  static constexpr int kBytes = kCodes + 2 * kPanel;
  static constexpr int kStages = linear_stages(kN);
  unsigned base;

  __device__ __forceinline__ unsigned codes(int stage) const {
    return base + static_cast<unsigned>(stage * kBytes);
  }
  __device__ __forceinline__ unsigned x(int stage, int panel) const {
    return codes(stage) + static_cast<unsigned>(kCodes + panel * kPanel);
  }
  __device__ __forceinline__ unsigned full(int stage) const {
    return codes(kStages) + static_cast<unsigned>(stage * 8);
  }
  __device__ __forceinline__ unsigned empty(int stage) const { return full(kStages + stage); }
};

/// Of a block: its tile, and which of the tile's groups.
struct Share {
  int rows, batch;  ///< the first
  int group, groups;
};

template <int kN>
__device__ __forceinline__ void produce(const LinearMaps& maps, const LinearStages<kN>& stages,
                                        const Share& share) {
  using S = LinearStages<kN>;
  const auto fetch_codes = [&](int i) {
    const int stage = i % S::kStages;
    arrive_expecting(stages.full(stage), S::kBytes);
    fetch(maps.codes, stages.codes(stage), stages.full(stage),
          (share.group + i) * kGroupColumns * 2, share.rows / kFragmentRows);
  };
  const auto fetch_x = [&](int i) {
    const int stage = i % S::kStages, column = (share.group + i) * kGroupColumns;
    fetch(maps.x, stages.x(stage, 0), stages.full(stage), column, share.batch);
    fetch(maps.x, stages.x(stage, 1), stages.full(stage), column + 64, share.batch);
  };
  // Codes do not depend on the launch before, which may still run.
  const int first = share.groups < S::kStages ? share.groups : S::kStages;
  for (int i = 0; i < first; ++i) fetch_codes(i);
  await_launch_before();
  for (int i = 0; i < first; ++i) fetch_x(i);
  for (int i = first; i < share.groups; ++i) {
    wait_for(stages.empty(i % S::kStages), static_cast<unsigned>(i / S::kStages & 1) ^ 1u);
    fetch_codes(i);
    fetch_x(i);
  }
}

/// A group's codes in BF16: a consumer's operand in registers.
struct GroupInBf16 {
  unsigned codes[8][4];
  unsigned scales;
};

/// A consumer's part of a block: 64 rows of W and kN of X.
template <int kN>
struct Consumer {
  using S = LinearStages<kN>;
  using Sums = float[kN / 2];
  S stages;
  simt::Global<const unsigned> scales;  ///< of its lane's rows, from the first group on
  Share share;
  int consumer;

  /// Waits for the group's stage and makes numbers of its codes.
  __device__ __forceinline__ void prepare(GroupInBf16& to, int i) const {
    const int thread = static_cast<int>(threadIdx.x) % 128, stage = i % S::kStages;
    to.scales = scales[8 * i];
    wait_for(stages.full(stage), static_cast<unsigned>(i / S::kStages & 1));
    const auto codes = staged<uint4>(stages.codes(stage), S::kCodes / 16, "codes");
    const int at = (consumer * 8 + thread / 32 * 2) * 32 + thread % 32;
    const uint4 loaded[2] = {codes[at], codes[at + 32]};
#pragma unroll
    for (int step = 0; step < 8; ++step) {
      codes_to_bf16(word_of(loaded[step / 4], step % 4), to.codes[step]);
    }
  }
  __device__ __forceinline__ void issue(Sums& products, const GroupInBf16& group, int i) const {
    wgmma_begin();
#pragma unroll
    for (int step = 0; step < 8; ++step) {
      const std::uint64_t x = descriptor<128>(stages.x(i % S::kStages, step / 4)) +
                              static_cast<std::uint64_t>(step % 4 * kWgmmaBytes / 16);
      wgmma<simt::hopper::Format::bf16, kN>(products, group.codes[step], x, step == 0);
    }
    wgmma_commit();
  }
  /// Waits for the products, releases the stage and adds them up.
  __device__ __forceinline__ void finish(Sums& sums, Sums& products, const GroupInBf16& group,
                                         int i) const {
    wgmma_wait<0>();
    settle(products);
    __syncwarp();  // its other lanes have read their codes
    if (threadIdx.x % 32 == 0) arrive(stages.empty(i % S::kStages));
    const float s[2] = {simt::unpack_fp16(group.scales, 0), simt::unpack_fp16(group.scales, 1)};
#pragma unroll
    for (int j = 0; j < kN / 2; ++j) sums[j] += products[j] * s[j / 2 % 2];
  }

  __device__ __forceinline__ void multiply(Sums& sums) const {
    Sums products;
    if constexpr (linear_blocks(kN) == 1) {
      // While a group's products run, the next one's codes become numbers.
      GroupInBf16 even, odd;
      prepare(even, 0);
      for (int i = 0; i < share.groups; i += 2) {
        issue(products, even, i);
        if (i + 1 < share.groups) prepare(odd, i + 1);
        finish(sums, products, even, i);
        if (i + 1 >= share.groups) break;
        issue(products, odd, i + 1);
        if (i + 2 < share.groups) prepare(even, i + 2);
        finish(sums, products, odd, i + 1);
      }
    } else {
      // Registers hold one group: other consumers' products run meanwhile.
      GroupInBf16 group;
      for (int i = 0; i < share.groups; ++i) {
        prepare(group, i);
        issue(products, group, i);
        finish(sums, products, group, i);
      }
    }
  }
};

/// Accumulator `j` of a thread, to Y.
__device__ __forceinline__ void store_sum(simt::Global<std::uint16_t> y, const LinearShape& shape,
                                          const Share& share, int consumer, int j, float sum) {
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  const int row = share.rows + consumer * kWgmmaRows + thread / 32 * 16 + lane / 4 + j / 2 % 2 * 8;
  const int n = share.batch + j / 4 * 8 + lane % 4 * 2 + j % 2;
  if (n >= shape.batch) return;
  y[static_cast<std::ptrdiff_t>(n) * shape.rows + row] =
      static_cast<std::uint16_t>(simt::pack_bf16(sum, 0.0f));
}

template <int kN, int kSplits>
__global__ void __launch_bounds__(3 * 128, linear_blocks(kN))
    gemm_w4a16(const __grid_constant__ LinearMaps maps, simt::Global<const unsigned> scales,
               LinearShape shape, int shared_bytes, simt::Global<std::uint16_t> y) {
  using S = LinearStages<kN>;
  const unsigned raw = simt::shared_address(
      simt::dynamic_shared<std::uint8_t>(static_cast<std::size_t>(shared_bytes), 0, "stages"));
  const S stages{(raw + kSwizzleBytes - 1) / kSwizzleBytes * kSwizzleBytes};
  for (int stage = 0; stage < S::kStages; ++stage) {
    name_shared(stages.codes(stage), S::kBytes, "stage", stage);
    name_shared(stages.full(stage), 8, "full", stage);
    name_shared(stages.empty(stage), 8, "empty", stage);
  }
  others_may_begin();
  const int rank = kSplits == 1 ? 0 : static_cast<int>(rank_in_cluster());
  const int tile = static_cast<int>(blockIdx.x) / kSplits, across = (shape.batch + kN - 1) / kN;
  const int groups = shape.columns / kGroupColumns, some = groups / kSplits;
  const Share share{tile / across * kLinearRows, tile % across * kN, rank * some, some};
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < S::kStages; ++stage) {
      barrier_init(stages.full(stage), 1);
      barrier_init(stages.empty(stage), 8);  // warps of both consumers
    }
    publish_barriers();
    prefetch(maps.codes);
    prefetch(maps.x);
  }
  __syncthreads();

  if (threadIdx.x < 128) {
    keep_registers<linear_blocks(kN) == 1 ? 40 : 24>();
    if (threadIdx.x == 0) produce<kN>(maps, stages, share);
    __syncwarp();
    if constexpr (kSplits > 1) {
      for (int i = 0; i < 3; ++i) cluster_barrier();
    }
    return;
  }
  take_registers<linear_blocks(kN) == 1 ? 232 : 104>();
  const int consumer = static_cast<int>(threadIdx.x) / 128 - 1;
  const int thread = static_cast<int>(threadIdx.x) % 128;
  float sums[kN / 2] = {};
  const int of_w = share.rows / kFragmentRows + consumer * 4 + thread / 32;
  Consumer<kN>{stages, scales + (of_w * groups + share.group) * 8 + thread % 32 / 4, share,
               consumer}
      .multiply(sums);
  if constexpr (kSplits == 1) {
#pragma unroll
    for (int j = 0; j < kN / 2; ++j) store_sum(y, shape, share, consumer, j, sums[j]);
  } else {
    constexpr int kShare = kN / 2 / kSplits;
    constexpr std::size_t kCount = std::size_t{kN} * kLinearRows;
    cluster_barrier();  // the stages are read: sums may take their place
    const auto mine = staged<float>(stages.base, kCount, "sums");
#pragma unroll
    for (int j = 0; j < kN / 2; ++j) mine[(consumer * kN / 2 + j) * 128 + thread] = sums[j];
    cluster_barrier();  // all blocks' sums are there
    float all[kShare] = {};
#pragma unroll
    for (int block = 0; block < kSplits; ++block) {
      const auto theirs =
          remote<float>(stages.base, static_cast<unsigned>(block), kCount, "sums of the cluster");
#pragma unroll
      for (int j = 0; j < kShare; ++j) {
        all[j] += theirs[(consumer * kN / 2 + rank * kShare + j) * 128 + thread];
      }
    }
    for (int j = 0; j < kShare; ++j) {
      store_sum(y, shape, share, consumer, rank * kShare + j, all[j]);
    }
    cluster_barrier();  // no block ends while another reads its memory
  }
}

}  // namespace tilestep::low_bit::SIMT_BACKEND

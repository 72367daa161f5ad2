#pragma once

// Y = X · W^T with W in INT4, a scale for 128 weights, and X and Y in BF16 (W4A16). Codes become operands in registers,
// the tensor cores add up a group's products, and its scale multiplies the sum.
//
//   arrange   W's codes, as `quantize` writes them, into the order in which lanes need them
//   gemv      up to 8 rows of X: mma.m16n8k32 of bytes, a ring of stages that is filled before the launch ahead has ended
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
#include "kernels/numbers/low_bit/linear/ring.hpp"

namespace tilestep::low_bit::SIMT_BACKEND {

// ---- a word of codes ----------------------------------------------------------------------------

/// Where register i of mma's A in BF16 has its two codes: in bits 4 · place and 16 higher. A byte's upper four bits
/// are row r's, the lower ones row r + 8's.
__host__ __device__ constexpr int place_of(int i) {
  return i ^ 1;
}
__device__ __forceinline__ unsigned place_codes(unsigned low, unsigned high, int i) {
  return (low | high << 16) << 4 * place_of(i);
}
/// In bits 3 … 6 of 0x4180, the highest of them turned, a code makes the BF16 number code + 24.
__device__ __forceinline__ void codes_to_bf16(unsigned word, unsigned (&a)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int right = (4 * place_of(i) + 29) % 32;
    const unsigned raised =
        simt::mask_and_turn(word >> right | word << (32 - right), 0x00780078u, 0x41C041C0u);
    a[i] = simt::fma_bf16x2(raised, 0x3F803F80u, 0xC1C0C1C0u);  // · 1 − 24
  }
}
/// 16 times the codes, in bytes: of row r, and of row r + 8.
constexpr unsigned kUpper = 0xF0F0F0F0u;
__device__ __forceinline__ void codes_to_s8(unsigned word, unsigned& upper, unsigned& lower) {
  upper = word & kUpper;
  lower = word << 4 & kUpper;
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

__device__ __forceinline__ unsigned word_of(const uint4& four, int i) {
  return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

/// A number of X is four digits of a byte, each of them worth 256 of the next, times a power of two that a group of
/// columns shares: 30 bits, of which BF16 has 8. So codes are the tensor cores' operands as bytes, three instructions for
/// eight of them, where BF16 takes twelve; and a group's sums are exact.
struct DigitsOfX {
  simt::Shared<std::uint8_t>
      digits;  ///< [4 · batch][columns]: the digits of a row of X, the first one's first
  simt::Shared<float>
      units;  ///< [groups][batch]: what the last digit of a code's product with it is worth
  int columns, batch;

  /// Rows are 16 bytes apart by more than they are long, so that ldmatrix meets all banks.
  __device__ __forceinline__ int pitch() const { return columns + 16; }

  /// By all warps that multiply. X that is not finite makes sums that are no numbers.
  __device__ __forceinline__ void write(simt::Global<const std::uint16_t> x) const {
    const int blocks = columns / 16, count = batch * blocks;
    for (int from = 0; from < count; from += kGemvWarps * 32) {
      const int at = from + static_cast<int>(threadIdx.x);
      const bool inside = at < count;
      const auto pairs = simt::as<const uint4>(x) + (inside ? 2 * at : 0);
      const uint4 loaded[2] = {pairs[0], pairs[1]};
      unsigned most = 0;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        most = simt::max_or_nan_bf16x2(most, word_of(loaded[i / 4], i % 4) & 0x7FFF7FFFu);
      }
      most = simt::max_or_nan_bf16x2(most, most >> 16);
#pragma unroll
      for (int apart = 1; apart < kGroupColumns / 16; apart *= 2) {
        most = simt::max_or_nan_bf16x2(most, __shfl_xor_sync(0xFFFFFFFFu, most, apart));
      }
      // The largest is below 2^(exponent − 126): with 2^(156 − exponent) it is below 2^30.
      const unsigned found = (most & 0xFFFFu) >> 7, exponent = max(found, 34u);
      const float by = __uint_as_float((283u - exponent) << 23);
      if (!inside) continue;
      const int row = at / blocks, block = at % blocks;
      if (block % 8 == 0) {
        units[block / 8 * batch + row] =
            __uint_as_float(found == 255 ? 0x7FC00000u : (exponent - 33u) << 23);
      }
      unsigned words[4][4];  // [digit][lane of a row's four]
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        unsigned fixed[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          // In the order of a word's bytes: columns 2q, 2q + 8, 2q + 1, 2q + 9.
          const float number = simt::unpack_bf16(word_of(loaded[i % 2], q), i / 2);
          fixed[i] =
              (static_cast<unsigned>(simt::nearest_int(number * by)) + 0x00808080u) ^ 0x00808080u;
        }
        const unsigned low[2] = {simt::permute_bytes(fixed[0], fixed[1], 0x5140),
                                 simt::permute_bytes(fixed[2], fixed[3], 0x5140)};
        const unsigned high[2] = {simt::permute_bytes(fixed[0], fixed[1], 0x7362),
                                  simt::permute_bytes(fixed[2], fixed[3], 0x7362)};
        words[3][q] = simt::permute_bytes(low[0], low[1], 0x5410);
        words[2][q] = simt::permute_bytes(low[0], low[1], 0x7632);
        words[1][q] = simt::permute_bytes(high[0], high[1], 0x5410);
        words[0][q] = simt::permute_bytes(high[0], high[1], 0x7632);
      }
#pragma unroll
      for (int digit = 0; digit < 4; ++digit) {
        const unsigned* w = words[digit];
        simt::as<uint4>(digits + ((4 * row + digit) * pitch() + 16 * block))[0] =
            make_uint4(w[0], w[1], w[2], w[3]);
      }
    }
  }
  /// mma's B of 64 columns of a group: eight digits, of two rows of X. Products of rows past the batch are never read.
  __device__ __forceinline__ void load(unsigned (&b)[4], int pair, int group, int half) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, wanted = 8 * pair + lane % 8;
    const int row = wanted < 4 * batch ? wanted : 0;
    simt::ldmatrix_x4(
        b, simt::as<const std::uint16_t>(
               digits + (row * pitch() + group * kGroupColumns + half * 64 + lane / 8 * 16)));
  }
};

/// Shared memory after X's: stages of a tile's codes and scales, and their barriers.
struct GemvStages {
  unsigned base;
  int count;

  __device__ __forceinline__ unsigned codes(int stage) const {
    return base + static_cast<unsigned>(stage * kGemvStageBytes);
  }
  __device__ __forceinline__ unsigned full(int stage) const {
    return codes(count) + static_cast<unsigned>(stage * 8);
  }
  __device__ __forceinline__ unsigned empty(int stage) const { return full(count + stage); }
};
/// The stage that is next, `by` stages after the one before.
struct GemvTurn {
  int stage, by;
  unsigned parity = 0;

  __device__ __forceinline__ void pass(const GemvStages& stages) {
    stage += by;
    if (stage >= stages.count) {
      stage -= stages.count;
      parity ^= 1;
    }
  }
};

/// Fetches a block's tiles, one after the other, eight groups at a time. Nothing of them depends on the launch before,
/// which may still run.
__device__ __forceinline__ void fetch_w(const GemvMaps& maps, const GemvStages& stages, int first,
                                        int tiles, int groups) {
  GemvTurn turn{0, 1};
  for (int tile = first; tile < first + tiles; ++tile) {
    for (int group = 0; group < groups; group += kGemvGroups) {
      wait_for(stages.empty(turn.stage), turn.parity ^ 1);
      arrive_expecting(stages.full(turn.stage), kGemvStageBytes);
      const int at = tile * groups + group;
      fetch(maps.codes, stages.codes(turn.stage), stages.full(turn.stage), 0, at * 8);
      fetch(maps.scales, stages.codes(turn.stage) + kGemvCodes, stages.full(turn.stage), 0, at);
      turn.pass(stages);
    }
  }
}

/// A lane's sums: rows r and r + 8 of W, with a row of X of each pair; its upper digits, or its lower ones.
template <int kPairs>
using GemvSums = float[kPairs][2];

/// A warp's group of a stage.
template <int kPairs>
__device__ __forceinline__ void add_group(GemvSums<kPairs>& sums, const GemvStages& stages,
                                          int stage, const DigitsOfX& x, int group) {
  const int lane = static_cast<int>(threadIdx.x) % 32, place = group % kGemvGroups;
  const auto codes = staged<uint4>(stages.codes(stage), kGemvCodes / 16, "codes");
  const auto scales = staged<unsigned>(stages.codes(stage) + kGemvCodes, kGemvScales / 4, "scales");
  const uint4 loaded[2] = {codes[place * 64 + lane], codes[place * 64 + 32 + lane]};
  const unsigned both = scales[place * 8 + lane / 4];
  __syncwarp();  // all lanes have read
  if (lane == 0) arrive(stages.empty(stage));
  if (group * kGroupColumns >= x.columns) return;
  int products[kPairs][4] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    unsigned b[kPairs][4];
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) x.load(b[pair], pair, group, half);
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      unsigned a[4];
      codes_to_s8(word_of(loaded[half], 2 * step), a[0], a[1]);
      codes_to_s8(word_of(loaded[half], 2 * step + 1), a[2], a[3]);
#pragma unroll
      for (int pair = 0; pair < kPairs; ++pair) {
        simt::mma_m16n8k32_s8(products[pair], a, b[pair][2 * step], b[pair][2 * step + 1]);
      }
    }
  }
  const float first = simt::unpack_fp16(both, 0), second = simt::unpack_fp16(both, 1);
  const float of_digits = lane % 2 == 0 ? 65536.0f : 1.0f;
#pragma unroll
  for (int pair = 0; pair < kPairs; ++pair) {
    const int row = min(2 * pair + lane % 4 / 2, x.batch - 1);
    const float unit = x.units[group * x.batch + row] * of_digits;
    const int* of = products[pair];
    sums[pair][0] += static_cast<float>(of[0] * 256 + of[1]) * (unit * first);
    sums[pair][1] += static_cast<float>(of[2] * 256 + of[3]) * (unit * second);
  }
}

/// A block has some tiles of 16 rows of W. Half of its warps multiply every other stage, a group each; one more warp
/// fetches them. All blocks' stages together hold what memory delivers in microseconds, so that it is busy while the
/// launch before ends and X arrives.
template <int kPairs>
__global__ void __launch_bounds__((kGemvWarps + 1) * 32, 2)
    gemv_w4a16(const __grid_constant__ GemvMaps maps, simt::Global<const std::uint16_t> x,
               LinearShape shape, GemvRoom room, simt::Global<std::uint16_t> y) {
  const auto shared =
      simt::dynamic_shared<std::uint8_t>(static_cast<std::size_t>(room.bytes), 0, "shared");
  const DigitsOfX inputs{shared, simt::as<float>(shared + room.units_at), shape.columns,
                         shape.batch};
  const auto parts = simt::as<float>(shared + room.sums_at);
  const GemvStages stages{
      (simt::shared_address(shared) + static_cast<unsigned>(room.stages_at) + 127) / 128 * 128,
      room.stages};
  for (int stage = 0; stage < stages.count; ++stage) {
    name_shared(stages.codes(stage), kGemvStageBytes, "stage", stage);
    name_shared(stages.full(stage), 8, "full", stage);
    name_shared(stages.empty(stage), 8, "empty", stage);
  }
  others_may_begin();
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  if (thread == 0) {
    for (int stage = 0; stage < stages.count; ++stage) {
      barrier_init(stages.full(stage), 1);
      barrier_init(stages.empty(stage), kGemvGroups);
    }
    publish_barriers();
  }
  __syncthreads();
  const int groups = shape.columns / kGroupColumns;
  const int all = shape.rows / kFragmentRows, blocks = static_cast<int>(gridDim.x),
            block = static_cast<int>(blockIdx.x);
  const int first = first_gemv_tile(all, blocks, block);
  const int tiles = first_gemv_tile(all, blocks, block + 1) - first;
  if (warp == kGemvWarps) {
    if (lane == 0) fetch_w(maps, stages, first, tiles, groups);
    return;
  }

  await_launch_before();
  inputs.write(x);
  named_barrier_sync(1, kGemvWarps * 32);
  const int half = warp / kGemvGroups, chunks = (groups + kGemvGroups - 1) / kGemvGroups;
  GemvTurn turn{half, 2};
  int chunk = half;  // of the tile: all are counted on, of one tile after the other
  for (int tile = 0; tile < tiles; ++tile, chunk -= chunks) {
    GemvSums<kPairs> sums = {};
    for (; chunk < chunks; chunk += 2) {
      wait_for(stages.full(turn.stage), turn.parity);
      add_group<kPairs>(sums, stages, turn.stage, inputs, chunk * kGemvGroups + warp % kGemvGroups);
      turn.pass(stages);
    }
#pragma unroll
    for (int pair = 0; pair < kPairs; ++pair) {
      const int n = 2 * pair + lane % 4 / 2;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float sum = sums[pair][i] + __shfl_xor_sync(0xFFFFFFFFu, sums[pair][i], 1);
        if (lane % 2 != 0 || n >= shape.batch) continue;
        parts[((tile * kGemvWarps + warp) * shape.batch + n) * kFragmentRows + lane / 4 + 8 * i] =
            sum;
      }
    }
  }
  named_barrier_sync(1, kGemvWarps * 32);
  const int of_tile = shape.batch * kFragmentRows;
  for (int i = thread; i < tiles * of_tile; i += kGemvWarps * 32) {
    const int tile = i / of_tile, n = i % of_tile / kFragmentRows, row = i % kFragmentRows;
    float sum = 0;
#pragma unroll
    for (int from = 0; from < kGemvWarps; ++from) {
      sum += parts[(tile * kGemvWarps + from) * of_tile + i % of_tile];
    }
    y[n * shape.rows + (first + tile) * kFragmentRows + row] =
        static_cast<std::uint16_t>(simt::pack_bf16(sum, 0.0f));
  }
}

// ---- many rows of X -----------------------------------------------------------------------------

/// A stage: a group's codes, then X, in panels of 64 columns.
template <int kN>
struct LinearStages : Ring<kLinearRows * kGroupColumns / 2 + 2 * kN * 128, linear_stages(kN)> {
  static constexpr int kCodes = kLinearRows * kGroupColumns / 2;
  static constexpr int kPanel = kN * 128;

  __device__ __forceinline__ unsigned x(int i, int panel) const {
    return this->stage(i) + static_cast<unsigned>(kCodes + panel * kPanel);
  }
};

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
    const auto codes = staged<uint4>(stages.stage(stage), S::kCodes / 16, "codes");
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

template <int kN, int kSplits>
__global__ void __launch_bounds__(3 * 128, linear_blocks(kN))
    gemm_w4a16(const __grid_constant__ LinearMaps maps, simt::Global<const unsigned> scales,
               LinearShape shape, int shared_bytes, simt::Global<std::uint16_t> y) {
  const auto stages = lay_out<LinearStages<kN>>(shared_bytes);
  others_may_begin();
  const int rank = kSplits == 1 ? 0 : static_cast<int>(rank_in_cluster());
  const int tile = static_cast<int>(blockIdx.x) / kSplits, across = (shape.batch + kN - 1) / kN;
  const int groups = shape.columns / kGroupColumns, some = groups / kSplits;
  const Share share{tile / across * kLinearRows, tile % across * kN, rank * some, some};
  if (threadIdx.x == 0) {
    init_barriers(stages, 8);
    prefetch(maps.codes);
    prefetch(maps.x);
  }
  __syncthreads();

  if (threadIdx.x < 128) {
    keep_registers<linear_blocks(kN) == 1 ? 40 : 24>();
    if (threadIdx.x == 0) {
      fill(
          stages, some,
          [&](int i, int stage) {
            fetch(maps.codes, stages.stage(stage), stages.full(stage),
                  (share.group + i) * kGroupColumns * 2, share.rows / kFragmentRows);
          },
          [&](int i, int stage) {
            const int column = (share.group + i) * kGroupColumns;
            fetch(maps.x, stages.x(stage, 0), stages.full(stage), column, share.batch);
            fetch(maps.x, stages.x(stage, 1), stages.full(stage), column + 64, share.batch);
          });
    }
    __syncwarp();
    meet_in_store<kSplits>();
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
  store_tile<kN, kSplits>(y, shape, share, stages.base, rank, consumer, sums);
}

}  // namespace tilestep::low_bit::SIMT_BACKEND

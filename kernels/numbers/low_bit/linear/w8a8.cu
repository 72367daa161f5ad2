#pragma once

// Y = X · W^T with W and X in 8 bits, a scale for each of their rows, and Y in BF16 (W8A8). wgmma takes the codes of both from
// shared memory as `quantize` wrote them. INT8 adds up in int; E4M3 in the tensor cores' FP32, which keeps fewer bits:
// libraries call it fast accumulation. The two scales of a sum multiply it once, in registers.
//
//   gemm_w8a8         few rows of X: two blocks a multiprocessor, so that W of the next launch is on its way; the blocks of
//                     a cluster share the columns of a tile
//   persistent_w8a8   many: a block for each multiprocessor takes tile after tile. The two blocks of a cluster need the same
//                     rows of X and fetch half of them each, for both. TMA stores a tile while the next one is multiplied
//
// A tile: 128 rows of W, 64 of them wgmma's A for each consumer, and kN rows of X, its B.

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/hopper.hpp"
#include "kernels/numbers/low_bit/linear/launches.hpp"
#include "kernels/numbers/low_bit/linear/ring.hpp"

namespace tilestep::low_bit::SIMT_BACKEND {

/// What a format's sums and scales are.
template <Format kFormat>
struct Eight;
template <>
struct Eight<Format::int8> {
  using Sum = int;
  using Scale = std::uint16_t;
  static constexpr auto kWgmma = simt::hopper::Format::s8;
  static __device__ __forceinline__ float number(Scale scale) {
    return simt::unpack_fp16(scale, 0);
  }
};
template <>
struct Eight<Format::fp8_e4m3> {
  using Sum = float;
  using Scale = float;
  static constexpr auto kWgmma = simt::hopper::Format::e4m3;
  static __device__ __forceinline__ float number(Scale scale) { return scale; }
};

template <Format kFormat>
struct RowScales {
  simt::Global<const typename Eight<kFormat>::Scale> w, x;
};

/// A stage: 128 columns of 128 rows of W, then of kN of X.
template <int kN>
struct EightStages
    : Ring<eight_stage_bytes(kN), eight_stages(kN), kN == kPersistentTile ? 4 * kEightTile : 0> {
  __device__ __forceinline__ unsigned x(int i) const {
    return this->stage(i) + static_cast<unsigned>(kLinearRows * kEightColumns);
  }
  /// A tile of Y on its way to memory.
  __device__ __forceinline__ unsigned stored(int consumer, int number) const {
    return this->stage(this->kStages) +
           static_cast<unsigned>((consumer * 2 + number % 2) * kEightTile);
  }
};

/// Which stage is next, and the parity of its phase.
template <int kStages>
struct EightTurn {
  int stage = 0;
  unsigned parity = 0;

  __device__ __forceinline__ void pass() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

/// The scales that a thread's sums need: of its two rows of W; of kN rows of X every 32nd, the others are in the warp's other
/// lanes. Loaded before the products, and as they are stored: nothing waits for them until the sums are there.
template <Format kFormat, int kN>
struct ScalesOfTile {
  using Scale = typename Eight<kFormat>::Scale;
  Scale w[2], x[(kN + 31) / 32];

  __device__ __forceinline__ void load(const RowScales<kFormat>& scales, const LinearShape& shape,
                                       int first_row, int first_n) {
    const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = first_row + thread / 32 * 16 + lane / 4 + i * 8;
      w[i] = row < shape.rows ? scales.w[row] : Scale{};
    }
#pragma unroll
    for (int i = 0; i < (kN + 31) / 32; ++i) {
      const int n = first_n + i * 32 + lane;
      x[i] = n < shape.batch ? scales.x[n] : Scale{};
    }
  }
  template <class Sum>
  __device__ __forceinline__ void apply(float (&scaled)[kN / 2], const Sum (&sums)[kN / 2]) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const float of_w[2] = {Eight<kFormat>::number(w[0]), Eight<kFormat>::number(w[1])};
#pragma unroll
    for (int j = 0; j < kN / 2; j += 4) {  // 8 rows of X
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float of_x = __shfl_sync(0xFFFFFFFFu, Eight<kFormat>::number(x[j / 16]),
                                       j / 4 % 4 * 8 + lane % 4 * 2 + i);
        scaled[j + i] = static_cast<float>(sums[j + i]) * (of_w[0] * of_x);
        scaled[j + 2 + i] = static_cast<float>(sums[j + 2 + i]) * (of_w[1] * of_x);
      }
    }
  }
};

/// A consumer's products of `count` stages. kBlocks: those of the cluster that fill each other's stages.
template <Format kFormat, int kN, int kBlocks, class Sum, class Turn>
__device__ __forceinline__ void multiply_eight(Sum (&sums)[kN / 2], const EightStages<kN>& stages,
                                               Turn& turn, int count, int consumer) {
  const unsigned lane = threadIdx.x % 32;
  const auto release = [&](int stage) {
    if constexpr (kBlocks == 1) {
      if (lane == 0) arrive(stages.empty(stage));
    } else {
      if (lane < kBlocks) arrive_at(stages.empty(stage), lane);
    }
  };
  int before = 0;
  for (int i = 0; i < count; ++i) {
    wait_for(stages.full(turn.stage), turn.parity);
    const std::uint64_t w = descriptor<128>(
        stages.stage(turn.stage) + static_cast<unsigned>(consumer * kWgmmaRows * kEightColumns));
    const std::uint64_t x = descriptor<128>(stages.x(turn.stage));
    wgmma_begin();
#pragma unroll
    for (int step = 0; step < kEightColumns / kWgmmaBytes; ++step) {
      const auto along = static_cast<std::uint64_t>(step * kWgmmaBytes / 16);
      wgmma<Eight<kFormat>::kWgmma, kN>(sums, w + along, x + along, i == 0 && step == 0);
    }
    wgmma_commit();
    wgmma_wait<1>();  // all but this stage's are done
    if (i > 0) release(before);
    before = turn.stage;
    turn.pass();
  }
  wgmma_wait<0>();
  settle(sums);
  release(before);
}

// ---- few rows of X ------------------------------------------------------------------------------

template <Format kFormat, int kN, int kSplits>
__global__ void __launch_bounds__(3 * 128, eight_blocks(kN))
    gemm_w8a8(const __grid_constant__ EightMaps maps, RowScales<kFormat> scales, LinearShape shape,
              int shared_bytes, simt::Global<std::uint16_t> y) {
  const auto stages = lay_out<EightStages<kN>>(shared_bytes);
  others_may_begin();
  const int rank = kSplits == 1 ? 0 : static_cast<int>(rank_in_cluster());
  const int tile = static_cast<int>(blockIdx.x) / kSplits, across = (shape.batch + kN - 1) / kN;
  const int some = shape.columns / kEightColumns / kSplits;
  const Share share{tile / across * kLinearRows, tile % across * kN, rank * some, some};
  if (threadIdx.x == 0) {
    init_barriers(stages, 8);
    prefetch(maps.w);
    prefetch(maps.x);
  }
  __syncthreads();

  if (threadIdx.x < 128) {
    keep_registers<eight_blocks(kN) == 1 ? 40 : 24>();
    if (threadIdx.x == 0) {
      const auto fetcher = [&](const TensorMap& map, int row, bool of_x) {
        return [&map, &stages, &share, row, of_x](int i, int stage) {
          fetch(map, of_x ? stages.x(stage) : stages.stage(stage), stages.full(stage),
                (share.group + i) * kEightColumns, row);
        };
      };
      fill(stages, some, fetcher(maps.w, share.rows, false), fetcher(maps.x, share.batch, true));
    }
    __syncwarp();
    meet_in_store<kSplits>();
    return;
  }
  take_registers<eight_blocks(kN) == 1 ? 232 : 104>();
  const int consumer = static_cast<int>(threadIdx.x) / 128 - 1;
  await_launch_before();  // which may write the scales of X
  ScalesOfTile<kFormat, kN> of_tile;
  of_tile.load(scales, shape, share.rows + consumer * kWgmmaRows, share.batch);
  typename Eight<kFormat>::Sum sums[kN / 2];
  EightTurn<eight_stages(kN)> turn;
  multiply_eight<kFormat, kN, 1>(sums, stages, turn, some, consumer);
  float scaled[kN / 2];
  of_tile.apply(scaled, sums);
  store_tile<kN, kSplits>(y, shape, share, stages.base, rank, consumer, scaled);
}

// ---- many rows of X -----------------------------------------------------------------------------

/// A cluster's tiles, each of 256 rows of W and of X, in an order that keeps both in L2: 2048 rows of W at a time, column by
/// column.
struct EightWalk {
  static constexpr int kCluster = 2, kGroup = 2048 / (kCluster * kLinearRows);
  int down, across, number, apart;

  __device__ __forceinline__ explicit EightWalk(const LinearShape& shape)
      : down((shape.rows + kCluster * kLinearRows - 1) / (kCluster * kLinearRows)),
        across((shape.batch + kPersistentTile - 1) / kPersistentTile),
        number(static_cast<int>(blockIdx.x) / kCluster),
        apart(static_cast<int>(gridDim.x) / kCluster) {}

  __device__ __forceinline__ bool there() const { return number < down * across; }
  __device__ __forceinline__ void advance() { number += apart; }
  /// First row of W of block `rank`, which may be past the last; and of X.
  __device__ __forceinline__ Share place(int rank) const {
    const int first = number / (kGroup * across) * kGroup, in_group = number - first * across;
    const int high = down - first < kGroup ? down - first : kGroup;
    return {((first + in_group % high) * kCluster + rank) * kLinearRows,
            in_group / high * kPersistentTile, 0, 0};
  }
};

/// A consumer's sums to Y, 64 rows of X at a time, turned on their way to shared memory. `parts` counts them.
template <int kN>
__device__ __forceinline__ void store_eight(const TensorMap& y, const float (&sums)[kN / 2],
                                            const EightStages<kN>& stages, const Share& place,
                                            int consumer, int& parts) {
  const int thread = static_cast<int>(threadIdx.x) % 128, warp = thread / 32, lane = thread % 32;
#pragma unroll
  for (int part = 0; part < kN / 64; ++part, ++parts) {
    const unsigned tile = stages.stored(consumer, parts);
    if (thread == 0) store_wait<1>();
    named_barrier_sync(1 + consumer, 128);  // the tile's old contents have been read
#pragma unroll
    for (int j = 0; j < 8; j += 2) {  // each 8 rows of X
      const float* from = &sums[4 * (part * 8 + j)];
      const unsigned matrices[4] = {pack_bf16(from[0], from[1]), pack_bf16(from[2], from[3]),
                                    pack_bf16(from[4], from[5]), pack_bf16(from[6], from[7])};
      const int chunk =
          simt::swizzled_chunk((j + lane / 16) * 8 + lane % 8, warp * 2 + lane / 8 % 2);
      stmatrix_x4_trans(tile + static_cast<unsigned>(chunk * 16), matrices);
    }
    publish_to_async_proxy();
    named_barrier_sync(1 + consumer, 128);  // all have written
    if (thread == 0) {
      store(y, tile, place.rows + consumer * kWgmmaRows, place.batch + part * 64);
      store_commit();
    }
  }
}

template <Format kFormat>
__global__ void __launch_bounds__(3 * 128, 1)
    persistent_w8a8(const __grid_constant__ EightMaps maps, RowScales<kFormat> scales,
                    LinearShape shape, int shared_bytes) {
  constexpr int kN = kPersistentTile, kCluster = EightWalk::kCluster;
  const auto stages = lay_out<EightStages<kN>>(shared_bytes);
  others_may_begin();
  const int rank = static_cast<int>(rank_in_cluster()), group = static_cast<int>(threadIdx.x) / 128;
  const int count = shape.columns / kEightColumns;
  if (threadIdx.x == 0) init_barriers(stages, kCluster * 8);
  cluster_barrier();
  EightWalk walk(shape);
  EightTurn<eight_stages(kN)> turn;
  if (group == 0) {
    keep_registers<40>();
    if (threadIdx.x == 0) {
      await_launch_before();
      for (; walk.there(); walk.advance()) {
        const Share place = walk.place(rank);
        for (int i = 0; i < count; ++i) {
          // Consumers of both blocks: each half of X is written to both.
          wait_for(stages.empty(turn.stage), turn.parity ^ 1u);
          const unsigned full = stages.full(turn.stage);
          arrive_expecting(full, EightStages<kN>::kBytes);
          fetch(maps.w, stages.stage(turn.stage), full, i * kEightColumns, place.rows);
          const int half = rank * (kN / kCluster);
          fetch<kCluster>(maps.x,
                          stages.x(turn.stage) + static_cast<unsigned>(half * kEightColumns), full,
                          i * kEightColumns, place.batch + half);
          turn.pass();
        }
      }
    }
  } else {
    take_registers<232>();
    const int consumer = group - 1;
    int parts = 0;
    await_launch_before();
    for (; walk.there(); walk.advance()) {
      const Share place = walk.place(rank);
      ScalesOfTile<kFormat, kN> of_tile;
      of_tile.load(scales, shape, place.rows + consumer * kWgmmaRows, place.batch);
      typename Eight<kFormat>::Sum sums[kN / 2];
      multiply_eight<kFormat, kN, kCluster>(sums, stages, turn, count, consumer);
      float scaled[kN / 2];
      of_tile.apply(scaled, sums);
      store_eight(maps.y, scaled, stages, place, consumer, parts);
    }
    if (threadIdx.x % 128 == 0) store_wait<0>();
  }
  cluster_barrier();  // no block ends while the other arrives at its barriers or copies into its stages
}

}  // namespace tilestep::low_bit::SIMT_BACKEND

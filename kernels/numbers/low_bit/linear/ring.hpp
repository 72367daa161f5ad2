#pragma once

/// \file
/// What the GEMMs of W4A16 and W8A8 share: a ring of stages that a thread fills and two consumers empty, and the blocks of
/// a cluster that add up their sums of the same tile of Y.

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/hopper.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/numbers/low_bit/linear/sizes.hpp"

namespace tilestep::low_bit::SIMT_BACKEND {

using namespace simt::hopper;

/// Shared memory: kCount stages of kStageBytes, kMore bytes of something else, then two barriers a stage.
template <int kStageBytes, int kCount, int kMore = 0>
struct Ring {
  static constexpr int kBytes = kStageBytes, kStages = kCount;
  unsigned base;

  __device__ __forceinline__ unsigned stage(int i) const {
    return base + static_cast<unsigned>(i * kBytes);
  }
  __device__ __forceinline__ unsigned full(int i) const {
    return stage(kStages) + static_cast<unsigned>(kMore + i * 8);
  }
  __device__ __forceinline__ unsigned empty(int i) const { return full(kStages + i); }
};

/// Of the block's dynamic shared memory, its parts named.
template <class R>
__device__ __forceinline__ R lay_out(int shared_bytes) {
  const unsigned raw = simt::shared_address(
      simt::dynamic_shared<std::uint8_t>(static_cast<std::size_t>(shared_bytes), 0, "stages"));
  const R ring{{(raw + kSwizzleBytes - 1) / kSwizzleBytes * kSwizzleBytes}};
  for (int i = 0; i < R::kStages; ++i) {
    name_shared(ring.stage(i), R::kBytes, "stage", i);
    name_shared(ring.full(i), 8, "full", i);
    name_shared(ring.empty(i), 8, "empty", i);
  }
  return ring;
}

/// By one thread. `releases`: the warps that read a stage.
template <class R>
__device__ __forceinline__ void init_barriers(const R& ring, int releases) {
  for (int i = 0; i < R::kStages; ++i) {
    barrier_init(ring.full(i), 1);
    barrier_init(ring.empty(i), releases);
  }
  publish_barriers();
}

/// The work of the copying thread, `count` stages. W does not depend on the launch before, which may still run.
template <class R, class FetchW, class FetchX>
__device__ __forceinline__ void fill(const R& ring, int count, const FetchW& fetch_w,
                                     const FetchX& fetch_x) {
  const int first = count < R::kStages ? count : R::kStages;
  for (int i = 0; i < first; ++i) {
    arrive_expecting(ring.full(i), R::kBytes);
    fetch_w(i, i);
  }
  await_launch_before();
  for (int i = 0; i < first; ++i) fetch_x(i, i);
  for (int i = first; i < count; ++i) {
    const int stage = i % R::kStages;
    wait_for(ring.empty(stage), static_cast<unsigned>(i / R::kStages & 1) ^ 1u);
    arrive_expecting(ring.full(stage), R::kBytes);
    fetch_w(i, stage);
    fetch_x(i, stage);
  }
}

/// Of a block: its tile, and which of the tile's groups of columns.
struct Share {
  int rows, batch;  ///< the first
  int group, groups;
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

/// A consumer's sums to Y. The blocks of a cluster first add up theirs through each other's shared memory, where the stages
/// were: each a part of a thread's accumulators. All threads of the block must meet the cluster's barriers.
template <int kN, int kSplits>
__device__ __forceinline__ void store_tile(simt::Global<std::uint16_t> y, const LinearShape& shape,
                                           const Share& share, unsigned base, int rank,
                                           int consumer, const float (&sums)[kN / 2]) {
  if constexpr (kSplits == 1) {
#pragma unroll
    for (int j = 0; j < kN / 2; ++j) store_sum(y, shape, share, consumer, j, sums[j]);
  } else {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    constexpr int kPart = kN / 2 / kSplits;
    constexpr std::size_t kCount = std::size_t{kN} * kLinearRows;
    named_barrier_sync(1, 2 * 128);  // both consumers have read the stages
    const auto mine = staged<float>(base, kCount, "sums");
#pragma unroll
    for (int j = 0; j < kN / 2; ++j) mine[(consumer * kN / 2 + j) * 128 + thread] = sums[j];
    cluster_barrier();  // all blocks' sums are there
    float all[kPart] = {};
#pragma unroll
    for (int block = 0; block < kSplits; ++block) {
      const auto theirs =
          remote<float>(base, static_cast<unsigned>(block), kCount, "sums of the cluster");
#pragma unroll
      for (int j = 0; j < kPart; ++j) {
        all[j] += theirs[(consumer * kN / 2 + rank * kPart + j) * 128 + thread];
      }
    }
    for (int j = 0; j < kPart; ++j) {
      store_sum(y, shape, share, consumer, rank * kPart + j, all[j]);
    }
    cluster_barrier();  // no block ends while another reads its memory
  }
}
/// How the producer's warpgroup meets them.
template <int kSplits>
__device__ __forceinline__ void meet_in_store() {
  if constexpr (kSplits > 1) {
    for (int i = 0; i < 2; ++i) cluster_barrier();
  }
}

}  // namespace tilestep::low_bit::SIMT_BACKEND

// The large grouped product with Hopper's instructions: the same tiles and the same schedule as
// grouped_mma.cu, but
//
//   - TMA, the copy engine of a multiprocessor, brings whole tiles to shared memory; one thread
//     requests a tile, and no other thread is involved
//   - wgmma multiplies directly from shared memory, 64 rows of W by 128 or 256 tokens at a time, by
//     the four warps of a warpgroup
//   - one warpgroup only copies, two only multiply; they meet at two mbarriers per stage, `full`
//     and `empty`. The copies run ahead into the block's next tile while this one is stored
//   - two neighbouring blocks may form a cluster: they multiply the same tokens by two parts of W,
//     each fetches half of the tokens, and TMA puts that half into both
//
// A tile's row is 64 numbers of k, 128 bytes, in the "128-byte swizzle" that TMA writes and wgmma
// reads. Needs compute capability 9.0. The instructions are in simt/hopper.hpp.

#include <cstddef>
#include <cstdint>

#include "kernels/base/simt/ring.hpp"
#include "kernels/experts/moe_routing/tiles.hpp"

namespace tilestep::moe_routing::SIMT_BACKEND::grouped_wgmma {

using namespace simt::hopper;

constexpr int kDepth = 64;  // numbers of k in a tile
constexpr int kRowBytes = kDepth * 2;
constexpr int kWarpgroup = 128;  // threads
constexpr int kMultipliers = 2;  // warpgroups that multiply
constexpr int kThreads = (1 + kMultipliers) * kWarpgroup;
constexpr int kStages = 4;
/// Registers per thread, once the copying warpgroup has released those it does not need. In total
/// no more than the launch has: 384 · 168.
constexpr int kCopierRegisters = 40;
constexpr int kMultiplierRegisters = 232;

/// kTokens slots by kPieces · 64 rows of W per warpgroup; kCluster blocks share their tokens.
template <int kTokens, int kPieces, int kCluster>
struct HopperTiling {
  static constexpr int kTileTokens = kTokens;
  static constexpr int kWarpgroupWidth = kPieces * 64;
  static constexpr int kBlockWidth = kMultipliers * kWarpgroupWidth;
  static constexpr int kTileWidth = kCluster * kBlockWidth;  ///< of all blocks of the cluster
  static constexpr int kBlocks = kCluster;
  using Sums = float[kPieces][kTokens / 2];  ///< per thread; 128 threads have 64 rows of W
  static constexpr int kWBytes = kBlockWidth * kRowBytes;
  static constexpr int kXBytes = kTokens * kRowBytes;
  static constexpr int kStageBytes = kWBytes + kXBytes;
  static constexpr int kFetchedTokens =
      kTokens / kCluster;  ///< that one block of the cluster fetches
  static constexpr int kBarrierBytes = 8 * Ring<Count<kStages>>::barriers_of(kStages);
  static constexpr std::size_t kSharedBytes =
      kStages * kStageBytes + kBarrierBytes + kSwizzleBytes;  // tiles are aligned to the swizzle
  /// A tile that is at most half full fetches and multiplies only that half.
  static constexpr bool kHalves = kTokens == 256 && kCluster == 1;
  static_assert(kTokens == 128 || kTokens == 256);
  static_assert(kBlockWidth <= 256 && kFetchedTokens <= 256, "TMA fetches 256 rows at most");
  using Walk = TileWalk<kTileTokens, kTileWidth, kCluster>;
};

/// The tensor maps of the two arrays.
struct TensorMaps {
  TensorMap weights, x, half_x;  ///< half_x: half as many tokens at a time, for kHalves
};

// ---- the two roles ------------------------------------------------------------------------------

/// The stages in shared memory, as addresses for the instructions.
template <class T>
struct Stages {
  unsigned tiles;
  Ring<Count<kStages>> ring;

  __device__ __forceinline__ unsigned w(int stage) const { return tiles + stage * T::kStageBytes; }
  __device__ __forceinline__ unsigned x(int stage) const { return w(stage) + T::kWBytes; }
};

/// The copying thread's work.
template <class T>
__device__ __forceinline__ void copy_tiles(const TensorMaps& maps, const GroupedOperands& operands,
                                           const GroupedShape& shape, const Stages<T>& stages,
                                           int rank) {
  Turn turn;
  typename T::Walk walk(operands, shape);
  for (; walk.there(); walk.advance(operands, shape)) {
    const TilePlace place = walk.place(operands, shape);
    const int w_row = walk.expert() * shape.width + place.first_width + rank * T::kBlockWidth;
    const int x_row = place.first_slot + rank * T::kFetchedTokens;
    const bool half = T::kHalves && place.rows <= T::kTileTokens / 2;
    for (int k = 0; k < shape.hidden; k += kDepth, ++turn.number) {
      const int stage = stages.ring.stage(turn);
      const unsigned full = stages.ring.full(stage);
      // All multiplying warps, in both blocks, must be done with the stage: the other block's copy
      // also writes it.
      stages.ring.producer_acquire(turn);
      arrive_expecting(full, half ? T::kStageBytes - T::kXBytes / 2 : T::kStageBytes);
      fetch<1>(maps.weights, stages.w(stage), full, k, w_row);
      fetch<T::kBlocks>(half ? maps.half_x : maps.x,
                        stages.x(stage) + rank * T::kFetchedTokens * kRowBytes, full, k, x_row);
    }
  }
}

/// Stores a warpgroup's results for the tokens below `rows`, from y[0] = its first row of W of the
/// tile's first token. Eight lanes store neighbours of a token: a whole sector.
template <class T>
__device__ __forceinline__ void store(const typename T::Sums& sums, simt::Global<float> y,
                                      int width, int rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
  // Token 8j + r is `8 * width` floats further each time: one address to keep, not one per token.
  auto to = y + (lane % 4 * 2 * width + warp * 16 + lane / 4);
#pragma unroll
  for (int j = 0; j < T::kTileTokens / 8; ++j, to = to + 8 * width) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (j * 8 + lane % 4 * 2 + r >= rows) continue;
#pragma unroll
      for (int piece = 0; piece < T::kWarpgroupWidth / 64; ++piece) {
        to[r * width + piece * 64] = sums[piece][4 * j + r];
        to[r * width + piece * 64 + 8] = sums[piece][4 * j + 2 + r];
      }
    }
  }
}

/// A warpgroup's products of a tile, along all of k; with kHalf only its first half of tokens.
template <class T, bool kHalf>
__device__ __forceinline__ void multiply_tile(typename T::Sums& sums, const Stages<T>& stages,
                                              Turn& turn, int hidden, int group) {
  int before = 0;
  for (int k = 0; k < hidden; k += kDepth, ++turn.number) {
    const int stage = stages.ring.stage(turn);
    stages.ring.consumer_wait(turn);
    const std::uint64_t x = descriptor(stages.x(stage));
    wgmma_begin();
#pragma unroll
    for (int step = 0; step < kDepth / 16; ++step) {
      // 32 bytes further along k: the hardware applies the swizzle to the address that results.
      const auto further = static_cast<std::uint64_t>(step * 32 / 16);
#pragma unroll
      for (int piece = 0; piece < T::kWarpgroupWidth / 64; ++piece) {
        const int row = group * T::kWarpgroupWidth + piece * 64;
        const std::uint64_t w = descriptor(stages.w(stage) + row * kRowBytes);
        const bool fresh = k == 0 && step == 0;
        if constexpr (kHalf || T::kTileTokens == 128) {
          wgmma<Format::bf16, 128>(sums[piece], w + further, x + further, fresh);
        } else {
          wgmma<Format::bf16, 256>(sums[piece], w + further, x + further, fresh);
        }
      }
    }
    wgmma_commit();
    // The previous stage is fully read once only this one's products are in flight.
    wgmma_wait<1>();
    if (k > 0) release<T::kBlocks>(stages.ring, before);
    before = stage;
  }
  wgmma_wait<0>();
  release<T::kBlocks>(stages.ring, before);
}

/// The work of the two multiplying warpgroups; `group` is 0 or 1.
template <class T, class Tape>
__device__ __forceinline__ void multiply_tiles(const GroupedOperands& operands,
                                               const GroupedShape& shape, const Stages<T>& stages,
                                               int rank, int group, const Tape& tape) {
  const bool records = rank == 0 && threadIdx.x == kWarpgroup;
  TileRecorder recorder(shape.hidden / 16 * (T::kWarpgroupWidth / 64));
  Turn turn;
  typename T::Sums sums = {};
  typename T::Walk walk(operands, shape);
  for (; walk.there(); walk.advance(operands, shape)) {
    if (records) recorder.begins(tape);
    bool half = false;
    if constexpr (T::kHalves) {
      half = walk.place(operands, shape).rows <= T::kTileTokens / 2;
      if (half) multiply_tile<T, true>(sums, stages, turn, shape.hidden, group);
    }
    if (!half) multiply_tile<T, false>(sums, stages, turn, shape.hidden, group);
#pragma unroll
    for (int piece = 0; piece < T::kWarpgroupWidth / 64; ++piece) settle(sums[piece]);
    const TilePlace place = walk.place(operands, shape);
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(place.first_slot) * shape.width;
    const int first_width = place.first_width + rank * T::kBlockWidth + group * T::kWarpgroupWidth;
    store<T>(sums, operands.y + (first + first_width), shape.width, place.rows);
    if (records) recorder.ends(tape, walk.number(), T::kBlocks);
  }
}

template <class T, class Tape>
__global__ void __launch_bounds__(kThreads, 1)
    grouped_gemm_hopper(const __grid_constant__ TensorMaps maps, GroupedOperands operands,
                        GroupedShape shape, Tape tape) {
  const unsigned raw =
      simt::shared_address(simt::dynamic_shared<std::uint8_t>(T::kSharedBytes, 0, "stages"));
  const unsigned aligned = (raw + kSwizzleBytes - 1) / kSwizzleBytes * kSwizzleBytes;
  const Stages<T> stages{aligned, {aligned + kStages * T::kStageBytes}};
  for (int stage = 0; stage < kStages; ++stage) {
    name_shared(stages.w(stage), T::kStageBytes, "stage", stage);
  }
  stages.ring.name("full", "empty");
  const int rank = T::kBlocks == 1 ? 0 : static_cast<int>(rank_in_cluster());
  if (threadIdx.x == 0) {
    stages.ring.init(T::kBlocks * kMultipliers * kWarpgroup / 32);
    publish_barriers();
  }
  // No thread may wait for or arrive at a barrier that is not initialized yet.
  if constexpr (T::kBlocks == 1) {
    __syncthreads();
  } else {
    cluster_barrier();
  }
  const int group = static_cast<int>(threadIdx.x) / kWarpgroup;
  if (group == 0) {
    keep_registers<kCopierRegisters>();
    if (threadIdx.x == 0) copy_tiles<T>(maps, operands, shape, stages, rank);
  } else {
    take_registers<kMultiplierRegisters>();
    multiply_tiles<T>(operands, shape, stages, rank, group - 1, tape);
  }
  // A block must not end while the other may still arrive at its barriers.
  if constexpr (T::kBlocks > 1) cluster_barrier();
}

}  // namespace tilestep::moe_routing::SIMT_BACKEND::grouped_wgmma

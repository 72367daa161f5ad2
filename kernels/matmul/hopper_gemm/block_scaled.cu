// C = A·B^T in FP8 with fine-grained scales: A has one per 1 × 128 numbers, B one per 128 × 128. The tensor cores
// compute a product along 128 of k unscaled; then CUDA cores multiply it by both scales and add it to separate
// FP32 sums. That also keeps the sums accurate: inside wgmma an FP8 sum has fewer bits than FP32 (DeepSeek-AI,
// "DeepSeek-V3 Technical Report", 2024, 3.3.2).
//
// The price: a warpgroup waits for its products at each block, and promotes their sums before it issues the
// next. Meanwhile the tensor cores work on the other warpgroup's products.

#include "kernels/matmul/hopper_gemm/specialized.cu"

namespace tilestep::hopper_gemm::SIMT_BACKEND {

/// The scales: of A transposed, [k / 128][m], so that neighbouring rows are adjacent; of B [n / 128][k / 128].
struct Scales {
  simt::Global<const float> a, b;
};

/// Per tile: the more columns a product has, the smaller the share of time spent waiting for it, but the sums
/// of a block and of the tile must both fit in registers.
constexpr int kScaledColumns = 192;
constexpr int kScaleBlock = 128;

/// The scales for a thread's sums of a block of k. Loaded one block ahead, so that the products do not wait
/// for them.
struct BlockScale {
  float a[2], b[2];

  __device__ __forceinline__ void load(const Scales& scales, const GemmShape& shape, int row,
                                       int column, int block, int blocks) {
    if (block >= blocks) return;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int at = row + i * 8;
      a[i] = at < shape.m ? scales.a[static_cast<std::ptrdiff_t>(block) * shape.m + at] : 0.0f;
      const int across = column / kScaleBlock + i;
      b[i] = across * kScaleBlock < shape.n ? scales.b[across * blocks + block] : 0.0f;
    }
  }
};

/// Adds the sums of a block of k, times their scales, to the tile's. The tile's 192 columns span two of B's
/// blocks of 128: its first 64 are in the first, its last 64 in the second, and the middle 64 in either,
/// depending on where the tile begins.
template <class Sums>
__device__ __forceinline__ void promote(Sums& sums, const Sums& part, const BlockScale& by,
                                        bool middle_in_second) {
  const float middle = middle_in_second ? by.b[1] : by.b[0];
  float scale[3][2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    scale[0][half] = by.a[half] * by.b[0];
    scale[1][half] = by.a[half] * middle;
    scale[2][half] = by.a[half] * by.b[1];
  }
#pragma unroll
  for (int i = 0; i < kScaledColumns / 2; ++i) sums[i] += part[i] * scale[i / 32][i / 2 % 2];
}

/// A consumer's products for one tile.
template <class T, class R, int kCluster>
__device__ __forceinline__ void multiply_scaled(typename T::Sums& sums, const Scales& scales,
                                                const GemmShape& shape, const Stages<T, R>& stages,
                                                Turn& turn, const TilePlace& place, int consumer) {
  const int thread = static_cast<int>(threadIdx.x) % kWarpgroup;
  const int row = place.row + thread / 32 * 16 + thread % 32 / 4;
  const int blocks = (shape.k + T::kDepth - 1) / T::kDepth;
  const auto ring = stages.ring();
#pragma unroll
  for (float& sum : sums) sum = 0;
  BlockScale now{};
  BlockScale next{};
  now.load(scales, shape, row, place.column, 0, blocks);
  for (int block = 0; block < blocks; ++block, ++turn.number) {
    const int stage = ring.stage(turn);
    ring.consumer_wait(turn);
    typename T::Sums part;
    multiply_stage<T>(part, stages, stage, consumer, true);
    wgmma_commit();
    next.load(scales, shape, row, place.column, block + 1, blocks);
    wgmma_wait<0>();
    settle(part);
    release<kCluster>(ring, stage);
    promote(sums, part, now, place.column % kScaleBlock != 0);
    now = next;
  }
}

template <class T, class R, class Out, int kCluster>
__global__ void __launch_bounds__(3 * kWarpgroup, 1)
    block_scaled(const __grid_constant__ TensorMaps maps, simt::Global<Out> c, Scales scales,
                 Task task, R ring) {
  static_assert(T::kColumns == kScaledColumns && T::kFormat == Format::e4m3);
  const auto stages = lay_out<T>(ring, task.shared_bytes);
  const int rank = kCluster == 1 ? 0 : static_cast<int>(rank_in_cluster());
  begin<kCluster>(stages, simt::NoTape{});
  const int group = static_cast<int>(threadIdx.x) / kWarpgroup;
  if (group == 0) {
    keep_registers<kProducerRegisters>();
    if (threadIdx.x == 0) produce<T, R, kCluster>(maps, task, stages, rank, simt::NoTape{});
  } else {
    take_registers<kConsumerRegisters>();
    const int consumer = group - 1;
    Turn turn;
    int parts = 0;
    typename T::Sums sums;
    TileWalk<T, kCluster> walk(task.shape, task.raster, stages.rows());
    for (; walk.there(); walk.advance()) {
      TilePlace place = walk.place(rank);
      place.row += consumer * T::kRows;
      multiply_scaled<T, R, kCluster>(sums, scales, task.shape, stages, turn, place, consumer);
      if (task.stored_by_tma) {
        store_by_tma<T, Out>(maps.c, sums, stages, place, consumer, parts, simt::NoTape{});
      } else {
        store_sums<T, Out>(c, sums, task.shape, place);
      }
    }
    if (task.stored_by_tma && threadIdx.x % kWarpgroup == 0) store_wait<0>();
  }
  // A block must not exit while the other may still arrive at its barriers or copy into its stages.
  if constexpr (kCluster > 1) cluster_barrier();
}

}  // namespace tilestep::hopper_gemm::SIMT_BACKEND

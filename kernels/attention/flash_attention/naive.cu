// Attention by the textbook, in three kernels: scores to memory, softmax of each row, weights times V.
//
//   scores_to_memory       S = Q·K^T / sqrt(head_dim), with modifier and mask: one block per tile of scores
//   softmax_rows           P = softmax(S), log-sum-exp: one block per row, which stays in shared memory
//   weights_times_values   O = P·V: one block per tile of queries
//
// S and P are stored in the format of Q, K and V, as in models that write attention out in FP16 or BF16
// (PyTorch's math path does so where reduced-precision reductions are allowed); the softmax itself is FP32. All
// scores are computed, even masked ones: −∞ is written and read like any other. S, P [heads ×
// length × score_pitch(length)]; the rest as in flash_2.cu.

#include "kernels/attention/flash_attention/operands.hpp"

namespace tilestep::flash_attention::SIMT_BACKEND {

template <class T, class Tape>
__global__ void __launch_bounds__(T::kMostThreads, T::kBlocks)
    scores_to_memory(Operands<Tape> arrays, Setting set, T tiles, Tape tape) {
  const int q_size = tiles.block_q * tiles.columns;
  const int k_size = tiles.block_k * tiles.columns;
  const auto q_tile = simt::dynamic_shared<Bits>(q_size, 0, "Q tile");
  const auto k_tile = simt::dynamic_shared<Bits>(k_size, q_size * sizeof(Bits), "K tile");
  const auto s_tile = simt::dynamic_shared<Bits>(tiles.block_q * tiles.block_k,
                                                 (q_size + k_size) * sizeof(Bits), "S tile");
  const int k_tiles = (set.length() + tiles.block_k - 1) / tiles.block_k;
  const int number = static_cast<int>(blockIdx.x);
  const QueryTile mine = query_tile(set, tiles.block_q, number / k_tiles);
  const int tile = number % k_tiles;
  const int first_key = tile * tiles.block_k;
  const int last_key = min(first_key + tiles.block_k, set.length()) - 1;
  const TileKind kind = set.rule.kind(mine.first, mine.last, first_key, last_key, arrays.begins);
  const Place here = begin_visit(tape, set, tiles, mine, tile, 0, kind);

  const std::int64_t q_row = std::int64_t{mine.head} * set.length() + mine.first;
  const std::int64_t k_row = std::int64_t{set.kv_head(mine.head)} * set.length() + first_key;
  copy_rows(q_tile, arrays.q, q_row, set.length() - mine.first, tiles.block_q, tiles);
  copy_rows(k_tile, arrays.k, k_row, set.length() - first_key, tiles.block_k, tiles);
  simt::cp_async_commit();
  simt::cp_async_wait<0>();
  __syncthreads();  // all threads' copies of the tiles must have landed

  const Lane me;
  const int first_row = me.warp * T::strips * kStrip;
  Scores<T> s = {};
  multiply_scores(s, q_tile, first_row, k_tile, 0, tiles.block_k, tiles);  // [step: scores]
  modify_and_mask(s, set, arrays, mine.head, mine.first + first_row, first_key, tiles.block_k,
                  kind == TileKind::full, tape);
#pragma unroll T::kUnroll
  for (int i = 0; i < T::strips; ++i) {
    put_strip<T::kUnroll>(s_tile, first_row + i * kStrip, tiles.block_k, s[i], set.to_natural,
                          set.to_natural);
  }
  __syncwarp();  // all lanes' rows are written
  const int pitch = score_pitch(set.length());
  const Rows<decltype(arrays.s)> to{
      arrays.s + static_cast<std::ptrdiff_t>(q_row * pitch + first_key), set.length() - mine.first,
      pitch, pitch - first_key};
  store_rows(to, s_tile, first_row, T::strips * kStrip, tiles.block_k);  // [step: stores]
  end_visit(tape, here, 0, 0);
}

/// The maximum or the sum over all threads of the block, through shared memory.
template <class Combine>
__device__ __forceinline__ float of_block(float x, Combine combine) {
  __shared__ simt::Array<float, kSoftmaxThreads / 32> parts;
  for (int lane = 16; lane > 0; lane /= 2) x = combine(x, __shfl_xor_sync(kAllLanes, x, lane));
  __syncthreads();  // all have read the previous call's parts
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();  // all warps' parts are written
  x = parts[0];
  for (int warp = 1; warp < kSoftmaxThreads / 32; ++warp) x = combine(x, parts[warp]);
  return x;
}

template <class Tape>
__global__ void __launch_bounds__(kSoftmaxThreads)
    softmax_rows(Operands<Tape> arrays, Setting set) {
  const int pitch = score_pitch(set.length());
  const auto row = simt::dynamic_shared<Bits>(pitch, 0, "row of scores");
  const std::ptrdiff_t number = blockIdx.x;
  const auto from = arrays.s + number * pitch;
  const auto to = arrays.p + number * pitch;
  // Each thread reads, weights and writes its own chunks.
  const auto each = [&](auto act) {
    for (int at = static_cast<int>(threadIdx.x) * Bf16::kChunk; at < pitch;
         at += kSoftmaxThreads * Bf16::kChunk) {
      act(at);
    }
  };
  each([&](int at) { copy16(row + at, from + at, true); });  // [step: loads]
  simt::cp_async_commit();
  simt::cp_async_wait<0>();
  float largest = -INFINITY;
  each([&](int at) {
    for (int i = 0; i < Bf16::kChunk; i += 2) {
      const float2 two = Bf16::pair(row + (at + i));
      largest = fmaxf(largest, fmaxf(two.x, two.y));
    }
  });
  largest = of_block(largest, [](float a, float b) { return fmaxf(a, b); });
  const float reference = simt::softmax_reference(largest) * kLog2e;
  float sum = 0;
  each([&](int at) {
    for (int i = 0; i < Bf16::kChunk; i += 2) {
      const float2 two = Bf16::pair(row + (at + i));
      sum += simt::exp2_approx(fmaf(two.x, kLog2e, -reference));
      sum += simt::exp2_approx(fmaf(two.y, kLog2e, -reference));
    }
  });
  sum = of_block(sum, [](float a, float b) { return a + b; });
  const float inverse = sum > 0 ? 1 / sum : 0;
  each([&](int at) {
    for (int i = 0; i < Bf16::kChunk; i += 2) {
      const float2 two = Bf16::pair(row + (at + i));
      Bf16::put(row + (at + i), simt::exp2_approx(fmaf(two.x, kLog2e, -reference)) * inverse,
                simt::exp2_approx(fmaf(two.y, kLog2e, -reference)) * inverse);
    }
    store16(to + at, row + at);  // [step: weights]
  });
  if (threadIdx.x == 0) {
    store(arrays.lse + number, sum > 0 ? largest + logf(sum) : -INFINITY);
  }
}

/// Reads the weights of a warp's strips from a tile in shared memory.
template <class T>
__device__ __forceinline__ void read_strips(Scores<T>& p, simt::Shared<Bits> tile, const T& tiles) {
  const Lane me;
#pragma unroll T::kUnroll
  for (int i = 0; i < T::strips; ++i) {
    const int row = (me.warp * T::strips + i) * kStrip + me.lane / 4;
#pragma unroll T::kUnroll
    for (int j = 0; j < tiles.block_k / 8; ++j) {
      const float2 upper = Bf16::pair(tile + number_at(row, me.column(j, 0), tiles.block_k));
      const float2 lower = Bf16::pair(tile + number_at(row + 8, me.column(j, 0), tiles.block_k));
      p[i][j][0] = upper.x;
      p[i][j][1] = upper.y;
      p[i][j][2] = lower.x;
      p[i][j][3] = lower.y;
    }
  }
}

/// A tile of P and its tile of V, in one of two stages of shared memory; then a staging tile for storing
/// O.
template <class T>
struct WeightStages {
  T tiles;
  int p_size, v_size;
  simt::Shared<Bits> first, output;

  __device__ __forceinline__ explicit WeightStages(const T& its_tiles)
      : tiles(its_tiles),
        p_size(tiles.block_q * tiles.block_k),
        v_size(tiles.block_k * tiles.columns),
        first(simt::dynamic_shared<Bits>(2 * (p_size + v_size), 0, "P and V tiles")),
        output(simt::dynamic_shared<Bits>(tiles.block_q * tiles.columns,
                                          2 * (p_size + v_size) * sizeof(Bits), "O tile")) {}

  __device__ __forceinline__ simt::Shared<Bits> weights(int stage) const {
    return first + stage * (p_size + v_size);
  }
  __device__ __forceinline__ simt::Shared<Bits> values(int stage) const {
    return weights(stage) + p_size;
  }

  template <class P, class V>
  __device__ __forceinline__ void copy(int stage, const P& p, const V& v, const Setting& set,
                                       const QueryTile& mine, int tile) const {
    const int first_key = tile * tiles.block_k;
    const int pitch = score_pitch(set.length());
    const std::int64_t row = std::int64_t{mine.head} * set.length() + mine.first;
    const Rows<P> from{p + static_cast<std::ptrdiff_t>(row * pitch + first_key),
                       set.length() - mine.first, pitch, pitch - first_key};
    copy_tile<T::kUnroll>(weights(stage), from, tiles.block_q, tiles.block_k, tiles.threads);
    const std::int64_t v_row = std::int64_t{set.kv_head(mine.head)} * set.length() + first_key;
    copy_rows(values(stage), v, v_row, set.length() - first_key, tiles.block_k, tiles);
  }
};

template <class T, class Tape>
__global__ void __launch_bounds__(T::kMostThreads, T::kBlocks)
    weights_times_values(Operands<Tape> arrays, Setting set, T tiles, Tape tape) {
  const WeightStages<T> stages(tiles);
  const QueryTile mine = query_tile(set, tiles.block_q, static_cast<int>(blockIdx.x));
  const int k_tiles = (set.length() + tiles.block_k - 1) / tiles.block_k;
  Outputs<T> o = {};
  stages.copy(0, arrays.p, arrays.v, set, mine, 0);
  simt::cp_async_commit();
  for (int tile = 0; tile < k_tiles; ++tile) {
    simt::cp_async_wait<0>();
    // All threads' copies of this tile must have landed, and all must be done with the other stage.
    __syncthreads();
    if (tile + 1 < k_tiles) stages.copy((tile + 1) % 2, arrays.p, arrays.v, set, mine, tile + 1);
    simt::cp_async_commit();
    Scores<T> p;
    read_strips(p, stages.weights(tile % 2), tiles);
    multiply_values(o, p, stages.values(tile % 2), 0, tiles.block_k,
                    tiles);  // [step: values]
  }
  float ones[T::strips][2];
#pragma unroll T::kUnroll
  for (int i = 0; i < T::strips; ++i) ones[i][0] = ones[i][1] = 1;
  store_output(o, ones, stages.output, mine, set, arrays, tiles);  // [step: output]
  count_rows(tape, place_of(set, tiles, mine, k_tiles - 1, 0, TileKind::full), 0,
             mine.last - mine.first + 1);
}

}  // namespace tilestep::flash_attention::SIMT_BACKEND

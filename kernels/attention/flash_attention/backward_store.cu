// The backward pass by the textbook: the forward pass kept its weights, and each product is a kernel that reads
// matrices of length × length from memory or writes them there.
//
//   output_times_gradient   D, a number a query
//   weights_gradient        dP = dO·V^T: a block a tile of scores
//   scores_gradient         dS = P ∘ (dP − D), times the modifier's slope: a block a row
//   query_gradient          dQ = dS·K / sqrt(head_dim): a block a tile of queries
//   key_gradient            dK = dS^T·Q / sqrt(head_dim) and dV = P^T·dO: a block a tile of keys
//
// P, dP and dS lie in memory in the format of Q, K and V, as P of naive.cu, whose backward pass this is: what the mask
// hides has weight 0, and is computed, written and read like the rest. P, dP, dS [heads × length ×
// score_pitch(length)]; the rest as in flash_2.cu.

#include "kernels/attention/flash_attention/backward.hpp"
#include "kernels/attention/flash_attention/stages.hpp"

namespace tilestep::flash_attention::SIMT_BACKEND {

template <class N, class T, class W>
__global__ void __launch_bounds__(T::kMostThreads, T::kBlocks)
    weights_gradient(BackwardOperands<N, W> arrays, Setting set, T tiles, W witness) {
  if (!kRuns<N>) return;
  using Bits = typename N::Bits;
  const int q_size = tiles.block_q * tiles.columns;
  const int k_size = tiles.block_k * tiles.columns;
  const auto do_tile = simt::dynamic_shared<Bits>(q_size, 0, "dO tile");
  const auto v_tile = simt::dynamic_shared<Bits>(k_size, q_size * sizeof(Bits), "V tile");
  const auto dp_tile = simt::dynamic_shared<Bits>(tiles.block_q * tiles.block_k,
                                                  (q_size + k_size) * sizeof(Bits), "dP tile");
  const int k_tiles = (set.length() + tiles.block_k - 1) / tiles.block_k;
  const int number = static_cast<int>(blockIdx.x);
  const QueryTile mine = query_tile(set, tiles.block_q, number / k_tiles);
  const int tile = number % k_tiles;
  const int first_key = tile * tiles.block_k;
  const int last_key = min(first_key + tiles.block_k, set.length()) - 1;
  witness.begin(mine, tile,
                set.rule.kind(mine.first, mine.last, first_key, last_key, arrays.begins));

  const std::int64_t q_row = std::int64_t{mine.head} * set.length() + mine.first;
  const std::int64_t k_row = std::int64_t{set.kv_head(mine.head)} * set.length() + first_key;
  copy_tile<N, T::kUnroll>(
      do_tile,
      rows_of(arrays.d_o, q_row, set.length() - mine.first, tiles.head_dim, tiles.head_dim),
      tiles.block_q, tiles.columns, tiles.threads);
  copy_tile<N, T::kUnroll>(
      v_tile, rows_of(arrays.v, k_row, set.length() - first_key, tiles.head_dim, tiles.head_dim),
      tiles.block_k, tiles.columns, tiles.threads);
  simt::cp_async_commit();
  simt::cp_async_wait<0>();
  __syncthreads();  // everybody's part of the tiles must have arrived

  const Lane me;
  Scores<T> dp = {};
  multiply_scores<N>(dp, do_tile, me.warp * T::strips * kStrip, v_tile, 0, tiles.block_k,
                     tiles);  // [step: dP]
  const int pitch = score_pitch(set.length());
  const Rows<decltype(arrays.dp)> to{
      arrays.dp + static_cast<std::ptrdiff_t>(q_row * pitch + first_key), set.length() - mine.first,
      pitch, pitch - first_key};
  store_strips<N, T::kUnroll>(to, dp, 1, dp_tile, tiles.block_k);  // [step: stores]
  witness.end(0, 0);
}

template <class N, class W>
__global__ void __launch_bounds__(kRowThreads)
    scores_gradient(BackwardOperands<N, W> arrays, Setting set, int padded) {
  if (!kRuns<N>) return;
  const int pitch = score_pitch(set.length());
  const std::ptrdiff_t number = blockIdx.x;
  const std::int64_t head = number / set.length();
  const std::int64_t query = number % set.length();
  __shared__ simt::Array<float, 1> d_of_row;
  if (threadIdx.x == 0) {
    d_of_row[0] = load(arrays.terms + static_cast<std::ptrdiff_t>(2 * (head * padded + query) + 1));
  }
  __syncthreads();  // D is there
  const float d = d_of_row[0];
  for (int at = static_cast<int>(threadIdx.x) * N::kChunk; at < pitch;
       at += kRowThreads * N::kChunk) {
    float p[N::kChunk], ds[N::kChunk];
    load_chunk<N>(p, arrays.p + (number * pitch + at));
    load_chunk<N>(ds, arrays.dp + (number * pitch + at));
#pragma unroll
    for (int i = 0; i < N::kChunk; ++i) ds[i] = p[i] * (ds[i] - d);  // [step: dS]
    if (set.mod == ScoreMod::softcap) {
      float s[N::kChunk];
      load_chunk<N>(s, arrays.s + (number * pitch + at));
#pragma unroll
      for (int i = 0; i < N::kChunk; ++i) {
        const float t = s[i] * (1 / kSoftcap);
        ds[i] = s[i] == -INFINITY ? 0 : ds[i] * (1 - t * t);
      }
    }
    store_chunk<N>(arrays.ds + (number * pitch + at), ds);
  }
}

template <class N, class T, class W>
__global__ void __launch_bounds__(T::kMostThreads, T::kBlocks)
    query_gradient(BackwardOperands<N, W> arrays, Setting set, T tiles) {
  if (!kRuns<N>) return;
  const ScoreStages<N, T> stages(tiles);
  const QueryTile mine = query_tile(set, tiles.block_q, static_cast<int>(blockIdx.x));
  const int k_tiles = (set.length() + tiles.block_k - 1) / tiles.block_k;
  Outputs<T> dq = {};
  stages.copy(0, arrays.ds, arrays.k, set, mine, 0);
  simt::cp_async_commit();
  for (int tile = 0; tile < k_tiles; ++tile) {
    simt::cp_async_wait<0>();
    // Everybody's part of this tile must have arrived, and everybody must be done with the other stage.
    __syncthreads();
    if (tile + 1 < k_tiles) stages.copy((tile + 1) % 2, arrays.ds, arrays.k, set, mine, tile + 1);
    simt::cp_async_commit();
    Scores<T> ds;
    read_strips<N>(ds, stages.scores(tile % 2), tiles);
    multiply_values<N>(dq, ds, stages.values(tile % 2), 0, tiles.block_k, stages.scores(tile % 2),
                       tiles);  // [step: dQ]
  }
  const std::int64_t row = std::int64_t{mine.head} * set.length() + mine.first;
  store_strips<N, T::kUnroll>(
      rows_of(arrays.dq, row, set.length() - mine.first, tiles.head_dim, tiles.head_dim), dq,
      set.scale, stages.output, tiles.columns);
}

/// dK of dS and Q, or dV of P and dO: `to` = factor · matrix^T·right, of all query heads that share it.
template <class N, class T, class Matrix, class Right, class To>
__global__ void __launch_bounds__(T::kMostThreads, T::kBlocks)
    key_gradient(Matrix matrix, Right right, To to, float factor, Setting set, T tiles) {
  if (!kRuns<N>) return;
  using Bits = typename N::Bits;
  const int m_size = tiles.block_q * tiles.block_k;
  const int r_size = tiles.block_q * tiles.columns;
  const auto stages =
      simt::dynamic_shared<Bits>(2 * (m_size + r_size), 0, "tiles of both matrices");
  const auto output = simt::dynamic_shared<Bits>(tiles.block_k * tiles.columns,
                                                 2 * (m_size + r_size) * sizeof(Bits), "output");
  const KeyTile mine = key_tile(set, tiles.block_k, static_cast<int>(blockIdx.x));
  const int q_tiles = (set.length() + tiles.block_q - 1) / tiles.block_q;
  const int group = set.heads / set.kv_heads;
  const int pitch = score_pitch(set.length());
  const auto copy = [&](int visit) {
    const int first = visit % q_tiles * tiles.block_q;
    const std::int64_t row =
        (std::int64_t{mine.head} * group + visit / q_tiles) * set.length() + first;
    const auto stage = stages + visit % 2 * (m_size + r_size);
    const Rows<Matrix> from{matrix + static_cast<std::ptrdiff_t>(row * pitch + mine.first),
                            set.length() - first, pitch, pitch - mine.first};
    copy_tile<N, T::kUnroll>(stage, from, tiles.block_q, tiles.block_k, tiles.threads);
    copy_tile<N, T::kUnroll>(
        stage + m_size, rows_of(right, row, set.length() - first, tiles.head_dim, tiles.head_dim),
        tiles.block_q, tiles.columns, tiles.threads);
  };

  const Lane me;
  KeyOutputs<T> sums = {};
  copy(0);
  simt::cp_async_commit();
  for (int visit = 0; visit < group * q_tiles; ++visit) {
    simt::cp_async_wait<0>();
    // Everybody's part of this tile must have arrived, and everybody must be done with the other stage.
    __syncthreads();
    if (visit + 1 < group * q_tiles) copy(visit + 1);
    simt::cp_async_commit();
    const auto stage = stages + visit % 2 * (m_size + r_size);
    multiply_transposed<N, T::kUnroll>(sums, stage, me.warp * T::strips * kStrip, tiles.block_k,
                                       stage + m_size, 0, tiles.columns, tiles.columns / 8,
                                       tiles.block_q);  // [step: dK]
  }
  const std::int64_t row = std::int64_t{mine.head} * set.length() + mine.first;
  store_strips<N, T::kUnroll>(
      rows_of(to, row, set.length() - mine.first, tiles.head_dim, tiles.head_dim), sums, factor,
      output, tiles.columns);
}

}  // namespace tilestep::flash_attention::SIMT_BACKEND

// FlashAttention 2 (Dao, 2023): O = softmax(Q·K^T / sqrt(head_dim)) V, and no score is ever stored.
//
//   - a block owns a tile of queries and walks over the tiles of keys that any of them sees
//   - each warp has its own queries: it multiplies, exponentiates and sums independently of the others
//   - m, ℓ and O stay in registers; O is rescaled when a maximum rises and divided once, at the end
//   - the next tile of K and V is copied while the current one is multiplied
//   - only tiles on the mask's edge check which scores count
//
// Q, O [heads × length × head_dim], K, V [kv_heads × length × head_dim], row-major, BF16, multiplied by mma.sync
// (compute capability 8.0); log-sum-exp [heads × length] FP32. A query that sees no key gets 0 and −∞.

#include "kernels/attention/flash_attention/operands.hpp"

namespace tilestep::flash_attention::SIMT_BACKEND {

/// Writes scores to memory, in natural units: for `materialize`. The kernel itself avoids exactly this.
template <class T, class A>
__device__ __forceinline__ void write_scores(const Scores<T>& s, const Setting& set,
                                             const A& arrays, const QueryTile& mine, int first_key,
                                             const T& tiles) {
  const Lane me;
  for (int j = 0; j < tiles.block_k / 8; ++j) {
    for (int e = 0; e < 4; ++e) {
      const int query = mine.first + me.row(1, 0, e / 2);
      const int key = first_key + me.column(j, e);
      if (query >= set.length() || key >= set.length()) continue;
      const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(mine.head) * set.length() + query;
      store(arrays.s + (row * score_pitch(set.length()) + key),
            Bf16::of(s[0][j][e] * set.to_natural));
    }
  }
}

template <class T, class Tape>
__global__ void __launch_bounds__(T::kMostThreads, T::kBlocks)
    flash_2(Operands<Tape> arrays, Setting set, T tiles, Tape tape) {
  const int q_size = tiles.block_q * tiles.columns;
  const int k_size = tiles.block_k * tiles.columns;
  const auto q_tile = simt::dynamic_shared<Bits>(q_size, 0, "Q tile");
  const auto kv_tiles =
      simt::dynamic_shared<Bits>(4 * k_size, q_size * sizeof(Bits), "K and V tiles");

  const QueryTile mine = query_tile(set, tiles.block_q, static_cast<int>(blockIdx.x));
  const Lane me;
  const int first_row = me.warp * T::strips * kStrip;
  const std::int64_t kv_row = std::int64_t{set.kv_head(mine.head)} * set.length();
  const KeyTiles seen = set.rule.tiles(mine.first, mine.last, tiles.block_k, arrays.begins);
  // Stage 0 or 1 holds a tile of K followed by one of V.
  const auto copy = [&](int tile, int stage) {
    const int first = tile * tiles.block_k;
    const int there = set.length() - first;
    const auto to = kv_tiles + stage * 2 * k_size;
    copy_rows(to, arrays.k, kv_row + first, there, tiles.block_k, tiles);
    copy_rows(to + k_size, arrays.v, kv_row + first, there, tiles.block_k, tiles);
  };

  Outputs<T> o = {};
  RowStats<T::strips> stats;
  int tile = seen.next(0), visits = 0;
  if (tile < seen.end) {
    copy_rows(q_tile, arrays.q, std::int64_t{mine.head} * set.length() + mine.first,
              set.length() - mine.first, tiles.block_q, tiles);
    copy(tile, 0);
  }
  simt::cp_async_commit();
  for (int stage = 0; tile < seen.end; stage ^= 1) {
    const int next = seen.next(tile + 1);
    simt::cp_async_wait<0>();
    // All threads' copies of this tile must have landed, and all must be done with the other stage.
    __syncthreads();
    if (next < seen.end) copy(next, stage ^ 1);  // [step: copy]
    simt::cp_async_commit();
    const int first_key = tile * tiles.block_k;
    const bool full = seen.full(tile);
    const Place here = begin_visit(tape, set, tiles, mine, tile, visits++,
                                   full ? TileKind::full : TileKind::partial);
    const auto k_tile = kv_tiles + stage * 2 * k_size;
    Scores<T> s = {};
    multiply_scores(s, q_tile, first_row, k_tile, 0, tiles.block_k, tiles);  // [step: scores]
    modify_and_mask(s, set, arrays, mine.head, mine.first + first_row, first_key, tiles.block_k,
                    full, tape);  // [step: mask]
    if (tape.does(Break::materialize)) write_scores(s, set, arrays, mine, first_key, tiles);
    online_softmax(s, o, stats, set, tiles, tape, here);              // [step: softmax]
    multiply_values(o, s, k_tile + k_size, 0, tiles.block_k, tiles);  // [step: values]
    tile = next;
    note_outputs(tape, here, o);
    end_visit(tape, here, 0, tile < seen.end ? 0 : mine.last - mine.first + 1);
  }
  finish(o, stats, q_tile, mine, set, arrays, tiles);  // [step: output]
}

}  // namespace tilestep::flash_attention::SIMT_BACKEND

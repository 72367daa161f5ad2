// The backward pass of FlashAttention 2 (Dao, 2023): dQ, dK and dV from Q, K, V, dO and the forward pass's O and
// log-sum-exp. No score was kept: weights are recomputed as exp(score − log-sum-exp), with no maximum to
// find.
//
//   output_times_gradient   D, one number per query, and zeros for dQ
//   backward_recompute      a block owns a tile of keys and walks over the tiles of queries that see any of them
//   round_query_gradient    dQ's sums, scaled, in its own format
//
// Five products per tile of scores, two of them the forward pass's work:
//
//   - scores have keys down and queries across, S^T = K·Q^T and dP^T = V·dO^T, each warp with its own keys. mma then
//     leaves in registers what dV += P^T·dO and dK += dS^T·Q take; their accumulators stay in registers
//   - dQ = dS·K adds up over keys, that is over warps and blocks: dS goes through shared memory to be multiplied,
//     and the product is added to FP32 sums in memory with atomics. A separate kernel over tiles of queries would need
//     none, but would repeat two of the five products, and tensor cores are the bottleneck
//   - dQ's sums are laid out in memory like accumulators in registers, so that a warp adds 512 contiguous bytes
//   - dK and dV of a head that several query heads share add up in registers, one head after another: no atomics,
//     and deterministic. dQ depends, by rounding, on the order of the blocks
//
// Layouts as in flash_2.cu; sums of dQ [heads × strips of 16 queries × fragments of 8 columns × 32 lanes × 4].

#include "kernels/attention/attention_backward/backward_tiles.hpp"

namespace tilestep::attention_backward::SIMT_BACKEND {

/// The tiles of queries that a block visits, one head after another.
struct QueryWalk {
  int begin, count;  ///< tiles of a head that see any key of the block
  int shift;         ///< index of the first one
  int head, end;     ///< over the query heads
  int i = 0;

  __device__ __forceinline__ bool there() const { return head < end; }
  __device__ __forceinline__ void advance() {
    if (++i < count) return;
    i = 0;
    ++head;
  }
  __device__ __forceinline__ QueryTile tile(const Setting& set, int block_q) const {
    const int tile = begin + (i + shift < count ? i + shift : i + shift - count);
    const int first = tile * block_q;
    return {head, tile, first, min(first + block_q, set.length()) - 1};
  }
};
/// Without a mask all blocks of a head would start with the same queries and add to the same rows of dQ: so each
/// starts with different ones. With a mask they differ anyway.
template <class Begins>
__device__ __forceinline__ QueryWalk walk_of(const Setting& set, const KeyTile& mine, int block_q,
                                             const Begins& begins) {
  const QueryTiles seen = set.rule.query_tiles(mine.first, mine.last, block_q, begins);
  const int group = set.heads / set.kv_heads;
  const int count = seen.count();
  const int shift = set.rule.mask == Mask::none ? mine.tile % count : 0;
  const int first = mine.head * group;
  return {seen.begin, count, shift, first, count > 0 ? first + group : first};
}

/// A block's shared memory.
template <class T>
struct BackwardTiles {
  int q_size, k_size;
  simt::Shared<Bits> k, v, stages, ds;
  simt::Shared<float> terms;

  __device__ __forceinline__ explicit BackwardTiles(const T& tiles)
      : q_size(tiles.block_q * tiles.columns),
        k_size(tiles.block_k * tiles.columns),
        k(simt::dynamic_shared<Bits>(k_size, 0, "K tile")),
        v(simt::dynamic_shared<Bits>(k_size, k_size * sizeof(Bits), "V tile")),
        stages(simt::dynamic_shared<Bits>(4 * q_size, 2 * k_size * sizeof(Bits), "Q and dO tiles")),
        ds(simt::dynamic_shared<Bits>(tiles.block_k * tiles.block_q,
                                      (2 * k_size + 4 * q_size) * sizeof(Bits), "dS tile")),
        terms(simt::dynamic_shared<float>(
            4 * tiles.block_q,
            (2 * k_size + 4 * q_size + tiles.block_k * tiles.block_q) * sizeof(Bits),
            "log-sum-exp and D")) {}

  __device__ __forceinline__ simt::Shared<Bits> q(int stage) const {
    return stages + stage * 2 * q_size;
  }
  __device__ __forceinline__ simt::Shared<Bits> d_o(int stage) const { return q(stage) + q_size; }

  /// Starts the copies of a tile of queries: Q, dO, and the output of D's kernel.
  template <class A>
  __device__ __forceinline__ void copy(int stage, const QueryTile& from, const Setting& set,
                                       const A& arrays, const T& tiles) const {
    const std::int64_t row = std::int64_t{from.head} * set.length() + from.first;
    const int there = set.length() - from.first;
    copy_rows(q(stage), arrays.q, row, there, tiles.block_q, tiles);
    copy_rows(d_o(stage), arrays.d_o, row, there, tiles.block_q, tiles);
    const int q_tiles = (set.length() + tiles.block_q - 1) / tiles.block_q;
    const std::int64_t first = (std::int64_t{from.head} * q_tiles + from.tile) * tiles.block_q;
    for (int i = 4 * static_cast<int>(threadIdx.x); i < 2 * tiles.block_q; i += 4 * tiles.threads) {
      copy16(terms + (stage * 2 * tiles.block_q + i),
             arrays.terms + static_cast<std::ptrdiff_t>(2 * first + i), true);
    }
  }
};

/// `modify` and `mask` of softmax.hpp for scores with keys down and queries across.
template <int kStrips, int kFragments>
__device__ __forceinline__ void modify_keys(float (&s)[kStrips][kFragments][4], const Setting& set,
                                            int head, int first_query, int first_key) {
  const Lane me;
  const float slope = set.slope(head);
#pragma unroll kNever
  for (int i = 0; i < kStrips; ++i) {
#pragma unroll kNever
    for (int j = 0; j < kFragments; ++j) {
#pragma unroll kNever
      for (int e = 0; e < 4; ++e) {
        const float score = s[i][j][e] * set.scale;
        const int key = first_key + i * kStrip + e / 2 * 8 + me.lane / 4;
        const int query = first_query + me.column(j, e);
        s[i][j][e] = set.mod == ScoreMod::alibi
                         ? fmaf(-slope, fabsf(static_cast<float>(key - query)), score)
                         : kSoftcap * tanhf(score * (1 / kSoftcap));
      }
    }
  }
}
template <int kStrips, int kFragments, class Begins>
__device__ __forceinline__ void mask_keys(float (&s)[kStrips][kFragments][4], const MaskRule& rule,
                                          const Begins& begins, int first_query, int first_key,
                                          int slack) {
  const Lane me;
#pragma unroll
  for (int j = 0; j < kFragments; ++j) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int query = min(first_query + me.column(j, e), rule.length - 1);
      const int first = rule.first_key(query, begins);
      const int last = min(rule.last_key(query) + slack, rule.length - 1);
#pragma unroll
      for (int row = 0; row < 2 * kStrips; ++row) {
        const int key = first_key + row * 8 + me.lane / 4;
        const bool seen = key <= last && (key >= first || key < rule.first_keys());
        if (!seen) s[row / 2][j][row % 2 * 2 + e] = -INFINITY;
      }
    }
  }
}

/// A key's numbers for the chosen query, as they are in registers.
struct PairRecord {
  float p, dp, ds;
};
template <class Tape>
__device__ __forceinline__ void note_pair(const Tape& tape, const Place& here, int row, int key,
                                          int length, const PairRecord& pair) {
  if (!tape.chosen(here.first_row + row) || key >= length) return;
  tape.put(kRows, key, pair.p);
  tape.put(kRows, length + key, pair.dp);
  tape.put(kRows, 2 * length + key, pair.ds);
}

/// Turns scores into weights, and dP into dS.
template <class Tape, class T>
__device__ __forceinline__ void weigh(const T&, KeyScores<T>& s, KeyScores<T>& dp,
                                      simt::Shared<const float> terms, const Setting& set,
                                      int first_query, int first_key, const Tape& tape,
                                      const Place& here) {
  const Lane me;
  const float to_log2 = set.to_log2();
#pragma unroll T::kUnroll
  for (int j = 0; j < T::part / 8; ++j) {
    // For two neighbouring queries: log-sum-exp to base 2, D.
    const float4 two = simt::as<const float4>(terms + 2 * me.column(j, 0))[0];
#pragma unroll T::kUnroll
    for (int i = 0; i < T::strips; ++i) {
#pragma unroll T::kUnroll
      for (int e = 0; e < 4; ++e) {
        const float score = s[i][j][e];
        const float weight = simt::exp2_approx(fmaf(score, to_log2, -(e % 2 == 0 ? two.x : two.z)));
        float ds = weight * (dp[i][j][e] - (e % 2 == 0 ? two.y : two.w));  // [step: dS]
        if constexpr (Tape::kRecords) {
          const float t = score * (1 / kSoftcap);
          if (set.mod == ScoreMod::softcap) ds = score == -INFINITY ? 0 : ds * (1 - t * t);
        }
        note_pair(tape, here, first_query + me.column(j, e),
                  first_key + i * kStrip + e / 2 * 8 + me.lane / 4, set.length(),
                  {weight, dp[i][j][e], ds});
        s[i][j][e] = weight;
        dp[i][j][e] = ds;
      }
    }
  }
}

/// Writes dS of a warp's strips, for the queries from `first_query` on, to the tile of dS.
template <int kUnroll, int kStrips, int kFragments>
__device__ __forceinline__ void put_part(simt::Shared<Bits> ds_tile, int first_row, int first_query,
                                         int queries, const float (&ds)[kStrips][kFragments][4]) {
  const Lane me;
#pragma unroll kUnroll
  for (int i = 0; i < kStrips; ++i) {
    const int row = first_row + i * kStrip + me.lane / 4;
#pragma unroll kUnroll
    for (int j = 0; j < kFragments; ++j) {
      const int column = first_query + me.column(j, 0);
      Bf16::put(ds_tile + number_at(row, column, queries), ds[i][j][0], ds[i][j][1]);
      Bf16::put(ds_tile + number_at(row + 8, column, queries), ds[i][j][2], ds[i][j][3]);
    }
  }
}

/// Adds dS·K to the sums of a tile of queries. Each warp takes blocks of 32 columns.
template <class T, class Sums, class Tape>
__device__ __forceinline__ void add_query_gradient(const Sums& sums, simt::Shared<Bits> ds_tile,
                                                   simt::Shared<Bits> k_tile, const T& tiles,
                                                   const Tape& tape, const Place& here) {
  constexpr int kColumns = 32;
  const Lane me;
  const int across = tiles.columns / kColumns;
  const int pieces = tiles.block_q / (T::sum_strips * kStrip) * across;
#pragma unroll 1
  for (int piece = me.warp; piece < pieces; piece += tiles.threads / 32) {
    const int strip = piece / across * T::sum_strips;
    const int first_column = piece % across * kColumns;
    float dq[T::sum_strips][kColumns / 8][4] = {};
    multiply_transposed<T::kUnroll>(dq, ds_tile, strip * kStrip, tiles.block_q, k_tile,
                                    first_column, tiles.columns, kColumns / 8, tiles.block_k);
#pragma unroll T::kUnroll
    for (int i = 0; i < T::sum_strips; ++i) {
#pragma unroll T::kUnroll
      for (int j = 0; j < kColumns / 8; ++j) {
        const int fragment = (strip + i) * (tiles.columns / 8) + first_column / 8 + j;
        add4(sums + (fragment * 32 + me.lane) * 4,
             make_float4(dq[i][j][0], dq[i][j][1], dq[i][j][2], dq[i][j][3]));
        for (int half = 0; first_column + me.column(j, 0) == 0 && half < 2; ++half) {
          const int row = (strip + i) * kStrip + half * 8 + me.lane / 4;
          if (!tape.chosen(here.first_row + row)) continue;
          tape.put(kSteps, here.k_tile, StepRecord{{.order = here.order}, dq[i][j][2 * half]});
        }
      }
    }
  }
}

template <class T, class Tape>
__global__ void __launch_bounds__(T::kMostThreads, T::kBlocks)
    backward_recompute(BackwardOperands<Tape> arrays, Setting set, T tiles, Tape tape) {
  assume_few_threads();
  const BackwardTiles<T> shared(tiles);
  const KeyTile mine = key_tile(set, tiles.block_k, static_cast<int>(blockIdx.x));
  const Lane me;
  const int first_row = me.warp * T::strips * kStrip;
  const std::int64_t kv_row = std::int64_t{mine.head} * set.length() + mine.first;
  const int keys_there = set.length() - mine.first;
  const int q_tiles = (set.length() + tiles.block_q - 1) / tiles.block_q;
  const auto rows = [&](const auto& array) {
    return rows_of(array, kv_row, keys_there, tiles.head_dim, tiles.head_dim);
  };

  KeyOutputs<T> dk = {}, dv = {};
  QueryWalk walk = walk_of(set, mine, tiles.block_q, arrays.begins);
  if (walk.there()) {
    copy_rows(shared.k, arrays.k, kv_row, keys_there, tiles.block_k, tiles);
    copy_rows(shared.v, arrays.v, kv_row, keys_there, tiles.block_k, tiles);
    shared.copy(0, walk.tile(set, tiles.block_q), set, arrays, tiles);
  }
  simt::cp_async_commit();
  int visits = 0;
  for (int stage = 0; walk.there(); stage ^= 1) {
    const QueryTile queries = walk.tile(set, tiles.block_q);
    walk.advance();
    simt::cp_async_wait<0>();
    // All threads' copies of this tile must have landed, and all must be done with the other stage and dS.
    __syncthreads();
    if (walk.there()) shared.copy(stage ^ 1, walk.tile(set, tiles.block_q), set, arrays, tiles);
    simt::cp_async_commit();
    const TileKind kind =
        set.rule.kind(queries.first, queries.last, mine.first, mine.last, arrays.begins);
    const Place here = begin_visit(tape, set, tiles, queries, mine.tile, visits++, kind);
#pragma unroll 1
    for (int part = 0; part < tiles.block_q; part += T::part) {
      const auto q_part = shared.q(stage) + part * tiles.columns;
      const auto do_part = shared.d_o(stage) + part * tiles.columns;
      KeyScores<T> s = {}, dp = {};
      multiply_scores(s, shared.k, first_row, q_part, 0, T::part, tiles);  // [step: scores]
      if constexpr (Tape::kRecords) {
        if (set.mod != ScoreMod::none) {
          modify_keys(s, set, queries.head, queries.first + part, mine.first + first_row);
        }
      }
      if (kind != TileKind::full || keys_there < tiles.block_k) {
        mask_keys(s, set.rule, arrays.begins, queries.first + part, mine.first + first_row,
                  tape.does(Break::mask_off_by_one) ? 1 : 0);  // [step: mask]
      }
      multiply_scores(dp, shared.v, first_row, do_part, 0, T::part, tiles);  // [step: dP]
      const auto terms = shared.terms + 2 * (stage * tiles.block_q + part);
      weigh(tiles, s, dp, terms, set, part, mine.first + first_row, tape, here);  // [step: weights]
      multiply_values(dv, s, do_part, 0, T::part, tiles);                         // [step: dV]
      put_part<T::kUnroll>(shared.ds, first_row, part, tiles.block_q, dp);
      multiply_values(dk, dp, q_part, 0, T::part, tiles);  // [step: dK]
    }
    __syncthreads();  // all warps' dS is written
    const std::int64_t at =
        (std::int64_t{queries.head} * q_tiles + queries.tile) * tiles.block_q * tiles.columns;
    add_query_gradient(arrays.dq_sums + static_cast<std::ptrdiff_t>(at), shared.ds, shared.k, tiles,
                       tape, here);  // [step: dQ]
    end_visit(tape, here, 0, queries.last - queries.first + 1);
  }
  __syncthreads();  // all warps are done with K
  store_strips<T::kUnroll>(rows(arrays.dv), dv, 1, shared.v, tiles.columns);
  store_strips<T::kUnroll>(rows(arrays.dk), dk, set.scale, shared.k,
                           tiles.columns);  // [step: output]
}

/// dQ from its sums: one warp per strip of 16 queries, `padded` queries per head, through shared memory.
template <class Tape>
__global__ void __launch_bounds__(kRowThreads)
    round_query_gradient(BackwardOperands<Tape> arrays, Setting set, int head_dim, int columns,
                         int padded) {
  const auto tile = simt::dynamic_shared<Bits>(kRowThreads / 32 * kStrip * columns, 0, "dQ tile");
  const Lane me;
  const std::int64_t strip = std::int64_t{blockIdx.x} * (kRowThreads / 32) + me.warp;
  const int strips = padded / kStrip;
  if (strip >= std::int64_t{set.heads} * strips) return;
  const int head = static_cast<int>(strip / strips);
  const int first = static_cast<int>(strip % strips) * kStrip;
  const auto from = arrays.dq_sums + static_cast<std::ptrdiff_t>(strip * kStrip * columns);
  const int row = me.warp * kStrip + me.lane / 4;
  [[maybe_unused]] constexpr int kUnroll = Tape::kRecords ? kNever : 4;
#pragma unroll kUnroll
  for (int j = 0; j < columns / 8; ++j) {
    const auto at = from + (j * 32 + me.lane) * 4;
    ask(at, 0, 16);
    const float4 four = simt::as<const float4>(array_of(at))[0];
    Bf16::put(tile + number_at(row, me.column(j, 0), columns), four.x * set.scale,
              four.y * set.scale);
    Bf16::put(tile + number_at(row + 8, me.column(j, 0), columns), four.z * set.scale,
              four.w * set.scale);
  }
  __syncwarp();  // all lanes' rows are written
  const std::int64_t to_row = std::int64_t{head} * set.length() + first;
  const auto own = tile + me.warp * kStrip * columns;
  store_rows(rows_of(arrays.dq, to_row, set.length() - first, head_dim, head_dim), own, 0, kStrip,
             columns);
}

}  // namespace tilestep::attention_backward::SIMT_BACKEND

// FlashAttention 1 (Dao et al., 2022, algorithm 1): no score is stored, but O, its maximum and its sum are,
// again and again.
//
//   - one block per head; the outer loop is over tiles of keys, the inner one over tiles of queries
//   - O, m and ℓ of all queries are in memory: every visit reads them, rescales them to the new maximum, adds
//     its part, divides, and writes them back
//   - warps split the keys of a tile, 16 each: every warp has a partial maximum, sum and product with V for a
//     row, and they are combined through shared memory
//
// Arrays as in flash_2.cu; m, ℓ [heads × length] FP32, m in natural units. O is kept in FP32 (o_sums) until the
// end, as the authors' code does.

#include "kernels/attention/flash_attention/operands.hpp"

namespace tilestep::flash_attention::SIMT_BACKEND {

/// Data that a block's warps exchange about a strip of 16 queries.
struct StripBoard {
  int warps, columns;
  simt::Shared<float> parts;    ///< [warps × 16 × columns]: each warp's weights times V
  simt::Shared<float> maxima;   ///< [warps × 16]
  simt::Shared<float> sums;     ///< [warps × 16]
  simt::Shared<float> factors;  ///< [2 × 16]: for O so far and for the new part

  __device__ StripBoard(int its_warps, int its_columns, std::size_t at)
      : warps(its_warps), columns(its_columns) {
    const int rows = warps * kStrip;
    const auto next = [&](int count, const char* name) {
      const auto part = simt::dynamic_shared<float>(static_cast<std::size_t>(count), at, name);
      at += static_cast<std::size_t>(count) * sizeof(float);
      return part;
    };
    parts = next(rows * columns, "parts of O");
    maxima = next(rows, "maxima");
    sums = next(rows, "sums");
    factors = next(2 * kStrip, "factors");
  }
  __device__ float max_of(int row) const {
    float largest = -INFINITY;
    for (int warp = 0; warp < warps; ++warp) largest = fmaxf(largest, maxima[warp * kStrip + row]);
    return largest;
  }
  __device__ float sum_of(int row) const {
    float sum = 0;
    for (int warp = 0; warp < warps; ++warp) sum += sums[warp * kStrip + row];
    return sum;
  }
};

template <class From>
__device__ __forceinline__ float4 load_four(const From& from) {
  ask(from, 0, 16);
  return __ldcg(&simt::as<const float4>(array_of(from))[0]);
}
template <class To>
__device__ __forceinline__ void store_four(const To& to, const float4& four) {
  ask(to, 1, 16);
  simt::as<float4>(array_of(to))[0] = four;
}

/// The warp's 16 keys: their scores, their weights relative to the tile's own maximum, and their part of O, all
/// to the board.
template <class T, class A, class Tape>
__device__ __forceinline__ void weigh_strip(const StripBoard& board, simt::Shared<Bits> q_tile,
                                            int strip, simt::Shared<Bits> k_tile,
                                            simt::Shared<Bits> v_tile, const Setting& set,
                                            const A& arrays, int head, int first_query,
                                            int first_key, bool full, const T& tiles,
                                            const Tape& tape) {
  const Lane me;
  const int keys = me.warp * kStrip;  // the warp's first, in the tile
  float s[1][2][4] = {};
  multiply_scores(s, q_tile, strip * kStrip, k_tile, keys, kStrip, tiles);  // [step: scores]
  modify_and_mask(s, set, arrays, head, first_query, first_key + keys, kStrip, full, tape);
#pragma unroll T::kUnroll
  for (int half = 0; half < 2; ++half) {
    const float mine = fmaxf(fmaxf(s[0][0][2 * half], s[0][0][2 * half + 1]),
                             fmaxf(s[0][1][2 * half], s[0][1][2 * half + 1]));
    const float largest = max_of_row(mine);
    if (me.lane % 4 == 0) board.maxima[keys + half * 8 + me.lane / 4] = largest;
  }
  __syncthreads();  // all warps' maxima are written
#pragma unroll T::kUnroll
  for (int half = 0; half < 2; ++half) {
    const int row = half * 8 + me.lane / 4;
    const float reference = simt::softmax_reference(board.max_of(row)) * set.to_log2();
    float sum = 0;
#pragma unroll T::kUnroll
    for (int j = 0; j < 2; ++j) {
#pragma unroll T::kUnroll
      for (int e = 2 * half; e < 2 * half + 2; ++e) {
        s[0][j][e] = simt::exp2_approx(fmaf(s[0][j][e], set.to_log2(), -reference));
        sum += s[0][j][e];
      }
    }
    sum = sum_of_row(sum);  // [step: softmax]
    if (me.lane % 4 == 0) board.sums[keys + row] = sum;
  }
  float o[1][T::kMostColumns / 8][4] = {};
  multiply_values(o, s, v_tile, keys, kStrip, tiles);  // [step: values]
#pragma unroll T::kUnroll
  for (int j = 0; j < tiles.columns / 8; ++j) {
#pragma unroll T::kUnroll
    for (int e = 0; e < 4; ++e) {
      const int row = keys + e / 2 * 8 + me.lane / 4;
      board.parts[row * tiles.columns + me.column(j, e)] = o[0][j][e];
    }
  }
  __syncthreads();  // all warps' sums and parts are written
}

/// Rescales m and ℓ of the strip's rows to their new maximum, one thread per row.
template <class A, class Tape>
__device__ __forceinline__ void rescale_rows(const StripBoard& board, const A& arrays,
                                             std::ptrdiff_t first, int rows, int strip,
                                             float to_natural, const Tape& tape,
                                             const Place& here) {
  const int row = static_cast<int>(threadIdx.x);
  if (row >= rows) return;
  const float tile_max = board.max_of(row) * to_natural;
  const float tile_sum = board.sum_of(row);
  const float m_before = load(arrays.m + (first + row));
  const float l_before = load(arrays.l + (first + row));
  float m_after = m_before;
  const auto step = simt::raise_maximum<simt::BinaryExp>(m_after, tile_max, kLog2e);
  const float old = tape.does(Break::skip_rescale) ? 1.0f : step.rescale;
  const float now = step.weight(tile_max, kLog2e);
  const float l_after = fmaf(old, l_before, now * tile_sum);
  store(arrays.m + (first + row), m_after);
  store(arrays.l + (first + row), l_after);
  const float inverse = l_after > 0 ? 1 / l_after : 0;
  board.factors[row] = old * l_before * inverse;
  board.factors[kStrip + row] = now * inverse;
  note_step(tape, here, strip * kStrip + row,
            {{.tile_max = tile_max,
              .m_before = m_before,
              .m_after = m_after,
              .rescale = old,
              .tile_sum = now * tile_sum,
              .l = l_after}});
}

/// O = old factor · O + new factor · the warps' parts.
template <class To, class T, class Tape>
__device__ __forceinline__ void add_parts(const StripBoard& board, const To& sums,
                                          std::ptrdiff_t first, int rows, int strip, const T& tiles,
                                          const Tape& tape, const Place& here) {
  const int fours = tiles.head_dim / 4;
  for (int i = static_cast<int>(threadIdx.x); i < rows * fours; i += tiles.threads) {
    const int row = i / fours;
    const int column = i % fours * 4;
    float4 part = make_float4(0, 0, 0, 0);
    for (int warp = 0; warp < board.warps; ++warp) {
      const int at = (warp * kStrip + row) * board.columns + column;
      const float4 of_warp = simt::as<const float4>(board.parts + at)[0];
      part.x += of_warp.x;
      part.y += of_warp.y;
      part.z += of_warp.z;
      part.w += of_warp.w;
    }
    const float old = board.factors[row];
    const float now = board.factors[kStrip + row];
    const auto place = sums + (first + row) * tiles.head_dim + column;
    float4 o = load_four(place);
    o = make_float4(fmaf(old, o.x, now * part.x), fmaf(old, o.y, now * part.y),
                    fmaf(old, o.z, now * part.z), fmaf(old, o.w, now * part.w));
    store_four(place, o);  // [step: output]
    if (column == 0) note_output(tape, here, strip * kStrip + row, o.x);
  }
}

/// O = 0, ℓ = 0, m = −∞, for all queries of the head.
template <class A, class T>
__device__ __forceinline__ void begin_head(const A& arrays, const Setting& set,
                                           std::ptrdiff_t first, const T& tiles) {
  const auto sums = arrays.o_sums;
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < set.length() * (tiles.head_dim / 4); i += tiles.threads) {
    store_four(sums + (first * tiles.head_dim + std::ptrdiff_t{4} * i), make_float4(0, 0, 0, 0));
  }
  for (int i = thread; i < set.length(); i += tiles.threads) {
    store(arrays.m + (first + i), -INFINITY);
    store(arrays.l + (first + i), 0.0f);
  }
}

/// The log-sum-exp, and O in its own format.
template <class A, class T>
__device__ __forceinline__ void end_head(const A& arrays, const Setting& set, std::ptrdiff_t first,
                                         const T& tiles) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < set.length(); i += tiles.threads) {
    const float l = load(arrays.l + (first + i));
    const float m = load(arrays.m + (first + i));
    store(arrays.lse + (first + i), l > 0 ? m + logf(l) : -INFINITY);
  }
  for (int i = thread; i < set.length() * (tiles.head_dim / 8); i += tiles.threads) {
    const std::ptrdiff_t at = first * tiles.head_dim + std::ptrdiff_t{8} * i;
    const float4 left = load_four(arrays.o_sums + at);
    const float4 right = load_four(arrays.o_sums + (at + 4));
    ask(arrays.o, 1, 16);
    simt::as<uint4>(array_of(arrays.o) + at)[0] =
        make_uint4(Bf16::pack(left.x, left.y), Bf16::pack(left.z, left.w),
                   Bf16::pack(right.x, right.y), Bf16::pack(right.z, right.w));
  }
}

template <class T, class Tape>
__global__ void __launch_bounds__(T::kMostThreads, T::kBlocks)
    flash_1(Operands<Tape> arrays, Setting set, T tiles, Tape tape) {
  const int k_size = tiles.block_k * tiles.columns;
  const int q_size = tiles.block_q * tiles.columns;
  const auto k_tile = simt::dynamic_shared<Bits>(k_size, 0, "K tile");
  const auto v_tile = simt::dynamic_shared<Bits>(k_size, k_size * sizeof(Bits), "V tile");
  const auto q_tile = simt::dynamic_shared<Bits>(q_size, 2 * k_size * sizeof(Bits), "Q tile");
  const StripBoard board(tiles.block_k / kStrip, tiles.columns,
                         (2 * k_size + q_size) * sizeof(Bits));
  const int head = static_cast<int>(blockIdx.x);
  const std::ptrdiff_t first_row = static_cast<std::ptrdiff_t>(head) * set.length();
  const std::ptrdiff_t kv_row = static_cast<std::ptrdiff_t>(set.kv_head(head)) * set.length();
  begin_head(arrays, set, first_row, tiles);
  int visits = 0;
  for (int first_key = 0, key_tile = 0; first_key < set.length();
       first_key += tiles.block_k, ++key_tile) {
    const int last_key = min(first_key + tiles.block_k, set.length()) - 1;
    const int keys = set.length() - first_key;
    copy_rows(k_tile, arrays.k, kv_row + first_key, keys, tiles.block_k, tiles);
    copy_rows(v_tile, arrays.v, kv_row + first_key, keys, tiles.block_k, tiles);
    for (int first = 0, tile = 0; first < set.length(); first += tiles.block_q, ++tile) {
      const QueryTile mine{head, tile, first, min(first + tiles.block_q, set.length()) - 1};
      const TileKind kind =
          set.rule.kind(mine.first, mine.last, first_key, last_key, arrays.begins);
      if (kind == TileKind::skipped) continue;
      copy_rows(q_tile, arrays.q, first_row + first, set.length() - first, tiles.block_q, tiles);
      simt::cp_async_commit();
      simt::cp_async_wait<0>();
      // All threads' copies of the tiles must have landed, and the initial O, m and ℓ must be in memory.
      __syncthreads();
      const Place here = begin_visit(tape, set, tiles, mine, key_tile, visits++, kind);
      for (int strip = 0; strip < tiles.block_q / kStrip; ++strip) {
        const int query = first + strip * kStrip;
        const int rows = min(set.length() - query, kStrip);
        if (rows <= 0) break;
        weigh_strip(board, q_tile, strip, k_tile, v_tile, set, arrays, head, query, first_key,
                    kind == TileKind::full, tiles, tape);
        rescale_rows(board, arrays, first_row + query, rows, strip, set.to_natural, tape,
                     here);  // [step: rescale]
        // All rows' factors are written, and maxima are no longer read: the next strip's may be written.
        __syncthreads();
        add_parts(board, arrays.o_sums, first_row + query, rows, strip, tiles, tape, here);
      }
      const int rows = mine.last - mine.first + 1;
      end_visit(tape, here, rows, rows);
    }
    simt::cp_async_wait<0>();
    __syncthreads();  // all are done with the tiles of keys
  }
  end_head(arrays, set, first_row, tiles);
}

}  // namespace tilestep::flash_attention::SIMT_BACKEND

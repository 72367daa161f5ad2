#pragma once

/// \file
/// Scores or weights that come back from memory, tile by tile: what naive.cu and fused_softmax.cu share.

#include "kernels/attention/flash_attention/softmax.hpp"

namespace tilestep::flash_attention::SIMT_BACKEND {

/// Scores or weights of a warp's strips from a tile in shared memory.
template <class N, class T>
__device__ __forceinline__ void read_strips(Scores<T>& s, simt::Shared<typename N::Bits> tile,
                                            const T& tiles) {
  const Lane me;
#pragma unroll T::kUnroll
  for (int i = 0; i < T::strips; ++i) {
    const int row = (me.warp * T::strips + i) * kStrip + me.lane / 4;
#pragma unroll T::kUnroll
    for (int j = 0; j < tiles.block_k / 8; ++j) {
      const float2 upper = N::pair(tile + number_at<N>(row, me.column(j, 0), tiles.block_k));
      const float2 lower = N::pair(tile + number_at<N>(row + 8, me.column(j, 0), tiles.block_k));
      s[i][j][0] = upper.x;
      s[i][j][1] = upper.y;
      s[i][j][2] = lower.x;
      s[i][j][3] = lower.y;
    }
  }
}

/// A tile of S or P and the tile of V that belongs to it, in one of two stages of shared memory; then a tile
/// for O on its way out.
template <class N, class T>
struct ScoreStages {
  using Bits = typename N::Bits;

  T tiles;
  int s_size, v_size;
  simt::Shared<Bits> first, output;

  __device__ __forceinline__ explicit ScoreStages(const T& its_tiles)
      : tiles(its_tiles),
        s_size(tiles.block_q * tiles.block_k),
        v_size(tiles.block_k * tiles.columns),
        first(simt::dynamic_shared<Bits>(2 * (s_size + v_size), 0, "S and V tiles")),
        output(simt::dynamic_shared<Bits>(tiles.block_q * tiles.columns,
                                          2 * (s_size + v_size) * sizeof(Bits), "O tile")) {}

  __device__ __forceinline__ simt::Shared<Bits> scores(int stage) const {
    return first + stage * (s_size + v_size);
  }
  __device__ __forceinline__ simt::Shared<Bits> values(int stage) const {
    return scores(stage) + s_size;
  }

  template <class S, class V>
  __device__ __forceinline__ void copy(int stage, const S& s, const V& v, const Setting& set,
                                       const QueryTile& mine, int tile) const {
    const int first_key = tile * tiles.block_k;
    const int pitch = score_pitch(set.length());
    const std::int64_t row = std::int64_t{mine.head} * set.length() + mine.first;
    const Rows<S> from{s + static_cast<std::ptrdiff_t>(row * pitch + first_key),
                       set.length() - mine.first, pitch, pitch - first_key};
    copy_tile<N, T::kUnroll>(scores(stage), from, tiles.block_q, tiles.block_k, tiles.threads);
    const std::int64_t v_row = std::int64_t{set.kv_head(mine.head)} * set.length() + first_key;
    copy_tile<N, T::kUnroll>(
        values(stage), rows_of(v, v_row, set.length() - first_key, tiles.head_dim, tiles.head_dim),
        tiles.block_k, tiles.columns, tiles.threads);
  }
};

}  // namespace tilestep::flash_attention::SIMT_BACKEND

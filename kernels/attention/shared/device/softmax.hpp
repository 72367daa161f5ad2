#pragma once

/// \file
/// The lesson's operations on scores: scale, modifier, mask, one-pass softmax.

#include <cmath>

#include "kernels/attention/shared/device/record.hpp"
#include "kernels/base/simt/softmax_step.hpp"

namespace tilestep::attention::SIMT_BACKEND {

// ---- scores -------------------------------------------------------------------------------------------

/// Applies scale and modifier, if there is one: scores are then in natural units.
template <int kStrips, int kFragments>
__device__ __forceinline__ void modify(float (&s)[kStrips][kFragments][4], const Setting& set,
                                       int head, int first_query, int first_key, int keys) {
  const Lane me;
  const float slope = set.slope(head);
#pragma unroll kNever
  for (int i = 0; i < kStrips; ++i) {
#pragma unroll kNever
    for (int j = 0; j < keys / 8; ++j) {
#pragma unroll kNever
      for (int e = 0; e < 4; ++e) {
        const float score = s[i][j][e] * set.scale;
        const int query = first_query + i * kStrip + e / 2 * 8 + me.lane / 4;
        const int key = first_key + me.column(j, e);
        // A score modifier is this one line.
        s[i][j][e] = set.mod == ScoreMod::alibi
                         ? fmaf(-slope, fabsf(static_cast<float>(key - query)), score)
                         : kSoftcap * tanhf(score * (1 / kSoftcap));
      }
    }
  }
}

/// −infinity for keys that a query does not see, and beyond the end. `slack`: extra keys seen, a fault.
template <int kUnroll, int kStrips, int kFragments, class Begins>
__device__ __forceinline__ void mask(float (&s)[kStrips][kFragments][4], const MaskRule& rule,
                                     const Begins& begins, int first_query, int first_key, int keys,
                                     int slack) {
  const Lane me;
#pragma unroll
  for (int i = 0; i < kStrips; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = min(first_query + i * kStrip + half * 8 + me.lane / 4, rule.length - 1);
      const int first = rule.first_key(query, begins);
      const int last = min(rule.last_key(query) + slack, rule.length - 1);
#pragma unroll kUnroll
      for (int j = 0; j < keys / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int key = first_key + me.column(j, e);
          const bool seen = key <= last && (key >= first || key < rule.first_keys());
          if (!seen) s[i][j][2 * half + e] = -INFINITY;
        }
      }
    }
  }
}

/// Modifier and mask of a tile of scores, each only where needed.
template <int kStrips, int kFragments, class A, class Tape>
__device__ __forceinline__ void modify_and_mask(float (&s)[kStrips][kFragments][4],
                                                const Setting& set, const A& arrays, int head,
                                                int first_query, int first_key, int keys, bool full,
                                                const Tape& tape) {
  if constexpr (Tape::kRecords) {  // a timed kernel has none: that would change its registers
    if (set.mod != ScoreMod::none) modify(s, set, head, first_query, first_key, keys);
  }
  if (!full || first_key + keys > set.length()) {
    mask<Tape::kRecords ? kNever : kFully>(s, set.rule, arrays.begins, first_query, first_key, keys,
                                           tape.does(Break::mask_off_by_one) ? 1 : 0);
  }
}

// ---- softmax ------------------------------------------------------------------------------------------

/// Over the four lanes that share a row.
__device__ __forceinline__ float max_of_row(float x) {
  x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, 1));
  return fmaxf(x, __shfl_xor_sync(kAllLanes, x, 2));
}
__device__ __forceinline__ float sum_of_row(float x) {
  x += __shfl_xor_sync(kAllLanes, x, 1);
  return x + __shfl_xor_sync(kAllLanes, x, 2);
}

/// Maximum and sum of a lane's rows so far; `l` over the lane's own columns, combined at the end.
template <int kStrips>
struct RowStats {
  float m[kStrips][2], l[kStrips][2];

  __device__ __forceinline__ RowStats() {
#pragma unroll
    for (int i = 0; i < kStrips; ++i) {
      m[i][0] = m[i][1] = -INFINITY;
      l[i][0] = l[i][1] = 0;
    }
  }
};

/// The tile's step for a row of a lane that has one strip: sums are still of the lane's own columns.
template <class Tape, int kStrips>
__device__ __forceinline__ void note_softmax(const Tape& tape, const Place& here,
                                             const Setting& set, int half, float tile_max,
                                             float m_before, const RowStats<kStrips>& stats,
                                             float rescale, float tile_sum) {
  if constexpr (Tape::kRecords) {
    const Lane me;
    const float unit = set.to_log2() * kLn2;
    StepRecord step;
    step.tile_max = tile_max * unit;
    step.m_before = m_before * unit;
    step.m_after = stats.m[0][half] * unit;
    step.rescale = rescale;
    step.tile_sum = sum_of_row(tile_sum);
    step.l = sum_of_row(stats.l[0][half]);
    if (me.lane % 4 == 0) note_step(tape, here, me.row(1, 0, half), step);
  }
}
/// O includes the tile: the lanes that hold its first component note it.
template <class Tape, int kStrips, int kFragments>
__device__ __forceinline__ void note_outputs(const Tape& tape, const Place& here,
                                             const float (&o)[kStrips][kFragments][4]) {
  if constexpr (Tape::kRecords) {
    const Lane me;
    for (int half = 0; me.lane % 4 == 0 && half < 2; ++half) {
      note_output(tape, here, me.row(1, 0, half), o[0][0][2 * half]);
    }
  }
}

/// Turns scores into weights; where a maximum rises, the sum and O are rescaled to it.
template <class T, class Tape>
__device__ __forceinline__ void online_softmax(Scores<T>& s, Outputs<T>& o,
                                               RowStats<T::strips>& stats, const Setting& set,
                                               const T& tiles, const Tape& tape,
                                               const Place& here) {
  const float to_log2 = set.to_log2();
  float factor[T::strips][2];
#pragma unroll T::kUnroll
  for (int i = 0; i < T::strips; ++i) {
#pragma unroll T::kUnroll
    for (int half = 0; half < 2; ++half) {
      float tile_max = -INFINITY;
#pragma unroll T::kUnroll
      for (int j = 0; j < tiles.block_k / 8; ++j) {
        tile_max = fmaxf(tile_max, fmaxf(s[i][j][2 * half], s[i][j][2 * half + 1]));
      }
      tile_max = max_of_row(tile_max);
      const float m_before = stats.m[i][half];
      const auto step = simt::raise_maximum<simt::BinaryExp>(stats.m[i][half], tile_max, to_log2);
      factor[i][half] = tape.does(Break::skip_rescale) ? 1.0f : step.rescale;
      float tile_sum = 0;
#pragma unroll T::kUnroll
      for (int j = 0; j < tiles.block_k / 8; ++j) {
#pragma unroll T::kUnroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          s[i][j][e] = step.weight(s[i][j][e], to_log2);
          tile_sum += s[i][j][e];
        }
      }
      stats.l[i][half] = fmaf(stats.l[i][half], factor[i][half], tile_sum);
      note_softmax(tape, here, set, half, tile_max, m_before, stats, factor[i][half], tile_sum);
    }
  }
  // Most tiles raise no row's maximum. A check would cost more than multiplying by 1: the other warps' products
  // run meanwhile.
#pragma unroll T::kUnroll
  for (int i = 0; i < T::strips; ++i) {
#pragma unroll T::kUnroll
    for (int j = 0; j < tiles.columns / 8; ++j) {
#pragma unroll T::kUnroll
      for (int e = 0; e < 4; ++e) o[i][j][e] *= factor[i][e / 2];
    }
  }
}

/// Stores O, times one factor per row, through the warp's own rows of a tile in shared memory, so that whole
/// rows are written.
template <class T, class A>
__device__ __forceinline__ void store_output(const Outputs<T>& o,
                                             const float (&factors)[T::strips][2],
                                             simt::Shared<Bits> tile, const QueryTile& mine,
                                             const Setting& set, const A& arrays, const T& tiles) {
  const Lane me;
  const int first_row = me.warp * T::strips * kStrip;
  __syncwarp();  // all lanes are done with the old contents
#pragma unroll T::kUnroll
  for (int i = 0; i < T::strips; ++i) {
    put_strip<T::kUnroll>(tile, first_row + i * kStrip, tiles.columns, o[i], factors[i][0],
                          factors[i][1]);
  }
  __syncwarp();  // all lanes' rows are written
  const auto to = rows_of(arrays.o, std::int64_t{mine.head} * set.length() + mine.first,
                          set.length() - mine.first, tiles.head_dim, tiles.head_dim);
  store_rows(to, tile, first_row, T::strips * kStrip, tiles.columns);
}

/// Divides O by the sums of weights, and stores it and the log-sum-exp.
template <class T, class A>
__device__ __forceinline__ void finish(const Outputs<T>& o, const RowStats<T::strips>& stats,
                                       simt::Shared<Bits> tile, const QueryTile& mine,
                                       const Setting& set, const A& arrays, const T& tiles) {
  const Lane me;
  float inverse[T::strips][2];
#pragma unroll T::kUnroll
  for (int i = 0; i < T::strips; ++i) {
#pragma unroll T::kUnroll
    for (int half = 0; half < 2; ++half) {
      const float l = sum_of_row(stats.l[i][half]);
      inverse[i][half] = l > 0 ? 1 / l : 0;
      const int query = mine.first + me.row(T::strips, i, half);
      if (me.lane % 4 == 0 && query < set.length()) {
        const float lse = l > 0 ? stats.m[i][half] * set.to_natural + logf(l) : -INFINITY;
        store(arrays.lse + (static_cast<std::ptrdiff_t>(mine.head) * set.length() + query), lse);
      }
    }
  }
  store_output(o, inverse, tile, mine, set, arrays, tiles);
}

}  // namespace tilestep::attention::SIMT_BACKEND

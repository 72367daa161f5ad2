#pragma once

/// \file
/// The lesson's operations on scores: scale, modifier, mask, one-pass softmax; and the recording of steps.

#include <cmath>

#include "kernels/attention/shared/device/tiles.hpp"

namespace tilestep::attention::SIMT_BACKEND {

constexpr float kLn2 = 0.693147180559945f;
constexpr float kLog2e = 1.442695040888963f;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

/// The task, as kernels take it.
struct Setting {
  MaskRule rule;
  int heads, kv_heads;
  ScoreMod mod;
  float scale;  ///< 1 / sqrt(head_dim)
  float
      to_natural;  ///< softmax multiplies scores by it: the scale, unless the modifier has applied it

  __device__ float to_log2() const { return to_natural * kLog2e; }
  __device__ int length() const { return rule.length; }
  __device__ int kv_head(int head) const { return head / (heads / kv_heads); }
  /// ALiBi's, as published (arXiv:2108.12409): 2 to −8 (head + 1) / heads where heads are a power of two; beyond the last
  /// power of two every second slope of twice as many heads.
  __device__ float slope(int head) const {
    int power = 1;
    while (2 * power <= heads) power *= 2;
    const int halves = head < power ? 2 * (head + 1) : 2 * (head - power) + 1;
    return exp2f(-4.0f * static_cast<float>(halves) / static_cast<float>(power));
  }
};

/// A tile of queries: `first` … `last` of `head`.
struct QueryTile {
  int head, tile, first, last;
};
/// Tile `number` over all heads. Heads come one after another, so that concurrent blocks share keys and values
/// in L2; where later queries see more keys, they come first, and the light tiles fill the gaps at
/// the end.
__device__ __forceinline__ QueryTile query_tile(const Setting& set, int block_q, int number) {
  const int tiles = (set.length() + block_q - 1) / block_q;
  const int in_head = number % tiles;
  const int tile = set.rule.mask == Mask::none ? in_head : tiles - 1 - in_head;
  const int first = tile * block_q;
  return {number / tiles, tile, first, min(first + block_q, set.length()) - 1};
}

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
      const auto mask_two = [&](int j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int key = first_key + me.column(j, e);
          const bool seen = key <= last && (key >= first || key < rule.first_keys());
          if (!seen) s[i][j][2 * half + e] = -INFINITY;
        }
      };
      if constexpr (kUnroll == kNever) {
#pragma unroll 1
        for (int j = 0; j < keys / 8; ++j) mask_two(j);
      } else {
#pragma unroll
        for (int j = 0; j < keys / 8; ++j) mask_two(j);
      }
    }
  }
}

/// Modifier and mask of a tile of scores, each only where needed.
template <int kStrips, int kFragments, class A, class W>
__device__ __forceinline__ void modify_and_mask(float (&s)[kStrips][kFragments][4],
                                                const Setting& set, const A& arrays, int head,
                                                int first_query, int first_key, int keys, bool full,
                                                const W& witness) {
  if constexpr (W::kModifies) {
    if (set.mod != ScoreMod::none) modify(s, set, head, first_query, first_key, keys);
  }
  if (!full || first_key + keys > set.length()) {
    mask<W::kUnroll>(s, set.rule, arrays.begins, first_query, first_key, keys, witness.slack());
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

/// The reference of the weights: the maximum, or 0 while no key was seen, lest −∞ − (−∞) be NaN.
__device__ __forceinline__ float reference_of(float maximum, float to_log2) {
  return maximum == -INFINITY ? 0.0f : maximum * to_log2;
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

/// Turns scores into weights; where a maximum rises, the sum and O are rescaled to it.
template <class T, class W>
__device__ __forceinline__ void online_softmax(Scores<T>& s, Outputs<T>& o,
                                               RowStats<T::strips>& stats, float to_log2,
                                               const T& tiles, W& witness) {
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
      const float m_after = fmaxf(m_before, tile_max);
      const float reference = reference_of(m_after, to_log2);
      factor[i][half] = witness.rescale(simt::exp2_approx(m_before * to_log2 - reference));
      float tile_sum = 0;
#pragma unroll T::kUnroll
      for (int j = 0; j < tiles.block_k / 8; ++j) {
#pragma unroll T::kUnroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          s[i][j][e] = simt::exp2_approx(fmaf(s[i][j][e], to_log2, -reference));
          tile_sum += s[i][j][e];
        }
      }
      stats.m[i][half] = m_after;
      stats.l[i][half] = fmaf(stats.l[i][half], factor[i][half], tile_sum);
      witness.softmax(i, half, tile_max, m_before, m_after, factor[i][half], tile_sum,
                      stats.l[i][half], to_log2);
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

// ---- recording ----------------------------------------------------------------------------------------

/// A timed kernel records nothing and has no faults. It has no score modifier either: that would change its
/// registers.
struct Timed {
  static constexpr bool kModifies = false;
  static constexpr int kUnroll = kFully;
  template <class T>
  using Array = simt::Global<T>;

  __device__ __forceinline__ constexpr int slack() const { return 0; }
  __device__ __forceinline__ constexpr bool materializes() const { return false; }
  __device__ __forceinline__ float rescale(float factor) const { return factor; }
  __device__ __forceinline__ void begin(const QueryTile&, int, TileKind) {}
  __device__ __forceinline__ void resume(const QueryTile&, int) {}
  __device__ __forceinline__ void softmax(int, int, float, float, float, float, float, float,
                                          float) {}
  template <class O>
  __device__ __forceinline__ void output(const O&) {}
  __device__ __forceinline__ void row(int, const StepRecord&) {}
  __device__ __forceinline__ void component_of(int, int, const float4&) {}
  __device__ __forceinline__ void pair(int, int, float, float, float) {}
  __device__ __forceinline__ void adds(int, int, float) {}
  __device__ __forceinline__ void end(int, int) {}
};

/// An explained kernel records the effect of each tile on the chosen query, and which block computed which tile when;
/// it may be broken on purpose.
struct Explained {
  static constexpr bool kModifies = true;
  static constexpr int kUnroll = kNever;
  template <class T>
  using Array = Counted<T>;

  simt::Global<Visit> visits;      ///< [heads × q_tiles × k_tiles]
  simt::Global<StepRecord> steps;  ///< [k_tiles]
  int q_tiles, k_tiles;
  int head, query, component;  ///< whose steps are noted
  int length;
  Break broken;
  simt::Global<float> rows = {};  ///< backward: of P, dP and dS, [3 × length]
  // The block's position.
  int order = -1, at = 0;
  bool began = false;  ///< the visit, rather than resumed it
  int my_head = 0, first_query = 0, key_tile = 0;
  StepRecord step{};

  __device__ int slack() const { return broken == Break::mask_off_by_one ? 1 : 0; }
  __device__ bool materializes() const { return broken == Break::materialize; }
  __device__ float rescale(float factor) const {
    return broken == Break::skip_rescale ? 1 : factor;
  }
  __device__ bool chosen(int row) const { return my_head == head && first_query + row == query; }

  /// The block begins a tile of scores …
  __device__ __forceinline__ void begin(const QueryTile& mine, int tile, TileKind kind) {
    resume(mine, tile);
    began = true;
    if (threadIdx.x != 0) return;
    Visit& visit = visits[at];
    visit.block = static_cast<int>(blockIdx.x);
    visit.order = order;
    visit.kind = static_cast<int>(kind);
    visit.begin = now(order);
  }
  /// … or resumes one that another kernel began.
  __device__ __forceinline__ void resume(const QueryTile& mine, int tile) {
    ++order;
    began = false;
    my_head = mine.head;
    first_query = mine.first;
    key_tile = tile;
    at = (mine.head * q_tiles + mine.tile) * k_tiles + tile;
  }
  /// One of a lane's rows; `tile_sum` and `l` of the lane's own columns.
  __device__ __forceinline__ void softmax(int strip, int half, float tile_max, float m_before,
                                          float m_after, float factor, float tile_sum, float l,
                                          float to_log2) {
    const Lane me;
    const float to_natural = to_log2 * kLn2;
    tile_sum = sum_of_row(tile_sum);
    l = sum_of_row(l);
    const StepRecord now{tile_max * to_natural,
                         m_before * to_natural,
                         m_after * to_natural,
                         factor,
                         tile_sum,
                         l,
                         0,
                         order};
    const int mine = me.row(1, strip, half);
    if (me.lane % 4 == 0) count_rise(mine, now);
    if (chosen(mine)) step = now;
  }
  /// O includes the tile: the lane that holds the chosen component records the step.
  template <int kStrips, int kFragments>
  __device__ __forceinline__ void output(const float (&o)[kStrips][kFragments][4]) {
    const Lane me;
    for (int half = 0; half < 2; ++half) {
      if (!chosen(me.row(1, 0, half)) || me.lane % 4 != component % 8 / 2) continue;
      step.o = o[0][component / 8][2 * half + component % 2];
      steps[key_tile] = step;
    }
  }
  /// The same for a kernel that knows a whole row, and then has four components of its O.
  __device__ __forceinline__ void row(int mine, const StepRecord& now) {
    count_rise(mine, now);
    if (!chosen(mine)) return;
    StepRecord& to = steps[key_tile];
    const float o = to.o;
    to = now;
    to.o = o;
    to.order = order;
  }
  __device__ __forceinline__ void component_of(int mine, int first, const float4& four) {
    if (!chosen(mine) || component / 4 * 4 != first) return;
    const int which = component % 4;
    steps[key_tile].o = which == 0 ? four.x : which == 1 ? four.y : which == 2 ? four.z : four.w;
  }
  /// Backward: a key's values for a query, weight, dP and dS …
  __device__ void pair(int mine, int key, float p, float dp, float ds) {
    if (!chosen(mine) || key >= length) return;
    rows[key] = p;
    rows[length + key] = dp;
    rows[2 * length + key] = ds;
  }
  /// … and the tile's addition to a sum of dQ.
  __device__ void adds(int mine, int column, float dq) {
    if (!chosen(mine) || column != component) return;
    steps[key_tile].o = dq;
    steps[key_tile].order = order;
  }
  /// The block is done with the tile, with the given rows of O read and written.
  __device__ __forceinline__ void end(int o_reads, int o_writes) {
    if (threadIdx.x != 0) return;
    visits[at].o_reads += o_reads;
    visits[at].o_writes += o_writes;
    if (began) visits[at].end = now(order + 1);
  }

 private:
  /// Nanoseconds on a clock shared by all multiprocessors; under emulation, where time is meaningless, the tiles so far.
  static __device__ long long now([[maybe_unused]] int tiles) {
#if defined(__CUDACC__)
    long long nanoseconds = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds)::"memory");
    return nanoseconds;
#else
    return tiles;
#endif
  }
  __device__ void count_rise(int mine, const StepRecord& now) const {
    const bool rises = now.m_after > now.m_before && now.m_before > -INFINITY;
    if (rises && first_query + mine < length) atomicAdd(&visits[at].rescaled, 1);
  }
};

}  // namespace tilestep::attention::SIMT_BACKEND

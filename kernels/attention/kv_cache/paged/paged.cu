#pragma once

// Attention of one new token per request over its paged cache: O = softmax(q·K^T / sqrt(head_dim)) V. All query heads
// that share a K/V head are computed together, so that each byte of the cache is read once; so are those of several
// requests whose tables share pages.
//
//   - the host cuts the requests into work items of equal size, some pages of one request and K/V head each; a block
//     has several of them (work_plan.hpp)
//   - a block deals its tiles out to its teams of warps in turn. A team gathers tiles through the block table,
//     multiplies and computes weights by itself: it waits only for its own ring of stages
//   - gathering continues across the ends of items, so memory never idles either
//   - at the end of an item the teams merge their m, ℓ and O
//   - an item that is only part of a request leaves its m, ℓ and O in memory, and the last block to finish merges them
//
// q, o [batch × heads × head_dim] BF16; K, V [pages × kv_heads × page_size × head_dim] BF16, or E4M3, INT8
// or INT4 with scales; log-sum-exp [batch × heads] FP32.

#include "kernels/attention/kv_cache/paged/teams.hpp"
#include "kernels/base/simt/softmax_step.hpp"

namespace tilestep::kv_cache::paged::SIMT_BACKEND {

// ---- registers --------------------------------------------------------------------------------------

/// A's fragments of a warp's queries. The last eight of the tensor core's sixteen rows are empty where a warp has eight
/// heads or fewer.
template <class T>
using Queries = unsigned[T::kSteps][2 * T::kEights];
template <class T>
using Scores = float[T::kTokens / 8][4];
// ---- queries ----------------------------------------------------------------------------------------

/// Starts the copies of an item's queries to one of their two buffers, by all threads of the block.
template <class T, class Tape>
__device__ __forceinline__ void copy_queries(simt::Shared<std::uint16_t> to, const WorkItem& item,
                                             const Task& task, const Memory& memory,
                                             const Tape& tape) {
  constexpr int kChunks = T::kHeadDim / 8;
  for (int i = static_cast<int>(threadIdx.x); i < rows_of(item) * kChunks;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / kChunks, chunk = i % kChunks;
    const std::ptrdiff_t query = query_of(item, row, task.heads);
    simt::cp_async16(to + (row * T::kQueryPitch + chunk * 8),
                     memory.q + (query * T::kHeadDim + chunk * 8));
    loads(tape, kQ, 16);
  }
}

/// A's fragments of a warp's rows, zeros where an item has none. A quantized cache is multiplied in FP16; K's scales
/// per channel are then folded into the queries.
template <class T, class Tape>
__device__ __forceinline__ void load_queries(Queries<T>& q, simt::Shared<std::uint16_t> queries,
                                             const WorkItem& item, const Task& task,
                                             const Memory& memory, const Who& me,
                                             const Tape& tape) {
  using Number = typename T::Format::Number;
  const int rows = rows_of(item);
  const auto load = [&](int row, int column) {
    if (row >= rows) return 0.0f;
    float number = Bf16::number(queries[row * T::kQueryPitch + column]);
    if (T::Format::kScales && task.k_channels) {
      number *= memory.k_scales[item.kv_head * T::kHeadDim + column];
      loads(tape, kScales, 4);
    }
    return number;
  };
#pragma unroll
  for (int step = 0; step < T::kSteps; ++step) {
#pragma unroll
    for (int i = 0; i < 2 * T::kEights; ++i) {
      const int reg = i / T::kEights;
      const int row = me.strip * T::kRows + i % T::kEights * 8 + me.group();
      const float factor = T::Format::query_factor(reg);
      const float low = load(row, T::Format::column_of_query(step, reg, 0, me.place()));
      const float high = load(row, T::Format::column_of_query(step, reg, 1, me.place()));
      q[step][i] = Number::pack(low * factor, high * factor);
    }
  }
}

/// The scores' initial values: minus the excess that a format's offset adds.
template <class T>
__device__ __forceinline__ void offset_of(float (&begins)[T::kEights], const Queries<T>& q) {
  using F = typename T::Format;
#pragma unroll
  for (int half = 0; half < T::kEights; ++half) {
    begins[half] = 0;
    if constexpr (F::kOffset != 0) {
      float sum = 0;
#pragma unroll
      for (int step = 0; step < T::kSteps; ++step) {
#pragma unroll
        for (int reg = 0; reg < 2; ++reg) {
          const unsigned both = q[step][reg * T::kEights + half];
          const float unit = 1 / F::per_unit(reg);
          sum = fmaf(F::Number::number(both) + F::Number::number(both >> 16), unit, sum);
        }
      }
      begins[half] = -sum_of_row(sum) * F::kOffset;
    }
  }
}

// ---- the two products -------------------------------------------------------------------------------

/// S = q·K^T of a tile. Blocks of 16 tokens alternate, so that no accumulator waits for its own last product.
template <class T>
__device__ __forceinline__ void multiply_keys(Scores<T>& s, const Queries<T>& q,
                                              simt::Shared<std::uint16_t> k) {
  using F = typename T::Format;
  constexpr int kBlocks = T::kTokens / 16;
#pragma unroll
  for (int pair = 0; pair < T::kPairs; ++pair) {
    Fragments<F::kSteps> b[kBlocks];
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      unsigned r[4];
      load_pair<T, false>(r, k, block * 16, pair);
      F::expand(b[block], r);
    }
#pragma unroll
    for (int i = 0; i < T::kStepsOfPair; ++i) {
      const auto& of = q[pair * T::kStepsOfPair + i];
      const unsigned a[4] = {of[0], T::kEights == 2 ? of[1] : 0u, of[T::kEights],
                             T::kEights == 2 ? of[2 * T::kEights - 1] : 0u};
#pragma unroll
      for (int j = 0; j < 2 * kBlocks; ++j) {
        F::Number::multiply(s[j], a, b[j / 2][i][j % 2][0], b[j / 2][i][j % 2][1]);
      }
    }
  }
}

/// O^T += V^T·P^T. A lane's weights, as accumulators of S, are already where B's fragment needs them.
template <class T>
__device__ __forceinline__ void multiply_values(Outputs<T>& o, const Scores<T>& p,
                                                simt::Shared<std::uint16_t> v) {
  using F = typename T::Format;
#pragma unroll
  for (int block = 0; block < T::kTokens / 16; ++block) {
    unsigned weights[T::kEights][2];
#pragma unroll
    for (int i = 0; i < 2 * T::kEights; ++i) {
      const float* two = &p[2 * block + i % 2][i / 2 * 2];
      weights[i / 2][i % 2] = F::Number::pack(two[0], two[1]);
    }
#pragma unroll
    for (int pair = 0; pair < T::kPairs; ++pair) {
      unsigned r[4];
      load_pair<T, true>(r, v, block * 16, pair);
      Fragments<F::kSteps> f;
      F::expand(f, r);
#pragma unroll
      for (int i = 0; i < T::kStepsOfPair; ++i) {
        const unsigned a[4] = {f[i][0][0], f[i][0][1], f[i][1][0], f[i][1][1]};
#pragma unroll
        for (int half = 0; half < T::kEights; ++half) {
          F::Number::multiply(o[half][pair * T::kStepsOfPair + i], a, weights[half][0],
                              weights[half][1]);
        }
      }
    }
    if constexpr (F::kOffset != 0) {
      constexpr unsigned kOnes[4] = {0x3C003C00u, 0x3C003C00u, 0x3C003C00u, 0x3C003C00u};
#pragma unroll
      for (int half = 0; half < T::kEights; ++half) {
        F::Number::multiply(o[half][T::kSums - 1], kOnes, weights[half][0], weights[half][1]);
      }
    }
  }
}

// ---- softmax ----------------------------------------------------------------------------------------

/// Multiplies the scores by K's scales, one per token of the lane.
template <class T>
__device__ __forceinline__ void scale_scores(Scores<T>& s, simt::Shared<float> scales, int place) {
#pragma unroll
  for (int j = 0; j < T::kTokens / 8; ++j) {
    const float2 two = simt::as<float2>(scales)[j * 4 + place];
#pragma unroll
    for (int e = 0; e < 2 * T::kEights; ++e) s[j][e] *= e % 2 == 0 ? two.x : two.y;
  }
}
/// … and the weights, which are FP16 then, by V's.
template <class T>
__device__ __forceinline__ void scale_weights(Scores<T>& p, simt::Shared<float> scales, int place) {
#pragma unroll
  for (int j = 0; j < T::kTokens / 8; ++j) {
    const float2 two = simt::as<float2>(scales)[j * 4 + place];
#pragma unroll
    for (int e = 0; e < 2 * T::kEights; ++e) {
      p[j][e] *= (e % 2 == 0 ? two.x : two.y) * T::Format::kGain;
    }
  }
}

/// Scores become weights; where a maximum rises, ℓ and O are rescaled to it.
template <class T, class Tape>
__device__ __forceinline__ void online_softmax(Scores<T>& s, Outputs<T>& o, RowStats<T>& stats,
                                               const TileOfItem& of, float to_log2, const Who& me,
                                               const Task& task, const Tape& tape) {
  if (const int there = of.tokens; there < T::kTokens) {
#pragma unroll
    for (int j = 0; j < T::kTokens / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2 * T::kEights; ++e) {
        if (j * 8 + me.place() * 2 + e % 2 >= there) s[j][e] = -INFINITY;  // [step: mask]
      }
    }
  }
  float factor[T::kEights];
  bool rises = false;
#pragma unroll
  for (int half = 0; half < T::kEights; ++half) {
    float tile_max = -INFINITY;
#pragma unroll
    for (int j = 0; j < T::kTokens / 8; ++j) {
      tile_max = fmaxf(tile_max, fmaxf(s[j][2 * half], s[j][2 * half + 1]));
    }
    tile_max = max_of_row(tile_max) * to_log2;
    const float before = stats.m[half];
    const auto step = simt::raise_maximum<simt::BinaryExp, true>(stats.m[half], tile_max);
    factor[half] = step.rescale;
    rises = rises || stats.m[half] > before;
    float tile_sum = 0;
#pragma unroll
    for (int j = 0; j < T::kTokens / 8; ++j) {
#pragma unroll
      for (int e = 2 * half; e < 2 * half + 2; ++e) {
        s[j][e] = step.weight(s[j][e], to_log2);  // [step: weights]
        tile_sum += s[j][e];
      }
    }
    stats.l[half] = fmaf(stats.l[half], factor[half], tile_sum);
    if constexpr (Tape::kRecords) {
      const float all = sum_of_row(tile_sum), l = sum_of_row(stats.l[half]);
      if (of.row == me.strip * T::kRows + half * 8 + me.group() && me.place() == 0) {
        note_step(tape, task, of, tile_max, before, stats.m[half], factor[half], all, l);
      }
    }
  }
  // Most tiles raise no row's maximum.
  if (__any_sync(kAllLanes, rises)) scale_outputs<T>(o, factor, me.place());  // [step: rescale]
}

/// The followed component after this tile, by the lane that holds it.
template <class T>
__device__ void note_output(const simt::Tape& tape, const Outputs<T>& o, const Followed& followed,
                            const TileOfItem& of, const Who& me) {
  const int row = of.row - me.strip * T::kRows;
  if (of.row < 0 || row < 0 || row >= T::kRows) return;
  for (int f = 0; f < T::kSteps; ++f) {
    for (int e = 0; e < 4; ++e) {
      const bool here = T::Format::column_of_output(f, e / 2, me.group()) == followed.component &&
                        me.place() * 2 + e % 2 == row % 8;
      if (here) tape.put(kOutputs, of.at(followed), output_of<T>(o, row / 8, f, e));
    }
  }
}

// ---- the kernel -------------------------------------------------------------------------------------

/// A team's tiles of an item.
template <class T, class Tape>
struct Walk {
  Feeder<T, Tape> feeder;
  Ring<T> ring;
  const Task& task;
  const Who& me;
  const Tape& tape;
  float to_log2;
  int stage = 0;
  int tile;  ///< of the item, or of later ones

  /// Processes the team's tiles and starts the copies of the next ones. Returns the number of tiles.
  __device__ __forceinline__ int attend(Outputs<T>& o, RowStats<T>& stats, const Queries<T>& q,
                                        const Piece& piece, int number) {
    float begins[T::kEights];
    offset_of<T>(begins, q);
    const int tiles = piece.tiles(T::kTokens);
    int count = 0;
    for (; tile < tiles; tile += me.teams, ++count) {
      simt::cp_async_wait<T::kStages - 2>();
      // The team's copies of this tile must have arrived, and its warps must be done with the stage before.
      me.meet();
      feeder.feed(stage == 0 ? T::kStages - 1 : stage - 1);
      Scores<T> s;
#pragma unroll
      for (int j = 0; j < T::kTokens / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) s[j][e] = begins[e / 2 % T::kEights];
      }
      multiply_keys<T>(s, q, ring.k(stage));  // [step: scores]
      if (T::Format::kScales && !task.k_channels) {
        scale_scores<T>(s, ring.scales(stage, false), me.place());
      }
      const int there = min(piece.end - piece.first - tile * T::kTokens, T::kTokens);
      const TileOfItem of(task.followed, piece.item, number, tile, there);
      online_softmax<T>(s, o, stats, of, to_log2, me, task, tape);  // [step: softmax]
      if constexpr (T::Format::kScales) {
        scale_weights<T>(s, ring.scales(stage, true), me.place());
      }
      multiply_values<T>(o, s, ring.v(stage));  // [step: values]
      if constexpr (Tape::kRecords) note_output<T>(tape, o, task.followed, of, me);
      stage = stage + 1 == T::kStages ? 0 : stage + 1;
    }
    tile -= tiles;
    return count;
  }
};

template <class T, class Tape>
__global__ void __launch_bounds__(T::kMostThreads, 1) paged(Memory memory, Task task, Tape tape) {
  if (!simt::kHasMma) return;
  const int strips = T::strips(task.strips);
  const Layout<T> at(strips);
  const Who me(at.warps, strips);
  constexpr int kRingUnits = T::kStages * T::kStageUnits;
  const auto rings = simt::dynamic_shared<std::uint16_t>(at.teams * kRingUnits, 0, "tiles");
  const Ring<T> ring{rings + me.team * kRingUnits};
  const int rows = at.warps * T::kRows;
  const auto floats = simt::dynamic_shared<float>(rows * (T::kPartPitch + 2), at.parts(), "parts");
  const Meeting<T> meeting{floats + rows * T::kPartPitch, floats + rows * (T::kPartPitch + 1),
                           floats};
  const int query_units = at.rows * T::kQueryPitch;
  const auto queries =
      simt::dynamic_shared<std::uint16_t>(2 * query_units, at.queries(), "queries");

  const Pieces pieces{task, memory, simt::dynamic_shared<Piece>(kKeptPieces, at.pieces(), "items"),
                      memory.first_item[static_cast<int>(blockIdx.x)],
                      memory.first_item[static_cast<int>(blockIdx.x) + 1]};
  if (pieces.first == pieces.end) return;
  pieces.keep();
  __syncthreads();  // the items are ready
  Walk<T, Tape> walk{Feeder<T, Tape>(pieces, me, ring, tape), ring, task,   me, tape,
                     task.to_log2() / T::Format::kScoreUnit,  0,    me.team};
  copy_queries<T>(queries, pieces[pieces.first].item, task, memory, tape);
  simt::cp_async_commit();
  for (int stage = 0; stage < T::kStages - 1; ++stage) walk.feeder.feed(stage);
  simt::cp_async_wait<T::kStages - 1>();
  __syncthreads();  // the first queries are ready

  for (int number = pieces.first; number < pieces.end; ++number) {
    const Piece piece = pieces[number];
    const int order = number - pieces.first, turn = order % 2;
    const long long begin = now<Tape>(order);
    Queries<T> q;
    load_queries<T>(q, queries + turn * query_units, piece.item, task, memory, me, tape);
    // The next queries arrive with the next tile.
    const bool more = number + 1 < pieces.end;
    if (more) {
      copy_queries<T>(queries + (turn ^ 1) * query_units, pieces[number + 1].item, task, memory,
                      tape);
    }
    RowStats<T> stats;
    Outputs<T> o = {};
    const int count = walk.attend(o, stats, q, piece, number);
    if (more && count < T::kStages) {  // otherwise that tile has been waited for
      simt::cp_async_commit();
      simt::cp_async_wait<0>();
    }
    finish<T>(o, stats, meeting, piece.item, task, memory, me, tape);  // [step: output]
    if (threadIdx.x == 0) {
      note_item(tape, number, piece, static_cast<int>(blockIdx.x), order, piece.tiles(T::kTokens),
                begin);
    }
  }
  simt::cp_async_wait<0>();
  if (!task.merges) return;
  const auto last = simt::dynamic_shared<int>(kMostRows, at.queries(),
                                              "last");  // the queries are no longer needed
  merge_where_last<T>(pieces, last, tape);
}

}  // namespace tilestep::kv_cache::paged::SIMT_BACKEND

#pragma once

// Absorbed latent attention of one new token: 64 heads per block, all of which share the rows of the cache. A tile that
// TMA brings is both K, 576 numbers per token, and V, the first 512 of them. The shape is FlashMLA's (DeepSeek,
// "FlashMLA", 2025): O of 64 heads does not fit into one warpgroup's registers, nor more than two tiles of 64 tokens
// into shared memory.
//
//   - a warp gathers tiles through the block table by TMA, into two stages. With 128 heads two blocks of a cluster have
//     64 each: each fetches half of a tile for both, so the tile is read only once
//   - two warpgroups take two tiles at a time: each computes the scores of its own, 64 heads × 64 tokens
//   - they exchange their rows' maxima, so that the weights of both tiles are relative to the same one
//   - each has half of O's columns, and adds both tiles' parts to it: its own weights are in its registers, the other's
//     come through shared memory, where they overwrite the rotary numbers, which only scores need
//   - the first tile is released before the second one is multiplied: the next one arrives meanwhile
//
// q [batch × heads × 576], cache [pages × page_size × 576], o [batch × heads × 512] BF16.

#include "kernels/attention/decode/latent/latent_tiles.hpp"

namespace tilestep::decode::latent::SIMT_BACKEND {

// ---- the producer ---------------------------------------------------------------------------------

/// A lane's rows of a tile: those that one copy brings.
struct Source {
  int row;    ///< of the cache
  int there;  ///< of them that count; 0: none
};
/// Requests rows of a tile by TMA: this block's panels, for all blocks of the cluster. All rows in one copy, or one by
/// one where some do not count; those arrive as zeros.
template <int kBlocks>
__device__ __forceinline__ void fetch_rows(const Maps& maps, const Source& from,
                                           const Layout& layout, int stage, int first_row,
                                           unsigned rank) {
  for (int panel = static_cast<int>(rank); panel < kPanels; panel += kBlocks) {
    const unsigned box =
        layout.tile(stage) + static_cast<unsigned>(panel * kBoxBytes + first_row * kPanelBytes);
    const unsigned full = layout.tiles().full(stage, panel / kPanelsOfPart);
    if (from.there == maps.rows_at_once) {
      fetch<kBlocks>(maps.rows, box, full, panel * kPanel, from.row);  // [step: copies]
      continue;
    }
    for (int row = 0; row < maps.rows_at_once; ++row) {
      fetch<kBlocks>(maps.row, box + static_cast<unsigned>(row * kPanelBytes), full, panel * kPanel,
                     row < from.there ? from.row + row : maps.end);
    }
  }
}

/// The copying warp's work.
template <int kBlocks, class Tape>
struct Producer {
  const Maps& maps;
  const Pieces& pieces;
  const Layout& layout;
  const Tape& tape;
  unsigned rank;  ///< of the block in its cluster

  __device__ __forceinline__ int lane() const { return static_cast<int>(threadIdx.x) % 32; }

  __device__ __forceinline__ void fetch_tile(const Piece& piece, int number, int tile, int stage,
                                             Turn& turn) const {
    const int rows = maps.rows_at_once;
    const int first = piece.first + tile * kTile;
    // The table is read before the stage is free.
    Source mine[2] = {};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = (lane() + 32 * i) * rows;
      if (row < kTile) mine[i] = look_up(piece, number, first + row);
    }
    const Tiles tiles = layout.tiles();
    tiles.producer_acquire(turn);  // [step: waits-empty]
    if (lane() == 0) {
      for (int part = 0; part < kParts; ++part) {
        arrive_expecting(tiles.full(stage, part), kPanelsOfPart * kBoxBytes);
      }
      if (rank == 0) loads(tape, paged::kK, min(kTile, piece.end - first) * kRow * 2);
    }
    __syncwarp();  // the barrier expects the bytes before they arrive
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = (lane() + 32 * i) * rows;
      if (row < kTile) {
        fetch_rows<kBlocks>(maps, mine[i], layout, stage, row, rank);
      }
    }
    turn.number += 2;
  }
  __device__ __forceinline__ Source look_up(const Piece& piece, int number, int token) const {
    if (token >= piece.end) return {0, 0};
    const Task& task = pieces.task;
    const int entry = token / task.page_size;
    const std::ptrdiff_t at =
        static_cast<std::ptrdiff_t>(piece.item.request) * task.table_pitch + entry;
    const int page = pieces.memory.table[at];
    if (rank == 0) loads(tape, task, number, paged::kTable, at * 4, 4);
    return {page * task.page_size + token - entry * task.page_size,
            min(maps.rows_at_once, piece.end - token)};
  }
  __device__ __forceinline__ void fetch_queries(const WorkItem& item, Turn& turn) const {
    const Queries queries = layout.queries();
    queries.producer_acquire(turn);
    ++turn.number;
    if (lane() != 0) return;
    arrive_expecting(queries.full(0), kTileBytes);
    const int row =
        item.request * pieces.task.heads + item.first_head + static_cast<int>(rank) * kHeadsOfBlock;
    for (int panel = 0; panel < kPanels; ++panel) {
      fetch(maps.q, layout.q() + static_cast<unsigned>(panel * kBoxBytes), queries.full(0),
            panel * kPanel, row);
    }
    const int heads = item.heads - static_cast<int>(rank) * kHeadsOfBlock;
    loads(tape, paged::kQ, min(heads, kHeadsOfBlock) * kRow * 2);
  }
  __device__ __forceinline__ void run() {
    Turn turns[2] = {{0}, {1}};
    Turn turn_q;
    for (int number = pieces.first; number < pieces.end; ++number) {
      const Piece piece = pieces[number];
      const int tiles = piece.tiles(kTile);
      if (tiles == 0) continue;
      fetch_queries(piece.item, turn_q);
      for (int tile = 0; tile < tiles; tile += 2) {
        fetch_tile(piece, number, tile, 0, turns[0]);
        if (tile + 1 < tiles) fetch_tile(piece, number, tile + 1, 1, turns[1]);
      }
    }
  }
};

// ---- the consumers --------------------------------------------------------------------------------

/// A thread has two rows, eight apart; maxima of both tiles, in units of log2; sums of only its own tokens.
struct Rows {
  float m[2] = {-INFINITY, -INFINITY};
  float l[2] = {0, 0};
};

/// kGroup: which warpgroup this is, which tile of two and which half of O's columns it has.
template <int kBlocks, int kGroup, class Tape>
struct Consumer {
  const Layout& layout;
  const Task& task;
  const Memory& memory;
  simt::Shared<float> stats;  ///< [warpgroups × 64]
  const Tape& tape;
  unsigned rank;  ///< of the block in its cluster: which 64 heads it has
  Turn turns[2] = {{0}, {1}};
  Turn turn_q = {};
  Rows rows = {};

  __device__ __forceinline__ int lane() const { return static_cast<int>(threadIdx.x) % 32; }
  __device__ __forceinline__ int row(int half) const {
    return static_cast<int>(threadIdx.x) % kWarpgroup / 32 * 16 + half * 8 + lane() / 4;
  }
  /// The same among the item's heads.
  __device__ __forceinline__ int row_of_item(int half) const {
    return static_cast<int>(rank) * kHeadsOfBlock + row(half);
  }
  __device__ __forceinline__ void meet(int which) const {
    named_barrier_sync(1 + which, kConsumers * kWarpgroup);
  }

  /// Scores of its own tile and their rows' maxima. `there`: tokens that count.
  __device__ __forceinline__ void score(Scores& s, float (&best)[2], int there) const {
    wgmma_begin();
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      layout.tiles().consumer_wait(turns[kGroup], part);       // [step: waits]
      issue_scores(s, layout.q(), layout.tile(kGroup), part);  // [step: scores]
    }
    wgmma_commit();
    wgmma_wait<0>();
    settle(s);
    const float to_log2 = task.to_log2();
#pragma unroll
    for (int i = 0; i < kTile / 2; ++i) {
      const bool hidden = there < kTile && i / 4 * 8 + lane() % 4 * 2 + i % 2 >= there;
      s[i] = hidden ? -INFINITY : s[i] * to_log2;  // [step: mask]
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = -INFINITY;
#pragma unroll
      for (int j = 0; j < kTile / 8; ++j) {
        most = fmaxf(most, fmaxf(s[4 * j + 2 * half], s[4 * j + 2 * half + 1]));
      }
      best[half] = max_of_row(most);
    }
  }
  /// The other warpgroup's number of each row. All must meet again before the next exchange.
  __device__ __forceinline__ void exchange(const float (&mine)[2], float (&other)[2]) const {
    if (lane() % 4 == 0) {
      stats[kGroup * kHeadsOfBlock + row(0)] = mine[0];
      stats[kGroup * kHeadsOfBlock + row(1)] = mine[1];
    }
    meet(0);  // both have written theirs
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      other[half] = stats[(kGroup ^ 1) * kHeadsOfBlock + row(half)];
    }
  }
  /// Scores become weights, relative to the maxima of both tiles; O must be multiplied by `factor`.
  __device__ __forceinline__ void weigh(Scores& s, const float (&best)[2], float (&factor)[2],
                                        float (&sum)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto step = simt::raise_maximum<simt::BinaryExp, true>(rows.m[half], best[half]);
      factor[half] = step.rescale;
      sum[half] = 0;
#pragma unroll
      for (int j = 0; j < kTile / 8; ++j) {
#pragma unroll
        for (int i = 4 * j + 2 * half; i < 4 * j + 2 * half + 2; ++i) {
          s[i] = step.weight(s[i]);  // [step: weights]
          sum[half] += s[i];
        }
      }
      rows.l[half] = fmaf(rows.l[half], factor[half], sum[half]);
    }
  }
  /// Both tiles' effect on the followed row, by the first warpgroup.
  __device__ void note_pair(const TileOfItem& of, const float (&best)[2], const float (&before)[2],
                            const float (&factor)[2], const float (&mine)[2]) const {
    float sum[2], l[2], other_sum[2], other_l[2];
    for (int half = 0; half < 2; ++half) {
      sum[half] = sum_of_row(mine[half]);
      l[half] = sum_of_row(rows.l[half]);
    }
    exchange(sum, other_sum);
    meet(1);
    exchange(l, other_l);
    meet(1);
    for (int half = 0; half < 2; ++half) {
      if (kGroup != 0 || lane() % 4 != 0 || of.row != row_of_item(half)) continue;
      note_step(tape, task, of, best[half], before[half], rows.m[half], factor[half],
                sum[half] + other_sum[half], l[half] + other_l[half]);
    }
  }
  /// … and its component after them, by the thread that holds it.
  __device__ void note_output(const TileOfItem& of, const Outputs& o) const {
    const int column = task.followed.component - kGroup * kColumns;
    for (int i = 0; i < kColumns / 2; ++i) {
      const bool here =
          i / 4 * 8 + lane() % 4 * 2 + i % 2 == column && of.row == row_of_item(i / 2 % 2);
      if (here) tape.put(paged::kOutputs, of.at(task.followed), o[i]);
    }
  }
  /// Adds both tiles' parts to its own columns, and releases each stage once it is read.
  __device__ __forceinline__ void add_values(Outputs& o, const Weights& p, bool second) {
    wgmma_begin();
    multiply(o, p, 0);
    if (second) {
      multiply(o, p, 1);
      wgmma_wait<1>();
      release_to_all<kBlocks>(layout.tiles(), 0, rank);
    }
    wgmma_wait<0>();
    settle(o);
    release_to_all<kBlocks>(layout.tiles(), second ? 1 : 0, rank);  // [step: releases]
    turns[0].number += 2;
    if (second) turns[1].number += 2;
  }
  __device__ __forceinline__ void multiply(Outputs& o, const Weights& p, int stage) const {
    if (stage == kGroup) {
      issue_own(o, p, layout.tile(stage), kGroup);  // [step: values]
    } else {
      for (int part = 0; part < kParts; ++part) {
        layout.tiles().consumer_wait(turns[stage], part);
      }
      issue_other(o, layout.weights(stage), layout.tile(stage), kGroup);
    }
    wgmma_commit();
  }

  /// All tiles of an item, two at a time.
  __device__ __forceinline__ void attend(Outputs& o, const Piece& piece, int number) {
    const int tiles = piece.tiles(kTile);
    if (tiles == 0) return;
    layout.queries().consumer_wait(turn_q);
    for (int tile = 0; tile < tiles; tile += 2) {
      const int left = piece.end - piece.first - tile * kTile;
      const int there = max(left - kGroup * kTile, 0);
      Scores s;
      float own[2] = {-INFINITY, -INFINITY};
      float best[2];
      float factor[2];
      float sum[2];
      Weights p;
      if (there > 0) {
        score(s, own, there);
      } else {
#pragma unroll
        for (int i = 0; i < kTile / 2; ++i) s[i] = -INFINITY;
      }
      if (tile + 2 >= tiles) layout.queries().consumer_release(0);
      exchange(own, best);
#pragma unroll
      for (int half = 0; half < 2; ++half) best[half] = fmaxf(own[half], best[half]);
      const float before[2] = {rows.m[0], rows.m[1]};
      weigh(s, best, factor, sum);  // [step: softmax]
      pack_weights(p, s);
      if (there > 0) show_weights(p, layout.weights(kGroup));
      publish_to_async_proxy();
      if (__any_sync(kAllLanes, factor[0] != 1.0f || factor[1] != 1.0f)) {
#pragma unroll
        for (int i = 0; i < kColumns / 2; ++i) o[i] *= factor[i / 2 % 2];  // [step: rescale]
      }
      meet(1);  // both have written their weights, and read each other's maxima
      add_values(o, p, tile + 1 < tiles);
      if constexpr (Tape::kRecords) {
        const TileOfItem of(task.followed, piece.item, number, tile / 2, min(left, kPair));
        note_pair(of, best, before, factor, sum);
        note_output(of, o);
      }
    }
    ++turn_q.number;
  }

  /// Stores O and log-sum-exp, or the item's part of them.
  __device__ __forceinline__ void finish(const Outputs& o, const WorkItem& item) {
    const float l[2] = {sum_of_row(rows.l[0]), sum_of_row(rows.l[1])};
    float other[2];
    exchange(l, other);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (row_of_item(half) < item.heads) store_row(o, item, half, l[half] + other[half]);
    }
    meet(1);  // both have read the sums
  }
  __device__ __forceinline__ void store_row(const Outputs& o, const WorkItem& item, int half,
                                            float l) const {
    const bool speaks = kGroup == 0 && lane() % 4 == 0;
    const int column = kGroup * kColumns + lane() % 4 * 2;
    if (paged::is_split(item)) {
      const std::ptrdiff_t at = paged::part_of(item, row_of_item(half), task.most_rows);
#pragma unroll
      for (int j = 0; j < kColumns / 8; ++j) {
        simt::as<float2>(memory.part_o + (at * kLatent + column + 8 * j))[0] =
            make_float2(o[4 * j + 2 * half], o[4 * j + 2 * half + 1]);
      }
      stores(tape, paged::kParts, kColumns);
      if (!speaks) return;
      memory.part_m[at] = rows.m[half] * kLn2;
      memory.part_l[at] = l;
      stores(tape, paged::kParts, 8);
      return;
    }
    const float inverse = l > 0 ? 1 / l : 0;
    const std::ptrdiff_t head = static_cast<std::ptrdiff_t>(item.request) * task.heads +
                                item.first_head + row_of_item(half);
#pragma unroll
    for (int j = 0; j < kColumns / 8; ++j) {
      simt::as<unsigned>(memory.o + (head * kLatent + column + 8 * j))[0] =
          pack_bf16(o[4 * j + 2 * half] * inverse, o[4 * j + 2 * half + 1] * inverse);
    }
    stores(tape, paged::kO, kColumns / 2);
    if (!speaks) return;
    memory.lse[head] = l > 0 ? fmaf(rows.m[half], kLn2, logf(l)) : -INFINITY;
    stores(tape, paged::kLse, 4);
  }
};

template <int kBlocks, int kGroup, class Tape>
__device__ __forceinline__ void consume(const Pieces& pieces, const Layout& layout,
                                        simt::Shared<float> stats, unsigned rank,
                                        const Tape& tape) {
  Consumer<kBlocks, kGroup, Tape> c{layout, pieces.task, pieces.memory, stats, tape, rank};
  for (int number = pieces.first; number < pieces.end; ++number) {
    const Piece piece = pieces[number];
    const int order = number - pieces.first;
    const long long begin = paged::SIMT_BACKEND::now<Tape>(order);
    c.rows = {};
    Outputs o = {};
    c.attend(o, piece, number);
    c.finish(o, piece.item);  // [step: output]
    if (rank == 0 && threadIdx.x == kWarpgroup) {
      note_item(tape, number, piece, static_cast<int>(blockIdx.x) / kBlocks, order,
                piece.tiles(kPair), begin);
    }
  }
}

// ---- the kernel -----------------------------------------------------------------------------------

/// Initializes the barriers. Tiles are released by the reading warps of all the cluster's blocks.
template <int kBlocks>
__device__ __forceinline__ void make_barriers(const Layout& layout) {
  layout.queries().init(kReaders);
  layout.tiles().init(kBlocks * kReaders);
  publish_barriers();
}

template <int kBlocks, class Tape>
__global__ void __launch_bounds__(kThreads, 1)
    latent(const __grid_constant__ Maps maps, Memory memory, Task task, Tape tape) {
  int slack = 0;
  const Layout layout = lay_out(slack);
  const auto stats = simt::dynamic_shared<float>(
      kConsumers * kHeadsOfBlock, static_cast<std::size_t>(slack + Layout::stats()), "statistics");
  const int cluster = static_cast<int>(blockIdx.x) / kBlocks;
  const Pieces pieces{task, memory,
                      simt::dynamic_shared<Piece>(
                          kKeptPieces, static_cast<std::size_t>(slack + Layout::pieces()), "items"),
                      memory.first_item[cluster], memory.first_item[cluster + 1]};
  unsigned rank = 0;
  if constexpr (kBlocks == 2) rank = rank_in_cluster();
  if (threadIdx.x == 0) make_barriers<kBlocks>(layout);
  pieces.keep();
  __syncthreads();                                // the barriers and the items are ready …
  if constexpr (kBlocks == 2) cluster_barrier();  // … in both blocks
  // From lane 0, so that the compiler knows that it is uniform in the warp.
  const int group = __shfl_sync(kAllLanes, static_cast<int>(threadIdx.x) / kWarpgroup, 0);
  if (group == 0) {
    keep_registers<kProducerRegisters>();
    if (threadIdx.x < 32) {
      Producer<kBlocks, Tape>{maps, pieces, layout, tape, rank}.run();
    }
  } else {
    take_registers<kConsumerRegisters>();
    if (group == 1) {
      consume<kBlocks, 0>(pieces, layout, stats, rank, tape);
    } else {
      consume<kBlocks, 1>(pieces, layout, stats, rank, tape);
    }
  }
  if constexpr (kBlocks == 2) cluster_barrier();  // no block ends before the other is done
}

}  // namespace tilestep::decode::latent::SIMT_BACKEND

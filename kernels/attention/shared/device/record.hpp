#pragma once

/// \file
/// What an explained kernel keeps on its tape: which block computed which tile of scores when, and what each tile did to
/// the chosen query. Of a timed kernel's tape nothing is left.

#include "kernels/attention/shared/device/setting.hpp"

namespace tilestep::attention::SIMT_BACKEND {

/// The tape's arrays, those of Records. Its chosen thread is the row of the chosen query, [heads × length].
enum Kept : std::uint32_t { kVisits, kSteps, kAsked, kRows };

/// A block's visit to a tile of scores.
struct Place {
  int number = 0;  ///< of the tile, [heads × q_tiles × k_tiles]
  int k_tile = 0;
  int order = 0;  ///< among the block's visits
  TileKind kind = TileKind::full;
  int first_row = 0, end_row = 0;  ///< of the tile's queries, [heads × length]
};
template <class T>
__device__ __forceinline__ Place place_of(const Setting& set, const T& tiles, const QueryTile& mine,
                                          int k_tile, int order, TileKind kind) {
  const int q_tiles = (set.length() + tiles.block_q - 1) / tiles.block_q;
  const int k_tiles = (set.length() + tiles.block_k - 1) / tiles.block_k;
  const int head_row = mine.head * set.length();
  return {(mine.head * q_tiles + mine.tile) * k_tiles + k_tile,
          k_tile,
          order,
          kind,
          head_row + mine.first,
          head_row + mine.last + 1};
}

/// Nanoseconds on a clock shared by all multiprocessors; under emulation, where time is meaningless, the block's tiles
/// so far.
__device__ __forceinline__ long long clock_of_all([[maybe_unused]] int tiles) {
#if defined(__CUDACC__)
  long long nanoseconds = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds)::"memory");
  return nanoseconds;
#else
  return tiles;
#endif
}

/// The block begins a tile of scores …
template <class Tape, class T>
__device__ __forceinline__ SIMT_UNWATCHED Place begin_visit(const Tape& tape, const Setting& set,
                                                            const T& tiles, const QueryTile& mine,
                                                            int k_tile, int order, TileKind kind) {
  if constexpr (Tape::kRecords) {
    const Place here = place_of(set, tiles, mine, k_tile, order, kind);
    Visit* const visit = tape.template at<Visit>(kVisits, here.number);
    if (threadIdx.x != 0 || visit == nullptr) return here;
    visit->block = static_cast<int>(blockIdx.x);
    visit->order = order;
    visit->kind = static_cast<int>(kind);
    visit->begin = clock_of_all(order);
    return here;
  } else {
    return {};
  }
}
/// … reads and writes rows of O for it …
template <class Tape>
__device__ __forceinline__ SIMT_UNWATCHED void count_rows(const Tape& tape, const Place& here,
                                                          int reads, int writes) {
  if constexpr (Tape::kRecords) {
    Visit* const visit = tape.template at<Visit>(kVisits, here.number);
    if (threadIdx.x != 0 || visit == nullptr) return;
    visit->o_reads += reads;
    visit->o_writes += writes;
  }
}
/// … and is done with it.
template <class Tape>
__device__ __forceinline__ SIMT_UNWATCHED void end_visit(const Tape& tape, const Place& here,
                                                         int o_reads, int o_writes) {
  if constexpr (Tape::kRecords) {
    count_rows(tape, here, o_reads, o_writes);
    Visit* const visit = tape.template at<Visit>(kVisits, here.number);
    if (threadIdx.x == 0 && visit != nullptr) visit->end = clock_of_all(here.order + 1);
  }
}

/// What the tile does to a row of its queries: counted where it shrinks ℓ and O, kept of the chosen query.
template <class Tape>
__device__ __forceinline__ SIMT_UNWATCHED void note_step(const Tape& tape, const Place& here,
                                                         int row, StepRecord step) {
  if constexpr (Tape::kRecords) {
    if (here.first_row + row >= here.end_row) return;
    Visit* const visit = tape.template at<Visit>(kVisits, here.number);
    const bool rises = step.m_after > step.m_before && step.m_before > -INFINITY;
    if (rises && visit != nullptr) atomicAdd(&visit->rescaled, 1);
    step.k_tile = here.k_tile;
    step.order = -1;  // it counts when its O is noted
    step.kind = here.kind;
    if (tape.chosen(here.first_row + row)) tape.put(kSteps, here.k_tile, step);
  }
}
/// The first component of the row's O, the tile added.
template <class Tape>
__device__ __forceinline__ SIMT_UNWATCHED void note_output(const Tape& tape, const Place& here,
                                                           int row, float o) {
  if constexpr (Tape::kRecords) {
    StepRecord* const step = tape.template at<StepRecord>(kSteps, here.k_tile);
    if (!tape.chosen(here.first_row + row) || step == nullptr) return;
    step->o = o;
    step->order = here.order;
  }
}

}  // namespace tilestep::attention::SIMT_BACKEND

#pragma once

// The indexer for long contexts: 64 heads of two queries are the 128 columns of a wgmma, 64 tokens of a tile its rows,
// and their products E4M3. ReLU, weights and the sum over heads happen in the registers that hold the products: a score
// is the sum over a thread's own columns and three other lanes'. Products of the next tile run meanwhile. Scores are
// stored, or offered to the block's top-k and forgotten.

#include "kernels/attention/sparse_attention/timed/kernels.hpp"
#include "kernels/attention/sparse_attention/top_k.hpp"
#include "kernels/base/simt/hopper.hpp"

namespace tilestep::sparse_attention::timed::SIMT_BACKEND {

using namespace simt::hopper;
namespace lesson = sparse_attention::SIMT_BACKEND;

constexpr int kColumns = kQueriesOfBlock * kHeads;
constexpr int kTileBytes = kTokensOfTile * kDim, kGroup = 128;

struct IndexMaps {
  TensorMap q, keys;
};
struct Scoring {
  simt::Global<const float> weights, scales;
  simt::Global<float> scores;
  simt::Global<int> chosen;
};

/// Shared memory: Q, stages of keys, barriers, and each query's entries.
struct IndexLayout {
  unsigned base;
  __device__ __forceinline__ unsigned q() const { return base; }
  __device__ __forceinline__ unsigned keys(int stage) const {
    return base + static_cast<unsigned>(kColumns * kDim + stage * kTileBytes);
  }
  __device__ __forceinline__ unsigned full_q() const { return keys(kIndexStages); }
  __device__ __forceinline__ unsigned full(int stage) const {
    return full_q() + 8 + static_cast<unsigned>(stage * 8);
  }
  __device__ __forceinline__ unsigned empty(int stage) const { return full(kIndexStages + stage); }
};
__device__ __forceinline__ IndexLayout lay_index(std::size_t bytes) {
  const unsigned raw = simt::shared_address(simt::dynamic_shared<std::uint8_t>(bytes, 0, "tiles"));
  const IndexLayout layout{(raw + 1023) / 1024 * 1024};
  name_shared(layout.q(), kColumns * kDim, "Q", 0);
  name_shared(layout.full_q(), 8, "full Q", 0);
  for (int stage = 0; stage < kIndexStages; ++stage) {
    name_shared(layout.keys(stage), kTileBytes, "keys", stage);
    name_shared(layout.full(stage), 8, "full", stage);
    name_shared(layout.empty(stage), 8, "empty", stage);
  }
  return layout;
}

/// The two warpgroups that compute, as a team of the top-k.
struct Consumers {
  __device__ static int thread() { return static_cast<int>(threadIdx.x) - kGroup; }
  __device__ static int threads() { return 2 * kGroup; }
  __device__ static void sync() { named_barrier_sync(1, 2 * kGroup); }
};
using Best = lesson::TopK<Consumers>;

/// Starts the products of a tile.
__device__ __forceinline__ void issue(float (&sums)[kColumns / 2], const IndexLayout& layout,
                                      int tile, int consumer) {
  const int stage = tile % kIndexStages;
  wait_for(layout.full(stage), static_cast<unsigned>(tile / kIndexStages & 1));
  const std::uint64_t keys =
      descriptor<128>(layout.keys(stage) + static_cast<unsigned>(consumer * kWgmmaRows * kDim));
  const std::uint64_t q = descriptor<128>(layout.q());
  wgmma_begin();
#pragma unroll
  for (int step = 0; step < kDim / kWgmmaBytes; ++step) {
    const auto along = static_cast<std::uint64_t>(step * kWgmmaBytes / 16);
    wgmma<Format::e4m3, kColumns>(sums, keys + along, q + along, step == 0);
  }
  wgmma_commit();
}

/// What a consumer thread does with sums: two tokens, eight rows apart, of each query.
struct Scorer {
  const Scoring& arrays;
  const ScoreShape& shape;
  int first_query, consumer;
  float weights[kColumns / 4];  ///< of its columns

  __device__ __forceinline__ void load() {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int j = 0; j < kColumns / 4; ++j) {
      const int column = j / 2 * 8 + lane % 4 * 2 + j % 2;
      weights[j] = arrays.weights[first_query * kHeads + column];
    }
  }
  /// The sum over heads of a row of a query, by its four lanes.
  __device__ __forceinline__ float score(const float (&sums)[kColumns / 2], int query,
                                         int half) const {
    constexpr int kEights = kHeads / 8;
    float even = 0, odd = 0;
#pragma unroll
    for (int j = query * kEights; j < (query + 1) * kEights; ++j) {
      even = fmaf(weights[2 * j], fmaxf(sums[4 * j + 2 * half], 0.0f), even);
      odd = fmaf(weights[2 * j + 1], fmaxf(sums[4 * j + 2 * half + 1], 0.0f), odd);
    }
    float all = even + odd;
    all += __shfl_xor_sync(0xFFFFFFFFu, all, 1);
    return all + __shfl_xor_sync(0xFFFFFFFFu, all, 2);
  }
  __device__ __forceinline__ int own_query() const {
    return static_cast<int>(threadIdx.x) % 2;
  }
  /// The thread's own score in a tile: each of a row's four lanes has all four of two tokens and two queries.
  __device__ __forceinline__ float own_score(const float (&sums)[kColumns / 2], int tile,
                                             int& token, bool& seen) const {
    const int thread = static_cast<int>(threadIdx.x) % kGroup, lane = thread % 32;
    const int row = tile * kTokensOfTile + consumer * kWgmmaRows + thread / 32 * 16 + lane / 4;
    token = row + lane % 4 / 2 * 8;
    float mine = 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int query = 0; query < kQueriesOfBlock; ++query) {
        const float its = score(sums, query, half);
        if (lane % 4 == 2 * half + query) mine = its;
      }
    }
    seen = token <= shape.context - shape.queries + first_query + own_query();
    return seen ? mine * arrays.scales[token] : 0;
  }
};

template <bool kChooses>
__device__ __forceinline__ void consume_keys(const Scoring& arrays, const ScoreShape& shape,
                                             const IndexLayout& layout, std::size_t entries_at,
                                             int consumer, int tiles) {
  Scorer scorer{arrays, shape, static_cast<int>(blockIdx.x) * kQueriesOfBlock, consumer, {}};
  scorer.load();
  Best best[kQueriesOfBlock];
  if constexpr (kChooses) {
    const auto room = static_cast<std::size_t>(shape.room);
#pragma unroll
    for (int query = 0; query < kQueriesOfBlock; ++query) {
      const std::size_t each = room * sizeof(lesson::Entry) + Best::kCounts * sizeof(int);
      const std::size_t at = entries_at + static_cast<std::size_t>(query) * each;
      best[query] = {
          simt::dynamic_shared<lesson::Entry>(room, at, "kept"),
          simt::dynamic_shared<int>(Best::kCounts, at + room * sizeof(lesson::Entry), "counts"),
          shape.top_k, shape.room};
      best[query].begin();
    }
  }
  wait_for(layout.full_q(), 0);
  float here[kColumns / 2], next[kColumns / 2];
  // Scores of two tiles, stored or offered.
  lesson::Entry entries[2];
  bool there[2];
  const auto score = [&](float(&sums)[kColumns / 2], int tile, int which) {
    settle(sums);
    if (threadIdx.x % 32 == 0) arrive(layout.empty(tile % kIndexStages));
    int token;
    const float its = scorer.own_score(sums, tile, token, there[which]);
    if constexpr (kChooses) {
      entries[which] = lesson::entry_of(its, token, false);
    } else if (there[which]) {
      const std::ptrdiff_t query = scorer.first_query + scorer.own_query();
      arrays.scores[query * shape.context + token] = its;
    }
  };
  const auto offer = [&] {
    if constexpr (kChooses) Best::push_two(best, scorer.own_query(), entries, there);
  };
  for (int tile = 0; tile < tiles;) {
    const int end = min(tile + kCheckEvery, tiles);
    // Two tiles at a time: the second one's products, and the other warpgroup's, run while scores of the first are made.
    for (; tile + 1 < end; tile += 2) {
      issue(here, layout, tile, consumer);
      issue(next, layout, tile + 1, consumer);
      wgmma_wait<1>();
      score(here, tile, 0);
      wgmma_wait<0>();
      score(next, tile + 1, 1);
      offer();
    }
    if (tile < end) {
      issue(here, layout, tile, consumer);
      wgmma_wait<0>();
      score(here, tile++, 0);
      there[1] = false;
      offer();
    }
    if constexpr (kChooses) Best::settle_two(best, kCheckEvery * kTokensOfTile, shape.slack);
  }
  if constexpr (kChooses) {
#pragma unroll
    for (int query = 0; query < kQueriesOfBlock; ++query) {
      Consumers::sync();  // all entries are there
      const int count = best[query].finish();
      Consumers::sync();  // and the last ones have moved
      const auto to = arrays.chosen + (scorer.first_query + query) * shape.top_k;
      for (int i = Consumers::thread(); i < shape.top_k; i += Consumers::threads())
        to[i] = i < count ? lesson::token_of(best[query].kept[i], false) : -1;
    }
  }
}

template <bool kChooses>
__global__ void __launch_bounds__(3 * kGroup, 1)
    index_kernel(const __grid_constant__ IndexMaps maps, Scoring arrays, ScoreShape shape,
                 int shared_bytes) {
  const IndexLayout layout = lay_index(static_cast<std::size_t>(shared_bytes));
  const int group = __shfl_sync(0xFFFFFFFFu, static_cast<int>(threadIdx.x) / kGroup, 0);
  const int first = static_cast<int>(blockIdx.x) * kQueriesOfBlock;
  const int last = shape.context - shape.queries + first + kQueriesOfBlock - 1;
  const int tiles = last / kTokensOfTile + 1;
  if (threadIdx.x == 0) {
    barrier_init(layout.full_q(), 1);
    for (int stage = 0; stage < kIndexStages; ++stage) {
      barrier_init(layout.full(stage), 1);
      barrier_init(layout.empty(stage), 2 * kGroup / 32);
    }
    publish_barriers();
  }
  __syncthreads();  // no thread waits at a barrier before it is there
  if (group == 0) {
    keep_registers<40>();
    if (threadIdx.x != 0) return;
    arrive_expecting(layout.full_q(), kColumns * kDim);
    fetch(maps.q, layout.q(), layout.full_q(), 0, first * kHeads);
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = tile % kIndexStages;
      wait_for(layout.empty(stage), static_cast<unsigned>(tile / kIndexStages & 1) ^ 1u);
      arrive_expecting(layout.full(stage), kTileBytes);
      fetch(maps.keys, layout.keys(stage), layout.full(stage), 0, tile * kTokensOfTile);
    }
  } else {
    take_registers<232>();
    // Behind the barriers, and as far from the start as the alignment may have moved them.
    constexpr std::size_t kEntriesAt =
        (1024 + kDim * (kColumns + kIndexStages * kTokensOfTile) + (1 + 2 * kIndexStages) * 8 + 7) /
        8 * 8;
    consume_keys<kChooses>(arrays, shape, layout, kEntriesAt, group - 1, tiles);
  }
}

}  // namespace tilestep::sparse_attention::timed::SIMT_BACKEND

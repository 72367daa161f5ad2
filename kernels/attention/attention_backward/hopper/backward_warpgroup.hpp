#pragma once

/// \file
/// Building blocks of the backward kernel for Hopper: the layout of shared memory, its products, weights and their
/// gradients, the store of accumulators.

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention_backward/hopper/schedule.hpp"
#include "kernels/attention/flash_attention_3/warpgroup.hpp"

namespace tilestep::attention_backward::hopper::SIMT_BACKEND {

using namespace simt::hopper;
using flash_3::SIMT_BACKEND::fetch_panels;
using flash_3::SIMT_BACKEND::hide_outside;
using flash_3::SIMT_BACKEND::in_descriptor;
using flash_3::SIMT_BACKEND::issue_product;
using flash_3::SIMT_BACKEND::issue_sums;
using flash_3::SIMT_BACKEND::kAllLanes;
using flash_3::SIMT_BACKEND::omits;
using flash_3::SIMT_BACKEND::pack_weights;

/// A kernel's compile-time constants. `kRounded`: dS is computed from dV's weights, rounded to the format, which
/// takes fewer registers than FP32 weights.
template <int kDim, int kQueriesOfTile, int kStagesOfQ, int kStagesOfDo, bool kRounded>
struct Tile {
  static constexpr TileSizes kSizes{kDim, kQueriesOfTile, kStagesOfQ, kStagesOfDo};
  static constexpr int kHeadDim = kDim, kQueries = kQueriesOfTile;
  static constexpr int kStages = kStagesOfQ, kGradientStages = kStagesOfDo;
  static constexpr bool kRoundedWeights = kRounded;
  static constexpr int kPanels = kDim / kPanelColumns;
  // A multiprocessor has 65536.
  static constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;
  static_assert(kQueries / kRowsOfGroup * kPanels == kConsumers, "dQ is 64 × 64 for each of them");

  using RingOfQ = Ring<Count<kStages>>;
  using RingOfDo = Ring<Count<kGradientStages>>;
  using Scores = float[kQueries / 2];          ///< of S^T or dP^T, 64 keys × kQueries
  using Weights = unsigned[kQueries / 16][4];  ///< the same as A's fragments
  using Outputs = float[kDim / 2];             ///< of dK or dV, 64 keys × kDim
  using QuerySums = float[kRowsOfGroup / 2];   ///< of dQ
};

// ---- shared memory --------------------------------------------------------------------------------

/// Addresses, as the instructions take them. Tiles consist of panels of 64 columns, each with all rows; in dS, whose
/// rows are queries, each consumer's keys are a panel.
template <class T>
struct Layout {
  unsigned base;

  __device__ __forceinline__ unsigned at(int bytes) const {
    return base + static_cast<unsigned>(bytes);
  }
  __device__ __forceinline__ unsigned k() const { return at(0); }
  __device__ __forceinline__ unsigned v() const { return at(T::kSizes.key_bytes()); }
  __device__ __forceinline__ unsigned q(int stage) const {
    return at(2 * T::kSizes.key_bytes() + stage * T::kSizes.query_bytes());
  }
  __device__ __forceinline__ unsigned d_o(int stage) const { return q(T::kStages + stage); }
  __device__ __forceinline__ unsigned ds(int which) const {
    return d_o(T::kGradientStages) + static_cast<unsigned>(which * T::kSizes.score_bytes());
  }
  __device__ __forceinline__ unsigned dq(int consumer) const {
    return ds(2) + static_cast<unsigned>(consumer * kPieceBytes);
  }
  /// Log-sum-exps of the tile's queries in units of log2, then their D.
  __device__ __forceinline__ unsigned rows(int stage) const {
    return dq(kConsumers) + static_cast<unsigned>(stage * T::kSizes.row_bytes());
  }

  __device__ __forceinline__ unsigned barrier(int number) const {
    return rows(T::kStages) + static_cast<unsigned>(number * 8);
  }
  __device__ __forceinline__ unsigned full_k() const { return barrier(0); }
  __device__ __forceinline__ unsigned full_v() const { return barrier(1); }
  __device__ __forceinline__ typename T::RingOfQ ring_q() const { return {barrier(2)}; }
  __device__ __forceinline__ typename T::RingOfDo ring_do() const {
    return {barrier(2 + 2 * T::kStages)};
  }
};

/// Lays it out in dynamic shared memory and names its parts.
template <class T>
__device__ __forceinline__ Layout<T> lay_out() {
  constexpr TileSizes kSizes = T::kSizes;
  const unsigned raw = simt::shared_address(simt::dynamic_shared<std::uint8_t>(
      static_cast<std::size_t>(kSizes.shared_bytes()), 0, "shared memory"));
  const Layout<T> layout{(raw + kAlignment - 1) / kAlignment * kAlignment};
  name_shared(layout.k(), kSizes.key_bytes(), "K", 0);
  name_shared(layout.v(), kSizes.key_bytes(), "V", 0);
  name_shared(layout.full_k(), 8, "full K", 0);
  name_shared(layout.full_v(), 8, "full V", 0);
  for (int i = 0; i < 2; ++i) {
    name_shared(layout.ds(i), kSizes.score_bytes(), "dS", i);
    name_shared(layout.dq(i), kPieceBytes, "dQ", i);
  }
  for (int stage = 0; stage < T::kStages; ++stage) {
    name_shared(layout.q(stage), kSizes.query_bytes(), "Q", stage);
    name_shared(layout.rows(stage), kSizes.row_bytes(), "log-sum-exp and D", stage);
  }
  for (int stage = 0; stage < T::kGradientStages; ++stage) {
    name_shared(layout.d_o(stage), kSizes.query_bytes(), "dO", stage);
  }
  layout.ring_q().name("full Q", "empty Q");
  layout.ring_do().name("full dO", "empty dO");
  return layout;
}

// ---- arguments of a launch ------------------------------------------------------------------------

struct Task {
  MaskRule rule;
  TileOrder order;
  int heads_of_group;  ///< query heads that share keys
  int query_tiles;     ///< of a head
  float scale;         ///< of scores: 1 / sqrt(head_dim)
  float scale_log2;    ///< times log2(e)
};
/// Of Q, dO [heads][length][head_dim] and K, V, dK, dV [kv_heads][length][head_dim]; log-sum-exps and D, a row
/// per tile of queries; the sums of dQ in blocks.
struct TensorMaps {
  TensorMap q, d_o, k, v, rows, dq, dk, dv;
};

/// A block's keys, and its walk over the queries: tile after tile, head after head.
struct Walk {
  int head;  ///< of keys
  int key;   ///< the first
  SeenTiles tiles;
  int total;  ///< of all heads
  int query_head;
  int tile;
  int left;  ///< of this head

  __device__ __forceinline__ void next() {
    tile = tile == tiles.last ? tiles.first : tile + 1;
    if (--left == 0) ++query_head, left = tiles.count();
  }
};
template <class T>
__device__ __forceinline__ Walk walk_of(const Task& task) {
  const KeyTile place = task.order.place(static_cast<int>(blockIdx.x));
  const int key = place.tile * kKeys;
  const int last = min(key + kKeys, task.rule.length) - 1;
  const SeenTiles tiles = tiles_seen(task.rule, key, last, T::kQueries);
  const int count = tiles.count();
  return {place.head,  key,  tiles, count * task.heads_of_group, place.head * task.heads_of_group,
          tiles.first, count};
}

// ---- products -------------------------------------------------------------------------------------

/// Issues dQ = dS K over all keys: of 64 columns, or where there are no more of 64 queries, the consumer's.
template <class T>
__device__ __forceinline__ void issue_query_sums(typename T::QuerySums& dq, unsigned ds,
                                                 unsigned keys, int consumer) {
  const int row = T::kPanels > 1 ? 0 : consumer;
  const int panel_of_k = T::kPanels > 1 ? consumer : 0;
  const std::uint64_t a = descriptor(ds + static_cast<unsigned>(row * kBoxBytes));
  const std::uint64_t b = turned_descriptor(
      keys + static_cast<unsigned>(panel_of_k * kKeys * kPanelBytes), kKeys * kPanelBytes);
#pragma unroll
  for (int step = 0; step < kKeys / 16; ++step) {
    constexpr int kSteps = kPanelBytes / kWgmmaBytes;
    const int panel = step / kSteps;
    const int byte = step % kSteps * kWgmmaBytes;
    wgmma<Format::bf16, kPanelColumns, Major::n>(
        dq, a + in_descriptor(panel * T::kQueries * kPanelBytes + byte),
        b + in_descriptor(step * 16 * kPanelBytes), step == 0);
  }
}

// ---- weights --------------------------------------------------------------------------------------

// A thread holds parts of two keys, eight rows apart, for queries 8j + 2 (lane % 4) and the next.

/// Masks the scores of keys that a query does not see. `key` is the consumer's first key, `query` the tile's
/// first query.
template <class T>
__device__ __forceinline__ void hide(typename T::Scores& s, const MaskRule& rule, int key,
                                     int query) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int mine = key + static_cast<int>(threadIdx.x) % kWarpgroup / 32 * 16 + lane / 4;
  const int column = query + lane % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = mine + half * 8;
    const bool there = row < rule.length;
    const int first = rule.mask == Mask::none ? 0 : row;
    const int last = rule.mask == Mask::sliding_window ? row + rule.window - 1 : rule.length;
    hide_outside(s, half, there ? first - column : T::kQueries, last - column);
  }
}

/// Turns scores into weights 2^(scale · score − log-sum-exp). A query past the end, or one that sees no key, has +∞.
template <class T>
__device__ __forceinline__ void weigh(typename T::Scores& s, unsigned rows, float scale) {
  const auto pairs = staged<float2>(rows, T::kQueries, "log-sum-exp and D");
#pragma unroll
  for (int j = 0; j < T::kQueries / 8; ++j) {
    const float2 lse = pairs[4 * j + static_cast<int>(threadIdx.x) % 4];
    s[4 * j] = exp2_approximate(fmaf(s[4 * j], scale, -lse.x));
    s[4 * j + 1] = exp2_approximate(fmaf(s[4 * j + 1], scale, -lse.y));
    s[4 * j + 2] = exp2_approximate(fmaf(s[4 * j + 2], scale, -lse.x));
    s[4 * j + 3] = exp2_approximate(fmaf(s[4 * j + 3], scale, -lse.y));
  }
}

/// dS = P ∘ (dP − D), in place of dP. P in FP32, or with kRoundedWeights as it was packed.
template <class T>
__device__ __forceinline__ void differentiate(typename T::Scores& dp, const typename T::Scores& p,
                                              const typename T::Weights& packed, unsigned rows) {
  const auto pairs = staged<float2>(rows, T::kQueries, "log-sum-exp and D");
#pragma unroll
  for (int j = 0; j < T::kQueries / 8; ++j) {
    const float2 d = pairs[T::kQueries / 2 + 4 * j + static_cast<int>(threadIdx.x) % 4];
#pragma unroll
    for (int i = 4 * j; i < 4 * j + 4; ++i) {
      float weight = 0;
      if constexpr (T::kRoundedWeights) {
        weight = simt::unpack_bf16(packed[i / 8][i / 2 % 4], i % 2);
      } else {
        weight = p[i];
      }
      dp[i] = weight * (dp[i] - (i % 2 == 0 ? d.x : d.y));
    }
  }
}

// ---- what leaves ----------------------------------------------------------------------------------

/// Writes the consumer's dS^T, transposed, to its panel of dS: one row per query.
template <class T>
__device__ __forceinline__ void stage_scores(unsigned ds, const typename T::Weights& weights,
                                             int consumer) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
  const unsigned panel = ds + static_cast<unsigned>(consumer * T::kQueries * kPanelBytes);
#pragma unroll
  for (int step = 0; step < T::kQueries / 16; ++step) {
    const int query = step * 16 + lane / 16 * 8 + lane % 8;
    const int chunk = simt::swizzled_chunk(query, 2 * warp + lane / 8 % 2);
    stmatrix_x4_trans(panel + static_cast<unsigned>(chunk * 16), weights[step]);
  }
}

/// Writes the consumer's sums of dQ in register layout: four contiguous numbers per thread.
template <class T>
__device__ __forceinline__ void stage_query_sums(unsigned piece, const typename T::QuerySums& dq) {
  const auto to = staged<float4>(piece, kPieceBytes / 16, "dQ");
#pragma unroll
  for (int j = 0; j < kRowsOfGroup / 8; ++j) {
    to[j * kWarpgroup + static_cast<int>(threadIdx.x) % kWarpgroup] =
        make_float4(dq[4 * j], dq[4 * j + 1], dq[4 * j + 2], dq[4 * j + 3]);
  }
}

/// Writes dK or dV, times `scale`, over the consumer's own keys of a tile, in the format.
template <class T>
__device__ __forceinline__ void stage_outputs(typename T::Outputs& o, unsigned tile, int consumer,
                                              float scale) {
#pragma unroll
  for (int i = 0; i < T::kHeadDim / 2; ++i) o[i] *= scale;
#pragma unroll
  for (int panel = 0; panel < T::kPanels; ++panel) {
    flash_3::SIMT_BACKEND::stage_outputs<T>(
        o, tile + static_cast<unsigned>(panel * kKeys * kPanelBytes + consumer * kBoxBytes),
        panel * kPanelColumns / 8, std::uint16_t{});
  }
}

}  // namespace tilestep::attention_backward::hopper::SIMT_BACKEND

#pragma once

/// \file
/// Building blocks of FlashAttention 3's kernels: the layout of shared memory, the softmax of scores in registers, the
/// store of O.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/attention/flash_attention_3/schedule.hpp"
#include "kernels/base/simt/ring.hpp"
#include "kernels/base/simt/softmax_step.hpp"

namespace tilestep::flash_attention_3::SIMT_BACKEND {

using namespace simt::hopper;

constexpr unsigned kAllLanes = 0xFFFFFFFFu;

/// Whether the kernel is to leave this out, or to be wrong in this way. On a GPU only what a knob can ask for: a wait
/// that may be omitted would keep the compiler from running products asynchronously.
template <class Tape, class Fault>
__device__ __forceinline__ constexpr bool omits(const Tape& tape, Fault what) {
#if defined(__CUDACC__)
  if (what > Fault::last_of_knob) return false;
#endif
  return tape.does(what);
}

/// A kernel's compile-time constants.
template <int kDim, int kKeysOfTile, int kGroups, int kStagesOfRing>
struct Tile {
  static constexpr TileSizes kSizes{kDim, kKeysOfTile, kGroups, kStagesOfRing};
  static constexpr int kHeadDim = kDim, kKeys = kKeysOfTile, kConsumers = kGroups;
  static constexpr int kStages = kStagesOfRing;
  static constexpr int kPanels = kDim / kPanelColumns;
  static constexpr int kQueryBytes = kSizes.query_bytes(), kKeyBytes = kSizes.key_bytes();
  // A multiprocessor has 65536.
  static constexpr int kProducerRegisters = kGroups == 2 ? 40 : 32;
  static constexpr int kConsumerRegisters = kGroups == 2 ? 232 : 160;
  static_assert(kDim % kPanelColumns == 0 && kKeysOfTile % 16 == 0 &&
                (kGroups == 2 || kGroups == 3));

  using Ring = simt::hopper::Ring<Count<kStages>>;  ///< of K or V
  using Scores = float[kKeysOfTile / 2];
  using Weights = unsigned[kKeysOfTile / 16][4];  ///< A's fragments for O += P V
  using Outputs = float[kDim / 2];
};

// ---- shared memory --------------------------------------------------------------------------------

/// Addresses, as the instructions take them. A tile of K or V consists of panels of 64 columns, each with all
/// rows; Q and the staged O have the same layout for each warpgroup.
template <class T>
struct Layout {
  unsigned base;

  __device__ __forceinline__ unsigned at(int bytes) const {
    return base + static_cast<unsigned>(bytes);
  }
  __device__ __forceinline__ unsigned q(int consumer) const {
    return at(consumer * T::kQueryBytes);
  }
  __device__ __forceinline__ unsigned o(int consumer) const {
    return at((T::kConsumers + consumer) * T::kQueryBytes);
  }
  __device__ __forceinline__ unsigned k(int stage) const {
    return at(2 * T::kConsumers * T::kQueryBytes + stage * T::kKeyBytes);
  }
  __device__ __forceinline__ unsigned v(int stage) const { return k(T::kStages + stage); }

  // The barriers. Q has one place.
  __device__ __forceinline__ Ring<Count<1>> ring_q() const { return {k(2 * T::kStages)}; }
  __device__ __forceinline__ typename T::Ring ring_k() const { return {ring_q().barriers + 16}; }
  __device__ __forceinline__ typename T::Ring ring_v() const {
    return {ring_k().barriers + 16 * T::kStages};
  }
};

/// Lays it out in dynamic shared memory and names its parts.
template <class T>
__device__ __forceinline__ Layout<T> lay_out() {
  const unsigned raw = simt::shared_address(simt::dynamic_shared<std::uint8_t>(
      static_cast<std::size_t>(T::kSizes.shared_bytes()), 0, "shared memory"));
  const Layout<T> layout{(raw + kAlignment - 1) / kAlignment * kAlignment};
  for (int consumer = 0; consumer < T::kConsumers; ++consumer) {
    name_shared(layout.q(consumer), T::kQueryBytes, "Q", consumer);
    name_shared(layout.o(consumer), T::kQueryBytes, "tile of O", consumer);
  }
  for (int stage = 0; stage < T::kStages; ++stage) {
    name_shared(layout.k(stage), T::kKeyBytes, "K", stage);
    name_shared(layout.v(stage), T::kKeyBytes, "V", stage);
  }
  layout.ring_q().name("full Q", "empty Q");
  layout.ring_k().name("full K", "empty K");
  layout.ring_v().name("full V", "empty V");
  return layout;
}

/// Requests all panels of a tile of `rows` rows from TMA.
template <class T>
__device__ __forceinline__ void fetch_panels(const TensorMap& map, unsigned tile, int rows,
                                             unsigned full, int row, int head) {
  for (int panel = 0; panel < T::kPanels; ++panel) {
    fetch(map, tile + static_cast<unsigned>(panel * rows * kPanelBytes), full,
          panel * kPanelColumns, row, head);
  }
}

// ---- arguments of a launch ------------------------------------------------------------------------

struct Task {
  MaskRule rule;
  TileOrder order;
  int heads_of_group;  ///< query heads that share keys
  float scale_log2;    ///< of scores: log2(e) / sqrt(head_dim)
};
/// For Q, K, V [heads][length][head_dim] and O.
struct TensorMaps {
  TensorMap q, k, v, o;
};

/// A block's tile of queries.
struct Place {
  int head;
  int row;  ///< its first query
  KeyTiles keys;
};
template <class T>
__device__ __forceinline__ Place place_of(const Task& task, const QueryTile& tile) {
  const int row = tile.tile * T::kSizes.rows();
  const int end = min(row + T::kSizes.rows(), task.rule.length);
  return {tile.head, row, tiles_seen(task.rule, row, end - 1, T::kKeys)};
}

// ---- products -------------------------------------------------------------------------------------

constexpr std::uint64_t in_descriptor(int bytes) {
  return static_cast<std::uint64_t>(bytes / 16);
}

/// Issues C = A Bᵀ over kDim columns, for 64 rows of a tile A of kRowsA rows and all kRowsB rows of a tile B.
template <int kDim, int kRowsA, int kRowsB>
__device__ __forceinline__ void issue_product(float (&c)[kRowsB / 2], unsigned a, unsigned b) {
  const std::uint64_t of_a = descriptor(a);
  const std::uint64_t of_b = descriptor(b);
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    constexpr int kSteps = kPanelBytes / kWgmmaBytes;  // of a panel
    const int panel = step / kSteps;
    const int byte = step % kSteps * kWgmmaBytes;
    wgmma<Format::bf16, kRowsB>(c, of_a + in_descriptor(panel * kRowsA * kPanelBytes + byte),
                                of_b + in_descriptor(panel * kRowsB * kPanelBytes + byte),
                                step == 0);
  }
}

/// Issues C += A B, A from registers. B is not transposed: its kDim columns vary fastest.
template <int kDim, int kSteps>
__device__ __forceinline__ void issue_sums(float (&c)[kDim / 2], const unsigned (&a)[kSteps][4],
                                           unsigned b) {
  const std::uint64_t of_b = turned_descriptor(b, kSteps * 16 * kPanelBytes);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
    wgmma<Format::bf16, kDim, Major::n>(c, a[step], of_b + in_descriptor(step * 16 * kPanelBytes),
                                        false);
  }
}

/// A thread's accumulators are already where wgmma wants A's fragments: two neighbours of a row per register.
template <int kSteps, int kSums>
__device__ __forceinline__ void pack_weights(unsigned (&weights)[kSteps][4],
                                             const float (&s)[kSums]) {
  static_assert(kSums == 8 * kSteps);
#pragma unroll
  for (int i = 0; i < 4 * kSteps; ++i) {
    weights[i / 4][i % 4] = pack_bf16(s[2 * i], s[2 * i + 1]);
  }
}

// ---- softmax --------------------------------------------------------------------------------------

/// A thread holds parts of two rows of scores, eight rows apart; four lanes share a row.
struct Rows {
  float maximum[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};  ///< of the thread's own weights
};
/// Masks all of a row's scores but those of columns `lowest` … `highest`, counted from the thread's first. It is row
/// `half` of its two.
template <int kSums>
__device__ __forceinline__ void hide_outside(float (&s)[kSums], int half, int lowest, int highest) {
#pragma unroll
  for (int j = 0; j < kSums / 4; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const bool hidden = 8 * j + i < lowest || 8 * j + i > highest;
      if (hidden) s[4 * j + 2 * half + i] = -INFINITY;
    }
  }
}
/// Masks the scores of keys that a query does not see. `row` is the warpgroup's first query, `key` the tile's
/// first key. Broken, each query sees `one_more`.
template <class T>
__device__ __forceinline__ void hide(typename T::Scores& s, const MaskRule& rule, int row, int key,
                                     bool one_more) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int query = row + static_cast<int>(threadIdx.x) % kWarpgroup / 32 * 16 + lane / 4;
  const int mine = key + lane % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int last = min(rule.last_key(query + half * 8), rule.length - 1) + (one_more ? 1 : 0);
    hide_outside(s, half, rule.first_key(query + half * 8, NoDocuments{}) - mine, last - mine);
  }
}

/// The highest score of each of the two rows.
template <class T>
__device__ __forceinline__ void highest(float (&found)[2], const typename T::Scores& s) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    // Two at a time: shorter dependency chain than one comparison after another.
    float even = s[2 * half];
    float odd = s[2 * half + 1];
#pragma unroll
    for (int j = 1; j < T::kKeys / 8; ++j) {
      even = fmaxf(even, s[4 * j + 2 * half]);
      odd = fmaxf(odd, s[4 * j + 2 * half + 1]);
    }
    float best = fmaxf(even, odd);
    best = fmaxf(best, __shfl_xor_sync(kAllLanes, best, 1));
    found[half] = fmaxf(best, __shfl_xor_sync(kAllLanes, best, 2));
  }
}

/// Turns scores into weights 2^(scale · (score − maximum)); `rescale` becomes the factor for everything accumulated
/// so far. `scale` includes log2(e). In an unmasked tile no row's maximum is −∞.
template <class T, bool kMasked>
__device__ __forceinline__ void weigh(typename T::Scores& s, Rows& rows, float (&rescale)[2],
                                      const float (&tile)[2], float scale) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const auto step =
        simt::raise_maximum<simt::BinaryExp, !kMasked>(rows.maximum[half], tile[half], scale);
    rescale[half] = step.rescale;
    float even = 0;
    float odd = 0;
#pragma unroll
    for (int j = 0; j < T::kKeys / 8; ++j) {
      float* two = &s[4 * j + 2 * half];
      two[0] = step.weight(two[0], scale);
      two[1] = step.weight(two[1], scale);
      even += two[0];
      odd += two[1];
    }
    rows.sum[half] = fmaf(rows.sum[half], rescale[half], even + odd);
  }
}

template <class T>
__device__ __forceinline__ void scale_outputs(typename T::Outputs& o, const float (&by)[2]) {
#pragma unroll
  for (int i = 0; i < T::kHeadDim / 2; ++i) o[i] *= by[i / 2 % 2];
}

/// The sum over the four lanes of a row.
__device__ __forceinline__ float sum_of_row(float mine) {
  mine += __shfl_xor_sync(kAllLanes, mine, 1);
  return mine + __shfl_xor_sync(kAllLanes, mine, 2);
}

// ---- O --------------------------------------------------------------------------------------------

/// Writes 64 rows of 128 bytes to a box with the 128-byte swizzle; `first` is the first block of 8 columns.
template <class T>
__device__ __forceinline__ void stage_outputs(const typename T::Outputs& o, unsigned box, int first,
                                              std::uint16_t) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) % kWarpgroup / 32 * 16 + lane % 16;
#pragma unroll
  for (int j = 0; j < 8; j += 2) {
    const float* from = &o[4 * (first + j)];
    const unsigned matrices[4] = {pack_bf16(from[0], from[1]), pack_bf16(from[2], from[3]),
                                  pack_bf16(from[4], from[5]), pack_bf16(from[6], from[7])};
    const int chunk = simt::swizzled_chunk(row, j + lane / 16);
    stmatrix_x4(box + static_cast<unsigned>(chunk * 16), matrices);
  }
}
template <class T>
__device__ __forceinline__ void stage_outputs(const typename T::Outputs& o, unsigned box, int first,
                                              float) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) % kWarpgroup / 32;
  const auto to = staged<float>(box, kBoxBytes / 4, "tile of O");
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = warp * 16 + i / 2 * 8 + lane / 4;
      const int column = lane % 4 * 2 + i % 2;
      to[simt::swizzled_chunk(row, 2 * j + column / 4) * 4 + column % 4] = o[4 * (first + j) + i];
    }
  }
}

/// Stores O through shared memory by TMA, which skips rows past the last query. Returns immediately: TMA reads while
/// the warpgroup works on its next tile. FP32 takes two rounds.
template <class T, class Out, class Tape = simt::NoTape>
__device__ __forceinline__ void store_outputs(const TensorMap& map, const typename T::Outputs& o,
                                              const Layout<T>& layout, int consumer, int row,
                                              int head, const Tape& tape = {}) {
  constexpr int kColumns = kPanelBytes / static_cast<int>(sizeof(Out));  // of a box
  constexpr int kParts = T::kHeadDim / kColumns;
  const int meeting = 1 + T::kConsumers + consumer;
  const bool speaks = threadIdx.x % kWarpgroup == 0;
#pragma unroll
  for (int first = 0; first < kParts; first += T::kPanels) {
    if (speaks && !omits(tape, Fault::no_store_wait)) store_wait<0>();
    // The previous contents must have been read before they are overwritten …
    if (!omits(tape, Fault::no_write_meeting)) named_barrier_sync(meeting, kWarpgroup);
#pragma unroll
    for (int i = 0; i < T::kPanels; ++i) {
      stage_outputs<T>(o, layout.o(consumer) + static_cast<unsigned>(i * kBoxBytes),
                       (first + i) * kColumns / 8, Out{});
    }
    if (!omits(tape, Fault::missing_fence)) publish_to_async_proxy();
    // … and all threads must have written before TMA reads.
    if (!omits(tape, Fault::no_store_meeting)) named_barrier_sync(meeting, kWarpgroup);
    if (!speaks) continue;
    for (int i = 0; i < T::kPanels; ++i) {
      store(map, layout.o(consumer) + static_cast<unsigned>(i * kBoxBytes), (first + i) * kColumns,
            row, head);
    }
    store_commit();
  }
}

}  // namespace tilestep::flash_attention_3::SIMT_BACKEND

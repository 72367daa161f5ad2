#pragma once

/// \file
/// The task, its sizes, and the records of an explained kernel: for every kernel of attention, forward and
/// backward.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/attention/shared/mask.hpp"
#include "kernels/attention/shared/step.hpp"
#include "kernels/base/simt/device.hpp"
#include "kernels/base/simt/simt.hpp"
#include "kernels/lessons.hpp"

namespace tilestep::attention {

/// The contents of Q, K and V.
enum class Data {
  random,
  outliers,  ///< a few channels of K far from 0 in all rows, and some large numbers
};
constexpr auto names_of(Data) {
  return std::to_array<std::string_view>({"random", "outliers"});
}

/// The fault of an explained kernel.
enum class Break {
  none,
  skip_rescale,     ///< the maximum rises, O and the sum stay as they are
  materialize,      ///< flash-2 also writes its scores out
  mask_off_by_one,  ///< a query sees one key too many
};
constexpr auto names_of(Break) {
  return std::to_array<std::string_view>(
      {"none", "skip-rescale", "materialize", "mask-off-by-one"});
}

/// Of a number in memory.
inline constexpr int kElementBytes = 2;

enum class HeadDim { d32, d64, d80, d96, d128, d256 };
constexpr auto names_of(HeadDim) {
  return std::to_array<std::string_view>({"32", "64", "80", "96", "128", "256"});
}
constexpr int columns_of(HeadDim dim) {
  constexpr int kColumns[] = {32, 64, 80, 96, 128, 256};
  return kColumns[static_cast<int>(dim)];
}
/// Columns of a tile in shared memory: 80 are zero-padded to 96.
constexpr int filled_columns(int head_dim) {
  return head_dim == 80 ? 96 : head_dim;
}

/// Queries or keys of a tile.
enum class Edge { t16, t32, t64, t128 };
constexpr auto names_of(Edge) {
  return std::to_array<std::string_view>({"16", "32", "64", "128"});
}
constexpr int size_of(Edge edge) {
  return 16 << static_cast<int>(edge);
}

inline constexpr int kMostLength = 65536;
inline constexpr int kMostHeads = 64;

/// The task, independent of the tiles.
struct Task {
  MaskRule rule;
  int heads = 1, kv_heads = 1, head_dim = 64;
  ScoreMod mod = ScoreMod::none;

  int length() const { return rule.length; }
};

// ---- tiles ----------------------------------------------------------------------------------------

/// A block's limit on Hopper: 227 KB.
inline constexpr int kMostSharedBytes = 227 * 1024;
/// The tensor core's instruction takes 16 queries or keys.
inline constexpr int kStrip = 16;
/// A tile of scores, and the columns of Q, K and V in shared memory.
struct TileSize {
  int block_q = 0, block_k = 0, columns = 0;
};

/// Rows of S and P in memory are a multiple of 8 numbers apart, so that all begin at a multiple of 16 bytes.
/// The padding is written and read like the rest: −infinity and 0.
__host__ __device__ constexpr int score_pitch(int length) {
  return (length + 7) / 8 * 8;
}

/// In bytes.
constexpr std::size_t bytes_of_numbers(int count) {
  return static_cast<std::size_t>(count) * kElementBytes;
}
// ---- records of a kernel ----------------------------------------------------------------------------

/// A step of the chosen query, by its tile of keys; order −1: the tile was not visited.
struct StepRecord : SoftmaxStep {
  /// The first component of O so far: not yet divided by ℓ; flash-1 divides at every visit. Backward: the tile's
  /// addition to dQ's.
  float o = 0;
  bool operator==(const StepRecord&) const = default;
};

/// A tile of scores that a block computed.
struct Visit {
  int block;     ///< −1: none did
  int order;     ///< among the visits of its block, from 0
  int kind;      ///< TileKind, as the kernel took it
  int rescaled;  ///< rows whose maximum rose after their first weight, so that O and ℓ were rescaled
  int o_reads, o_writes;  ///< rows of O that were read from and written to memory
  /// On a GPU, nanoseconds on a clock shared by all multiprocessors; under emulation, where time is meaningless, the
  /// tiles that the block has computed. For naive, those of the kernel that computes scores.
  long long begin, end;
};

/// Tensors whose bytes are counted.
enum class Tensor {
  q,
  k,
  v,
  s,
  p,
  o,
  lse,
  o_sums,
  m_l,
  d_o,      ///< of the backward pass, as those below: the gradient of O
  d,        ///< rows' sums of dO ∘ O, each beside its log-sum-exp
  dq_sums,  ///< dQ in FP32, while blocks add to it
  dq,
  dk,
  dv,
  q_8,     ///< of fp8 and int8, as those below: Q in 8 bits
  k_8,     ///< K in 8 bits
  scales,  ///< of both, by tile
  k_mean,  ///< K's mean over the keys
  q_mean   ///< each query's product with it
};
constexpr auto names_of(Tensor) {
  return std::to_array<std::string_view>(
      {"Q", "K",       "V",  "S",  "P",  "O",  "lse", "O sums", "m, l",   "dO",
       "D", "dQ sums", "dQ", "dK", "dV", "Q8", "K8",  "scales", "K mean", "Q mean"});
}
inline constexpr int kTensors = 20;
/// Bytes requested by a kernel's own accesses.
struct Asked {
  unsigned long long loaded = 0, stored = 0;
  bool operator==(const Asked&) const = default;
};
/// By Tensor.
using Ledger = std::array<Asked, kTensors>;

/// Whose steps an explained launch records, and where. `visits` is [heads × q_tiles × k_tiles], `steps`
/// [k_tiles], `asked` [2 · kTensors]: bytes loaded and stored of each tensor.
struct Records {
  int head = 0, query = 0;
  simt::Span<Visit> visits;
  simt::Span<StepRecord> steps;
  simt::Span<unsigned long long> asked;
  simt::Span<float> rows{};  ///< backward: P, dP and dS of the chosen query, [3 × length]
};

}  // namespace tilestep::attention

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/attention/flash_attention/shared/mask.hpp"
#include "kernels/base/simt/device.hpp"
#include "kernels/lessons.hpp"

/// \file
/// What the lesson on attention is asked, and what its kernels record. What a run shows is in lesson.hpp.

/// The lesson on attention: O = softmax(Q·K^T / sqrt(head_dim)) V, from three kernels and a matrix of scores
/// in memory to FlashAttention 1, 2 and 3. Q, O [heads × length × head_dim], K, V [kv_heads × length ×
/// head_dim], row-major; log-sum-exp [heads × length], FP32. Dao et al., "FlashAttention", 2022
/// (arXiv:2205.14135); Dao, "FlashAttention-2", 2023 (arXiv:2307.08691); Shah et al., "FlashAttention-3",
/// 2024 (arXiv:2407.08608).
namespace tilestep::flash_attention {

/// The rungs of the ladder.
enum class Variant {
  naive,
  flash_1,
  flash_2,
  flash_3_tma,
  flash_3_ping_pong,
  flash_3,
};
constexpr auto names_of(Variant) {
  return std::to_array<std::string_view>(
      {"naive", "flash-1", "flash-2", "flash-3-tma", "flash-3-ping-pong", "flash-3"});
}
constexpr auto reasons_of(Variant) {
  return std::to_array<std::string_view>(
      {"The textbook: one kernel writes all scores, one turns each row into weights, one "
       "multiplies "
       "the weights by V. Every score crosses the memory bus four times.",
       "No score is stored. A block a head walks over tiles of keys, and for each over all "
       "queries, "
       "whose O, maximum and sum wait in memory and are rescaled at every visit.",
       "Loops change places: a block a tile of queries, O stays in registers and is divided once, "
       "at "
       "the end. Warps split queries instead of keys and need not add up.",
       "Hopper: a warpgroup's products from shared memory, which TMA fills while one multiplies.",
       "Two warpgroups take turns: one makes exponentials while the other multiplies.",
       "The softmax of one tile runs under the products of the next, inside each warpgroup too."});
}
constexpr bool is_flash_3(Variant variant) {
  return variant >= Variant::flash_3_tma;
}

enum class Pass {
  forward,
  backward_recompute,  ///< weights made again from Q, K and the log-sum-exp
};
constexpr auto names_of(Pass) {
  return std::to_array<std::string_view>({"forward", "backward-recompute"});
}

/// Of Q, K, V and O; sums are FP32. With fp8 (E4M3) and int8 they lie in memory in BF16, and Q and K
/// become numbers of 8 bits for their product alone: quantized/problem.hpp.
enum class DataType { bf16, fp8, int8 };
constexpr auto names_of(DataType) {
  return std::to_array<std::string_view>({"bf16", "fp8", "int8"});
}
/// Whether scores are products of 8-bit numbers.
constexpr bool is_quantized(DataType type) {
  return type == DataType::fp8 || type == DataType::int8;
}
/// Of a number in memory.
inline constexpr int kElementBytes = 2;

/// What Q, K and V hold.
enum class Data {
  random,
  outliers,  ///< a few channels of K far from 0 in all rows, and some large numbers
};
constexpr auto names_of(Data) {
  return std::to_array<std::string_view>({"random", "outliers"});
}

/// What an explained kernel does wrong.
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

enum class HeadDim { d32, d64, d80, d96, d128, d256 };
constexpr auto names_of(HeadDim) {
  return std::to_array<std::string_view>({"32", "64", "80", "96", "128", "256"});
}
constexpr int columns_of(HeadDim dim) {
  constexpr int kColumns[] = {32, 64, 80, 96, 128, 256};
  return kColumns[static_cast<int>(dim)];
}
/// Columns that a tile in shared memory has: 80 are filled to 96 with zeros.
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

struct Params {
  Variant variant = Variant::flash_2;
  Pass pass = Pass::forward;
  int seq = 256;
  int heads = 2, kv_heads = 1;
  HeadDim head_dim = HeadDim::d32;
  Mask mask = Mask::causal;
  int window = 64;  ///< of sliding-window and prefix
  int sinks = 0;    ///< of sliding-window
  ScoreMod score_mod = ScoreMod::none;
  Edge block_q = Edge::t32, block_k = Edge::t32;
  DataType dtype = DataType::bf16;
  bool smooth_k = true;  ///< of fp8 and int8: K loses its mean before it becomes numbers of 8 bits
  Data data = Data::random;
  Break broken = Break::none;
  std::int64_t seed = 1;
  int head = 0, query = 225, component = 0;  ///< whose steps are shown; past the end: the last

  /// The mask; a window or sinks beyond the length are the length.
  MaskRule rule() const;
};

/// The knobs, bound to Params: variant pass seq heads kv_heads head_dim mask window sinks score_mod block_q
/// block_k dtype smooth_k data break seed. What cannot be together is refused with what can.
const lab::KnobTable<Params>& knob_table();

/// What Params come to: the dispatcher's choice, as words where it is another than was asked for.
struct Plan {
  Variant asked = Variant::flash_2, runs = Variant::flash_2;
  std::string instead;  ///< why another kernel runs; empty: the one that was asked for
  int head_dim = 64;    ///< columns in memory
  int columns = 64;     ///< of tiles in shared memory
  std::string filled;   ///< why they are more; empty: they are not
  int block_q = 64, block_k = 64;
  bool quantized =
      false;  ///< scores are products of 8-bit numbers: another kernel than `runs` has otherwise
  bool smooth_k = false;  ///< … and K loses its mean first
  std::string resized;    ///< why tiles are others than were asked for; empty: they are not
  int q_tiles = 0, k_tiles = 0;
  int threads = 0;               ///< of a block
  std::size_t shared_bytes = 0;  ///< of a block, the largest of several kernels
  MaskRule rule;
};
/// Throws Error for what no kernel computes.
Plan plan_of(const Params& params);
/// The same for formulas, which know no limits of a kernel.
Plan formula_plan_of(const Params& params);

// ---- what a kernel records --------------------------------------------------------------------------

/// What one tile of keys did to the chosen query of the chosen head. Scores as they enter exp: with scale,
/// modifier and mask, in natural units.
struct StepRecord {
  float tile_max, m_before, m_after;
  float rescale;      ///< exp(m_before − m_after): what O and ℓ are multiplied by
  float tile_sum, l;  ///< of the weights of the tile, and of all so far
  float o;            ///< the chosen component, not yet divided (flash-1: divided at every visit)
  int order;          ///< of the visit among those of its block; −1: the tile was not visited
  bool operator==(const StepRecord&) const = default;
};

/// A tile of scores that a block computed.
struct Visit {
  int block;     ///< −1: none did
  int order;     ///< among the visits of its block, from 0
  int kind;      ///< TileKind, as the kernel took it
  int rescaled;  ///< rows whose maximum rose after their first weight, so that O and ℓ were rescaled
  int o_reads, o_writes;  ///< rows of O that were read from and written to memory
  /// On a GPU nanoseconds that all multiprocessors share; under emulation, where time says nothing, how many
  /// tiles the block has computed. Of naive those of the kernel that computes scores.
  long long begin, end;
};

/// Whose bytes are counted.
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
/// Bytes that a kernel's own accesses asked for.
struct Asked {
  unsigned long long loaded = 0, stored = 0;
  bool operator==(const Asked&) const = default;
};
/// By Tensor.
using Ledger = std::array<Asked, kTensors>;

}  // namespace tilestep::flash_attention

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/attention/shared/matrix.hpp"
#include "kernels/base/simt/device.hpp"
#include "kernels/lessons.hpp"

/// \file
/// Parameters of the lesson on attention, and the records of its kernels. The results of a run are in lesson.hpp.

/// The lesson on attention: O = softmax(Q·K^T / sqrt(head_dim)) V, from three kernels and a matrix of scores
/// in memory to FlashAttention 1 and 2. Q, O [heads × length × head_dim], K, V [kv_heads × length ×
/// head_dim], row-major; log-sum-exp [heads × length], FP32. Dao et al., "FlashAttention", 2022
/// (arXiv:2205.14135); Dao, "FlashAttention-2", 2023 (arXiv:2307.08691).
namespace tilestep::flash_attention {

using namespace attention;

/// The rungs of the ladder.
enum class Variant {
  naive,
  flash_1,
  flash_2,
};
constexpr auto names_of(Variant) {
  return std::to_array<std::string_view>({"naive", "flash-1", "flash-2"});
}
constexpr auto reasons_of(Variant) {
  return std::to_array<std::string_view>({
      "The textbook: one kernel writes all scores, one turns each row into weights, one "
      "multiplies "
      "the weights by V. Every score crosses the memory bus four times.",
      "No score is stored. One block per head walks over tiles of keys, for each over all "
      "queries, "
      "whose O, maximum and sum are kept in memory and rescaled at every visit.",
      "Loops swapped: one block per tile of queries, O stays in registers and is divided once, "
      "at "
      "the end. Warps split queries instead of keys and combine nothing.",
  });
}

/// For Q, K, V and O; accumulators are FP32. With fp8 (E4M3) and int8 they are BF16 in memory, and Q and K
/// are quantized to 8 bits for their product only: quantized/problem.hpp.
enum class DataType { bf16, fp8, int8 };
constexpr auto names_of(DataType) {
  return std::to_array<std::string_view>({"bf16", "fp8", "int8"});
}
/// Whether scores are products of 8-bit numbers.
constexpr bool is_quantized(DataType type) {
  return type == DataType::fp8 || type == DataType::int8;
}

/// What the kernels are run with.
struct Params {
  Variant variant = Variant::flash_2;
  int seq = 256;
  int heads = 2, kv_heads = 1;
  HeadDim head_dim = HeadDim::d32;
  Mask mask = Mask::causal;
  int window = 64;  ///< of sliding-window and prefix
  int sinks = 0;    ///< of sliding-window
  ScoreMod score_mod = ScoreMod::none;
  Edge block_q = Edge::t32, block_k = Edge::t32;
  DataType dtype = DataType::bf16;
  bool smooth_k = true;  ///< for fp8 and int8: K's mean is subtracted before K is quantized
  Data data = Data::random;
  Break broken = Break::none;
  std::int64_t seed = 1;
  int query = 225;  ///< whose steps are shown; past the end: the last

  /// The mask; a window or sinks beyond the length are the length.
  MaskRule rule() const;
};

/// The kernels' task.
Task task_of(const Params& params);

// ---- knobs --------------------------------------------------------------------------------------------

/// A mask, or what a causal one may do to scores besides.
enum class Sees { none, causal, sliding_window, document, prefix, alibi, softcap };
constexpr auto names_of(Sees) {
  return std::to_array<std::string_view>(
      {"none", "causal", "sliding-window", "document", "prefix", "alibi", "softcap"});
}
/// How Q and K are multiplied. K loses its mean before it is quantized, or keeps it.
enum class ScoreFormat { bf16, fp8, int8, fp8_with_mean, int8_with_mean };
constexpr auto names_of(ScoreFormat) {
  return std::to_array<std::string_view>(
      {"bf16", "fp8", "int8", "fp8-with-mean", "int8-with-mean"});
}
/// "16x16", "16x32" …: queries and keys of a tile.
constexpr int tile_of(Edge queries, Edge keys) {
  return static_cast<int>(queries) * static_cast<int>(count_of<Edge>()) + static_cast<int>(keys);
}

/// The knobs: variant seq heads head_dim mask sinks tile dtype break query.
struct Choices {
  Variant variant = Variant::flash_2;
  int seq = 256, heads = 2;
  HeadDim head_dim = HeadDim::d32;
  Sees mask = Sees::causal;
  int sinks = 0;
  int tile = tile_of(Edge::t32, Edge::t32);
  ScoreFormat dtype = ScoreFormat::bf16;
  Break broken = Break::none;
  int query = 225;

  /// Two heads of Q share one of K and V if their number is even; K has outliers where it is quantized.
  Params params() const;
};
/// Impossible combinations are refused with the possible values.
const lab::KnobTable<Choices>& knob_table();

/// The dispatcher's choice for Params, in words where it differs from the request.
struct Plan : TilePlan {
  Variant asked = Variant::flash_2, runs = Variant::flash_2;
  std::string instead;  ///< why another kernel runs; empty: the requested one
  /// Scores are products of 8-bit numbers: another kernel than `runs` has otherwise …
  bool quantized = false;
  bool smooth_k = false;  ///< … and K loses its mean first
};
/// Throws Error for a task that no kernel computes.
Plan plan_of(const Params& params);
/// The same for formulas, which know no limits of a kernel.
Plan formula_plan_of(const Params& params);

}  // namespace tilestep::flash_attention

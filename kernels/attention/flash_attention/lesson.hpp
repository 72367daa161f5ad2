#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attention/flash_attention/params.hpp"
#include "kernels/lessons.hpp"

/// \file
/// All data that the lesson's picture is drawn from. It was written by the explained kernels, unless noted
/// otherwise; reference values are in double.

namespace tilestep::flash_attention {

// ---- the chosen query ---------------------------------------------------------------------------------

/// Naive takes the maximum and the sum of the whole row at once: its steps are the tiles of scores from left to right,
/// and of the numbers only `tile_max` is there (from the scores that it stored); the rest is 0.
using Step = attention::StepRecord;

struct Answer : attention::Answer {
  /// [steps] the chosen component of softmax over the keys seen so far, in double.
  std::vector<double> o_after;
  bool operator==(const Answer&) const = default;
};

// ---- the cost of 8 bits -------------------------------------------------------------------------------

/// The same problem with Q and K multiplied in one format: errors against double on the inputs in BF16.
struct QuantizedRow {
  DataType format = DataType::bf16;  ///< bf16 (flash-2), fp8 or int8
  bool smooth_k = false;             ///< without K's mean
  double score_rms =
      0;  ///< root mean square, natural units, over all pairs that are seen, by the 8-bit numbers that
          ///< the kernels made; bf16: 0, its operands are the inputs
  double o_rms = 0;      ///< of O, for the root mean square of O
  double o_largest = 0;  ///< the largest of O, for the same
  bool operator==(const QuantizedRow&) const = default;
};
/// bf16, then fp8 and int8, each as it is and without K's mean.
inline constexpr std::size_t kQuantizedRows = 5;
/// "fp8 less K's mean".
std::string name_of_row(const QuantizedRow& row);

// ---- source -----------------------------------------------------------------------------------------------

/// Marked lines of the kernels' sources, by the words of their marks.
enum class Mark { loads, copy, scores, stores, mask, softmax, weights, rescale, values, output };
constexpr auto names_of(Mark) {
  return std::to_array<std::string_view>({"loads", "copy", "scores", "stores", "mask", "softmax",
                                          "weights", "rescale", "values", "output"});
}
inline constexpr std::size_t kMarks = 10;
/// Where a variant's kernel is, or that of 8 bits: a path of the repository, built in as an asset.
constexpr std::string_view source_path(Variant variant, DataType dtype = DataType::bf16) {
  if (is_quantized(dtype)) return "kernels/attention/flash_attention/quantized/quantized.cu";
  constexpr std::string_view kPaths[] = {"kernels/attention/flash_attention/naive.cu",
                                         "kernels/attention/flash_attention/flash_1.cu",
                                         "kernels/attention/flash_attention/flash_2.cu"};
  return kPaths[static_cast<int>(variant)];
}
/// Of source_path; 0: it has no such mark.
std::array<int, kMarks> mark_lines(Variant variant, DataType dtype = DataType::bf16);

// ---- all of it --------------------------------------------------------------------------------------------

struct Trace : Matrix {
  Variant asked = Variant::flash_2, runs = Variant::flash_2;
  std::string instead;  ///< why another kernel runs: "runs as flash-2: …"
  DataType dtype = DataType::bf16;
  bool smooth_k = false;  ///< of fp8 and int8
  Data data = Data::random;
  ScoreMod score_mod = ScoreMod::none;

  std::vector<Step> steps;  ///< one per visited tile of keys; empty: the query's tile visits none
  bool o_recorded = false;  ///< whether Step::o is there: of flash-1 and flash-2
  /// Of the chosen query, [length], natural units, as they lie in memory (in BF16; −∞: masked): of naive and
  /// `materialize`; else empty, for no score was stored.
  std::vector<float> scores;
  std::vector<float>
      weights;  ///< of the chosen query, [length], as they lie in memory: of naive; else empty
  Answer answer;
  /// Of fp8 and int8: the same excerpt by the kernels of all three formats, these both ways; else empty.
  std::vector<QuantizedRow> quantized;
  std::array<int, kMarks> lines{};

  /// Whether visits have `rescaled`.
  bool counts_rescaled() const { return runs != Variant::naive; }
  bool operator==(const Trace&) const = default;
};

nlohmann::json to_json(const Trace& trace);
/// Throws Error saying which member is missing or wrong.
Trace trace_from_json(const nlohmann::json& json);

/// The report's tables that say what a trace says: `steps`, `ledger`, `visits`, `blocks`, `answer`.
std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::flash_attention

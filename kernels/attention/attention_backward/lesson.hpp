#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "kernels/attention/attention_backward/params.hpp"

/// \file
/// All data that the lesson's picture is drawn from. It was written by the explained kernels, unless noted otherwise;
/// reference values are in double.

namespace tilestep::attention_backward {

/// The effect of a tile of keys on the chosen query, in the order of the visits in their blocks, which run in parallel:
/// the steps of the picture.
struct Step {
  int k_tile = 0;
  int order = 0;  ///< of the visit among those of its block
  TileKind kind = TileKind::full;
  /// The tile's block adds this to the sum of the chosen component of dQ, which is multiplied by 1 / sqrt(head_dim)
  /// at the end.
  float dq = 0;
  bool operator==(const Step&) const = default;
};

/// The chosen query's values, and those of the key with the same number.
struct BackwardRow {
  float lse = 0;  ///< log-sum-exp that the forward pass left
  double exact_lse = 0;
  float d = 0;  ///< D, the sum of dO ∘ O
  /// For its keys, [length], as they were in registers.
  std::vector<float> p, dp, ds;
  std::vector<float> dq, dk,
      dv;  ///< [head_dim], in BF16; dK and dV of the head that the chosen one shares
  std::vector<double> exact_dq, exact_dk, exact_dv;  ///< in double on the same rounded inputs
  /// [steps] the chosen component of dQ over the keys of the tiles so far, in double.
  std::vector<double> dq_after;
  bool operator==(const BackwardRow&) const = default;
};

/// Marked lines of the kernel's source, by the words of their marks.
enum class Mark { scores, d_p, d_s, d_v, d_k, d_q };
constexpr auto names_of(Mark) {
  return std::to_array<std::string_view>({"scores", "dP", "dS", "dV", "dK", "dQ"});
}
inline constexpr std::size_t kMarks = 6;
inline constexpr std::string_view kSourcePath =
    "kernels/attention/attention_backward/backward_recompute.cu";
std::array<int, kMarks> mark_lines();

struct Trace : Matrix {
  std::vector<Step> steps;  ///< one per visited tile of keys; empty: the query's tile visits none
  BackwardRow row;
  std::vector<int> wrong_dk, wrong_dv;  ///< [k_tiles] wrong elements, like `wrong` for dQ
  std::array<int, kMarks> lines{};
  bool operator==(const Trace&) const = default;
};

nlohmann::json to_json(const Trace& trace);
/// Throws Error saying which member is missing or wrong.
Trace trace_from_json(const nlohmann::json& json);

/// The report's tables that repeat a trace: `steps`, `ledger`, `visits`, `blocks`, `answer`.
std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::attention_backward

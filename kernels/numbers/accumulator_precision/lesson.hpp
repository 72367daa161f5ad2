#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kernels/base/numeric/small_float.hpp"
#include "kernels/lessons.hpp"
#include "kernels/numbers/accumulator_precision/methods.hpp"

/// The accumulator-precision lesson: one sum in FP8, FP16, FP32 and others, term by term; the same
/// on the tensor cores of a Hopper GPU; and scales that let FP8 represent data with outliers.
/// Micikevicius et al., "FP8 formats for deep learning", 2022; DeepSeek-AI, "DeepSeek-V3 technical
/// report", 2024, section 3.3.
namespace tilestep::accumulator_precision {

/// The kernel source shown with the picture.
inline constexpr std::string_view kSourcePath = "kernels/numbers/accumulator_precision/sums.cu";

enum class Distribution { near_one, positive, mixed_sign, one_large_many_small, decreasing };
constexpr auto names_of(Distribution) {
  return std::to_array<std::string_view>(
      {"near-one", "positive", "mixed-sign", "one-large-many-small", "decreasing"});
}

/// The choices of the knob `accumulators`. A knob holds one value, not a set, so the sets worth
/// comparing have names; after them each method alone.
enum class AccumulatorSet {
  basic,          ///< FP8 E4M3, FP16, FP32
  all,            ///< all nine
  small_formats,  ///< FP8 E4M3, FP8 E5M2, FP16, BF16
  wide_formats,   ///< FP16, BF16, TF32, FP32
  remedies,       ///< the small format alone, promoted, kahan, pairwise, FP32
  fp8_e4m3,
  fp8_e5m2,
  fp16,
  bf16,
  tf32,
  fp32,
  promoted,
  kahan,
  pairwise
};
constexpr auto names_of(AccumulatorSet) {
  return std::to_array<std::string_view>({"basic", "all", "small-formats", "wide-formats",
                                          "remedies", "fp8-e4m3", "fp8-e5m2", "fp16", "bf16",
                                          "tf32", "fp32", "promoted", "kahan", "pairwise"});
}

/// The format that the remedies work in.
enum class SmallFormat { fp8_e4m3, fp8_e5m2, fp16, bf16 };
constexpr auto names_of(SmallFormat) {
  return std::to_array<std::string_view>({"fp8-e4m3", "fp8-e5m2", "fp16", "bf16"});
}

struct Params {
  int terms = 64;
  Distribution distribution = Distribution::near_one;
  AccumulatorSet accumulators = AccumulatorSet::basic;
  Rounding rounding = Rounding::nearest;
  int promote_every = 16;  ///< terms of a partial sum, for `promoted`
  SmallFormat small_format = SmallFormat::fp8_e4m3;
  std::int64_t seed = 1;
};

/// The knobs, bound to Params.
const lab::KnobTable<Params>& knob_table();

/// The methods of the chosen set, in the order of kMethods, the small format itself first.
std::vector<Method> methods_of(const Params& params);
/// The format that `method` rounds to after every addition.
numeric::FloatSpec format_of(Method method, SmallFormat small_format);
/// Its name in tables and curves: "FP8", "FP16", "promoted FP8". E4M3 is plain "FP8" unless `both`
/// FP8 formats are shown.
std::string label_of(Method method, SmallFormat small_format, bool both);

/// The number of independent sums that the kernel computes, one per thread; sum 0 is recorded.
inline constexpr int kSums = 64;

/// Term `term` of sum `sum`: an FP32 number and a multiple of 2^-60, the same on every machine up
/// to the last bit of the C library's sine.
float term_of(const Params& params, int sum, int term);

/// One accumulator at all kept points.
struct AccumulatorTrace {
  Method method = Method::fp32;
  std::string label;
  numeric::FloatSpec format;
  std::vector<Step> steps;  ///< one for each of Trace::points
  float final_sum = 0;
  double error_percent = 0;  ///< |final_sum − exact| / |exact| × 100; inf if the exact sum is 0
  /// Number of the first term from which on the sum never changes, although the remaining terms add
  /// up to more than a spacing; −1 if it keeps moving.
  int frozen_at = -1;
  /// Spacing of the format's numbers at the place where a term is lost: at the sum; for kahan at the
  /// compensation.
  double frozen_spacing = 0;
  std::string verdict;  ///< a short sentence
  int line = 0;         ///< from `source_line`, regardless of recordings
  bool operator==(const AccumulatorTrace&) const = default;
};

/// 1-based line of kSourcePath in this build where `method` rounds.
int source_line(Method method);

/// The picture's data.
struct Trace {
  int terms = 0;
  Distribution distribution = Distribution::near_one;
  Rounding rounding = Rounding::nearest;
  int promote_every = 0;
  SmallFormat small_format = SmallFormat::fp8_e4m3;
  /// Numbers of the kept terms, ascending: all up to kMaxPoints; beyond, every nth one, plus all of
  /// the first and last terms and those around each place where a sum freezes.
  std::vector<int> points;
  std::vector<float> term;    ///< one per point
  std::vector<double> exact;  ///< one per point: sum up to and including the term
  double exact_sum = 0;       ///< of all terms
  std::vector<AccumulatorTrace> accumulators;

  /// The accumulator of `method`, or nullptr.
  const AccumulatorTrace* accumulator(Method method) const;
  bool operator==(const Trace&) const = default;
};
/// The most points, not counting those around special places.
inline constexpr int kMaxPoints = 4096;

/// What rounding did to one addition.
enum class Direction { exact, up, down };
constexpr auto names_of(Direction) {
  return std::to_array<std::string_view>({"exact", "up", "down"});
}

/// One addition as the stepper shows it, from the recorded numbers alone.
struct StepView {
  double unrounded = 0;  ///< before + added
  double spacing = 0;    ///< of the format's numbers at `unrounded`
  /// The format's numbers on either side of `unrounded`; one equals it if the format has it.
  double below = 0, above = 0;
  /// `unrounded` is past the format's largest number: then `above` (or `below`) is not in the format.
  bool past_end = false;
  double rounding_error = 0;  ///< after − unrounded
  Direction direction = Direction::exact;
  bool lost = false;      ///< the term is not 0, but the accumulator did not change
  bool promotes = false;  ///< the partial sum goes to the FP32 total after this term
  /// False for pairwise, whose result so far is a tree of additions, not a single one: then nothing here describes
  /// the result's last step.
  bool single_addition = true;
  /// No rounding of `unrounded` gives the accumulator's value: an edited kernel added something else.
  bool misplaced() const {
    const double after = unrounded + rounding_error;
    return single_addition && !past_end && std::isfinite(after) && (after < below || after > above);
  }
};
/// `point` is an index into `points`.
StepView step_view(const Trace& trace, const AccumulatorTrace& accumulator, std::size_t point);
/// The bits of a number of the format, by field: "0 1011 000".
std::string bits_text(numeric::FloatSpec format, float value);

/// Columns of numbers, compact; non-finite numbers as lab::number_to_json writes them.
nlohmann::json to_json(const Trace& trace);
/// Throws Error naming the missing or wrong member.
Trace trace_from_json(const nlohmann::json& json);

/// Up to this number of terms the table `terms` lists all of them.
inline constexpr int kAllRows = 256;
inline constexpr int kSampledRows = 128;

/// The GEMMs' test data.
enum class GemmData { uniform, normal, outliers };
constexpr auto names_of(GemmData) {
  return std::to_array<std::string_view>({"uniform", "normal", "outliers"});
}
inline constexpr auto kGemmData = all_of<GemmData>();

/// The report's tables of a trace's data.
std::vector<lab::Table> tables_of(const Trace& trace);

}  // namespace tilestep::accumulator_precision

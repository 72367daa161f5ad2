#pragma once

#include <array>
#include <string_view>

#include "kernels/base/lab/names.hpp"
#include "kernels/base/numeric/small_float.hpp"

/// Names shared by the lesson's kernels and driver; depends only on the number formats.
namespace tilestep::accumulator_precision {

using numeric::Rounding;  // nearest, truncate, stochastic

/// Ways to keep a sum. The first six round to a format after every addition; the last three are
/// remedies for `Params::small_format`.
enum class Method { fp8_e4m3, fp8_e5m2, fp16, bf16, tf32, fp32, promoted, kahan, pairwise };
constexpr auto names_of(Method) {
  return std::to_array<std::string_view>(
      {"fp8-e4m3", "fp8-e5m2", "fp16", "bf16", "tf32", "fp32", "promoted", "kahan", "pairwise"});
}
inline constexpr auto kMethods = all_of<Method>();
constexpr bool is_remedy(Method method) {
  return method >= Method::promoted;
}

/// One term, as the kernel recorded it. All numbers are in the accumulator's format, except the
/// total, which is FP32, and `added` when it is the term itself.
struct Step {
  float before = 0;  ///< the accumulator before the addition
  float added = 0;   ///< the addend: the term; for kahan the term minus the compensation
  float after = 0;   ///< the accumulator after it
  float sum = 0;     ///< the method's result if the terms ended here
  float extra = 0;   ///< promoted: the FP32 total; kahan: the compensation; otherwise 0
  bool operator==(const Step&) const = default;
};

/// The GEMMs on real tensor cores, E4M3 values in, FP32 out.
enum class GemmVariant { wgmma_fp8, wgmma_fp8_promoted, mma_fp16_acc16, mma_fp16_acc32, mma_bf16 };
constexpr auto names_of(GemmVariant) {
  return std::to_array<std::string_view>(
      {"wgmma-fp8", "wgmma-fp8-promoted", "mma-fp16-acc16", "mma-fp16-acc32", "mma-bf16"});
}
constexpr auto reasons_of(GemmVariant) {
  return std::to_array<std::string_view>(
      {"E4M3 products, summed over all of K by the tensor core itself: the fastest, in an "
       "accumulator of few bits.",
       "Every 128 along K the tensor core's sum is added to an FP32 register and reset: a few "
       "more additions, and no sum grows far beyond its terms.",
       "The same numbers as FP16, twice the bytes, summed in FP16.",
       "The same with an FP32 accumulator.",
       "The same numbers as BF16, with an FP32 accumulator."});
}
inline constexpr auto kGemmVariants = all_of<GemmVariant>();

}  // namespace tilestep::accumulator_precision

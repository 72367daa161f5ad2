#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <string>

#include "kernels/numbers/accumulator_precision/kernels.hpp"
#include "kernels/numbers/accumulator_precision/lesson.hpp"

namespace tilestep::accumulator_precision {
namespace {

/// A uniform multiple of 2^-24 in [0, 1) that depends only on the seed and the two indices.
double uniform(std::int64_t seed, int sum, int term) {
  const std::uint32_t bits = random_bits(static_cast<std::uint32_t>(seed), sum, term, 63);
  return static_cast<double>(bits >> 8) * 0x1p-24;
}

/// The plain methods, in the order of their values.
constexpr struct {
  numeric::FloatSpec format;
  const char* label;
} kPlain[] = {{numeric::kE4m3, "FP8 E4M3"}, {numeric::kE5m2, "FP8 E5M2"}, {numeric::kFp16, "FP16"},
              {numeric::kBf16, "BF16"},     {numeric::kTf32, "TF32"},     {numeric::kFp32, "FP32"}};

}  // namespace

const lab::KnobTable<Params>& knob_table() {
  static const auto table =
      lab::KnobTable<Params>()
          .integer(&Params::terms, {"terms", "Numbers to add up."}, 1, kMaxTerms, true)
          .choice(&Params::distribution,
                  {"distribution", "Distribution of the numbers; near-one is 0.998 + 0.15 sin(i)."})
          .group("kernel")
          .choice(&Params::accumulators,
                  {"accumulators",
                   "Which accumulators run: a set of formats or remedies, or a single one."})
          .choice(&Params::rounding, {"rounding", "How each sum is rounded to its format."})
          .integer(&Params::promote_every,
                   {"promote_every", "Promote every", "terms",
                    "Terms per partial sum before it is added to the FP32 total (promoted)."},
                   16, 512, true)
          .with("accumulators", {"all", "remedies", "promoted"})
          .choice(&Params::small_format,
                  {"small_format", "Format that promoted, kahan and pairwise accumulate in."})
          .group("run")
          .seed("Seed of the data and of stochastic rounding.");
  return table;
}

std::vector<Method> methods_of(const Params& params) {
  using enum Method;
  switch (params.accumulators) {
    case AccumulatorSet::basic:
      return {fp8_e4m3, fp16, fp32};
    case AccumulatorSet::all:
      return {std::begin(kMethods), std::end(kMethods)};
    case AccumulatorSet::small_formats:
      return {fp8_e4m3, fp8_e5m2, fp16, bf16};
    case AccumulatorSet::wide_formats:
      return {fp16, bf16, tf32, fp32};
    case AccumulatorSet::remedies:
      // The small formats are the first four methods.
      return {static_cast<Method>(params.small_format), fp32, promoted, kahan, pairwise};
    default: {
      constexpr auto kFirst = static_cast<int>(AccumulatorSet::fp8_e4m3);
      return {static_cast<Method>(static_cast<int>(params.accumulators) - kFirst)};
    }
  }
}

numeric::FloatSpec format_of(Method method, SmallFormat small_format) {
  if (is_remedy(method)) method = static_cast<Method>(small_format);
  return kPlain[static_cast<std::size_t>(method)].format;
}

std::string label_of(Method method, SmallFormat small_format, bool both) {
  if (is_remedy(method)) {
    return fmt::format("{} {}", name_of(method),
                       label_of(static_cast<Method>(small_format), small_format, both));
  }
  if (method == Method::fp8_e4m3 && !both) return "FP8";
  return kPlain[static_cast<std::size_t>(method)].label;
}

float term_of(const Params& params, int sum, int term) {
  const double u = uniform(params.seed, sum, term);
  switch (params.distribution) {
    case Distribution::near_one:
      return static_cast<float>(0.998 + 0.15 * std::sin(static_cast<double>(term + sum)));
    case Distribution::positive:
      return static_cast<float>(2 * u);
    case Distribution::mixed_sign:
      return static_cast<float>(2 * u - 1);
    case Distribution::one_large_many_small:
      return term == 0 ? 256.0f : static_cast<float>(0.08 + 0.04 * u);
    case Distribution::decreasing:
      return 1.0f / static_cast<float>(term + 1 + sum);
  }
  assert(false);
  return 0;
}

}  // namespace tilestep::accumulator_precision

#include "kernels/numbers/accumulator_precision/lesson.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/lab/result.hpp"
#include "kernels/numbers/accumulator_precision/bench/bench.hpp"
#include "kernels/numbers/accumulator_precision/reference.hpp"
#include "kernels/numbers/accumulator_precision/report.hpp"

namespace tilestep::accumulator_precision {
namespace {

/// Pairwise is compared after every term up to this many, beyond only after the last: its reference
/// starts over for each.
constexpr int kMostPairwisePrefixes = 512;
/// Approximate number of terms that the reference adds for the sums that are not recorded.
constexpr int kReferenceTerms = 1 << 18;

/// terms × kSums, so that neighbouring threads read neighbouring numbers.
std::vector<float> make_terms(const Params& params) {
  std::vector<float> terms;
  terms.reserve(static_cast<std::size_t>(params.terms) * kSums);
  for (int i = 0; i < params.terms; ++i) {
    for (int sum = 0; sum < kSums; ++sum) terms.push_back(term_of(params, sum, i));
  }
  return terms;
}

std::vector<float> column(const std::vector<float>& terms, int sum) {
  std::vector<float> one;
  for (auto i = static_cast<std::size_t>(sum); i < terms.size(); i += kSums) {
    one.push_back(terms[i]);
  }
  return one;
}

void run_kernels(MethodRun& run, const Params& params, simt::Device& device,
                 const simt::Buffer<float>& terms) {
  const auto& kernels = kernels_of(device);
  const SumShape shape{params.terms, kSums};
  simt::Buffer<float> sums(device, kSums);
  run.sums = lab::result_of(
      device, sums, [&] { kernels.sums(device, shape, run.method, terms.span(), sums.span()); });
  const auto count = static_cast<std::size_t>(params.terms);
  simt::Trace recording(device, count * simt::kNoteEntries<Step>);
  const std::vector<float> recorded = lab::result_of(device, sums, [&] {
    kernels.sums(device, shape, run.method, terms.span(), sums.span(), recording.tape());
  });
  run.recorded_sum = recorded.front();
  run.steps = recording.download().all_notes<Step>(kStepSite, count, "the additions");
}

void run_reference(MethodRun& run, const Params& params, const std::vector<float>& terms,
                   lab::Progress& progress) {
  const bool last_only =
      run.method.method == Method::pairwise && params.terms > kMostPairwisePrefixes;
  const int compared = std::clamp(kReferenceTerms / params.terms, 1, kSums);
  for (int sum = 0; sum < compared; ++sum) {
    progress.check();
    const auto expected = reference_sums(run.method, sum, column(terms, sum), sum > 0 || last_only);
    run.expected_sums.push_back(expected.back());
    if (sum == 0) run.expected = expected;
  }
}

void run_methods(Outcome& outcome, simt::Device& device, lab::Progress& progress) {
  const Params& params = outcome.params;
  progress.report(0, "making terms");
  const std::vector<float> terms = make_terms(params);
  outcome.terms = column(terms, 0);
  outcome.exact = exact_prefixes(outcome.terms);
  const simt::Buffer<float> on_device(device, terms);
  const std::vector<Method> methods = methods_of(params);
  for (std::size_t i = 0; i < methods.size(); ++i) {
    progress.report(0.05 + 0.75 * static_cast<double>(i) / static_cast<double>(methods.size()),
                    fmt::format("adding: {}", name_of(methods[i])));
    progress.check();
    MethodRun& run = outcome.runs.emplace_back();
    run.method = {methods[i], format_of(methods[i], params.small_format), params.rounding,
                  params.promote_every, static_cast<std::uint32_t>(params.seed)};
    run_kernels(run, params, device, on_device);
    run_reference(run, params, terms, progress);
  }
}

lab::Report run(const Params& params, simt::Device& device, lab::Progress& progress) {
  Outcome outcome;
  outcome.params = params;
  run_methods(outcome, device, progress);
  fill_trace(outcome);
  progress.report(0.85, "multiplying with scales");
  outcome.scaling = run_scaling(device, params.seed, progress);
  return report_of(outcome);
}

}  // namespace

const lab::Lesson& lesson() {
  static const auto lesson =
      lab::LessonOf<Params>(kLesson,
                            "Multiply in few bits, accumulate in many: a sum stops growing once "
                            "terms are below half its spacing.",
                            knob_table(), run, bench_report)
          .with_telling(
              {{"remedies",
                "Promoted, compensated and pairwise sums in FP8: each is closer than the plain "
                "sum, which stops growing.",
                {.accumulators = AccumulatorSet::remedies}},
               {"large-first",
                "After one large term, formats with 10 bits or fewer lose every small one.",
                {.distribution = Distribution::one_large_many_small,
                 .accumulators = AccumulatorSet::wide_formats}},
               {"stochastic",
                "With stochastic rounding the FP8 sum keeps growing where it had stopped.",
                {.rounding = Rounding::stochastic}}})
          .with_trials({{.terms = 77, .accumulators = AccumulatorSet::all},
                        {.terms = 1, .accumulators = AccumulatorSet::all},
                        {.terms = 300,
                         .distribution = Distribution::mixed_sign,
                         .accumulators = AccumulatorSet::all},
                        {.terms = 300,
                         .accumulators = AccumulatorSet::remedies,
                         .promote_every = 100,
                         .small_format = SmallFormat::bf16},
                        {.terms = 100,
                         .distribution = Distribution::one_large_many_small,
                         .accumulators = AccumulatorSet::remedies,
                         .rounding = Rounding::stochastic},
                        {.terms = 100,
                         .distribution = Distribution::decreasing,
                         .accumulators = AccumulatorSet::remedies,
                         .small_format = SmallFormat::fp16}});
  return lesson;
}

}  // namespace tilestep::accumulator_precision

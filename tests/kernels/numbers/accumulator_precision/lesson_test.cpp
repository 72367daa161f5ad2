#include "kernels/numbers/accumulator_precision/lesson.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/numbers/accumulator_precision/kernels.hpp"
#include "tests/traces.hpp"

using namespace tilestep;
using namespace tilestep::accumulator_precision;
using namespace tilestep::tests;

namespace {

const Runs run(lesson(), knob_table(), trace_from_json);

Trace trace_of(const Params& params) {
  return run.read(held_run(run, params).trace);
}

}  // namespace

TEST_CASE("the default gives the table of the lesson", "[accumulator_precision]") {
  const lab::Report report = run();
  CHECK(report.ok());
  const lab::Table& table = table_in(report, "accumulators");
  CHECK(labels_of(table) ==
        std::vector<std::string>{"accumulator", "mantissa bits", "final sum", "error"});
  CHECK(table.columns[3].unit == "%");
  CHECK(texts_of(table) == std::vector<std::vector<std::string>>{{"FP8", "3", "32.0", "49.9"},
                                                                 {"FP16", "10", "63.9", "0.0"},
                                                                 {"FP32", "23", "63.9", "0.0"}});
  for (const char* part : {"64 terms", "63.9", "FP8 reaches 32.0", "49.9 %",
                           "stays at 32 after 33 terms", "an error of 0.031 %"}) {
    CHECK(contains(report.summary, part));
  }
}

TEST_CASE("with 16384 terms FP16 is frozen too", "[accumulator_precision]") {
  const Params params{.terms = 16384};
  const Trace trace = trace_of(params);
  // An independent computation: long double for the exact sum, the definition for FP16 (spacing
  // from the exponent, nearest even by nearbyint), float for FP32.
  long double exact = 0;
  double fp16 = 0;
  float fp32 = 0;
  for (int i = 0; i < params.terms; ++i) {
    const auto t = static_cast<float>(0.998 + 0.15 * std::sin(i));
    exact += static_cast<long double>(t);
    fp32 += t;
    const double sum = fp16 + static_cast<double>(t);
    const double spacing = std::ldexp(1.0, std::ilogb(sum) - 10);
    fp16 = std::nearbyint(sum / spacing) * spacing;
  }
  CHECK(std::abs(trace.exact_sum - static_cast<double>(exact)) < 1e-9);
  const AccumulatorTrace* half = trace.accumulator(Method::fp16);
  REQUIRE(half != nullptr);
  CHECK(static_cast<double>(half->final_sum) == fp16);
  CHECK(half->final_sum == 4096);
  CHECK(half->frozen_at > 4000);
  CHECK(half->frozen_at < 4200);
  CHECK(half->frozen_spacing == 4);
  CHECK(trace.accumulator(Method::fp32)->final_sum == fp32);
  CHECK(trace.accumulator(Method::fp32)->frozen_at == -1);
  CHECK(trace.accumulator(Method::bf16) == nullptr);
}

TEST_CASE("the place where FP8 freezes", "[accumulator_precision]") {
  const Trace trace = trace_of({});
  const AccumulatorTrace& fp8 = *trace.accumulator(Method::fp8_e4m3);
  REQUIRE(fp8.frozen_at > 0);
  REQUIRE(trace.points.size() == 64);
  const auto frozen = static_cast<std::size_t>(fp8.frozen_at);
  CHECK(fp8.steps[frozen - 1].before != 32);
  for (std::size_t i = frozen; i < 64; ++i) {
    const StepView view = step_view(trace, fp8, i);
    CHECK(view.lost);
    CHECK(bits_text(fp8.format, fp8.steps[i].before) == "0 1100 000");
    CHECK(bits_text(fp8.format, fp8.steps[i].after) == "0 1100 000");
    CHECK(view.spacing == 4);
    CHECK(view.direction == Direction::down);
    CHECK(view.rounding_error == -static_cast<double>(trace.term[i]));
  }
  CHECK(contains(fp8.verdict, "stand 4 apart"));
  CHECK(contains(fp8.verdict, "below 2 is lost"));
}

TEST_CASE("a verdict names what is lost", "[accumulator_precision]") {
  const Trace trace = trace_of({.terms = 4096,
                                .distribution = Distribution::decreasing,
                                .accumulators = AccumulatorSet::all});
  // Term i is 1/(i + 1), so that the first one that is lost says how large it may be.
  for (const Method method :
       {Method::fp8_e4m3, Method::fp8_e5m2, Method::fp16, Method::bf16, Method::promoted}) {
    const AccumulatorTrace& a = *trace.accumulator(method);
    INFO(a.label << ": " << a.verdict);
    REQUIRE(a.frozen_at > 0);
    const double first_lost = 1.0 / (a.frozen_at + 1);
    CHECK(first_lost <= a.frozen_spacing / 2);
    CHECK(first_lost > a.frozen_spacing / 4);
    CHECK(contains(a.verdict, "after " + std::to_string(a.frozen_at) + " terms"));
  }
  // Kahan's sum rests while terms still gather in the compensation, for a term more here.
  const AccumulatorTrace& kahan = *trace.accumulator(Method::kahan);
  CHECK(1.0 / (kahan.frozen_at + 1) > kahan.frozen_spacing / 2);
  CHECK(1.0 / (kahan.frozen_at + 2) <= kahan.frozen_spacing / 2);
  CHECK(contains(kahan.verdict, "at the compensation"));
  CHECK(contains(trace.accumulator(Method::pairwise)->verdict, "a block below"));
}

TEST_CASE("the table of terms has every sum, or some of them", "[accumulator_precision]") {
  const Params params{.terms = GENERATE(1, 64, 256, 257, 5000)};
  const lab::Report report = run(params);
  const Trace trace = trace_from_json(report.trace);
  const lab::Table& table = table_in(report, "terms");
  REQUIRE_FALSE(table.rows.empty());
  if (params.terms <= kAllRows) CHECK(static_cast<int>(table.rows.size()) == params.terms);
  CHECK(static_cast<int>(table.rows.size()) <= kAllRows);
  CHECK(std::get<double>(table.rows.back()[0]) == params.terms);
  CHECK(std::get<double>(table.rows.back()[2]) == trace.exact_sum);
  for (const auto& row : table.rows) {
    const int term = static_cast<int>(std::get<double>(row[0])) - 1;
    const auto at = std::find(trace.points.begin(), trace.points.end(), term);
    REQUIRE(at != trace.points.end());
    const auto point = static_cast<std::size_t>(at - trace.points.begin());
    CHECK(std::get<double>(row[3]) ==
          static_cast<double>(trace.accumulators.front().steps[point].sum));
  }
}

TEST_CASE("the recorded lines are the rounded additions", "[accumulator_precision]") {
  const Trace trace = trace_of({.accumulators = AccumulatorSet::all});
  std::vector<int> lines;
  for (const Method method : {Method::fp16, Method::promoted, Method::kahan, Method::pairwise}) {
    lines.push_back(trace.accumulator(method)->line);
  }
  check_lines(kSourcePath, lines,
              {"s = adder.plus(s, t", "adder.plus(partial, t", "s = adder.plus(s, y",
               "adder.plus(level[l]"});
}

TEST_CASE("remedies save a small format", "[accumulator_precision]") {
  const Trace trace = trace_of({.terms = 16384,
                                .accumulators = AccumulatorSet::remedies,
                                .small_format = SmallFormat::fp16});
  CHECK(trace.accumulator(Method::fp16)->error_percent > 70);
  for (const Method remedy : {Method::promoted, Method::kahan, Method::pairwise}) {
    INFO(name_of(remedy));
    CHECK(trace.accumulator(remedy)->error_percent < 0.1);
    CHECK(trace.accumulator(remedy)->frozen_at == -1);
  }
  const AccumulatorTrace& promoted = *trace.accumulator(Method::promoted);
  CHECK(step_view(trace, promoted, 15).promotes);
  CHECK_FALSE(step_view(trace, promoted, 14).promotes);
  CHECK(promoted.steps[16].before == 0);
  CHECK(promoted.steps[15].extra == promoted.steps[15].after);
}

TEST_CASE("many terms are thinned out, but not where a sum freezes", "[accumulator_precision]") {
  const Trace trace = trace_of({.terms = 65536, .accumulators = AccumulatorSet::fp16});
  CHECK(trace.points.size() < 4096 + 300);
  CHECK(trace.points.front() == 0);
  CHECK(trace.points.back() == 65535);
  const int frozen = trace.accumulators.front().frozen_at;
  REQUIRE(frozen > 0);
  const auto at = std::find(trace.points.begin(), trace.points.end(), frozen);
  REQUIRE(at != trace.points.end());
  CHECK(*(at - 1) == frozen - 1);
  CHECK(*(at + 1) == frozen + 1);
}

TEST_CASE("stochastic rounding does not freeze", "[accumulator_precision]") {
  Params params{.terms = 4096,
                .accumulators = AccumulatorSet::wide_formats,
                .rounding = Rounding::stochastic};
  const Trace trace = trace_of(params);
  CHECK(trace.accumulator(Method::bf16)->frozen_at == -1);
  CHECK(trace.accumulator(Method::bf16)->error_percent < 20);
  params.rounding = Rounding::nearest;
  CHECK(trace_of(params).accumulator(Method::bf16)->error_percent > 80);
}

TEST_CASE("finer scales lose less", "[accumulator_precision]") {
  const Params params{.seed = GENERATE(1, 2, 3)};
  const lab::Report report = run(params);
  const lab::Table& table = table_in(report, "scaling");
  REQUIRE(table.rows.size() == 3);
  const auto error = [&](std::size_t row) { return std::get<double>(table.rows[row][2]); };
  CHECK(error(0) > 2 * error(1));
  CHECK(error(1) > 2 * error(2));
  CHECK(error(2) < 5);
}

TEST_CASE("tensor cores are refused in words where there are none", "[accumulator_precision]") {
  const auto device = simt::make_emulated_device(emulated_kernels(), {});
  const auto& kernels = accumulator_precision::kernels_of(*device);
  const auto refused = [&](GemmVariant variant) {
    return error_of([&] { kernels.tensor_core_gemm(*device, variant, {128, 128, 128}, {}); });
  };
  CHECK(contains(refused(GemmVariant::wgmma_fp8), "Hopper"));
  CHECK(contains(refused(GemmVariant::mma_bf16), "emulation"));
}

// Scores in 8 bits against double: numbers of Q and K within half a step, O and log-sum-exp within what rounding adds to
// what those numbers come to; bytes, visits, other orders of threads; what K's mean is good for.

#include <array>
#include <cmath>

#include "kernels/attention/flash_attention/quantized/buffers.hpp"
#include "kernels/attention/flash_attention/quantized/reference.hpp"
#include "kernels/attention/flash_attention/run/explained.hpp"
#include "kernels/attention/flash_attention/run/run.hpp"
#include "kernels/base/numeric/small_float.hpp"
#include "kernels/base/simt/hopper.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/attention/flash_attention/pairwise.hpp"
#include "tests/kernels/attention/flash_attention/testing.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::flash_attention;
using tests::contains;
using tests::error_of;

namespace {

constexpr int kQuantizedLengths[] = {1, 17, 64, 127, 128, 129, 200};
constexpr std::array<int, 2> kQuantizedHeads[] = {{1, 1}, {2, 1}, {2, 2}, {3, 3}};
constexpr std::array<int, 2> kQuantizedWindows[] = {{0, 0},  {0, 3},  {1, 0},
                                                    {20, 5}, {70, 0}, {300, 300}};
constexpr DataType kFormats[] = {DataType::fp8, DataType::int8};

/// Formats, smoothing, lengths, masks, modifiers, head dimensions, heads, windows, data.
constexpr std::array<int, 9> kQuantizedChoices{2, 2, 7, 5, 3, 2, 4, 6, 2};
using QuantizedChoice = std::array<int, kQuantizedChoices.size()>;

Params quantized_params(const QuantizedChoice& c, int seed) {
  Params params;
  params.dtype = kFormats[c[0]];
  params.smooth_k = c[1] != 0;
  params.seq = kQuantizedLengths[c[2]];
  params.mask = static_cast<Mask>(c[3]);
  params.score_mod = static_cast<ScoreMod>(c[4]);
  params.head_dim = c[5] == 0 ? HeadDim::d64 : HeadDim::d128;
  params.heads = kQuantizedHeads[c[6]][0];
  params.kv_heads = kQuantizedHeads[c[6]][1];
  params.window = kQuantizedWindows[c[7]][0];
  params.sinks = kQuantizedWindows[c[7]][1];
  params.data = static_cast<Data>(c[8]);
  params.seed = seed;
  return params;
}
Params small(DataType format, bool smooth_k, Data data = Data::random) {
  return {.seq = 200,
          .heads = 2,
          .head_dim = HeadDim::d64,
          .dtype = format,
          .smooth_k = smooth_k,
          .data = data};
}

/// What was written, and what should be.
struct Checked {
  Inputs inputs;
  Outcome outcome;
  Reference due;
  lab::Closest o, lse;
};
Checked checked_run(simt::Device& device, const Params& params) {
  lab::NoProgress nobody;
  Checked c;
  c.inputs = make_inputs(params);
  c.outcome = run_explained(device, params, c.inputs, {});
  c.due = reference_quantized(task_of(params), c.inputs, c.outcome.numbers, params.dtype, nobody);
  c.o = lab::compared(c.outcome.o, c.due.o.value, c.due.o.bound);
  c.lse = lab::compared(c.outcome.lse, c.due.lse.value, c.due.lse.bound);
  return c;
}

int wrong_visits(const Checked& run, const Params& params) {
  const Plan& plan = run.outcome.plan;
  int wrong = 0;
  for (int i = 0; i < params.heads * plan.q_tiles; ++i) {
    const int q0 = i % plan.q_tiles * plan.block_q;
    const int q1 = std::min(q0 + plan.block_q, params.seq) - 1;
    int order = 0;
    for (int k = 0; k < plan.k_tiles; ++k) {
      const int k0 = k * plan.block_k, k1 = std::min(k0 + plan.block_k, params.seq) - 1;
      const TileKind kind = plan.rule.kind(q0, q1, k0, k1, run.inputs.begins);
      const Visit& visit = run.outcome.visits[static_cast<std::size_t>(i * plan.k_tiles + k)];
      const bool there = kind != TileKind::skipped;
      wrong += (visit.block >= 0) != there || (there && visit.kind != static_cast<int>(kind)) ||
               (there && visit.order != order);
      order += there;
    }
  }
  return wrong;
}

/// rms error of O for the rms of O.
double error_of_output(const Checked& run) {
  double errors = 0, squares = 0;
  for (std::size_t i = 0; i < run.outcome.o.size(); ++i) {
    const double exact = run.due.o.value[i];
    errors += std::pow(static_cast<double>(run.outcome.o[i]) - exact, 2);
    squares += exact * exact;
  }
  return std::sqrt(errors / squares);
}

}  // namespace

TEST_CASE("four numbers become bytes, rounded to nearest even and saturated", "[flash_attention]") {
  for (int i = -4000; i <= 4000; ++i) {
    const float x = static_cast<float>(i) * 0.125f;
    const unsigned e4m3 = simt::hopper::pack_e4m3(0, x, 1, 0);
    CHECK(static_cast<float>(numeric::decode(numeric::kE4m3, e4m3 >> 8 & 0xFF)) ==
          numeric::E4m3::round(x));
    CHECK((e4m3 >> 16 & 0xFF) == 0x38);
    const auto s8 = static_cast<std::int8_t>(simt::hopper::pack_s8(x, 0, 0, -3) & 0xFF);
    CHECK(static_cast<double>(s8) ==
          std::clamp(std::nearbyint(static_cast<double>(x)), -128.0, 127.0));
  }
  CHECK(simt::hopper::pack_s8(0, 0, 0, -3) >> 24 == 0xFD);
}

TEST_CASE(
    "scores in 8 bits are right for every pair of choices, and ask for the bytes of the formula",
    "[flash_attention]") {
  const auto device = test_device();
  tests::Part part("8 bits' choices", 3);
  int seed = 0;
  for (const QuantizedChoice& choice : pairwise(kQuantizedChoices)) {
    const Params params = quantized_params(choice, ++seed);
    if (part.skips()) continue;
    const Checked run = checked_run(*device, params);
    const Task task = task_of(params);
    CAPTURE(runs.words(params));
    CAPTURE(run.o.error(), run.o.bound(), run.lse.error(), run.lse.bound());
    CHECK(run.o.ok());
    CHECK(run.lse.ok());
    CHECK(wrong_numbers(task, run.inputs, run.outcome.numbers, params.dtype, params.smooth_k) == 0);
    CHECK(score_errors(task, run.inputs, run.outcome.numbers, params.dtype).wrong == 0);
    CHECK(wrong_visits(run, params) == 0);
    for (const Tensor tensor : all_of<Tensor>()) {
      CAPTURE(std::string(name_of(tensor)));
      CHECK(run.outcome.asked[static_cast<std::size_t>(tensor)].loaded ==
            run.outcome.formula[static_cast<std::size_t>(tensor)].loaded);
      CHECK(run.outcome.asked[static_cast<std::size_t>(tensor)].stored ==
            run.outcome.formula[static_cast<std::size_t>(tensor)].stored);
    }
  }
}

TEST_CASE("8 bits: numbers do not depend on the order of threads or of copies",
          "[flash_attention]") {
  for (const DataType format : kFormats) {
    const Params params = small(format, true, Data::outliers);
    const Checked first = checked_run(*test_device(), params);
    for (const auto order : {simt::ThreadOrder::descending, simt::ThreadOrder::shuffled}) {
      for (const auto completion :
           {simt::Completion::earliest, simt::Completion::early_copies, simt::Completion::seeded}) {
        const auto device = test_device(order, 3, completion);
        const Outcome again = run_explained(*device, params, first.inputs, {});
        CHECK(again.o == first.outcome.o);
        CHECK(again.lse == first.outcome.lse);
        CHECK(again.numbers.k == first.outcome.numbers.k);
        CHECK((again.steps == first.outcome.steps));
      }
    }
  }
}

TEST_CASE("8 bits: the timed kernels come to the same, in their own tiles", "[flash_attention]") {
  lab::NoProgress nobody;
  const auto device = test_device();
  tests::Part part("8 bits, timed", 2);
  for (const bool smooth_k : {false, true}) {
    for (const DataType format : kFormats) {
      for (const Mask mask : {Mask::none, Mask::causal, Mask::sliding_window}) {
        if (part.skips()) continue;
        Params params = small(format, smooth_k);
        params.head_dim = HeadDim::d128;
        params.mask = mask;
        params.kv_heads = 2;
        CAPTURE(runs.words(params));
        const Inputs inputs = make_inputs(params);
        const QuantizedProblem problem{task_of(params), format, smooth_k};
        QuantizedBuffers buffers(*device, problem, quantized_sizes(128, true), inputs);
        kernels_of(*device).run(*device, problem, buffers.arrays());
        const QuantizedNumbers numbers = buffers.numbers();
        CHECK(wrong_numbers(problem.task, inputs, numbers, format, smooth_k) == 0);
        const Reference due = reference_quantized(problem.task, inputs, numbers, format, nobody);
        CHECK(lab::compared(buffers.o(), due.o.value, due.o.bound).ok());
        CHECK(lab::compared(buffers.lse(), due.lse.value, due.lse.bound).ok());
      }
    }
  }
  const QuantizedProblem problem{task_of(small(DataType::fp8, true)), DataType::fp8, true};
  CHECK(contains(error_of([&] { kernels_of(*device).run(*device, problem, {}); }), "128"));
}

TEST_CASE("8 bits: without K's mean outliers cost less, and the log-sum-exp is still the scores'",
          "[flash_attention]") {
  const auto device = test_device();
  for (const DataType format : kFormats) {
    for (const int seed : {1, 2, 3}) {
      Params params = small(format, false, Data::outliers);
      params.seed = seed;
      const double plain = error_of_output(checked_run(*device, params));
      params.smooth_k = true;
      const Checked run = checked_run(*device, params);
      const double smooth = error_of_output(run);
      CAPTURE(runs.words(params), plain, smooth);
      CHECK(smooth < 0.75 * plain);
      CHECK(smooth < 0.1);
      for (std::size_t row = 0; row < run.outcome.lse.size(); ++row) {
        CHECK(static_cast<double>(run.outcome.lse[row]) ==
              Approx(run.due.lse.value[row]).margin(1.5));
      }
    }
  }
}

TEST_CASE("8 bits: what is left out on purpose shows", "[flash_attention]") {
  const auto device = test_device();
  for (const DataType format : kFormats) {
    for (const Break broken : {Break::skip_rescale, Break::mask_off_by_one}) {
      Params params = small(format, true);
      params.mask = Mask::causal;
      const Checked sound = checked_run(*device, params);
      CHECK(sound.o.ok());
      params.broken = broken;
      const Outcome outcome = run_explained(*device, params, sound.inputs, {});
      CHECK_FALSE(lab::compared(outcome.o, sound.due.o.value, sound.due.o.bound).ok());
    }
  }
}

TEST_CASE("8 bits: any rung runs as the one kernel that has them", "[flash_attention]") {
  for (const Variant variant : all_of<Variant>()) {
    for (const DataType format : kFormats) {
      for (const Mask mask : all_of<Mask>()) {
        const Plan plan =
            plan_of({.variant = variant, .head_dim = HeadDim::d64, .mask = mask, .dtype = format});
        CHECK(plan.runs == Variant::flash_2);
        CHECK(plan.quantized);
        CHECK(plan.smooth_k);
        CHECK(contains(plan.instead, name_of(format)));
        CHECK((plan.block_q == 64 && plan.block_k == 64 && plan.threads == 128));
        CHECK(contains(plan.resized, "64"));
        CHECK(plan.shared_bytes <= static_cast<std::size_t>(kMostSharedBytes));
      }
    }
  }
  CHECK_FALSE(plan_of({.smooth_k = false}).smooth_k);
  CHECK_FALSE(plan_of({.smooth_k = true}).smooth_k);  // of BF16 there is nothing to take away
  const auto refused = [](const Params& params) { return error_of([&] { plan_of(params); }); };
  CHECK(contains(refused({.dtype = DataType::int8}), "head_dim is 32"));
  CHECK(contains(refused({.dtype = DataType::int8}), "64, 128"));
  CHECK(contains(
      refused({.head_dim = HeadDim::d64, .dtype = DataType::fp8, .broken = Break::materialize}),
      "mask-off-by-one"));
  // naive keeps a row of scores in shared memory; this kernel does not.
  CHECK(plan_of({.variant = Variant::naive,
                 .seq = 65536,
                 .head_dim = HeadDim::d64,
                 .dtype = DataType::fp8})
            .quantized);
}

TEST_CASE("8 bits: a run says what they cost, and comes back from JSON", "[flash_attention]") {
  const auto device = test_device();
  for (const DataType format : kFormats) {
    Params params = small(format, true, Data::outliers);
    params.variant = Variant::flash_1;
    CAPTURE(runs.words(params));
    const lab::Report report = runs(params, *device);
    CHECK(tests::failed_checks(report) == "");
    const Trace trace = trace_from_json(report.trace);
    CHECK((to_json(trace) == report.trace));
    REQUIRE(trace.quantized.size() == kQuantizedRows);
    CHECK(trace.smooth_k);
    const auto& rows = trace.quantized;
    CHECK((rows[0].format == DataType::bf16 && rows[0].score_rms == 0 && rows[0].o_rms < 0.01));
    for (const std::size_t plain : {1u, 3u}) {
      CHECK((!rows[plain].smooth_k && rows[plain + 1].smooth_k));
      CHECK(rows[plain].format == rows[plain + 1].format);
      CHECK(rows[plain].o_rms > 2 * rows[0].o_rms);
      CHECK(rows[plain + 1].o_rms < 0.75 * rows[plain].o_rms);
      CHECK(rows[plain + 1].score_rms < rows[plain].score_rms);
      CHECK(rows[plain].o_largest > rows[plain].o_rms);
    }
    CHECK(name_of_row(rows[4]) == "int8, smoothed K");
    CHECK(contains(report.summary, "flash-1 runs as the one kernel with scores in"));
    const Step& last = trace.steps.back();
    CHECK(static_cast<double>(last.m_after) + std::log(static_cast<double>(last.l)) ==
          Approx(static_cast<double>(trace.answer.lse)).epsilon(1e-4));
  }
}

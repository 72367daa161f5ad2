// The backward pass against double: pairs of all that can be chosen, in several orders of threads, and what it does where
// no key is seen.

#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "kernels/attention/attention_backward/run/run.hpp"
#include "kernels/base/lab/result.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/attention/attention_backward/testing.hpp"
#include "tests/kernels/attention/flash_attention/pairwise.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::attention_backward;

namespace {

constexpr int kLengths[] = {1, 2, 16, 17, 33, 64, 65, 100, 130};
/// Heads of Q, and of K and V.
constexpr std::array<int, 2> kHeads[] = {{1, 1}, {2, 1}, {2, 2}, {3, 1}};

/// How many values each choice has, in the order of `params_of`.
constexpr std::array<int, 6> kChoices{5, 6, 9, 4, 4, 4};

Params params_of(const std::array<int, 6>& c, int seed) {
  Params params;
  params.mask = static_cast<Mask>(c[0]);
  params.head_dim = static_cast<HeadDim>(c[1]);
  params.seq = kLengths[c[2]];
  params.block_q = static_cast<Edge>(c[3]);
  params.block_k = static_cast<Edge>(c[4]);
  params.heads = kHeads[c[5]][0];
  params.kv_heads = kHeads[c[5]][1];
  params.query = seed * 7 % params.seq;
  params.seed = seed;
  return params;
}

/// Gradients beside what is right.
struct Against {
  lab::Closest dq, dk, dv;
  bool ok() const { return dq.ok() && dk.ok() && dv.ok(); }
};
Against against_double(const Params& params, const Inputs& inputs,
                       const std::vector<float>& d_output, const std::vector<float>& dq,
                       const std::vector<float>& dk, const std::vector<float>& dv) {
  lab::NoProgress nobody;
  const Task task = task_of(params);
  const BackwardRoundings roundings;
  const Reference forward = reference_forward(task, inputs, roundings.forward, nobody);
  const BackwardReference exact =
      reference_backward(task, inputs, d_output, forward, roundings, nobody);
  return {lab::compared(dq, exact.dq.value, exact.dq.bound),
          lab::compared(dk, exact.dk.value, exact.dk.bound),
          lab::compared(dv, exact.dv.value, exact.dv.bound)};
}

struct BackwardCompared {
  Inputs inputs;
  Outcome outcome;
  Against against;
};
BackwardCompared backward_run(simt::Device& device, const Params& params) {
  BackwardCompared c;
  c.inputs = make_inputs(params);
  const std::vector<float> d_output = make_d_output(params);
  c.outcome = run_explained(device, params, c.inputs, d_output);
  c.against = against_double(params, c.inputs, d_output, c.outcome.dq, c.outcome.dk, c.outcome.dv);
  return c;
}

/// What the chosen query's row must be by what else the trace says.
void check_row(const Trace& trace) {
  const BackwardRow& row = trace.row;
  const auto length = static_cast<std::size_t>(trace.shape.length);
  REQUIRE(row.ds.size() == length);
  REQUIRE(row.dq.size() == static_cast<std::size_t>(trace.shape.head_dim));
  const bool sees = row.lse > -INFINITY;
  constexpr double kUnit = 0x1p-7;
  CHECK(sum_of(row.p) == Approx(sees ? 1 : 0).margin(kUnit));
  double pulled = 0;  // Σ P ∘ dP, which is D
  int wrong = 0;
  for (std::size_t key = 0; key < length; ++key) {
    const double p = static_cast<double>(row.p[key]), dp = static_cast<double>(row.dp[key]);
    const double ds = p * (dp - static_cast<double>(row.d));
    pulled += p * dp;
    const double off = std::abs(static_cast<double>(row.ds[key]) - ds);
    wrong += !(off <= kUnit * std::abs(ds) + 1e-6);
  }
  CHECK(wrong == 0);
  CHECK(pulled == Approx(static_cast<double>(row.d)).margin(0.06));
  const auto c = static_cast<std::size_t>(trace.chosen.component);
  CHECK(row.dq_after.size() == trace.steps.size());
  if (!trace.steps.empty()) CHECK(row.dq_after.back() == Approx(row.exact_dq[c]).margin(1e-12));
}

}  // namespace

TEST_CASE("a backward pass holds the lesson's checks for every pair of choices",
          "[attention_backward]") {
  const auto device = test_device();
  tests::Part part("the backward pass's choices", 6);
  int seed = 0;
  for (const auto& choice : flash_attention::pairwise(kChoices)) {
    const Params params = params_of(choice, ++seed);
    if (part.skips()) continue;
    CAPTURE(runs.words(params));
    const lab::Report report = held_run(runs, params, *device);
    std::set<std::string> checked;
    for (const lab::Check& check : report.checks) checked.insert(check.id);
    CHECK(checked == std::set<std::string>{"output", "log_sum_exp", "asked", "visits", "d", "dq",
                                           "dk", "dv", "recorded_parts"});
    CHECK(report.summary.starts_with("backward: "));
    check_row(trace_from_json(report.trace));
  }
}

TEST_CASE("the bounded gradients are those that directional differences prove",
          "[attention_backward]") {
  lab::NoProgress nobody;
  for (const ScoreMod mod : all_of<ScoreMod>()) {
    Params params;
    params.seq = 20;
    Task task = task_of(params);
    task.mod = mod;
    const Inputs inputs = make_inputs(params);
    const std::vector<float> d_output = make_d_output(params);
    const BackwardRoundings roundings;
    const BackwardReference bounded = reference_backward(
        task, inputs, d_output, reference_forward(task, inputs, roundings.forward, nobody),
        roundings, nobody);
    const Gradients proven =
        reference_backward(task, numbers_of(inputs), {d_output.begin(), d_output.end()});
    int wrong = 0;
    for (std::size_t i = 0; i < proven.dq.size(); ++i) {
      wrong += std::abs(proven.dq[i] - bounded.dq.value[i]) > 1e-9;
    }
    for (std::size_t i = 0; i < proven.dk.size(); ++i) {
      wrong += std::abs(proven.dk[i] - bounded.dk.value[i]) > 1e-9;
      wrong += std::abs(proven.dv[i] - bounded.dv.value[i]) > 1e-9;
    }
    CHECK(wrong == 0);
    // A bound that lets everything pass is none.
    for (const auto* all : {&bounded.dq, &bounded.dk, &bounded.dv}) {
      double value = 0, bound = 0;
      for (std::size_t i = 0; i < all->value.size(); ++i) {
        value += std::abs(all->value[i]);
        bound += all->bound[i];
      }
      CHECK(bound < 0.2 * value);
    }
  }
}

TEST_CASE("gradients of keys do not depend on the order of threads or of copies",
          "[attention_backward]") {
  const Params params{.seq = 70, .mask = Mask::causal};
  const BackwardCompared first = backward_run(*test_device(), params);
  CHECK(first.against.ok());
  for (const auto order :
       {simt::ThreadOrder::ascending, simt::ThreadOrder::descending, simt::ThreadOrder::shuffled}) {
    for (const auto completion : {simt::Completion::latest, simt::Completion::earliest}) {
      const auto device = test_device(order, 5, completion);
      const BackwardCompared run = backward_run(*device, params);
      CHECK(run.against.ok());
      CHECK(run.outcome.dk == first.outcome.dk);
      CHECK(run.outcome.dv == first.outcome.dv);
    }
  }
}

TEST_CASE("documents keep their gradients to themselves", "[attention_backward]") {
  const auto device = test_device();
  const auto zeros = [](const std::vector<float>& values) {
    return values == std::vector<float>(values.size(), 0.0f);
  };
  // The first query of a later document sees itself alone, and the last key of one is seen by its own query alone.
  const Params params{.seq = 40, .mask = Mask::document};
  const BackwardCompared run = backward_run(*device, params);
  CHECK(run.against.ok());
  CHECK_FALSE(zeros(run.outcome.dv));
}

TEST_CASE("keys beyond the length weigh nothing, whatever the scores", "[attention_backward]") {
  const auto device = test_device();
  // Of keys that are not there a score would be 0: beside −565 it would weigh infinitely much.
  const Params params{.seq = 40, .mask = Mask::none};
  BackwardCompared run;
  run.inputs = make_inputs(params);
  for (float& q : run.inputs.q) q = -10;
  for (float& k : run.inputs.k) k = 10;
  const std::vector<float> d_output = make_d_output(params);
  run.outcome = run_explained(*device, params, run.inputs, d_output);
  run.against =
      against_double(params, run.inputs, d_output, run.outcome.dq, run.outcome.dk, run.outcome.dv);
  CHECK(run.against.ok());
}

TEST_CASE("one key too many is noticed, where there is a mask", "[attention_backward]") {
  const auto device = test_device();
  Params params{.seq = 70, .omits = Omission::mask_off_by_one};
  CHECK_FALSE(backward_run(*device, params).against.ok());
  params.mask = Mask::none;
  CHECK_THROWS_AS(backward_run(*device, params), Error);
}

TEST_CASE("D is the sum of dO times O", "[attention_backward]") {
  const auto device = test_device();
  const Params params{.seq = 33};
  const BackwardCompared run = backward_run(*device, params);
  const std::vector<float> d_output = make_d_output(params);
  for (std::size_t row = 0; row < run.outcome.d.size(); ++row) {
    double d = 0;
    for (std::size_t c = 0; c < 32; ++c) {
      d += static_cast<double>(d_output[row * 32 + c]) *
           static_cast<double>(run.outcome.forward.o[row * 32 + c]);
    }
    CHECK(static_cast<double>(run.outcome.d[row]) == Approx(d).margin(1e-4));
  }
}

namespace {

/// dQ, dK and dV of configuration `number`, on the O and log-sum-exp of explained kernels.
Against timed_gradients(simt::Device& device, int number, const Params& params) {
  const Kernels& kernels = kernels_of(device);
  const Configuration& one = kernels.configurations()[static_cast<std::size_t>(number)];
  const Task task = task_of(params);
  const Inputs inputs = make_inputs(params);
  const std::vector<float> d_output = make_d_output(params);
  const flash_attention::Outcome forward =
      flash_attention::run_explained(device, forward_of(params), inputs, {});
  PassBuffers pass(device, scratch_of(task, one.block_q, task.head_dim), inputs, d_output,
                   forward.o, forward.lse);
  kernels.run(device, number, task, pass.arrays());
  device.synchronize();
  const auto fetched = [&](const auto& buffer) { return values_of(buffer.download()); };
  return against_double(params, inputs, d_output, fetched(pass.dq), fetched(pass.dk),
                        fetched(pass.dv));
}

}  // namespace

TEST_CASE("the compiled kernels' gradients equal double", "[attention_backward]") {
  const auto device = test_device(simt::ThreadOrder::shuffled, 3);
  const auto all = kernels_of(*device).configurations();
  for (std::size_t i = 0; i < all.size(); ++i) {
    Params params;
    params.head_dim = all[i].head_dim == 64 ? HeadDim::d64 : HeadDim::d128;
    params.seq = 130;
    params.heads = 1;
    constexpr Mask kMasks[] = {Mask::causal, Mask::none, Mask::sliding_window};
    params.mask = kMasks[i % 3];
    const Against a = timed_gradients(*device, static_cast<int>(i), params);
    CAPTURE(runs.words(params), std::string(all[i].name));
    CAPTURE(a.dq.error(), a.dq.bound(), a.dk.error(), a.dk.bound(), a.dv.error(), a.dv.bound());
    CHECK(a.ok());
  }
}

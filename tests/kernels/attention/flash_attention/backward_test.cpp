// The backward pass against double: pairs of all that can be chosen, in several orders of threads; what it asks of
// memory, which tiles it visits, and what it does where no key is seen.

#include <array>
#include <random>

#include "kernels/attention/flash_attention/backward_gather.hpp"
#include "kernels/attention/flash_attention/backward_reference.hpp"
#include "kernels/attention/flash_attention/ledger.hpp"
#include "kernels/base/simt/sanitizers.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/attention/flash_attention/pairwise.hpp"
#include "tests/kernels/attention/flash_attention/testing.hpp"

using namespace tilestep;
using namespace tilestep::flash_attention;

namespace {

#if defined(TILESTEP_ASAN) || defined(TILESTEP_TSAN)
constexpr bool kFew = true;
#else
constexpr bool kFew = false;
#endif

constexpr Pass kPasses[] = {Pass::backward_recompute, Pass::backward_store};
constexpr int kLengths[] = {1, 2, 16, 17, 33, 64, 65, 100, 130};
/// Heads of Q, and of K and V.
constexpr std::array<int, 2> kHeads[] = {{1, 1}, {2, 1}, {2, 2}, {3, 1}};
constexpr std::array<int, 2> kWindows[] = {{0, 0}, {0, 3}, {1, 0}, {20, 5}, {40, 0}, {300, 300}};

/// How many values each choice has, in the order of `params_of`.
constexpr std::array<int, 11> kChoices{2, 5, 3, 6, 2, 9, 4, 4, 4, 6, 2};

Params params_of(const std::array<int, 11>& c, int seed) {
  Params params;
  params.pass = kPasses[c[0]];
  params.mask = static_cast<Mask>(c[1]);
  params.score_mod = static_cast<ScoreMod>(c[2]);
  params.head_dim = static_cast<HeadDim>(c[3]);
  params.dtype = static_cast<DataType>(c[4]);
  params.seq = kLengths[c[5]];
  params.block_q = static_cast<Edge>(c[6]);
  params.block_k = static_cast<Edge>(c[7]);
  params.heads = kHeads[c[8]][0];
  params.kv_heads = kHeads[c[8]][1];
  params.window = kWindows[c[9]][0];
  params.sinks = kWindows[c[9]][1];
  params.data = static_cast<Data>(c[10]);
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
  const BackwardRoundings roundings = backward_roundings_of(params.pass, params.dtype);
  const Reference forward = reference_forward(task, inputs, roundings.forward, nobody);
  const BackwardReference exact =
      reference_backward(task, inputs, d_output, forward, roundings, nobody);
  return {lab::compared(dq, exact.dq.value, exact.dq.bound),
          lab::compared(dk, exact.dk.value, exact.dk.bound),
          lab::compared(dv, exact.dv.value, exact.dv.bound)};
}

struct BackwardCompared {
  Inputs inputs;
  BackwardOutcome outcome;
  Against against;
};
BackwardCompared backward_run(simt::Device& device, const Params& params) {
  BackwardCompared c;
  c.inputs = make_inputs(params);
  const std::vector<float> d_output = make_d_output(params);
  c.outcome = run_explained_backward(device, params, c.inputs, d_output);
  c.against = against_double(params, c.inputs, d_output, c.outcome.dq, c.outcome.dk, c.outcome.dv);
  return c;
}

void check_bytes(const BackwardCompared& run, const Params& params) {
  const Ledger formula = backward_ledger_of(params.pass, run.outcome.plan, task_of(params),
                                            params.dtype, run.inputs.begins);
  for (const Tensor tensor : all_of<Tensor>()) {
    const auto i = static_cast<std::size_t>(tensor);
    CAPTURE(std::string(name_of(tensor)));
    CHECK(run.outcome.asked[i].loaded == formula[i].loaded);
    CHECK(run.outcome.asked[i].stored == formula[i].stored);
  }
}

/// Each tile of scores was visited once, as the mask has it, by the block that has its keys.
void check_visits(const BackwardCompared& run, const Params& params) {
  const Plan& plan = run.outcome.plan;
  const bool stores = params.pass == Pass::backward_store;
  const int group = params.heads / params.kv_heads;
  int wrong = 0;
  std::vector<int> orders(static_cast<std::size_t>(params.kv_heads * plan.k_tiles), 0);
  std::vector<int> visits = orders;
  for (int head = 0; head < params.heads; ++head) {
    for (int q = 0; q < plan.q_tiles; ++q) {
      const int q0 = q * plan.block_q;
      const int q1 = std::min(q0 + plan.block_q, params.seq) - 1;
      for (int k = 0; k < plan.k_tiles; ++k) {
        const int k0 = k * plan.block_k;
        const TileKind kind = plan.rule.kind(
            q0, q1, k0, std::min(k0 + plan.block_k, params.seq) - 1, run.inputs.begins);
        const auto at = static_cast<std::size_t>((head * plan.q_tiles + q) * plan.k_tiles + k);
        const Visit& visit = run.outcome.visits[at];
        const bool there = kind != TileKind::skipped || stores;
        wrong += (visit.block >= 0) != there;
        if (!there || visit.block < 0) continue;
        wrong += visit.kind != static_cast<int>(kind) || visit.end < visit.begin;
        if (stores) continue;
        const int block = head / group * plan.k_tiles + k;
        wrong += visit.block != block || visit.o_reads != 0 || visit.o_writes != q1 - q0 + 1;
        orders[static_cast<std::size_t>(block)] += visit.order;
        ++visits[static_cast<std::size_t>(block)];
      }
    }
  }
  for (std::size_t block = 0; block < orders.size(); ++block) {
    wrong += orders[block] != visits[block] * (visits[block] - 1) / 2;  // 0, 1, 2 …
  }
  CHECK(wrong == 0);
}

void check_backward(simt::Device& device, const Params& params) {
  const BackwardCompared run = backward_run(device, params);
  const Against& a = run.against;
  CAPTURE(words(params));
  CAPTURE(a.dq.error(), a.dq.bound(), a.dk.error(), a.dk.bound(), a.dv.error(), a.dv.bound());
  CHECK(a.dq.ok());
  CHECK(a.dk.ok());
  CHECK(a.dv.ok());
  check_bytes(run, params);
  check_visits(run, params);
}

}  // namespace

TEST_CASE("gradients are right for every pair of choices, with the bytes of the formula",
          "[flash_attention]") {
  const auto device = emulated();
  int seed = 0;
  for (const auto& choice : pairwise(kChoices)) {
    const Params params = params_of(choice, ++seed);
    if (kFew && (params.seq > 65 || params.head_dim == HeadDim::d256)) continue;
    check_backward(*device, params);
  }
}

TEST_CASE("the bounded gradients are those that directional differences prove",
          "[flash_attention]") {
  lab::NoProgress nobody;
  for (const ScoreMod mod : all_of<ScoreMod>()) {
    Params params;
    params.seq = 20;
    params.score_mod = mod;
    params.dtype = DataType::fp32;
    const Task task = task_of(params);
    const Inputs inputs = make_inputs(params);
    const std::vector<float> d_output = make_d_output(params);
    const BackwardRoundings roundings =
        backward_roundings_of(Pass::backward_recompute, params.dtype);
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
      CHECK(bound < 1e-3 * value);
    }
  }
}

TEST_CASE("gradients of keys do not depend on the order of threads or of copies",
          "[flash_attention]") {
  for (const Pass pass : kPasses) {
    for (const DataType type : {DataType::fp32, DataType::bf16}) {
      const Params params{.pass = pass, .seq = 70, .mask = Mask::causal, .dtype = type};
      std::vector<float> dk, dv;
      for (const auto order : {simt::ThreadOrder::ascending, simt::ThreadOrder::descending,
                               simt::ThreadOrder::shuffled}) {
        for (const auto completion : {simt::Completion::latest, simt::Completion::earliest}) {
          const auto device = emulated(order, 5, completion);
          const BackwardCompared run = backward_run(*device, params);
          CAPTURE(words(params));
          CHECK(run.against.ok());
          if (dk.empty()) dk = run.outcome.dk, dv = run.outcome.dv;
          CHECK(run.outcome.dk == dk);
          CHECK(run.outcome.dv == dv);
        }
      }
    }
  }
}

TEST_CASE("queries that see no key, and keys that nobody sees, have gradients of zero",
          "[flash_attention]") {
  const auto device = emulated();
  const auto zeros = [](const std::vector<float>& values) {
    return values == std::vector<float>(values.size(), 0.0f);
  };
  for (const Pass pass : kPasses) {
    for (const DataType type : {DataType::fp32, DataType::bf16}) {
      for (const ScoreMod mod : all_of<ScoreMod>()) {
        const BackwardCompared run = backward_run(*device, {.pass = pass,
                                                            .seq = 40,
                                                            .mask = Mask::sliding_window,
                                                            .window = 0,
                                                            .score_mod = mod,
                                                            .dtype = type});
        CAPTURE(std::string(name_of(pass)), std::string(name_of(type)));
        CHECK(zeros(run.outcome.dq));
        CHECK(zeros(run.outcome.dk));
        CHECK(zeros(run.outcome.dv));
      }
    }
  }
}

TEST_CASE("keys beyond the length weigh nothing, whatever the scores", "[flash_attention]") {
  const auto device = emulated();
  for (const DataType type : {DataType::fp32, DataType::bf16}) {
    // Of keys that are not there a score would be 0: beside −565 it would weigh infinitely much.
    const Params params{
        .pass = Pass::backward_recompute, .seq = 40, .mask = Mask::none, .dtype = type};
    BackwardCompared run;
    run.inputs = make_inputs(params);
    for (float& q : run.inputs.q) q = -10;
    for (float& k : run.inputs.k) k = 10;
    const std::vector<float> d_output = make_d_output(params);
    run.outcome = run_explained_backward(*device, params, run.inputs, d_output);
    run.against = against_double(params, run.inputs, d_output, run.outcome.dq, run.outcome.dk,
                                 run.outcome.dv);
    CHECK(run.against.ok());
  }
}

TEST_CASE("one key too many is noticed, where there is a mask", "[flash_attention]") {
  const auto device = emulated();
  for (const Pass pass : kPasses) {
    Params params{.pass = pass, .seq = 100, .broken = Break::mask_off_by_one};
    CHECK_FALSE(backward_run(*device, params).against.ok());
    params.mask = Mask::none;
    CHECK_THROWS_AS(backward_run(*device, params), Error);
  }
}

TEST_CASE("D is the sum of dO times O", "[flash_attention]") {
  const auto device = emulated();
  const Params params{.pass = Pass::backward_recompute, .seq = 33, .dtype = DataType::fp32};
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

/// dQ, dK and dV of configuration `number`, on the O, log-sum-exp and weights of explained kernels.
Against timed_gradients(simt::Device& device, int number, const Params& params) {
  const BackwardKernels& kernels = kernels_of(device).backward();
  const BackwardConfiguration& one = kernels.configurations()[static_cast<std::size_t>(number)];
  const Task task = task_of(params);
  const Inputs inputs = make_inputs(params);
  const std::vector<float> d_output = make_d_output(params);
  const Outcome forward = run_explained(device, forward_of(params), inputs, {});
  const auto sent = [&](const std::vector<float>& values) {
    const std::vector<std::uint16_t> host = words_of(values);
    return simt::Buffer<std::uint16_t>(device, std::span<const std::uint16_t>(host));
  };
  const auto q = sent(inputs.q), k = sent(inputs.k), v = sent(inputs.v), o = sent(forward.o),
             d_o = sent(d_output), s = sent(forward.s), p = sent(forward.p);
  const simt::Buffer<int> begins(device, std::span<const int>(inputs.begins));
  const simt::Buffer<float> lse(device, std::span<const float>(forward.lse));
  const std::size_t padded =
      static_cast<std::size_t>(task.heads) *
      static_cast<std::size_t>((task.length() + one.block_q - 1) / one.block_q * one.block_q);
  const bool stores = one.pass == Pass::backward_store;
  const auto unwritten = [&]<class T>(T, std::size_t count) {
    simt::Buffer<T> buffer(device, count);
    buffer.fill(0xFF);
    return buffer;
  };
  auto terms = unwritten(0.0f, 2 * padded);
  auto sums = unwritten(0.0f, stores ? 0 : padded * static_cast<std::size_t>(task.head_dim));
  auto dp = unwritten(std::uint16_t{}, forward.p.size()),
       ds = unwritten(std::uint16_t{}, forward.p.size()),
       dq = unwritten(std::uint16_t{}, inputs.q.size()),
       dk = unwritten(std::uint16_t{}, inputs.k.size()),
       dv = unwritten(std::uint16_t{}, inputs.v.size());
  kernels.run(
      device, number, task,
      {q.span(), k.span(), v.span(), o.span(), d_o.span(), begins.span(), lse.span(), terms.span(),
       sums.span(), s.span(), p.span(), dp.span(), ds.span(), dq.span(), dk.span(), dv.span()});
  device.synchronize();
  const auto fetched = [&](const auto& buffer) { return values_of(buffer.download()); };
  return against_double(params, inputs, d_output, fetched(dq), fetched(dk), fetched(dv));
}

}  // namespace

TEST_CASE("the compiled kernels' gradients equal double", "[flash_attention]") {
  const auto device = emulated(simt::ThreadOrder::shuffled, 3);
  const auto all = kernels_of(*device).backward().configurations();
  for (std::size_t i = 0; i < all.size(); ++i) {
    Params params;
    params.pass = all[i].pass;
    params.dtype = all[i].dtype;
    params.head_dim = all[i].head_dim == 64 ? HeadDim::d64 : HeadDim::d128;
    params.seq = i % 2 == 0 ? 130 : 150;
    constexpr Mask kMasks[] = {Mask::causal, Mask::none, Mask::sliding_window};
    params.mask = kMasks[i % 3];
    params.window = 50;
    if (kFew) params.seq = 70, params.heads = 1;
    const Against a = timed_gradients(*device, static_cast<int>(i), params);
    CAPTURE(words(params), std::string(all[i].name));
    CAPTURE(a.dq.error(), a.dq.bound(), a.dk.error(), a.dk.bound(), a.dv.error(), a.dv.bound());
    CHECK(a.ok());
  }
}

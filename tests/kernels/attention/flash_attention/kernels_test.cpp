// The kernels up to flash-2 against double: pairs of all that can be chosen, in several orders of threads.

#include <array>

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

constexpr int kLengths[] = {1, 2, 16, 17, 33, 64, 65, 127, 130};
/// Heads of Q, and of K and V.
constexpr std::array<int, 2> kHeads[] = {{1, 1}, {2, 1}, {2, 2}, {3, 3}};
constexpr std::array<int, 2> kWindows[] = {{0, 0}, {0, 3}, {1, 0}, {20, 5}, {40, 0}, {300, 300}};

/// How many values each choice has, in the order of `params_of`.
constexpr std::array<int, 11> kChoices{4, 5, 3, 6, 2, 9, 4, 4, 4, 6, 2};
using Choice = std::array<int, kChoices.size()>;

Params params_of(const Choice& c, int seed) {
  Params params;
  params.variant = static_cast<Variant>(c[0]);
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

/// The whole of a run: numbers, bytes, who computed what.
void check_run(simt::Device& device, const Params& params) {
  const Compared run = compared_run(device, params);
  const Outcome& outcome = run.outcome;
  CAPTURE(words(params));
  CAPTURE(run.o.error(), run.o.bound(), run.lse.error(), run.lse.bound());
  CHECK(run.o.ok());
  CHECK(run.lse.ok());
  const Ledger formula =
      ledger_of(outcome.plan, task_of(params), params.dtype, params.broken, run.inputs.begins);
  for (const Tensor tensor : all_of<Tensor>()) {
    CAPTURE(std::string(name_of(tensor)));
    CHECK(outcome.asked[static_cast<std::size_t>(tensor)].loaded ==
          formula[static_cast<std::size_t>(tensor)].loaded);
    CHECK(outcome.asked[static_cast<std::size_t>(tensor)].stored ==
          formula[static_cast<std::size_t>(tensor)].stored);
  }
}

/// Each tile of scores that is to be visited was visited once, as the mask has it, in the kernel's order.
void check_visits(const Compared& run, const Params& params) {
  const Plan& plan = run.outcome.plan;
  int wrong = 0;
  for (int head = 0; head < params.heads; ++head) {
    for (int q = 0; q < plan.q_tiles; ++q) {
      const int q0 = q * plan.block_q;
      const int q1 = std::min(q0 + plan.block_q, params.seq) - 1;
      int before = -1;
      for (int k = 0; k < plan.k_tiles; ++k) {
        const int k0 = k * plan.block_k;
        const TileKind kind = plan.rule.kind(
            q0, q1, k0, std::min(k0 + plan.block_k, params.seq) - 1, run.inputs.begins);
        const auto at = static_cast<std::size_t>((head * plan.q_tiles + q) * plan.k_tiles + k);
        const Visit& visit = run.outcome.visits[at];
        const bool there = kind != TileKind::skipped || stores_scores(plan.runs);
        wrong += (visit.block >= 0) != there;
        if (!there || visit.block < 0) continue;
        wrong += visit.kind != static_cast<int>(kind) || visit.end < visit.begin;
        if (plan.runs == Variant::flash_2) wrong += visit.order != before + 1;
        if (plan.runs == Variant::flash_1) {
          wrong += visit.order <= before || visit.o_reads != q1 - q0 + 1 ||
                   visit.o_writes != q1 - q0 + 1;
        } else {
          wrong += visit.o_reads != 0;
        }
        before = visit.order;
      }
    }
  }
  CAPTURE(words(params));
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("every variant is right for every pair of choices, and asks for the bytes of the formula",
          "[flash_attention]") {
  const auto device = emulated();
  int seed = 0;
  for (const Choice& choice : pairwise(kChoices)) {
    const Params params = params_of(choice, ++seed);
    if (kFew && (params.seq > 65 || params.head_dim == HeadDim::d256)) continue;
    check_run(*device, params);
  }
}

TEST_CASE("a length that no tile divides, over several tiles of each kind", "[flash_attention]") {
  if (kFew) return;
  const auto device = emulated();
  for (const Variant variant :
       {Variant::naive, Variant::fused_softmax, Variant::flash_1, Variant::flash_2}) {
    for (const Mask mask : {Mask::sliding_window, Mask::document}) {
      check_run(
          *device,
          {.variant = variant, .seq = 257, .heads = 1, .mask = mask, .window = 70, .sinks = 5});
    }
  }
}

TEST_CASE("numbers do not depend on the order of threads or of copies", "[flash_attention]") {
  for (const Variant variant :
       {Variant::naive, Variant::fused_softmax, Variant::flash_1, Variant::flash_2}) {
    for (const DataType type : {DataType::fp32, DataType::bf16}) {
      const Params params{.variant = variant, .seq = 70, .mask = Mask::causal, .dtype = type};
      std::vector<float> first;
      for (const auto order : {simt::ThreadOrder::ascending, simt::ThreadOrder::descending,
                               simt::ThreadOrder::shuffled}) {
        for (const auto completion : {simt::Completion::latest, simt::Completion::earliest}) {
          const auto device = emulated(order, 5, completion);
          const Compared run = compared_run(*device, params);
          CAPTURE(words(params));
          CHECK(run.ok());
          if (first.empty()) first = run.outcome.o;
          CHECK(run.outcome.o == first);
        }
      }
    }
  }
}

TEST_CASE("a query that sees no key has zeros and minus infinity", "[flash_attention]") {
  const auto device = emulated();
  for (const Variant variant :
       {Variant::naive, Variant::fused_softmax, Variant::flash_1, Variant::flash_2}) {
    for (const DataType type : {DataType::fp32, DataType::bf16}) {
      const Compared run = compared_run(*device, {.variant = variant,
                                                  .seq = 40,
                                                  .mask = Mask::sliding_window,
                                                  .window = 0,
                                                  .dtype = type});
      CHECK(run.outcome.o == std::vector<float>(run.outcome.o.size(), 0.0f));
      CHECK(run.outcome.lse == std::vector<float>(run.outcome.lse.size(), -INFINITY));
    }
  }
}

TEST_CASE("each break changes what it should", "[flash_attention]") {
  const auto device = emulated();
  for (const Variant variant : {Variant::fused_softmax, Variant::flash_1, Variant::flash_2}) {
    const Params params{
        .variant = variant, .seq = 100, .data = Data::outliers, .broken = Break::skip_rescale};
    CAPTURE(words(params));
    CHECK_FALSE(compared_run(*device, params).o.ok());
  }
  for (const Variant variant :
       {Variant::naive, Variant::fused_softmax, Variant::flash_1, Variant::flash_2}) {
    const Params params{.variant = variant, .seq = 100, .broken = Break::mask_off_by_one};
    CAPTURE(words(params));
    CHECK_FALSE(compared_run(*device, params).o.ok());
  }
  check_run(*device, {.seq = 100, .broken = Break::materialize});
  const Compared flash =
      compared_run(*device, {.seq = 64, .mask = Mask::none, .broken = Break::materialize});
  const Compared naive =
      compared_run(*device, {.variant = Variant::naive, .seq = 64, .mask = Mask::none});
  CHECK(flash.outcome.s == naive.outcome.s);
}

TEST_CASE("tiles are visited once, in the kernel's order", "[flash_attention]") {
  const auto device = emulated();
  for (const Variant variant :
       {Variant::naive, Variant::fused_softmax, Variant::flash_1, Variant::flash_2}) {
    for (const Mask mask : all_of<Mask>()) {
      const Params params{.variant = variant,
                          .seq = 100,
                          .mask = mask,
                          .window = 33,
                          .sinks = 2,
                          .block_k = Edge::t16};
      check_visits(compared_run(*device, params), params);
    }
  }
}

TEST_CASE("the steps of a query follow from each other and lead to its O", "[flash_attention]") {
  const auto device = emulated();
  for (const Variant variant : {Variant::fused_softmax, Variant::flash_1, Variant::flash_2}) {
    for (const DataType type : {DataType::fp32, DataType::bf16}) {
      const Params params{.variant = variant, .seq = 100, .dtype = type, .data = Data::outliers};
      const Chosen chosen{1, 77, 13};
      const Compared run = compared_run(*device, params, chosen);
      float m = -INFINITY;
      double l = 0;
      double o = 0;
      int steps = 0;
      CAPTURE(words(params));
      for (const StepRecord& step : run.outcome.steps) {
        if (step.order < 0) continue;
        ++steps;
        CHECK(step.m_before == Approx(m).epsilon(1e-6));
        CHECK(step.m_after == std::max(step.m_before, step.tile_max));
        CHECK(step.rescale ==
              Approx(std::exp(step.m_before - step.m_after)).epsilon(1e-4).margin(1e-30));
        l = l * static_cast<double>(step.rescale) + static_cast<double>(step.tile_sum);
        CHECK(static_cast<double>(step.l) == Approx(l).epsilon(1e-4));
        m = step.m_after;
        o = static_cast<double>(step.o);
      }
      // Keys 0 … 77 are in three tiles of 32; fused-softmax reads the fourth as well.
      CHECK(steps == (variant == Variant::fused_softmax ? 4 : 3));
      const auto row = static_cast<std::size_t>(chosen.head * params.seq + chosen.query);
      const double output = variant == Variant::flash_1 ? o : o / l;
      const double tolerance = type == DataType::fp32 ? 1e-5 : 1e-2;
      CHECK(static_cast<double>(run.outcome.o[row * 32 + 13]) ==
            Approx(output).epsilon(tolerance).margin(1e-4));
      CHECK(static_cast<double>(run.outcome.lse[row]) ==
            Approx(static_cast<double>(m) + std::log(l)).epsilon(1e-4));
    }
  }
}

namespace {

template <class T>
simt::Buffer<T> uploaded(simt::Device& device, const std::vector<T>& host) {
  return simt::Buffer<T>(device, std::span<const T>(host));
}
template <class T>
simt::Buffer<T> unwritten(simt::Device& device, std::size_t count) {
  simt::Buffer<T> buffer(device, count);
  buffer.fill(0xFF);
  return buffer;
}

/// O of configuration `number`.
std::vector<float> timed_output(simt::Device& device, int number, const Params& params,
                                const Inputs& inputs) {
  const Kernels& kernels = kernels_of(device);
  const Task task = task_of(params);
  const auto rows = static_cast<std::size_t>(task.heads * task.length());
  const std::size_t scores = rows * static_cast<std::size_t>(score_pitch(task.length()));
  const auto begins = uploaded(device, inputs.begins);
  auto lse = unwritten<float>(device, rows);
  auto sums = unwritten<float>(device, inputs.q.size());
  auto m = unwritten<float>(device, rows);
  auto l = unwritten<float>(device, rows);
  const auto sent = [&](const std::vector<float>& values) {
    return uploaded(device, words_of(values));
  };
  const auto q = sent(inputs.q), k = sent(inputs.k), v = sent(inputs.v);
  auto o = unwritten<std::uint16_t>(device, inputs.q.size());
  auto s = unwritten<std::uint16_t>(device, scores);
  auto p = unwritten<std::uint16_t>(device, scores);
  kernels.run(device, number, task,
              {q.span(), k.span(), v.span(), begins.span(), o.span(), lse.span(), s.span(),
               p.span(), sums.span(), m.span(), l.span()});
  device.synchronize();
  return values_of(o.download());
}

}  // namespace

TEST_CASE("the compiled kernels equal double", "[flash_attention]") {
  lab::NoProgress nobody;
  const auto device = emulated(simt::ThreadOrder::shuffled, 3);
  const auto all = kernels_of(*device).configurations();
  for (std::size_t i = 0; i < all.size(); ++i) {
    Params params;
    params.variant = all[i].variant;
    params.dtype = all[i].dtype;
    for (const HeadDim dim : all_of<HeadDim>()) {
      if (columns_of(dim) == all[i].head_dim) params.head_dim = dim;
    }
    params.seq = i % 2 == 0 ? 150 : 200;
    params.mask = static_cast<Mask>(i % 5);
    params.window = 50;
    params.sinks = 3;
    if (kFew) params.seq = 70, params.heads = 1;
    const Inputs inputs = make_inputs(params);
    const Reference exact = reference_forward(task_of(params), inputs,
                                              roundings_of(params.variant, params.dtype), nobody);
    const lab::Closest closest = lab::compared(
        timed_output(*device, static_cast<int>(i), params, inputs), exact.o.value, exact.o.bound);
    CAPTURE(words(params), std::string(all[i].name), closest.error(), closest.bound());
    CHECK(closest.ok());
  }
}

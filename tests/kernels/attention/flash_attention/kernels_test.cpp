// The kernels up to flash-2 against double: pairs of all that can be chosen, in several orders of threads.

#include <array>

#include "kernels/base/lab/result.hpp"
#include "tests/kernels/attention/flash_attention/pairwise.hpp"
#include "tests/kernels/attention/flash_attention/testing.hpp"
#include "tests/part.hpp"

using namespace tilestep;
using namespace tilestep::flash_attention;

namespace {

constexpr Variant kVariants[] = {Variant::naive, Variant::flash_1, Variant::flash_2};
constexpr int kLengths[] = {1, 2, 16, 17, 33, 64, 65, 127, 130};
/// Heads of Q, and of K and V.
constexpr std::array<int, 2> kHeads[] = {{1, 1}, {2, 1}, {2, 2}, {3, 3}};
constexpr std::array<int, 2> kWindows[] = {{0, 0}, {0, 3}, {1, 0}, {20, 5}, {40, 0}, {300, 300}};

/// How many values each choice has, in the order of `params_of`.
constexpr std::array<int, 10> kChoices{3, 5, 3, 6, 9, 4, 4, 4, 6, 2};
using Choice = std::array<int, kChoices.size()>;

Params params_of(const Choice& c, int seed) {
  Params params;
  params.variant = kVariants[c[0]];
  params.mask = static_cast<Mask>(c[1]);
  params.score_mod = static_cast<ScoreMod>(c[2]);
  params.head_dim = static_cast<HeadDim>(c[3]);
  params.seq = kLengths[c[4]];
  params.block_q = static_cast<Edge>(c[5]);
  params.block_k = static_cast<Edge>(c[6]);
  params.heads = kHeads[c[7]][0];
  params.kv_heads = kHeads[c[7]][1];
  params.window = kWindows[c[8]][0];
  params.sinks = kWindows[c[8]][1];
  params.data = static_cast<Data>(c[9]);
  params.seed = seed;
  return params;
}

}  // namespace

TEST_CASE("every variant holds the lesson's checks for every pair of choices",
          "[flash_attention]") {
  const auto device = test_device();
  tests::Part part("attention's choices", 3);
  int seed = 0;
  for (const Choice& choice : pairwise(kChoices)) {
    const Params params = params_of(choice, ++seed);
    if (!part.skips()) check_run(params, *device);
  }
}

TEST_CASE("numbers do not depend on the order of threads or of copies", "[flash_attention]") {
  for (const Variant variant : kVariants) {
    const Params params{.variant = variant, .seq = 70, .heads = 1, .mask = Mask::causal};
    CAPTURE(runs.words(params));
    const Compared first = compared_run(*test_device(), params);
    CHECK(first.ok());
    for (const auto order : {simt::ThreadOrder::ascending, simt::ThreadOrder::descending,
                             simt::ThreadOrder::shuffled}) {
      for (const auto completion : {simt::Completion::latest, simt::Completion::earliest}) {
        const auto device = test_device(order, 5, completion);
        CHECK(run_explained(*device, params, first.inputs, {}).o == first.outcome.o);
      }
    }
  }
}

TEST_CASE("a query that sees no key has zeros and minus infinity", "[flash_attention]") {
  const auto device = test_device();
  for (const Variant variant : kVariants) {
    const Compared run = compared_run(
        *device, {.variant = variant, .seq = 40, .mask = Mask::sliding_window, .window = 0});
    CHECK(run.outcome.o == std::vector<float>(run.outcome.o.size(), 0.0f));
    CHECK(run.outcome.lse == std::vector<float>(run.outcome.lse.size(), -INFINITY));
  }
}

TEST_CASE("each break changes what it should", "[flash_attention]") {
  const auto device = test_device();
  for (const Variant variant : kVariants) {
    for (const Break broken : {Break::skip_rescale, Break::mask_off_by_one}) {
      if (variant == Variant::naive && broken == Break::skip_rescale) continue;
      const Params params{.variant = variant, .seq = 70, .data = Data::outliers, .broken = broken};
      CAPTURE(runs.words(params));
      CHECK_FALSE(compared_run(*device, params).o.ok());
    }
  }
  const Compared flash =
      compared_run(*device, {.seq = 64, .mask = Mask::none, .broken = Break::materialize});
  const Compared naive =
      compared_run(*device, {.variant = Variant::naive, .seq = 64, .mask = Mask::none});
  CHECK(flash.ok());
  CHECK(flash.outcome.s == naive.outcome.s);
}

TEST_CASE("flash-1 comes to a tile of queries once a tile of keys, and reads and writes its O",
          "[flash_attention]") {
  const auto device = test_device();
  const Outcome run = compared_run(*device, {.variant = Variant::flash_1, .seq = 100}).outcome;
  REQUIRE(run.plan.q_tiles == 4);
  int order = 0;
  for (int k = 0; k < 4; ++k) {
    for (int q = k; q < 4; ++q, ++order) {
      const Visit& visit = run.visits[static_cast<std::size_t>(q * 4 + k)];
      CHECK(visit.order == order);
      CHECK(visit.o_reads == (q < 3 ? 32 : 4));
      CHECK(visit.o_writes == visit.o_reads);
    }
  }
}

TEST_CASE("the steps of a query follow from each other and lead to its O", "[flash_attention]") {
  const auto device = test_device();
  for (const Variant variant : {Variant::flash_1, Variant::flash_2}) {
    const Params params{.variant = variant, .seq = 100, .data = Data::outliers};
    const Chosen chosen{1, 77, 0};
    const Compared run = compared_run(*device, params, chosen);
    float m = -INFINITY;
    double l = 0;
    double o = 0;
    int steps = 0;
    CAPTURE(runs.words(params));
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
    CHECK(steps == 3);  // keys 0 … 77 are in three tiles of 32
    const auto row = static_cast<std::size_t>(chosen.head * params.seq + chosen.query);
    const double output = variant == Variant::flash_1 ? o : o / l;
    CHECK(static_cast<double>(run.outcome.o[row * 32]) ==
          Approx(output).epsilon(1e-2).margin(1e-4));
    CHECK(static_cast<double>(run.outcome.lse[row]) ==
          Approx(static_cast<double>(m) + std::log(l)).epsilon(1e-4));
  }
}

namespace {

using lab::unwritten, lab::uploaded;

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
  const auto device = test_device(simt::ThreadOrder::shuffled, 3);
  const auto all = kernels_of(*device).configurations();
  for (std::size_t i = 0; i < all.size(); ++i) {
    Params params;
    params.variant = all[i].variant;
    for (const HeadDim dim : all_of<HeadDim>()) {
      if (columns_of(dim) == all[i].head_dim) params.head_dim = dim;
    }
    params.seq = 130;
    params.heads = 1;
    params.mask = static_cast<Mask>(i % 5);
    params.window = 50;
    params.sinks = 3;
    const Inputs inputs = make_inputs(params);
    const Reference exact =
        reference_forward(task_of(params), inputs, roundings_of(params.variant), nobody);
    const lab::Closest closest = lab::compared(
        timed_output(*device, static_cast<int>(i), params, inputs), exact.o.value, exact.o.bound);
    CAPTURE(runs.words(params), std::string(all[i].name), closest.error(), closest.bound());
    CHECK(closest.ok());
  }
}

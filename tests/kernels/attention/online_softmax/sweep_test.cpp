#include <cmath>

#include "kernels/attention/online_softmax/reference.hpp"
#include "tests/traces.hpp"

using namespace tilestep;
using namespace tilestep::online_softmax;
using tests::test_device, tests::unwatched;

namespace {

const tests::Runs runs(lesson(), knob_table(), trace_from_json);

/// A device for each way of ordering threads; runs take turns.
simt::Device& next_device() {
  static const std::unique_ptr<simt::Device> devices[] = {
      test_device(), test_device(simt::ThreadOrder::descending),
      test_device(simt::ThreadOrder::shuffled, 1), test_device(simt::ThreadOrder::shuffled, 2)};
  static std::size_t turn = 0;
  return *devices[turn++ % std::size(devices)];
}

}  // namespace

TEST_CASE("the kernel agrees with the reference over shapes", "[online_softmax]") {
  for (const int keys : {1, 2, 3, 7, 16, 33, 100, 257, 1000}) {
    for (const int tile_width : {1, 3, 4, 32, 1000, 1024}) {
      for (const int head_dim : {1, 2, 64, 128}) {
        if (tests::kFewShapes && (keys > 100 || head_dim > 2)) continue;
        for (const Accumulator accumulator : all_of<Accumulator>()) {
          tests::held_run(runs,
                          {.preset = Preset::random,
                           .keys = keys,
                           .tile_width = tile_width,
                           .head_dim = head_dim,
                           .accumulator = accumulator,
                           .queries = 2,
                           .query = 1},
                          next_device());
        }
      }
    }
  }
}

TEST_CASE("the kernel agrees with the reference over presets", "[online_softmax]") {
  for (const Preset preset : all_of<Preset>()) {
    for (const Accumulator accumulator : all_of<Accumulator>()) {
      for (const int keys : {1, 16, 33, 257}) {
        if (tests::kFewShapes && keys > 33) continue;
        for (const int tile_width : {1, 4, 32}) {
          for (const bool skip : {false, true}) {
            tests::held_run(runs,
                            {.preset = preset,
                             .keys = keys,
                             .tile_width = tile_width,
                             .head_dim = 2,
                             .accumulator = accumulator,
                             .skip_rescale = skip,
                             .queries = 3,
                             .query = keys % 3},
                            next_device());
          }
        }
      }
    }
  }
}

TEST_CASE("the order of threads changes no bit", "[online_softmax]") {
  const Params params{.preset = Preset::random,
                      .keys = 300,
                      .tile_width = 70,
                      .head_dim = 40,
                      .accumulator = GENERATE(Accumulator::fp32, Accumulator::fp16)};
  const nlohmann::json expected = runs(params).trace;
  tests::in_other_orders(
      8, [&](simt::Device& device) { CHECK(runs(params, device).trace == expected); });
}

TEST_CASE("the reference is the plain formula", "[online_softmax]") {
  const Params params{.preset = GENERATE(Preset::worked_example, Preset::random, Preset::rising),
                      .keys = 50,
                      .tile_width = 7};
  const Inputs inputs = make_inputs(params, unwatched);
  const auto row = std::span(inputs.scores).first(50);
  const auto states = reference_prefixes(params, row, inputs.values);
  REQUIRE(states.size() == 8);
  for (std::size_t t = 0; t < states.size(); ++t) {
    // These scores are small enough for exp to be taken as it stands.
    long double numerator = 0;
    long double denominator = 0;
    for (std::size_t j = 0; j < std::min<std::size_t>(50, 7 * (t + 1)); ++j) {
      const long double weight = std::exp(static_cast<long double>(row[j]));
      numerator += weight * static_cast<long double>(inputs.values[j]);
      denominator += weight;
    }
    CHECK(states[t].output == Approx(static_cast<double>(numerator / denominator)).epsilon(1e-12));
    CHECK(states[t].l * std::exp(states[t].m) ==
          Approx(static_cast<double>(denominator)).epsilon(1e-12));
  }
}

TEST_CASE("tolerances are tight enough to catch a wrong kernel", "[online_softmax]") {
  Params params{.preset = Preset::random, .keys = 1000, .tile_width = 16};
  const Inputs inputs = make_inputs(params, unwatched);
  const auto row = std::span(inputs.scores).first(1000);
  const auto sound = reference_prefixes(params, row, inputs.values);
  CHECK(sound.back().output_bound < 2e-3);  // values go up to 20
  params.skip_rescale = true;
  const auto broken = reference_prefixes(params, row, inputs.values);
  CHECK(std::abs(sound.back().output - broken.back().output) > 10 * sound.back().output_bound);
}

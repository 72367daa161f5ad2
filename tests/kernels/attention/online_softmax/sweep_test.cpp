#include <cmath>

#include "kernels/attention/online_softmax/reference.hpp"
#include "tests/kernels/attention/online_softmax/support.hpp"

using namespace tilestep;
using namespace tilestep::online_softmax;
using tilestep::tests::run_softmax;
using tilestep::tests::test_device;

namespace {

constexpr Preset kPresets[] = {Preset::worked_example, Preset::random,    Preset::rising,
                               Preset::falling,        Preset::equal,     Preset::outlier,
                               Preset::masked,         Preset::all_masked};
constexpr Accumulator kAccumulators[] = {Accumulator::fp32, Accumulator::fp16, Accumulator::bf16};

/// A device for each way of ordering threads; runs take turns.
class Devices {
 public:
  simt::Device& next() { return *devices_[turn_++ % std::size(devices_)]; }

 private:
  std::unique_ptr<simt::Device> devices_[4] = {
      test_device(), test_device(simt::ThreadOrder::descending),
      test_device(simt::ThreadOrder::shuffled, 1), test_device(simt::ThreadOrder::shuffled, 2)};
  std::size_t turn_ = 0;
};

std::string describe(const Params& p) {
  return std::string(name_of(p.preset)) + " keys " + std::to_string(p.keys) + " tile " +
         std::to_string(p.tile_width) + " head_dim " + std::to_string(p.head_dim) + " " +
         std::string(name_of(p.accumulator));
}

/// Every check of the report, so that a failure says which and where.
void require_good(const lab::Report& report, const Params& params) {
  for (const lab::Check& check : report.checks) {
    INFO(describe(params) << ": " << check.id << " off by " << check.max_error << ", tolerance "
                          << check.tolerance << "; " << check.detail);
    if (!check.ok) FAIL();
  }
}

}  // namespace

TEST_CASE("the kernel agrees with the reference over shapes", "[online_softmax]") {
  Devices devices;
  for (const int keys : {1, 2, 3, 7, 16, 33, 100, 257, 1000}) {
    for (const int tile_width : {1, 3, 4, 32, 1000, 1024}) {
      for (const int head_dim : {1, 2, 64, 128}) {
        if (tests::kFewShapes && (keys > 100 || head_dim > 2)) continue;
        for (const Accumulator accumulator : kAccumulators) {
          Params params;
          params.preset = Preset::random;
          params.keys = keys;
          params.tile_width = tile_width;
          params.head_dim = head_dim;
          params.accumulator = accumulator;
          params.queries = 2;
          params.query = 1;
          params.component = head_dim - 1;
          require_good(run_softmax(devices.next(), params), params);
        }
      }
    }
  }
  SUCCEED("all shapes agree");
}

TEST_CASE("the kernel agrees with the reference over presets", "[online_softmax]") {
  Devices devices;
  for (const Preset preset : kPresets) {
    for (const Accumulator accumulator : kAccumulators) {
      for (const int keys : {1, 16, 33, 257}) {
        if (tests::kFewShapes && keys > 33) continue;
        for (const int tile_width : {1, 4, 32}) {
          for (const bool skip : {false, true}) {
            Params params;
            params.preset = preset;
            params.keys = keys;
            params.tile_width = tile_width;
            params.head_dim = 2;
            params.accumulator = accumulator;
            params.skip_rescale = skip;
            params.queries = 3;
            params.query = keys % 3;
            require_good(run_softmax(devices.next(), params), params);
          }
        }
      }
    }
  }
  SUCCEED("all presets agree");
}

TEST_CASE("the order of threads changes no bit", "[online_softmax]") {
  Params params;
  params.preset = Preset::random;
  params.keys = 300;
  params.tile_width = 70;
  params.head_dim = 40;
  params.component = 39;
  params.accumulator = GENERATE(Accumulator::fp32, Accumulator::fp16);
  const auto ascending = test_device();
  const nlohmann::json expected = run_softmax(*ascending, params).trace;
  const auto descending = test_device(simt::ThreadOrder::descending);
  CHECK(run_softmax(*descending, params).trace == expected);
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const auto shuffled = test_device(simt::ThreadOrder::shuffled, seed);
    INFO("seed " << seed);
    CHECK(run_softmax(*shuffled, params).trace == expected);
  }
}

TEST_CASE("the reference is the plain formula", "[online_softmax]") {
  Params params;
  params.preset = GENERATE(Preset::worked_example, Preset::random, Preset::rising);
  params.keys = 50;
  params.tile_width = 7;
  lab::NoProgress progress;
  const Inputs inputs = make_inputs(params, progress);
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
  Params params;
  params.preset = Preset::random;
  params.keys = 1000;
  params.tile_width = 16;
  lab::NoProgress progress;
  const Inputs inputs = make_inputs(params, progress);
  const auto row = std::span(inputs.scores).first(1000);
  const auto sound = reference_prefixes(params, row, inputs.values);
  CHECK(sound.back().output_bound < 2e-3);  // values go up to 20
  params.skip_rescale = true;
  const auto broken = reference_prefixes(params, row, inputs.values);
  CHECK(std::abs(sound.back().output - broken.back().output) > 10 * sound.back().output_bound);
}

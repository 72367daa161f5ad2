// The reference against what it says of itself: slopes by random directions, and a few answers by hand.

#include <cmath>
#include <limits>
#include <random>

#include "kernels/attention/flash_attention/run/explained.hpp"
#include "kernels/attention/shared/weights.hpp"
#include "kernels/base/lab/random.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::flash_attention;

namespace {

std::vector<double> random_numbers(std::mt19937& generator, std::size_t count) {
  std::vector<double> numbers(count);
  for (double& number : numbers) number = 2 * lab::uniform(generator) - 1;
  return numbers;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<double> moved(const std::vector<double>& from, const std::vector<double>& direction,
                          double by) {
  std::vector<double> to = from;
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += by * direction[i];
  return to;
}

/// Σ dO ∘ O along a direction in all of Q, K and V, by a central difference against the gradients.
void check_slopes(const Params& params) {
  constexpr double kStep = 1e-4;  // its square times a third derivative is far below the tolerance
  const Task task = task_of(params);
  const Numbers at = numbers_of(make_inputs(params));
  std::mt19937 generator = lab::generator_of(params.seed + 100);
  const std::vector<double> d_output = random_numbers(generator, at.q.size());
  const Gradients gradients = reference_backward(task, at, d_output);
  for (const int which : {0, 1, 2, 3}) {
    const auto direction = [&](const std::vector<double>& like, int number) {
      std::vector<double> d = random_numbers(generator, like.size());
      if (which != 3 && which != number) d.assign(d.size(), 0.0);
      return d;
    };
    const std::vector<double> u = direction(at.q, 0), v = direction(at.k, 1),
                              w = direction(at.v, 2);
    const auto value = [&](double by) {
      return dot(d_output, exact_output(task, {moved(at.q, u, by), moved(at.k, v, by),
                                               moved(at.v, w, by), at.begins}));
    };
    const double want = (value(kStep) - value(-kStep)) / (2 * kStep);
    const double got = dot(gradients.dq, u) + dot(gradients.dk, v) + dot(gradients.dv, w);
    CAPTURE(which, std::string(name_of(params.mask)), std::string(name_of(params.score_mod)),
            params.seq);
    CHECK(got == Approx(want).epsilon(1e-5).margin(1e-6));
  }
}

}  // namespace

TEST_CASE("ALiBi takes the published slope times the distance, on either side",
          "[flash_attention]") {
  // Press, Smith, Lewis (arXiv:2108.12409): for 8 heads 1/2 … 1/256; 12 heads have these and four between.
  Task task;
  task.mod = ScoreMod::alibi;
  task.head_dim = 64;
  const auto taken = [&](int heads, int head, int query, int key) {
    task.heads = heads;
    return -score_of(task, head, query, key, {0, 0}).value;
  };
  CHECK(taken(8, 0, 3, 1) == 2 * 0.5);
  CHECK(taken(8, 7, 3, 1) == 2.0 / 256);
  CHECK(taken(12, 7, 3, 1) == 2.0 / 256);
  CHECK(taken(12, 8, 0, 1) == Approx(std::exp2(-0.5)));
  CHECK(taken(12, 11, 0, 1) == Approx(std::exp2(-3.5)));
  CHECK(taken(8, 0, 1, 3) == taken(8, 0, 3, 1));  // where a mask shows later keys, too
}

TEST_CASE("the reference's gradients are the slopes of its output", "[flash_attention]") {
  int turn = 0;
  for (const Mask mask : all_of<Mask>()) {
    for (const ScoreMod mod : all_of<ScoreMod>()) {
      Params params;
      constexpr int kShort[] = {1, 2, 17, 33, 64};
      params.seq = kShort[turn % 5];
      params.mask = mask;
      params.score_mod = mod;
      params.heads = 4;
      params.kv_heads = 1 << turn % 3;
      params.window = turn % 4 == 3 ? 0 : 9;
      params.sinks = turn % 2 * 3;
      params.data = turn % 2 == 0 ? Data::random : Data::outliers;
      params.seed = ++turn;
      check_slopes(params);
    }
  }
}

TEST_CASE("one key is copied, none gives zeros", "[flash_attention]") {
  Params params;
  params.seq = 3;
  params.mask = Mask::causal;
  const Inputs inputs = make_inputs(params);
  lab::NoProgress unwatched;
  const Roundings roundings = roundings_of(Variant::flash_2);
  const Reference one = reference_forward(task_of(params), inputs, roundings, unwatched);
  for (std::size_t c = 0; c < 32; ++c) {
    CHECK(one.o.value[c] == static_cast<double>(inputs.v[c]));
  }
  params.mask = Mask::sliding_window;
  params.window = 0;
  const Reference none = reference_forward(task_of(params), inputs, roundings, unwatched);
  for (std::size_t i = 0; i < none.o.value.size(); ++i) {
    CHECK(none.o.value[i] == 0);
    CHECK(none.o.bound[i] == 0);
  }
  CHECK(none.lse.value[2] == -std::numeric_limits<double>::infinity());
}

TEST_CASE("documents fill the length", "[flash_attention]") {
  for (const int length : {1, 2, 5, 128, 257}) {
    for (std::int64_t seed = 0; seed < 5; ++seed) {
      const std::vector<int> lengths = document_lengths(length, seed);
      const std::vector<int> begins = begins_of(lengths);
      CHECK(static_cast<int>(begins.size()) == length);
      for (std::size_t q = 0; q < begins.size(); ++q) {
        CHECK(begins[q] <= static_cast<int>(q));
        CHECK((q == 0 || begins[q] == begins[q - 1] || begins[q] == static_cast<int>(q)));
      }
    }
  }
}

TEST_CASE("outliers are of channels of K, in all rows", "[flash_attention]") {
  Params params;
  params.seq = 64;
  params.head_dim = HeadDim::d64;
  params.data = Data::outliers;
  const Inputs inputs = make_inputs(params);
  int far = 0;
  for (std::size_t channel = 0; channel < 64; ++channel) {
    double mean = 0;
    for (std::size_t row = 0; row < 64; ++row)
      mean += static_cast<double>(inputs.k[row * 64 + channel]) / 64;
    far += std::abs(mean) > 3;
  }
  CHECK(far >= 1);
  CHECK(far <= 4);
}

// Rates of the methods against what their papers say, and whole numbers that wrap against double.

#include "kernels/attention/positions/method.hpp"

#include <cmath>
#include <numbers>

#include "kernels/attention/positions/kernels.hpp"
#include "tests/catch.hpp"

using namespace tilestep::positions;

namespace {

constexpr double kTurn = 2 * std::numbers::pi;

}  // namespace

TEST_CASE("Positions: plain pairs turn by base^(-2i/dim) radians per token", "[positions]") {
  for (const int dim : {16, 32, 64, 128, 256}) {
    for (const double base : {100.0, 10000.0, 500000.0}) {
      const auto turns = turns_of({.base = base, .dim = dim});
      REQUIRE(turns.size() == static_cast<std::size_t>(dim / 2));
      for (int i = 0; i < dim / 2; ++i)
        CHECK(kTurn * turns[static_cast<std::size_t>(i)] == Approx(std::pow(base, -2.0 * i / dim)));
    }
  }
}

TEST_CASE("Positions: each way to stretch keeps or divides the rates that it says", "[positions]") {
  const auto with = [](Method method) {
    return turns_of({.method = method, .scale = 8, .trained_length = 4096, .dim = 128});
  };
  const auto rope = with(Method::rope), linear = with(Method::linear), ntk = with(Method::ntk),
             yarn = with(Method::yarn);
  int kept = 0, divided = 0, between = 0;
  for (std::size_t i = 0; i < rope.size(); ++i) {
    CHECK(linear[i] == Approx(rope[i] / 8));
    const double seen = 4096 * rope[i];
    const double share = yarn[i] / rope[i];
    CHECK(share >= Approx(1.0 / 8));
    CHECK(share <= Approx(1.0));
    if (seen >= kManyTurns) {
      CHECK(share == Approx(1.0));
      ++kept;
    } else if (seen <= kFewTurns) {
      CHECK(share == Approx(1.0 / 8));
      ++divided;
    } else {
      ++between;
    }
  }
  CHECK(kept > 10);
  CHECK(divided > 10);
  CHECK(between > 5);
  // NTK: the fastest pair as it was, the slowest divided by the whole scale.
  CHECK(ntk.front() == Approx(rope.front()));
  CHECK(ntk.back() == Approx(rope.back() / 8));
  CHECK(turns_of({.method = Method::nope}).back() == 0);
  CHECK(turns_of({.method = Method::alibi}).front() == 0);
  CHECK(size_of({.method = Method::yarn, .scale = 8}) == Approx(0.1 * std::log(8.0) + 1));
  CHECK(size_of({.method = Method::ntk, .scale = 8}) == 1);
}

TEST_CASE("Positions: a wrapping product is the part of a turn that is left", "[positions]") {
  for (const Method method : {Method::rope, Method::yarn, Method::ntk}) {
    const Turning turning{.method = method, .dim = 128};
    const auto turns = turns_of(turning);
    const auto rates = rates_of(turning);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      for (const int position : {0, 1, 2047, 65537, 1000003, kMostPosition}) {
        const double left =
            static_cast<double>(rates[i] * static_cast<std::uint64_t>(position)) * 0x1p-64;
        const long double whole = static_cast<long double>(position) * turns[i];
        const auto exact = static_cast<double>(whole - std::floor(whole));
        double error = std::abs(left - exact);
        error = std::min(error, 1 - error);
        CHECK(error < 1e-9);
      }
    }
  }
}

TEST_CASE("Positions: each number of a head is in one pair", "[positions]") {
  for (const Pairs pairs : {Pairs::interleaved, Pairs::half_split}) {
    std::vector<int> seen(32);
    for (int pair = 0; pair < 16; ++pair) {
      for (const int which : {0, 1}) {
        const int number = number_of(pairs, 32, pair, which);
        CHECK(pair_with(pairs, 32, number) == pair);
        ++seen[static_cast<std::size_t>(number)];
      }
    }
    CHECK(seen == std::vector<int>(32, 1));
  }
  CHECK(number_of(Pairs::interleaved, 32, 3, 1) == 7);
  CHECK(number_of(Pairs::half_split, 32, 3, 1) == 19);
}

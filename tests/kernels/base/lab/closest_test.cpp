#include "kernels/base/lab/closest.hpp"

#include <cmath>
#include <limits>

#include "kernels/base/lab/timing.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::lab;

TEST_CASE("the comparison closest to its own bound is remembered", "[lab]") {
  Closest closest;
  REQUIRE_FALSE(closest.any());
  closest.add(1.0, 1.5, 10, [] { return "far from its bound"; });
  closest.add(2.0, 2.1, 0.2, [] { return "half way"; });
  closest.add(3.0, 3.0, 0, [] { return "equal"; });
  REQUIRE(closest.ok());
  REQUIRE(closest.error() == Approx(0.1));
  REQUIRE(closest.bound() == 0.2);
  REQUIRE(closest.where() == "half way");
  const Check check = closest.check("sums", "first order");
  REQUIRE(check.id == "sums");
  REQUIRE(check.ok);
  REQUIRE(check.tolerance == 0.2);
}

TEST_CASE("what is past its bound counts before all that is not", "[lab]") {
  Closest closest;
  closest.add(1.0, 1.9, 1);
  closest.add(1.0, 1.1, 0.09);
  REQUIRE_FALSE(closest.ok());
  REQUIRE(closest.error() == Approx(0.1));
  closest.add(1.0, 1.99, 1);
  REQUIRE(closest.error() == Approx(0.1));

  Closest all;
  all.add(5, 5, 1);
  all.add(closest);
  all.add(Closest{});
  REQUIRE_FALSE(all.ok());
  REQUIRE(all.bound() == 0.09);
}

TEST_CASE("arrays are compared element by element, each against its own bound", "[lab]") {
  const Closest closest =
      compared(std::vector<float>{1, 2.5f}, std::vector<double>{1.5, 2}, {1, 0.25});
  CHECK_FALSE(closest.ok());
  CHECK(closest.error() == 0.5);
  CHECK(closest.bound() == 0.25);
}

TEST_CASE("NaN and lone infinities are past any bound, equal infinities are equal", "[lab]") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Closest closest;
  closest.add(-kInfinity, -kInfinity, 0);
  REQUIRE(closest.ok());
  REQUIRE(closest.error() == 0);
  closest.add(kInfinity, 1, 1e300);
  REQUIRE_FALSE(closest.ok());
  Closest nan;
  nan.add(std::nan(""), 1, 1e300);
  REQUIRE_FALSE(nan.ok());
  REQUIRE(std::isinf(nan.error()));
}

TEST_CASE("each maker of measurements says where its number comes from", "[lab]") {
  REQUIRE(counted("dram_bytes", "naive", 3, "MB", "one launch").provenance == Provenance::counted);
  REQUIRE(traced("loads", "naive", 3, "", "").provenance == Provenance::traced);
  REQUIRE(derived("ratio", "naive", 3, "", "").provenance == Provenance::derived);
  const Measurement timed = measured("rate", "naive", {2, 1, 3, 20}, "GB/s", "4096");
  REQUIRE(timed.provenance == Provenance::measured);
  REQUIRE(timed.p10 == 1.0);
  REQUIRE(timed.samples == 20);
  REQUIRE_FALSE(timed.stable());
}

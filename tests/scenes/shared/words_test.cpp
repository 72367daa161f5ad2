#include "scenes/shared/words.hpp"

#include <cmath>

#include "tests/catch.hpp"

using namespace tilestep::scenes;

TEST_CASE("a formula is said with what the kernel has, true or not", "[scenes_shared]") {
  const auto two = [](double value) { return words::number(value, 2); };
  CHECK(words::equation("ℓ", "2 × 0.5 + 3", 4, 4, two) == "ℓ = 2 × 0.5 + 3 = 4.00");
  CHECK(words::equation("ℓ", "256 + 1", 257, 256, two) == "ℓ = 256 + 1 ≈ 256.00");
  CHECK(words::equation("ℓ", "2 × 0.5 + 3", 4, 5, two) == "ℓ = 5.00 ≠ 2 × 0.5 + 3");
  CHECK(words::close(0.001, 0.0, 10));
  CHECK_FALSE(words::close(0.001, 0.0));
  CHECK_FALSE(words::close(std::nan(""), 1));
  CHECK(words::close(-INFINITY, -INFINITY));
  CHECK_FALSE(words::close(-INFINITY, 1));
}

TEST_CASE("counted words", "[scenes_shared]") {
  CHECK(words::counted(1, "tile") == "1 tile");
  CHECK(words::counted(0, "tile") == "0 tiles");
  CHECK(words::counted(4, "tile") == "4 tiles");
  CHECK(words::counted(2, "half", "halves") == "2 halves");
  CHECK(words::times(1) == "once");
  CHECK(words::times(2) == "twice");
  CHECK(words::times(3) == "3 times");
  CHECK(words::verb(1, "wait") == "waits");
  CHECK(words::verb(2, "wait") == "wait");
  CHECK(words::joined({}).empty());
  CHECK(words::joined({"a"}) == "a");
  CHECK(words::joined({"a", "b"}) == "a and b");
  CHECK(words::joined({"a", "b", "c"}) == "a, b and c");
}

TEST_CASE("percents are never rounded to all or to nothing", "[scenes_shared]") {
  CHECK(words::percent(0) == "0 %");
  CHECK(words::percent(1) == "100 %");
  CHECK(words::percent(0.64) == "64 %");
  CHECK(words::percent(0.034) == "3.4 %");
  CHECK(words::percent(0.9997) == "99.97 %");
  CHECK(words::percent(0.0004) == "0.04 %");
}

TEST_CASE("numbers keep their sign, their zeros and their size", "[scenes_shared]") {
  CHECK(words::number(1.25, 1) == "1.2");
  CHECK(words::number(-1.5, 1) == "−1.5");
  CHECK(words::number(-0.0, 2) == "0.00");
  CHECK(words::number(4.5e-5, 2) == "4.5e−5");
  CHECK(words::number(2e7, 2) == "2.0e7");
  CHECK(words::number(INFINITY, 2) == "∞");
  CHECK(words::number(-INFINITY, 2) == "−∞");
  CHECK(words::number(NAN, 2) == "NaN");
  CHECK(words::significant(63.8865, 4) == "63.89");
  CHECK(words::significant(2.0, 6) == "2");
  CHECK(words::significant(1.5e-7, 4) == "1.500·10⁻⁷");
  CHECK(words::raised(-12) == "⁻¹²");
}

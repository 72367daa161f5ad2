#include "kernels/base/lab/meant.hpp"

#include "tests/catch.hpp"

using tilestep::lab::meant;

TEST_CASE("a word that is nearly a name says which was meant", "[lab]") {
  const std::vector<std::string> names = {"coalescing", "tiling", "online-softmax",
                                          "flash-attention", "attention-backward"};
  CHECK(meant("softmax", names) == "online-softmax");
  CHECK(meant("colaescing", names) == "coalescing");
  CHECK(meant("tilling", names) == "tiling");
  CHECK(meant("online-sofmax", names) == "online-softmax");
  CHECK(meant("flashattention", names) == "flash-attention");
  CHECK(meant("attention", names).empty());  // a word of two
  CHECK(meant("decode", names).empty());
  CHECK(meant("t", names).empty());
  CHECK(meant("", names).empty());
  CHECK(meant("tiling", {}).empty());
}

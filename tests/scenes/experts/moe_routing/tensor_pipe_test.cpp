#include <cmath>

#include "kernels/base/lab/recording.hpp"
#include "scenes/experts/moe_routing/scene.hpp"
#include "tests/scenes/shown.hpp"

using namespace tilestep;

// Counted once on a GPU: a number of another scheme or routing would be a wrong one.
TEST_CASE("the tensor pipe is that of the scheme and routing shown", "[moe_routing_scene]") {
  if (lab::recording("moe-routing") == nullptr) return;
  const lab::Report& bench = lab::recording("moe-routing")->bench;
  tests::Shown<scenes::MoeRoutingScene> scene;
  const auto shown = [&](const std::string& scheme, const std::string& routing) {
    scene.run({{"scheme", scheme}, {"routing", routing}});
    return scene.readouts({moe_routing::kSteps, 0}).at("tensor_pipe").value;
  };
  for (const char* scheme : {"padded-to-capacity", "tile-padded", "packed"}) {
    for (const char* routing : {"balanced", "skewed"}) {
      CAPTURE(scheme, routing);
      const std::string variant =
          std::string(scheme) + ", " + routing + (routing[0] == 's' ? " 1" : "");
      const lab::Measurement* recorded = bench.measurement("tensor_pipe", variant);
      REQUIRE(recorded != nullptr);
      CHECK(shown(scheme, routing) == std::to_string(std::lround(recorded->value)) + " %");
    }
    CHECK(shown(scheme, "random") == "—");
    CHECK(shown(scheme, "one-hot") == "—");
  }
}

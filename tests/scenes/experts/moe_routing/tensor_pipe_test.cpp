#include <fmt/format.h>

#include "kernels/base/lab/recording.hpp"
#include "scenes/experts/moe_routing/scene.hpp"
#include "tests/scenes/shown.hpp"

using namespace tilestep;

// Counted once on a GPU: the large product of the bench keeps the pipe busy for 80 to 90 % of its time,
// the picture's small one for a thousandth of that.
TEST_CASE("the tensor pipe is that of this very product", "[moe_routing_scene]") {
  const lab::Recording* recording = lab::recording("moe-routing");
  if (recording == nullptr) return;
  const lab::Measurement* counted = recording->run.measurement("tensor_pipe");
  REQUIRE(counted != nullptr);
  REQUIRE(counted->value < 1);
  tests::Shown<scenes::MoeRoutingScene> scene;
  const auto shown = [&](const lab::Settings& settings) {
    scene.run(settings);
    return scene.readouts({moe_routing::kSteps, 0}).at("tensor_pipe").value;
  };
  CHECK(shown(recording->run.params) == fmt::format("{:.2f} %", counted->value));
  const lab::Knobs& knobs = lesson("moe-routing").knobs();
  for (const char* scheme : {"padded-to-capacity", "tile-padded", "packed"}) {
    for (const char* routing : {"balanced", "skewed", "random", "one-hot"}) {
      CAPTURE(scheme, routing);
      const lab::Settings settings = {{"scheme", scheme}, {"routing", routing}};
      const lab::Report* then = lab::recorded_run("moe-routing", [&](const lab::Report& run) {
        return knobs.completed(run.params) == knobs.completed(settings);
      });
      CHECK(shown(settings) ==
            (then == nullptr ? std::string("—")
                             : fmt::format("{:.2f} %", then->measurement("tensor_pipe")->value)));
    }
  }
  CHECK(shown({{"tokens", std::int64_t{8192}}, {"experts", std::int64_t{8}}}) == "—");
}

TEST_CASE("a dash says for what a number was recorded", "[moe_routing_scene]") {
  if (lab::recording("moe-routing") == nullptr) return;
  tests::Shown<scenes::MoeRoutingScene> scene(lab::Settings{{"experts", std::int64_t{8}}});
  const scenes::View view{{moe_routing::kSteps, 0}};
  for (const scenes::Readout& readout : scene->readouts(view)) {
    if (readout.id != "tensor_pipe") continue;
    int runs = 0;
    lab::recorded_run("moe-routing", [&](const lab::Report&) { return ++runs, false; });
    CHECK(readout.detail ==
          (runs == 1 ? "The emulator has no tensor pipe. Recorded only for experts = 4."
                     : "The emulator has no tensor pipe. Not recorded for these settings; nearest: "
                       "experts = 4."));
    return;
  }
  FAIL("no readout tensor_pipe");
}

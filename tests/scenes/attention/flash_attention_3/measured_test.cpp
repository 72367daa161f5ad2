// What is asked about a bench of attention on Hopper: only what its tables have, and with their numbers, which are made
// up here.
#include "scenes/shared/measured.hpp"

#include "scenes/attention/flash_attention_3/scene.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using lab::column, lab::real, lab::whole;

TEST_CASE("FlashAttention-3: questions about a bench have its numbers",
          "[flash_attention_3_scene]") {
  lab::Table ladder{"ladder_measured",
                    "",
                    {"rung", whole("head_dim", ""), column("mask", ""), whole("length", ""),
                     real("tflops", "", "TFLOP/s", 2), real("fraction", "", "", 3)}};
  ladder.add({"flash-2", 128, "none", 16384, 300.0, 0.5});
  ladder.add({"flash-3-tma", 128, "none", 16384, 510.0, 0.8});
  ladder.add({"flash-3", 128, "none", 16384, 600.0, 0.95});
  lab::Table pipes{"pipes", "", {"rung", whole("head_dim", ""), real("exp_pipe", "", "%", 1)}};
  pipes.add({"flash-3", 64, 62.0});
  pipes.add({"flash-3", 128, 34.0});
  const tests::MadeUpBench<scenes::FlashAttention3Scene> bench({ladder, pipes});
  CHECK(bench.answer("hopper") == "1.7×");
  CHECK(bench.answer("exponentials") == "62 %");
  CHECK(bench.answer("library") == "90 to 100 %");
}

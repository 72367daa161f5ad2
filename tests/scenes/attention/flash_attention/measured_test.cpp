// What is asked about a bench of the lesson on attention: only what its tables have, and with their numbers. The
// numbers here are made up.
#include "scenes/shared/measured.hpp"

#include "scenes/attention/flash_attention/scene.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using lab::column, lab::real, lab::whole;
using Bench = tests::MadeUpBench<scenes::FlashAttentionScene>;

namespace {

lab::Table ladder() {
  lab::Table table{"ladder_measured",
                   "",
                   {"rung", whole("head_dim", ""), column("mask", ""), whole("length", ""),
                    real("tflops", "", "TFLOP/s", 2), real("fraction", "", "", 3)}};
  table.add({"naive", 128, "none", 4096, 50.0, 0.1});
  table.add({"flash-1", 128, "none", 4096, 20.0, 0.04});
  table.add({"flash-2", 128, "none", 4096, 300.0, 0.5});
  table.add({"flash-2", 128, "causal", 4096, 250.0, 0.5});
  return table;
}

}  // namespace

TEST_CASE("FlashAttention: questions about a bench have its numbers", "[flash_attention_scene]") {
  const Bench rates({ladder()});
  CHECK(rates.answer("stored") == "6.0×");
  CHECK(rates.answer("loops") == "15×");
  CHECK(rates.answer("causal-gain") == "not asked");

  lab::Table causal{
      "causal", "", {"rung", whole("head_dim", ""), whole("length", ""), real("ratio", "", "", 2)}};
  causal.add({"flash-2", 128, 1024, 1.4});
  causal.add({"flash-2", 128, 16384, 1.9});
  CHECK(Bench({causal}).answer("causal-gain") == "1.4×");

  lab::Table bytes{"bytes", "", {"rung", whole("head_dim", ""), real("dram", "", "MB", 1)}};
  bytes.add({"naive", 128, 9000.0});
  bytes.add({"flash-2", 128, 150.0});
  CHECK(Bench({bytes}).answer("dram") == "60×");
}

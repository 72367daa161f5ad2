// What is asked about a bench of the lesson on attention: only what its tables have, and with their numbers. The
// numbers here are made up.
#include "scenes/shared/measured.hpp"

#include <algorithm>

#include "kernels/base/lab/report.hpp"
#include "scenes/attention/flash_attention/scene.hpp"
#include "scenes/shared/questions.hpp"
#include "tests/scenes/shown.hpp"

using namespace tilestep;
using lab::column, lab::real, lab::whole;
using scenes::FlashAttentionScene, scenes::Question;

namespace {

lab::Report bench_of(const std::vector<lab::Table>& tables) {
  lab::Report bench;
  bench.lesson = "flash-attention";
  bench.device.name = "GPU";
  for (const lab::Table& table : tables) bench.add(table);
  return bench;
}

/// The answer to the question of a kind.
std::string answer(const lab::Report& bench, std::string_view kind) {
  FlashAttentionScene scene;
  std::vector<std::string> views;
  for (const auto& view : scene.measured_spec().views) views.push_back(view.name);
  std::string found = "not asked";
  for (const Question& question : scene.measured_questions(bench)) {
    CAPTURE(question.id);
    REQUIRE(question.masks.size() == 1);
    CHECK(std::count(views.begin(), views.end(), question.masks[0]) == 1);
    if (question.id == kind) found = scenes::answer_text(question);
  }
  return found;
}

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
  const lab::Report rates = bench_of({ladder()});
  CHECK(answer(rates, "stored") == "6.0×");
  CHECK(answer(rates, "loops") == "15×");
  CHECK(answer(rates, "causal-gain") == "not asked");

  lab::Table causal{
      "causal", "", {"rung", whole("head_dim", ""), whole("length", ""), real("ratio", "", "", 2)}};
  causal.add({"flash-2", 128, 1024, 1.4});
  causal.add({"flash-2", 128, 16384, 1.9});
  CHECK(answer(bench_of({causal}), "causal-gain") == "1.4×");

  lab::Table bytes{"bytes", "", {"rung", whole("head_dim", ""), real("dram", "", "MB", 1)}};
  bytes.add({"naive", 128, 9000.0});
  bytes.add({"flash-2", 128, 150.0});
  CHECK(answer(bench_of({bytes}), "dram") == "60×");
}

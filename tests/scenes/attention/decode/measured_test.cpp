// What is asked about a bench of the lesson on decoding: only what its tables have, and with their numbers. The numbers
// here are made up.
#include "scenes/shared/measured.hpp"

#include <algorithm>

#include "kernels/base/lab/report.hpp"
#include "scenes/attention/decode/scene.hpp"
#include "scenes/shared/questions.hpp"
#include "tests/scenes/shown.hpp"

using namespace tilestep;
using lab::column, lab::real, lab::whole;
using scenes::DecodeScene, scenes::Question;

namespace {

lab::Report bench_of(const std::vector<lab::Table>& tables) {
  lab::Report bench;
  bench.lesson = "decode";
  bench.device.name = "GPU";
  for (const lab::Table& table : tables) bench.add(table);
  return bench;
}

/// The question of a kind; without a text: not asked.
Question asked(const lab::Report& bench, std::string_view kind) {
  const DecodeScene scene;
  std::vector<std::string> views;
  for (const auto& view : scene.measured_spec().views) views.push_back(view.name);
  Question found;
  for (const Question& question : scene.measured_questions(bench)) {
    CAPTURE(question.id);
    REQUIRE(question.masks.size() == 1);
    CHECK(std::count(views.begin(), views.end(), question.masks[0]) == 1);
    if (question.id == kind) found = question;
  }
  return found;
}
std::string answer(const lab::Report& bench, std::string_view kind) {
  const Question question = asked(bench, kind);
  return question.text.empty() ? "not asked" : scenes::answer_text(question);
}

}  // namespace

TEST_CASE("Decode: questions about a bench have its numbers", "[decode_scene]") {
  lab::Table ladder{
      "ladder_measured", "", {"rung", real("time", "", "ms", 3), real("fraction", "", "", 3)}};
  ladder.add({"paged-repeat-kv", 2.0, 0.1});
  ladder.add({"paged-balanced", 0.25, 0.9});
  CHECK(answer(bench_of({ladder}), "read") == "85 to 95 %");
  CHECK(answer(bench_of({ladder}), "repeat") == "8.0×");
  CHECK(asked(bench_of({ladder}), "repeat").because.find("DRAM") == std::string::npos);
  lab::Table bytes{"bytes", "", {"rung", real("dram", "", "MB", 1)}};
  bytes.add({"paged-repeat-kv", 8000.0});
  bytes.add({"paged-balanced", 1000.0});
  CHECK(asked(bench_of({ladder, bytes}), "repeat").because.find("8000 MB in place of 1000") !=
        std::string::npos);

  lab::Table batches{
      "batches", "", {whole("batch", ""), column("rung", ""), real("bandwidth", "", "GB/s", 0)}};
  batches.add({1, "a block each", 100.0});
  batches.add({1, "equal pieces", 400.0});
  CHECK(answer(bench_of({batches}), "split") == "4.0×");

  lab::Table formats{
      "formats", "", {column("kv_dtype", ""), whole("page_size", ""), real("speedup", "", "", 2)}};
  formats.add({"fp8", 16, 1.7});
  CHECK(answer(bench_of({formats}), "format") == "not asked");
  formats.add({"int4", 16, 2.5});
  CHECK(answer(bench_of({formats}), "format") == "2.5×");

  lab::Table schemes{"schemes", "", {column("scheme", ""), real("tokens", "", "1/s", 0)}};
  schemes.add({"mha", 30000.0});
  schemes.add({"gqa", 240000.0});
  CHECK(answer(bench_of({schemes}), "sharing") == "8.0×");
}

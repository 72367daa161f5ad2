// What is asked about a bench of the lesson on a paged cache: only what its tables have, and with their numbers. The
// numbers here are made up.
#include "scenes/shared/measured.hpp"

#include <algorithm>

#include "kernels/base/lab/report.hpp"
#include "scenes/attention/paged_kv/scene.hpp"
#include "scenes/shared/questions.hpp"
#include "tests/scenes/shown.hpp"

using namespace tilestep;
using lab::column, lab::real, lab::whole;
using scenes::PagedKvScene, scenes::Question;

namespace {

lab::Report bench_of(const std::vector<lab::Table>& tables) {
  lab::Report bench;
  bench.lesson = "paged-kv";
  bench.device.name = "GPU";
  for (const lab::Table& table : tables) bench.add(table);
  return bench;
}

/// The question of a kind; without a text: not asked.
Question asked(const lab::Report& bench, std::string_view kind) {
  const PagedKvScene scene;
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

TEST_CASE("Paged cache: a question about pages has the bench's numbers", "[paged_kv_scene]") {
  CHECK(answer(bench_of({}), "page") == "not asked");
  lab::Table pages{"page_sizes", "", {whole("page_size", ""), real("bandwidth", "", "GB/s", 0)}};
  pages.add({1, 3000.0});
  pages.add({16, 4000.0});
  CHECK(answer(bench_of({pages}), "page") == "20 to 50 %");
}

TEST_CASE("Paged cache: a question about prefixes has the bench's numbers", "[paged_kv_scene]") {
  const auto prefixes = [](double each, double once) {
    lab::Table table{"prefixes",
                     "",
                     {whole("prefix"), column("rung", ""), real("dram", "", "MB", 0),
                      real("speedup", "", "", 2)}};
    table.add({4096, "a copy for each request", 1000.0, 1.0});
    table.add({4096, "stored once, read by each", 600.0, each});
    table.add({4096, "stored once, read once for several", 500.0, once});
    return bench_of({table});
  };
  CHECK(answer(prefixes(1.5, 1.2), "prefix") == "One copy, read by each request");
  CHECK(answer(prefixes(1.2, 1.5), "prefix") == "One copy, read once for eight requests");
  CHECK(answer(prefixes(1.5, 1.52), "prefix") == "No difference of more than 5 %");
  CHECK(answer(bench_of({}), "prefix") == "not asked");
}

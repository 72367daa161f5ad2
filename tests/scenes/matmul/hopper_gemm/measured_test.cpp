// What is asked about a bench of the Hopper lesson: only what its tables have, and with their numbers. The
// numbers here are made up.
#include "scenes/shared/measured.hpp"

#include <algorithm>

#include "kernels/base/lab/report.hpp"
#include "scenes/matmul/hopper_gemm/scene.hpp"
#include "scenes/shared/questions.hpp"
#include "scenes/shared/rows.hpp"
#include "tests/scenes/shown.hpp"

using namespace tilestep;
using lab::column, lab::real, lab::whole;
using scenes::HopperGemmScene, scenes::Question;

namespace {

lab::Report bench_of(const std::vector<lab::Table>& tables) {
  lab::Report bench;
  bench.lesson = "hopper-gemm";
  bench.device.name = "GPU";
  for (const lab::Table& table : tables) bench.add(table);
  return bench;
}

/// The question of a kind; null: it is not asked.
std::optional<Question> asked(const lab::Report& bench, std::string_view kind) {
  HopperGemmScene scene;
  scene.load(tests::report_of("hopper-gemm"));
  std::optional<Question> found;
  std::vector<std::string> views;
  for (const auto& view : scene.measured_spec().views) views.push_back(view.name);
  for (const Question& question : scene.measured_questions(bench)) {
    CAPTURE(question.id);
    REQUIRE(question.masks.size() == 1);
    CHECK(std::count(views.begin(), views.end(), question.masks[0]) == 1);
    if (question.id == kind) found = question;
  }
  return found;
}
std::string answer(const std::optional<Question>& question) {
  return question ? scenes::answer_text(*question) : "not asked";
}

lab::Table instructions(double fed) {
  lab::Table table{"instruction_roofs",
                   "",
                   {"tile", real("cycles", "", "cycles", 1), real("fed", "", "cycles", 1)}};
  table.add({"64x64", 32.0, fed});
  table.add({"64x256", 128.0, 128.0});
  return table;
}
lab::Table conflicts(bool counted) {
  lab::Table table{"conflicts",
                   "",
                   {column("access", ""), whole("row_bytes", "", "B"), column("layout", ""),
                    whole("derived", ""), real("traced", "", "", 2), real("counted", "", "", 2)}};
  const auto cell = [&](double value) { return counted ? lab::Cell(value) : lab::Cell(); };
  table.add({"stmatrix", 128, "plain", 8, 8.0, cell(9.0)});
  table.add({"ldmatrix", 64, "plain", 4, 4.0, cell(4.0)});
  table.add({"ldmatrix", 128, "plain", 8, 8.0, cell(7.0)});
  table.add({"ldmatrix", 128, "swizzled", 1, 1.0, cell(1.0)});
  return table;
}
lab::Table store_passes() {
  lab::Table table{"store_conflicts",
                   "",
                   {column("layout", ""), whole("wavefronts", ""), whole("conflicts", "")}};
  table.add({"swizzled", 200.0, 3.0});
  table.add({"plain", 1500.0, 1300.0});
  return table;
}
lab::Table ladder(double old, double one_stage) {
  lab::Table table{
      "ladder_measured", "", {"rung", column("size", ""), real("tflops", "", "TFLOP/s", 2)}};
  table.add({"mma-sync", "8192³", old});
  table.add({"wgmma", "8192³", one_stage});
  return table;
}

}  // namespace

TEST_CASE("Hopper GEMM: what a bench does not have is not asked", "[hopper_gemm_scene]") {
  HopperGemmScene scene;
  scene.load(tests::report_of("hopper-gemm"));
  CHECK(scene.measured_questions(bench_of({})).empty());
  lab::Table roofs = instructions(40);
  roofs.columns.pop_back();
  for (auto& row : roofs.rows) row.pop_back();
  CHECK(answer(asked(bench_of({roofs}), "fed")) == "not asked");
  // Fed as fast as what stays: there is nothing to guess.
  CHECK(answer(asked(bench_of({instructions(32.2)}), "fed")) == "not asked");
}

TEST_CASE("Hopper GEMM: questions about a bench have its numbers", "[hopper_gemm_scene]") {
  CHECK(answer(asked(bench_of({instructions(51)}), "fed")) == "51 cycles");
  CHECK(answer(asked(bench_of({store_passes()}), "conflicts")) == "7.5×");
  CHECK(answer(asked(bench_of({ladder(240, 190)}), "older")) == "mma-sync");
  CHECK(answer(asked(bench_of({ladder(190, 240)}), "older")) == "wgmma");
  CHECK(answer(asked(bench_of({ladder(200, 198)}), "older")).find("Neither") == 0);

  lab::Table data{"data", "", {column("data", ""), real("tflops", "", "TFLOP/s", 2)}};
  data.add({"random", 600.0});
  data.add({"zeros", 780.0});
  CHECK(answer(asked(bench_of({data}), "data")) == "1.3×");

  lab::Table raster{"raster_bytes",
                    "",
                    {column("raster", ""), whole("cluster", ""), whole("dram_bytes", "", "MB"),
                     whole("l2_bytes", "", "MB")}};
  raster.add({"rows", 1, 3000, 9000});
  raster.add({"grouped", 1, 1000, 9000});
  raster.add({"grouped", 2, 100, 5000});  // of a cluster: another question
  const auto order = asked(bench_of({raster}), "order");
  CHECK(answer(order) == "3.0×");
  CHECK(order->because.find("3000 MB (rows) against 1000 MB (grouped)") != std::string::npos);
}

TEST_CASE("Hopper GEMM: passes are counted ones, or else traced, and say so",
          "[hopper_gemm_scene]") {
  HopperGemmScene scene;
  scene.load(tests::report_of("hopper-gemm"));
  const auto spec = scene.measured_spec();
  const auto view = std::find_if(spec.views.begin(), spec.views.end(),
                                 [](const auto& each) { return each.name == "Conflicts"; });
  REQUIRE(view != spec.views.end());
  const auto& bars = std::get<scenes::measured::Bars>(view->plots.at(0));
  const auto prepared = [&](bool counted) { return bars.rows.prepare(conflicts(counted)); };
  CHECK(scenes::number_with(bench_of({prepared(true)}), "conflicts",
                            {{"access", "stmatrix"}, {"from", "counted"}}, bars.value) == 9.0);
  CHECK(scenes::number_with(bench_of({prepared(false)}), "conflicts",
                            {{"access", "stmatrix"}, {"from", "traced"}}, bars.value) == 8.0);
}

// What is asked about a bench of the Hopper lesson: only what its tables have, and with their numbers. The
// numbers here are made up.
#include "scenes/shared/measured.hpp"

#include "scenes/matmul/hopper_gemm/scene.hpp"
#include "scenes/shared/rows.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using lab::column, lab::real, lab::whole;
using Bench = tests::MadeUpBench<scenes::HopperGemmScene>;

namespace {

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
  CHECK(Bench().asked("").id.empty());
  lab::Table roofs = instructions(40);
  roofs.columns.pop_back();
  for (auto& row : roofs.rows) row.pop_back();
  CHECK(Bench({roofs}).answer("fed") == "not asked");
  // Fed as fast as what stays: there is nothing to guess.
  CHECK(Bench({instructions(32.2)}).answer("fed") == "not asked");
}

TEST_CASE("Hopper GEMM: questions about a bench have its numbers", "[hopper_gemm_scene]") {
  CHECK(Bench({instructions(51)}).answer("fed") == "51 cycles");
  CHECK(Bench({store_passes()}).answer("conflicts") == "7.5×");
  CHECK(Bench({ladder(240, 190)}).answer("older") == "mma-sync");
  CHECK(Bench({ladder(190, 240)}).answer("older") == "wgmma");
  CHECK(Bench({ladder(200, 198)}).answer("older").find("Neither") == 0);

  lab::Table data{"data", "", {column("data", ""), real("tflops", "", "TFLOP/s", 2)}};
  data.add({"random", 600.0});
  data.add({"zeros", 780.0});
  CHECK(Bench({data}).answer("data") == "1.3×");

  lab::Table raster{"raster_bytes",
                    "",
                    {column("raster", ""), whole("cluster", ""), whole("dram_bytes", "", "MB"),
                     whole("l2_bytes", "", "MB")}};
  raster.add({"rows", 1, 3000, 9000});
  raster.add({"grouped", 1, 1000, 9000});
  raster.add({"grouped", 2, 100, 5000});  // of a cluster: another question
  CHECK(Bench({raster}).answer("order") == "3.0×");
  CHECK(Bench({raster}).asked("order").because.find("3000 MB (rows) against 1000 MB (grouped)") !=
        std::string::npos);
}

TEST_CASE("Hopper GEMM: passes are counted ones, or else traced, and say so",
          "[hopper_gemm_scene]") {
  scenes::HopperGemmScene scene;
  scene.load(tests::report_of("hopper-gemm"));
  const auto spec = scene.measured_spec();
  const auto view = std::find_if(spec.views.begin(), spec.views.end(),
                                 [](const auto& each) { return each.name == "Conflicts"; });
  REQUIRE(view != spec.views.end());
  const auto& bars = std::get<scenes::measured::Bars>(view->plots.at(0));
  const auto prepared = [&](bool counted) { return bars.rows.prepare(conflicts(counted)); };
  CHECK(scenes::number_with(Bench({prepared(true)}).report, "conflicts",
                            {{"access", "stmatrix"}, {"from", "counted"}}, bars.value) == 9.0);
  CHECK(scenes::number_with(Bench({prepared(false)}).report, "conflicts",
                            {{"access", "stmatrix"}, {"from", "traced"}}, bars.value) == 8.0);
}

// What is asked about a bench of the lesson on latency hiding: only what its tables have, and with their numbers. The
// numbers here are made up.
#include "scenes/shared/measured.hpp"

#include "scenes/machine/latency_hiding/scene.hpp"
#include "scenes/shared/rows.hpp"
#include "tests/scenes/marks.hpp"

using namespace tilestep;
using lab::column, lab::real, lab::whole;
using Bench = tests::MadeUpBench<scenes::LatencyHidingScene>;

namespace {

lab::Table points(std::vector<std::vector<lab::Cell>> rows) {
  lab::Table table{"bytes_in_flight",
                   "",
                   {column("kind", ""), real("in_flight", "", "KiB", 1),
                    real("bandwidth", "", "GB/s", 0), real("latency", "", "ns", 0)}};
  for (auto& row : rows) table.add(std::move(row));
  return table;
}

}  // namespace

TEST_CASE("Latency hiding: is a quarter of the warps enough?", "[latency_hiding_scene]") {
  lab::Table ladder{
      "ladder",
      "",
      {column("rung", ""), real("bandwidth", "", "GB/s", 0), real("fraction", "", "", 3)}};
  ladder.add({"one-load", 900.0, 0.2});
  CHECK(Bench({ladder}).answer("quarter-one-load") == "Less than 40 %");
  CHECK(Bench({ladder}).answer("quarter-wide") == "not asked");
  ladder.add({"copy", 4400.0, 0.98});
  CHECK(Bench({ladder}).answer("quarter-wide") == "97 % or more");
  CHECK(Bench({ladder}).asked("quarter-wide").because.find("4400 GB/s") != std::string::npos);
}

TEST_CASE("Latency hiding: twice the bytes past the knee", "[latency_hiding_scene]") {
  const lab::Table curve = points({{"16", 8.0, 1000.0, 500.0},
                                   {"16", 16.0, 2000.0, 500.0},
                                   {"16", 32.0, 2500.0, 700.0},
                                   {"16", 32.0, 4000.0, 600.0},
                                   {"16", 32.0, 3000.0, 700.0},
                                   {"16", 64.0, 4100.0, 1250.0},
                                   {"4", 1.0, 100.0, 500.0}});
  lab::Table knees{"knees", "", {column("kind", ""), real("measured_knee", "", "KiB", 1)}};
  knees.add({"16", 33.0});
  CHECK(Bench({curve}).answer("past-the-knee") == "not asked");
  CHECK(Bench({curve, knees}).answer("past-the-knee") == "Less than 5 %");
  CHECK(Bench({curve}).answer("loaded-latency") == "2.5×");
  lab::Table early = knees;
  early.rows[0][1] = 8.0;
  CHECK(Bench({curve, early}).answer("past-the-knee") == "More than 60 %");
}

TEST_CASE("Latency hiding: a curve of bytes in flight goes one way", "[latency_hiding_scene]") {
  const scenes::LatencyHidingScene scene;
  const scenes::measured::Spec spec = scene.measured_spec();
  const auto view = std::find_if(spec.views.begin(), spec.views.end(),
                                 [](const auto& one) { return one.name == "Bytes in flight"; });
  REQUIRE(view != spec.views.end());
  const auto& lines = std::get<scenes::measured::Lines>(view->plots.front());
  const lab::Table made = lines.rows.prepare(points({{"4", 2.0, 200.0, 500.0},
                                                     {"4", 4.0, 400.0, 500.0},
                                                     {"16", 4.0, 350.0, 600.0},
                                                     {"4", 2.0, 250.0, 450.0},
                                                     {"4", 1.0, 100.0, 500.0}}));
  REQUIRE(made.rows.size() == 4);
  const std::vector<std::pair<std::string, double>> want = {
      {"4", 100}, {"4", 250}, {"4", 400}, {"16", 350}};
  for (std::size_t row = 0; row < want.size(); ++row) {
    CHECK(scenes::text_in(made, row, "kind") == want[row].first);
    CHECK(scenes::number_in(made, row, "bandwidth") == want[row].second);
  }
}

TEST_CASE("Latency hiding: registers, chains and branches", "[latency_hiding_scene]") {
  lab::Table registers{"registers",
                       "",
                       {whole("max_registers", ""), whole("local_bytes", ""),
                        whole("warps_per_sm", ""), real("tflops", "", "TFLOP/s", 1)}};
  registers.add({24, 400, 64, 1.0});
  registers.add({64, 200, 32, 2.0});
  registers.add({96, 100, 20, 5.0});
  CHECK(Bench({registers}).answer("spilling") == "not asked");
  registers.add({168, 0, 12, 9.0});
  CHECK(Bench({registers}).answer("spilling") == "168 registers");
  registers.rows[1][3] = 10.0;
  CHECK(Bench({registers}).answer("spilling") == "64 registers");

  lab::Table flops{
      "flops", "", {whole("ilp", ""), whole("warps_per_sm", ""), real("tflops", "", "TFLOP/s", 1)}};
  flops.add({1, 1, 10.0});
  CHECK(Bench({flops}).answer("chains") == "not asked");
  flops.add({8, 16, 60.0});
  flops.add({8, 1, 40.0});
  CHECK(Bench({flops}).answer("chains") == "4.0×");

  lab::Table ways{"divergence", "", {whole("ways", ""), real("slowdown", "", "", 2)}};
  ways.add({1, 1.0});
  ways.add({32, 32.0});
  CHECK(Bench({ways}).answer("branch") == "32×");
}

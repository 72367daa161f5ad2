// PyTorch's decode step beside scripts that stand in for it: right, wrong and missing.

#include <nlohmann/json.hpp>

#include "kernels/systems/launches/bench/bench.hpp"
#include "kernels/systems/launches/reference.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/lab/stand_in.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::launches;
using tests::contains;

namespace {

simt::KernelEntry kCompilersTable[] = {{"launches", kernels_emulated},
                                       {"fusion", fusion::kernels_emulated}};

lab::Report compiled_report() {
  BenchSizes sizes = BenchSizes::tiny();
  sizes.peers = true;
  tests::TimedEmulation device(kCompilersTable);
  return bench_report(device, tests::unwatched, sizes);
}
/// What a right script answers to a check: the reference itself.
std::vector<double> right_step() {
  const StepShape shape{.width = 64, .inner = 128, .batch = 2, .layers = 2};
  return reference_step(shape, make_weights(shape, 7), {5, 11});
}
lab::Report compiled_beside(const std::vector<double>& h) {
  const tests::StandIn stand("launches.py", "");
  const std::string file = stand.write("answer", nlohmann::json{{"h", h}}.dump() + "\n");
  stand.write("launches.py",
              "while read -r line; do case \"$line\" in *'\"check\"'*) cat " + file +
                  ";; *) echo '{\"ms\": [2, 2, 2], \"name\": \"PyTorch 9\", \"kernels\": 7, "
                  "\"first_s\": 3.5, \"again_s\": 1.5}';; esac; done");
  stand.write(
      "attention.py",
      "while read -r line; do case \"$line\" in *'\"head_dim\":128'*) ms=4;; *) ms=3;; esac; "
      "echo \"{\\\"ms\\\": [$ms, $ms, $ms], \\\"name\\\": \\\"PyTorch 9\\\"}\"; done");
  return compiled_report();
}

}  // namespace

TEST_CASE("Launches: PyTorch's step is compared, and timed with what a shape takes", "[launches]") {
  std::vector<double> h = right_step();
  const lab::Report report = compiled_beside(h);
  tests::check_holds(report);
  CHECK(tests::table_in(report, "compilers_missing").rows.empty());
  const lab::Table& table = tests::table_in(report, "compilers");
  REQUIRE(table.rows.size() == 3);
  CHECK(tests::number_in(table, 1, "each") == 2000);
  CHECK(tests::number_in(table, 1, "kernels") == 7);
  CHECK(tests::number_in(table, 2, "again_s") == 1.5);
  CHECK(contains(table.text(0, 0), "eager"));
  const lab::Table& dims = tests::table_in(report, "head_dims");
  REQUIRE(dims.rows.size() == 6);
  CHECK(tests::number_in(dims, 2, "dim") == 80);
  CHECK(tests::number_in(dims, 2, "of_last") == 0.75);

  h[70] += 1;
  const lab::Report wrong = compiled_beside(h);
  CHECK_FALSE(wrong.ok());
  CHECK(tests::table_in(wrong, "compilers").rows.empty());
}

TEST_CASE("Launches: without PyTorch a sentence says so", "[launches]") {
  const tests::StandIn stand("launches.py", "echo '{\"error\": \"none here\"}'; cat >/dev/null");
  const lab::Report report = compiled_report();
  CHECK(tests::table_in(report, "compilers").rows.empty());
  const std::string why = tests::table_in(report, "compilers_missing").text(0, 0);
  CHECK(contains(why, "none here"));
  CHECK(contains(why, "Allowed: a Python with PyTorch"));
}

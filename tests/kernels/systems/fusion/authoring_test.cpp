// The authoring ladder beside scripts that stand in for PyTorch's: right, wrong, silent and missing.

#include <nlohmann/json.hpp>

#include "kernels/systems/fusion/bench/bench.hpp"
#include "kernels/systems/fusion/run/run.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/lab/stand_in.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::fusion;
using tests::contains;

namespace {

simt::KernelEntry kAuthoringTable[] = {{"hopper_gemm", hopper_gemm::kernels_emulated},
                                       {"fusion", kernels_emulated}};

/// A bench of nothing but the ladder.
lab::Report authored() {
  BenchSizes sizes = BenchSizes::tiny();
  sizes.widths = sizes.rows = sizes.vocabularies = {};
  sizes.layers = {};
  sizes.peers = true;
  tests::TimedEmulation device(kAuthoringTable);
  return bench_report(device, tests::unwatched, sizes);
}
/// What a right script answers to a check: our kernel's results on the rows that the bench asks about.
nlohmann::json right_answer() {
  tests::TimedEmulation device(kAuthoringTable);
  const Run run = run_of({.rows = 4, .width = BenchSizes::tiny().width}, device, tests::unwatched);
  std::vector<int> sums;
  for (std::size_t i = 0; i < run.fused.sum.size(); i += 2)
    sums.push_back(run.fused.sum[i] | run.fused.sum[i + 1] << 8);
  return {{"sum", sums}, {"codes", run.fused.codes}, {"scale", run.fused.scale}};
}
constexpr const char* kTimes =
    "*) echo '{\"ms\": [2, 2, 2], \"name\": \"PyTorch 9\", \"kernels\": 7}';; esac; done";
/// The ladder beside a script that answers checks with `answer`, and requests for times with 2 ms.
lab::Report authored_beside(const nlohmann::json& answer) {
  const tests::StandIn stand("fusion.py", "");
  const std::string file = stand.write("answer", answer.dump() + "\n");
  stand.write("fusion.py", "while read -r line; do case \"$line\" in *'\"check\"'*) cat " + file +
                               ";; " + kTimes);
  return authored();
}
std::string missing(const lab::Report& report) {
  CHECK(tests::table_in(report, "authoring").rows.size() == 1);
  const std::string why = tests::table_in(report, "authoring_missing").text(0, 0);
  CHECK(contains(why, "Allowed: a Python with PyTorch and Triton"));
  return why;
}

}  // namespace

TEST_CASE("Authoring: PyTorch's rungs stand beside ours, compared and timed", "[fusion]") {
  nlohmann::json answer = right_answer();
  const lab::Report report = authored_beside(answer);
  tests::check_holds(report);
  CHECK(tests::table_in(report, "authoring_missing").rows.empty());
  const lab::Table& table = tests::table_in(report, "authoring");
  REQUIRE(table.rows.size() == 4);
  CHECK(table.text(0, 0) == "PyTorch eager");
  CHECK(tests::number_in(table, 0, "kernels") == 7);
  CHECK(tests::number_in(table, 1, "differ") == 0);
  CHECK(tests::number_in(table, 2, "of_copy") == 1);
  // Ours takes 1 ms, theirs 2.
  CHECK(tests::number_in(table, 3, "bandwidth") ==
        Approx(2 * tests::number_in(table, 2, "bandwidth")));
  CHECK(tests::number_in(table, 0, "lines") == 5);
  for (std::size_t row = 1; row < 4; ++row)
    CHECK(tests::number_in(table, row, "lines") > tests::number_in(table, row - 1, "lines"));

  // A code that is off: found, and its rung is not timed.
  answer["codes"][7] = answer["codes"][7].get<int>() ^ 0x08;
  const lab::Report wrong = authored_beside(answer);
  CHECK_FALSE(wrong.ok());
  CHECK(tests::table_in(wrong, "authoring").rows.size() == 1);
}

TEST_CASE("Authoring: a script that does not help is one sentence, and ours is timed", "[fusion]") {
  const auto said = [](const char* script) {
    const tests::StandIn stand("fusion.py", script);
    return missing(authored());
  };
  CHECK(contains(said("echo '{\"error\": \"PyTorch is not installed\"}'; cat >/dev/null"),
                 "PyTorch is not installed"));
  CHECK(contains(said("exit 3"), "ended"));
  CHECK(contains(said("echo hello; cat >/dev/null"), "'hello'"));
  CHECK(contains(said("echo '{\"ms\": \"soon\"}'; cat >/dev/null"), "at least one number"));
  CHECK(contains(missing(authored_beside({{"codes", "none"}})), "without 'codes'"));
  const tests::Environment nowhere("TILESTEP_PEERS", "/nowhere");
  CHECK(contains(missing(authored()), "'/nowhere', which has no fusion.py"));
}

#include "kernels/attention/online_softmax/report.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"

using namespace tilestep;
using namespace tilestep::online_softmax;

TEST_CASE("the bench of online softmax has all that was recorded", "[online_softmax]") {
  tests::TimedEmulation device;
  const BenchSizes tiny{4096, {256, 1024}, 256, 1024, {8, 64, 16, 4, false}};
  const lab::Report report = bench_report(device, tests::unwatched, tiny);
  tests::check_has_what_was_recorded(report, kLessonId, true);
  tests::check_holds(report);
  CHECK(report.checks.size() == kRungs.size());
  CHECK(report.table("ladder_measured")->rows.size() == 2 * kRungs.size());
  CHECK(report.table("ladder_blocks")->rows.size() == 2 * kRungs.size() * std::size(kRowBlocks));
  // At equal times all rungs are equal, and the reads let expect otherwise.
  const lab::Table& uncached = tests::table_in(report, "ladder_uncached");
  REQUIRE(uncached.rows.size() == kRungs.size());
  CHECK(uncached.columns.back().id == "expected");
  CHECK(tests::number_in(uncached, 0, "expected") == 0.5);
  CHECK(tests::number_in(uncached, 2, "expected") == 1);
  CHECK(report.measurement("uncached_of_one_read", "three-pass")->value == 1);
  CHECK(report.measurement("uncached_bandwidth", "three-pass") != nullptr);
}

TEST_CASE("online softmax's quick bench has the ladder at one width", "[online_softmax]") {
  tests::TimedEmulation device;
  const lab::Report report =
      bench_report(device, tests::unwatched, {4096, {256}, 256, 1024, {8, 64, 16, 4, false}, true});
  tests::check_quick(report, {"ladder_uncached"});
  CHECK(report.table("ladder_measured")->rows.size() == kRungs.size());
  CHECK(report.measurement("attention_time") == nullptr);
  const BenchSizes quick = BenchSizes::of_quick();
  CHECK(quick.columns == std::vector<int>{quick.main_columns});
}

TEST_CASE("rows that stay in L2 are no rows that no cache holds", "[online_softmax]") {
  tests::TimedEmulation device;
  // Two multiprocessors have 32 rows of 1024 columns under way with 128 threads a row, 16 with 256.
  device.pretend().l2_bytes = 50'000;
  const BenchSizes tiny{4096, {1024}, 1024, 1024, {8, 64, 16, 4, false}};
  const lab::Report report = bench_report(device, tests::unwatched, tiny);
  const lab::Table& uncached = *report.table("ladder_uncached");
  REQUIRE(uncached.columns[3].id == "threads");
  CHECK(uncached.text(0, 3) == "128");
  device.pretend().l2_bytes = 200'000;
  CHECK(bench_report(device, tests::unwatched, tiny).table("ladder_uncached")->text(0, 3).empty());
}

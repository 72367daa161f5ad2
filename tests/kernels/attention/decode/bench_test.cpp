// The bench on tiny caches, under an emulation that pretends to a clock and to counters.

#include "kernels/attention/decode/bench/bench.hpp"

#include <numeric>

#include "kernels/attention/decode/kernels.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::decode;

namespace {

simt::KernelEntry kTable[] = {{"decode", kernels_emulated}};

}  // namespace

TEST_CASE("decode's bench compares, times and counts all that it has", "[decode]") {
  tests::TimedEmulation device(kTable);
  const lab::Report report = bench_report(device, tests::unwatched, BenchSizes::tiny());
  tests::check_holds(report);
  const std::size_t rungs = count_of<Rung>();
  CHECK(tests::table_in(report, "ladder").rows.size() == rungs);
  const lab::Table& ladder = tests::table_in(report, "ladder_measured");
  REQUIRE(ladder.rows.size() == rungs);
  CHECK(tests::table_in(report, "peers").rows.size() == 1);  // cuDNN needs a GPU
  CHECK(tests::table_in(report, "formats").rows.size() == 2 * 4);
  CHECK(tests::table_in(report, "schemes").rows.size() == 3);
  CHECK(tests::table_in(report, "batches").rows.size() == 2 * 2);
  CHECK(tests::table_in(report, "contexts").rows.size() == 4);
  CHECK(tests::table_in(report, "latent").rows.size() == 2 * 2);
  // All take 1 ms here.
  const lab::Measurement* rate = report.measurement("decode_rate", "paged-balanced");
  REQUIRE(rate != nullptr);
  CHECK(rate->value == Approx(least_bytes(BenchSizes::tiny().step) / 1e6));
  CHECK(report.measurement("fraction_of_read", "paged-balanced")->value == Approx(1));
  CHECK(report.measurement("fraction_of_cudnn") == nullptr);
  CHECK(report.measurement("format_speedup", "int4 pages of 16")->value == Approx(1));
  // One token of MQA: K and V of one head of 128 numbers of 16 bits.
  CHECK(tests::number_in(tests::table_in(report, "schemes"), 2, "token_bytes") == 2 * 128 * 2);
}

TEST_CASE("decode's quick bench has the ladder alone", "[decode]") {
  tests::TimedEmulation device(kTable);
  BenchSizes sizes = BenchSizes::tiny();
  sizes.quick = true;
  const lab::Report report = bench_report(device, tests::unwatched, sizes);
  tests::check_quick(report, {"formats", "schemes", "batches", "contexts", "latent", "bytes"});
  CHECK(tests::table_in(report, "ladder_measured").rows.size() == count_of<Rung>());
}

TEST_CASE("ragged requests have as many tokens as even ones, and each byte counts once",
          "[decode]") {
  Step step = BenchSizes::tiny().step;
  step.batch = 8;
  step.context = 1000;
  const std::vector<int> ragged = contexts_of(step);
  CHECK(std::accumulate(ragged.begin(), ragged.end(), 0) == 8000);
  CHECK(std::ranges::min(ragged) >= 500);
  CHECK(std::ranges::max(ragged) <= 1500);
  CHECK(std::ranges::max(ragged) > std::ranges::min(ragged));
  step.ragged = false;
  CHECK(contexts_of(step) == std::vector<int>(8, 1000));
  step.context = 1024;
  const double rows = 8.0 * 1024 * 2, queries = 8.0 * 4 * 128 * 2 * 2;
  const double table = 8.0 * 64 * 4;
  CHECK(least_bytes(step) == rows * 2 * 128 * 2 + table + queries);
  step.type = KvType::int4;
  CHECK(least_bytes(step) == rows * (2 * 64 + 2 * 4) + table + queries);
}

TEST_CASE("decode's peer adds up every word", "[decode]") {
  tests::TimedEmulation device(kTable);
  for (const int context : {1, 16, 333}) {
    Step step = BenchSizes::tiny().step;
    step.context = context;
    BenchProblem problem(device, kernels_of(device), step);
    CHECK(problem.read(2).verify().ok());
  }
}

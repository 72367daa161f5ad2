#include "kernels/machine/latency_hiding/bench/bench.hpp"

#include <cmath>

#include "kernels/machine/latency_hiding/bench/parts.hpp"
#include "kernels/machine/latency_hiding/lesson.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"

using namespace tilestep;
using namespace tilestep::latency_hiding;
using namespace tilestep::tests;

namespace {

BenchSizes small_sizes() {
  BenchSizes sizes;
  sizes.copy_bytes = 1 << 16;
  sizes.warps = {1, 4, 16, 64};
  sizes.occupancy_samples = 3;
  sizes.rounds = sizes.longer = 1;
  sizes.settle_ms = 1;
  sizes.point_settle_ms = 1;
  sizes.most_footprint = 1 << 15;
  return sizes;
}

}  // namespace

TEST_CASE("the bench of latency hiding has all that was recorded", "[latency_hiding]") {
  tests::TimedEmulation device;
  device.pretend().memory_bytes = 1 << 24;
  const lab::Report report = bench_report(device, unwatched, small_sizes());
  // Clocks of an emulation are no clocks, and its counters are pretended.
  for (const lab::Check& check : report.checks) {
    if (check.id == "knee" || check.id == "probed_equals_counted" ||
        check.id == "rounds_equal_counted" || check.id == "latency_published" ||
        check.id == "latency_stable" || check.id == "sub_partitions") {
      continue;
    }
    CAPTURE(check.id, check.max_error, check.tolerance);
    CHECK(check.ok);
  }
  for (const char* id : {"ladder", "ladder_configurations", "bytes_in_flight", "knees", "stalls",
                         "memory_ladder", "latencies", "l2_distribution", "flops", "registers",
                         "divergence", "tail", "subpartitions", "kernels", "occupancy_answers"}) {
    INFO(id);
    REQUIRE(report.table(id) != nullptr);
    // Only a CUDA runtime answers.
    CHECK(report.table(id)->rows.empty() == (report.table(id)->id == "occupancy_answers"));
    if (const lab::Recording* recording = lab::recording(kLessonId)) {
      const lab::Table* then = recording->bench.table(id);
      REQUIRE(then != nullptr);
      REQUIRE(then->columns.size() == report.table(id)->columns.size());
      for (std::size_t c = 0; c < then->columns.size(); ++c) {
        CHECK(then->columns[c].id == report.table(id)->columns[c].id);
      }
    }
  }
  CHECK(report.table("ladder")->rows.size() == 5);
  CHECK(report.table("registers")->rows.size() == 8);
  CHECK(report.measurement("fraction_of_copy", "copy") != nullptr);
  CHECK(lab::to_json(report).dump().size() < 300'000);
}

TEST_CASE("FLOP/s are two for each multiply-add of the launch", "[latency_hiding]") {
  tests::TimedEmulation device;  // 2 multiprocessors, a millisecond a launch
  BenchSizes sizes = small_sizes();
  sizes.longer = 3;
  Parts parts(device, unwatched, sizes);
  bench_flops(parts);
  const lab::Table& flops = *parts.report.table("flops");
  const double chain = 2.0 * 3 * 4096;
  CHECK(number_in(flops, 0, "tflops") == Approx(chain * 2 * 32 * 1e-9));
  // Eight chains in each thread of 64 warps.
  CHECK(number_in(flops, flops.rows.size() - 1, "tflops") == Approx(chain * 8 * 2 * 2048 * 1e-9));
}

TEST_CASE("latency hiding's quick bench has the ladder alone", "[latency_hiding]") {
  tests::TimedEmulation device;
  BenchSizes sizes = small_sizes();
  sizes.quick = true;
  const lab::Report report = bench_report(device, unwatched, sizes);
  tests::check_quick(report, {"bytes_in_flight", "stalls", "flops", "kernels"});
  CHECK(report.table("ladder")->rows.size() >= count_of<Rung>());
}

TEST_CASE("the knee of a curve, and what Little's law predicts of it", "[latency_hiding]") {
  // 10 multiprocessors, 500 ns as long as 100 bytes a nanosecond are not reached: the knee of 0.9 is at 4500 bytes; it is read off the line
  // between the points of 4000 and 6000.
  std::vector<CurvePoint> points;
  for (const double bytes : {1000.0, 2000.0, 4000.0, 6000.0, 8000.0, 16000.0}) {
    const double rate = std::min(100.0, 10 * bytes / 500);
    points.push_back({bytes, rate, 10 * bytes / rate});
    points.push_back(
        {bytes, rate / 2, 1e6});  // a worse way to have as much in flight does not count
  }
  const Knee knee = knee_of(points, 10);
  CHECK(knee.idle_ns == Approx(500));
  CHECK(knee.in_flight == Approx(5000));
  CHECK(knee.predicted == Approx(knee.in_flight).epsilon(0.15));
  CHECK(knee_of({}, 10).in_flight == 0);
}

TEST_CASE("sums of probes, less what a probe costs", "[latency_hiding]") {
  const std::vector<WarpRecord> warps = {{0, 0, 100, 2100, 10, 4, 4040, 0, 1000},
                                         {kUnwritten, 0, 0, 0, 0, 0, 0, 0, 0},
                                         {1, 0, 0, 2000, 20, 4, 4080, 0, 1000}};
  const Means means = means_of(warps);
  CHECK(means.cost == 15);
  CHECK(means.latency == Approx(1000));
  CHECK(means.clock_mhz == Approx(2000));
  CHECK(means.latency_ns() == Approx(500));
}

TEST_CASE("the round of loads in flight together, from the first issue to the last use",
          "[latency_hiding]") {
  const ProbeRecord none{kUnwritten, kUnwritten, kUnwritten};
  // The clock comes round in the second one; the third has no end.
  const std::vector<ProbeRecord> kept = {{100, 400, 1},   {110, 500, 1},  // 400
                                         {~15u, 100, 1},  {10, 284, 1},   // 300
                                         {1000, 1400, 1}, none,          none, none};
  CHECK(mean_round(kept, 2) == 350);
  CHECK(mean_round({kept[0], none, kept[1], none}, 1) == 345);
  CHECK(mean_round({none, none}, 2) == 0);
}

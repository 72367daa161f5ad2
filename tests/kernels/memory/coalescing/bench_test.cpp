#include "kernels/memory/coalescing/bench/bench.hpp"

#include "kernels/memory/coalescing/report.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"

using namespace tilestep;
using namespace tilestep::coalescing;
using namespace tilestep::tests;

namespace {

/// With counters that see `sectors_per_request` everywhere.
std::unique_ptr<tests::TimedEmulation> timed_device(double sectors_per_request) {
  auto device = std::make_unique<tests::TimedEmulation>();
  device->pretend().memory_bytes = 1 << 20;
  device->counter = [=](const std::string& metric) {
    return metric.find("sectors") != std::string::npos ? 64 * sectors_per_request : 64;
  };
  return device;
}

}  // namespace

TEST_CASE("the bench of coalescing has all that was recorded", "[coalescing]") {
  const auto device = timed_device(4);
  const lab::Report report = lesson().bench(*device, unwatched);
  check_has_what_was_recorded(report, kLessonId, true);
  check_holds(report, [](std::string_view id) { return id == "counted_equals_traced"; });
  REQUIRE(report.checks.size() == 4);
  REQUIRE(report.table("copy_ladder")->rows.size() == 4);
  REQUIRE(report.table("transpose_ladder")->rows.size() == 3);
  REQUIRE(report.table("bandwidth_by_offset")->rows.size() == 32);
  REQUIRE(report.table("bandwidth_by_pattern")->rows.size() == 11 * 5 * 2);
  REQUIRE(report.table("bandwidth_by_launch")->rows.size() == 2 * 7 * 2 * 3);
  REQUIRE(report.table("counted_sweep")->rows.size() >= 200);
  REQUIRE(report.table("dram_by_stride")->rows.size() == 2 * 7);
  REQUIRE(report.measurement("dram_read_per_byte", "store 8") != nullptr);
  REQUIRE(lab::to_json(report).dump().size() < 300'000);

  const lab::Table& by_element = *report.table("bandwidth_by_element");
  REQUIRE(by_element.rows.size() == 5);
  REQUIRE(number_in(by_element, 4, "thread_bytes") == 16);
  REQUIRE(number_in(by_element, 4, "in_flight") == 2 * 2048 * 16 / 1024.0);
}

TEST_CASE("coalescing's quick bench has the ladders alone", "[coalescing]") {
  const auto device = timed_device(4);
  const lab::QuickBench quick(true);
  const lab::Report report = lesson().bench(*device, unwatched);
  check_quick(report, {"bandwidth_by_stride", "bandwidth_by_pattern", "counted_sweep"});
  REQUIRE(report.table("copy_ladder")->rows.size() == 4);
  REQUIRE(report.table("transpose_ladder")->rows.size() == 3);
}

TEST_CASE("expected bandwidth counts the read of a partial store and 64-byte fetches",
          "[coalescing]") {
  const auto device = timed_device(4);
  Bench bench{{*device, unwatched}};
  bench_patterns(bench, 1000);
  const lab::Table& table = *bench.report.table("bandwidth_by_stride");
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const double stride = number_in(table, row, "stride");
    // Useful: 4 bytes on the plain side, 4 on the strided one. Moved there: a share of a sector
    // for a load, the same read and written for a store that does not fill it.
    const double sector = std::min(32.0, 4 * stride), piece = std::min(64.0, 4 * stride);
    const double stored = stride == 1 ? 4 : 2 * sector;
    CAPTURE(stride);
    if (stride == 3 || stride == 5 || stride == 6 || stride == 7) continue;  // no whole share
    CHECK(number_in(table, row, "expected") == Approx(1000 * 8 / (4 + sector)).epsilon(0.01));
    CHECK(number_in(table, row, "expected_store") == Approx(1000 * 8 / (4 + stored)).epsilon(0.01));
    if (stride == 10 || stride == 12 || stride == 14) continue;
    CHECK(number_in(table, row, "expected_64") == Approx(1000 * 8 / (4 + piece)).epsilon(0.01));
  }
}

TEST_CASE("points that the hardware counts differently are named", "[coalescing]") {
  const auto device = timed_device(4);
  Bench bench{{*device, unwatched}};
  count_sweep(bench);
  const lab::Check& check = bench.report.checks.front();
  REQUIRE_FALSE(check.ok);
  REQUIRE(check.max_error > 1);
  REQUIRE(contains(check.detail, "sequential load of 1 bytes"));

  const Runs run(lesson(), knob_table(), trace_from_json);
  const lab::Report counted = run({.pattern = Pattern::sequential}, *device);
  REQUIRE(counted.measurement("sectors_per_request", "hardware")->value == 4);
  REQUIRE(counted.measurement("sectors_per_request", "hardware")->provenance ==
          lab::Provenance::counted);
  REQUIRE(counted.ok());
  REQUIRE_FALSE(run({.pattern = Pattern::strided}, *device).ok());
}

TEST_CASE("sizes of the bench follow the memory", "[coalescing]") {
  const BenchSizes large = bench_sizes(std::size_t{140} << 30);
  REQUIRE(large.copy_floats * 4 == std::size_t{2} << 30);
  REQUIRE(large.transpose_edge == 16384);
  REQUIRE(large.access_elements == std::int64_t{1} << 27);
  const BenchSizes small = bench_sizes(std::size_t{8} << 30);
  REQUIRE(small.copy_floats * 8 <= std::size_t{2} << 30);
  REQUIRE(small.access_elements * 260 <= std::int64_t{4} << 30);
}

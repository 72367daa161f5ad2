// Whole runs of the lesson: checks, mistakes, what a score depends on; and the bench on few tokens.

#include "kernels/attention/positions/run/run.hpp"

#include <cmath>

#include "kernels/attention/positions/bench/bench.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/kernels/device.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::positions;
using tests::contains;

namespace {

simt::KernelEntry kLessonTable[] = {{"positions", kernels_emulated}};

lab::Report run_with(const lab::Settings& settings) {
  const auto device = tests::device_under_test(kLessonTable);
  lab::NoProgress nobody;
  return lesson().run(settings, *device, nobody);
}
Trace trace_with(const lab::Settings& settings) {
  return trace_from_json(run_with(settings).trace);
}
constexpr std::int64_t kFarAway = kMostShift;

/// The largest difference between two runs' scores.
double apart(const Trace& a, const Trace& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.scores.size(); ++i)
    most = std::max(most, static_cast<double>(std::abs(a.scores[i] - b.scores[i])));
  return most;
}

}  // namespace

TEST_CASE("Positions: runs of every method, layout, head and way pass their checks",
          "[positions]") {
  for (const char* method : {"rope", "linear", "ntk", "yarn", "nope", "alibi"}) {
    for (const char* pairs : {"interleaved", "half-split"}) {
      INFO(method << " " << pairs);
      CHECK(run_with({{"method", method}, {"pairs", pairs}, {"shift", kFarAway}}).ok());
    }
  }
  for (const char* dim : {"32", "64", "128"}) {
    CHECK(run_with({{"dim", dim}, {"fused", false}}).ok());
    CHECK(run_with({{"dim", dim}, {"method", "yarn"}, {"scale", 16.0}}).ok());
  }
}

TEST_CASE("Positions: a score knows the distance and nothing else", "[positions]") {
  const Trace here = trace_with({}), there = trace_with({{"shift", kFarAway}});
  CHECK(apart(here, there) < 0.05);
  CHECK(here.q_turned != there.q_turned);
  // Without positions all of them are equal; with ALiBi the farther loses, by a constant for each token.
  const Trace nope = trace_with({{"method", "nope"}}), alibi = trace_with({{"method", "alibi"}});
  for (std::size_t i = 1; i < nope.scores.size(); ++i) {
    CHECK(nope.scores[i] == nope.scores[0]);
    CHECK(alibi.scores[i] - alibi.scores[i - 1] == Approx(kSlope).margin(1e-6));
  }
  // Both layouts are the same numbers in another order.
  CHECK(apart(here, trace_with({{"pairs", "interleaved"}})) < 0.02);
}

TEST_CASE("Positions: terms of the pairs add up to the scores", "[positions]") {
  for (const char* dim : {"16", "128"}) {
    const Trace trace = trace_with({{"dim", dim}});
    for (int key = 0; key < kTokens; ++key) {
      double sum = 0;
      for (int pair = 0; pair < trace.pairs_of_head(); ++pair)
        sum += static_cast<double>(trace.term(key, pair));
      CHECK(sum == Approx(trace.scores[static_cast<std::size_t>(key)]).margin(1e-4));
    }
  }
}

TEST_CASE("Positions: mistakes are made by the kernel on show, and found", "[positions]") {
  const auto broken = [](const char* what, lab::Settings settings = {}) {
    settings["break"] = what;
    const lab::Report report = run_with(settings);
    CHECK(report.ok());
    CHECK(contains(report.summary, "wrong"));
    return trace_from_json(report.trace);
  };
  const Trace sound = trace_with({});
  // Keys in the other layout: the score hangs on where both stand.
  const Trace swapped = broken("swapped-pairs");
  CHECK(swapped.result.wrong > 100);
  CHECK(apart(swapped, broken("swapped-pairs", {{"shift", std::int64_t{1000}}})) > 0.3);
  // Values are turned in the fused launch, and cannot be where the rotation has a launch of its own.
  CHECK(broken("rotate-values").result.wrong > 100);
  CHECK(broken("rotate-values", {{"fused", false}}).result.wrong == 0);
  // After a cache hit: keys of the hit are one token too near, those after it are not.
  const Trace off = broken("position-off-by-one");
  CHECK(off.result.wrong > 100);
  for (int key = 1; key < kTokens; ++key) {
    const auto at = static_cast<std::size_t>(key);
    const float right = key < kHit ? sound.scores[at + 1] : sound.scores[at];
    CHECK(off.scores[at] == Approx(right).margin(0.03));
  }
  // FP16 cannot tell neighbours apart, and ends at 65504.
  const Trace coarse = broken("fp16-angles", {{"shift", std::int64_t{8192}}});
  CHECK(apart(coarse, sound) > 0.3);
  const Trace beyond = broken("fp16-angles", {{"shift", std::int64_t{100000}}});
  CHECK(std::isnan(beyond.scores[0]));
}

TEST_CASE("Positions: four launches move twice the bytes of one", "[positions]") {
  for (const char* dim : {"16", "64"}) {
    const Trace trace = trace_with({{"dim", dim}});
    const auto bytes = [&](const std::vector<Moved>& launches) {
      double sum = 0;
      for (const Moved& one : launches) sum += one.read + one.written;
      return sum;
    };
    CHECK(bytes(trace.together) == 12 * trace.dim);
    CHECK(bytes(trace.apart) == 24 * trace.dim);
    CHECK(trace.together.size() == 1);
    CHECK(trace.apart.size() == 4);
  }
}

TEST_CASE("Positions: the bench compares and times all that it has", "[positions]") {
  tests::TimedEmulation device(kLessonTable);
  const lab::Report report = bench_report(device, tests::unwatched, BenchSizes::tiny());
  tests::check_holds(report);
  CHECK(tests::table_in(report, "launches").rows.size() == 8);
  const lab::Table& fusion = tests::table_in(report, "fusion");
  REQUIRE(fusion.rows.size() == 2);
  CHECK(tests::number_in(fusion, 1, "byte_ratio") == Approx(2));
  CHECK(report.measurement("heads_bandwidth", "together") != nullptr);
  CHECK(report.measurement("copy_bandwidth") != nullptr);
  BenchSizes quick = BenchSizes::tiny();
  quick.quick = true;
  tests::check_quick(bench_report(device, tests::unwatched, quick), {});
}

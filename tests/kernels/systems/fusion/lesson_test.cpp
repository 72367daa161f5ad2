// Whole runs of the lesson: checks, mistakes, the trace; and the bench on tiny rows.

#include "kernels/systems/fusion/lesson.hpp"

#include "kernels/systems/fusion/bench/bench.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/kernels/device.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::fusion;
using tests::contains;

namespace {

simt::KernelEntry kRunTable[] = {{"hopper_gemm", hopper_gemm::kernels_emulated},
                                 {"low_bit", low_bit::kernels_emulated},
                                 {"fusion", kernels_emulated}};

lab::Report run_with(const lab::Settings& settings) {
  const auto device = tests::device_under_test(kRunTable);
  lab::NoProgress nobody;
  return lesson().run(settings, *device, nobody);
}
Trace trace_with(const lab::Settings& settings) {
  return trace_from_json(run_with(settings).trace);
}

}  // namespace

TEST_CASE("Fusion: runs of every format, width and fusion of the chain pass their checks",
          "[fusion]") {
  const auto check = [](const char* fuse, std::int64_t width, const char* dtype) {
    INFO(fuse << " " << width << " " << dtype);
    CHECK(run_with({{"fuse", fuse}, {"width", width}, {"dtype", dtype}, {"rows", std::int64_t{2}}})
              .ok());
  };
  for (const char* dtype : {"bf16", "fp16", "fp32"}) {
    for (const std::int64_t width : {1, 7, 127, 1024}) check("8,9", width, dtype);
  }
  for (const char* fuse : {"", "8", "9", "9,8"}) check(fuse, 1000, "bf16");
  CHECK(run_with({{"width", std::int64_t{70000}}, {"rows", std::int64_t{1}}}).ok());
}

TEST_CASE("Fusion: three launches move 13 bytes per number, one moves 7", "[fusion]") {
  const auto bytes = [](const char* fuse, bool fused) {
    const Trace trace = trace_with({{"fuse", fuse}});
    const Lane& lane = fused ? trace.fused : trace.unfused;
    return static_cast<double>(lane.bytes()) / trace.width;
  };
  CHECK(bytes("8,9", false) == 13);
  CHECK(bytes("8,9", true) == 7);
  CHECK(bytes("8", true) == 11);
  CHECK(bytes("9", true) == 9);
  CHECK(bytes("", true) == 13);
  // Norm and quantization alone: what the chain's last two steps moved.
  for (const bool fused : {false, true}) {
    const Trace trace = trace_with({{"fuse", "9"}});
    std::int64_t last = 0;
    for (const Move& move : (fused ? trace.fused : trace.unfused).moves) {
      if (move.step > 0 && is_counted(move.tensor)) last += move.bytes;
    }
    CHECK(last == (fused ? 3 : 7) * trace.width);
  }
}

TEST_CASE("Fusion: mistakes are made by the kernel on show, and found", "[fusion]") {
  const lab::Report early = run_with({{"break", "stats-before-residual"}});
  CHECK(early.ok());
  CHECK(trace_from_json(early.trace).result.wrong > 4000);
  CHECK(contains(early.summary, "wrong"));
  // In a launch of its own the norm can only read what was stored.
  const lab::Report apart = run_with({{"break", "stats-before-residual"}, {"fuse", "9"}});
  CHECK(apart.ok());
  CHECK(trace_from_json(apart.trace).result.wrong == 0);
  for (const char* fuse : {"", "8,9"}) {
    const lab::Report half = run_with({{"break", "fp16-sum"}, {"fuse", fuse}});
    CHECK(half.ok());
    CHECK(trace_from_json(half.trace).result.wrong > 4000);
  }
}

TEST_CASE("Fusion: a fused run and an unfused one have the same numbers", "[fusion]") {
  const Trace trace = trace_with({});
  CHECK(trace.fused.held == trace.unfused.held);
  CHECK(trace.fused.normed == trace.unfused.normed);
  CHECK(trace.fused.codes == trace.unfused.codes);
  CHECK(trace.fused.launches() == 1);
  CHECK(trace.unfused.launches() == 3);
  const Trace wide = trace_with({{"width", std::int64_t{131072}}, {"rows", std::int64_t{1}}});
  CHECK(wide.in_shared);
  CHECK(wide.cluster == 4);
}

TEST_CASE("Fusion: the bench compares, times and counts all that it has", "[fusion]") {
  tests::TimedEmulation device(kRunTable);
  const lab::Report report = bench_report(device, tests::unwatched, BenchSizes::tiny());
  tests::check_holds(report);
  CHECK(tests::table_in(report, "launches").rows.size() == 2);
  CHECK(tests::table_in(report, "widths").rows.size() == 4);
  const lab::Table& fusions = tests::table_in(report, "fusions");
  REQUIRE(fusions.rows.size() == 8);
  CHECK(tests::number_in(fusions, 1, "byte_ratio") == Approx(7 / 3.0));
  CHECK(tests::number_in(fusions, 2, "byte_ratio") == Approx(13 / 7.0));
  CHECK(tests::table_in(report, "losses").rows.size() == 1);
  const lab::Table& sampling = tests::table_in(report, "sampling");
  REQUIRE(sampling.rows.size() == 16);
  CHECK(tests::number_in(sampling, 0, "bytes_apart") == 22);
  CHECK(tests::number_in(sampling, 8, "bytes_apart") == 24);
  CHECK(tests::table_in(report, "epilogues").rows.size() == 3 * 2 * 3);
  const lab::Table& savings = tests::table_in(report, "epilogue_savings");
  REQUIRE(savings.rows.size() == 3 * 2);
  // 3 rows of 144 numbers, written and read again.
  CHECK(tests::number_in(savings, 5, "intermediate") == Approx(3 * 144 * 4e-6));
  CHECK(tests::number_in(savings, 5, "predicted") > 1);
  CHECK(tests::table_in(report, "packing").rows.size() == 2);
  // Without PyTorch the ladder has our rung, and a sentence.
  CHECK(tests::table_in(report, "authoring").rows.size() == 1);
  CHECK(tests::table_in(report, "authoring_missing").text(0, 0) ==
        "PyTorch and Triton were not asked.");
  BenchSizes quick = BenchSizes::tiny();
  quick.quick = true;
  tests::check_quick(bench_report(device, tests::unwatched, quick), {"held"});
}

// Whole runs of the lesson: modes, mistakes, the trace; and the bench on a tiny model.

#include "kernels/systems/launches/lesson.hpp"

#include <map>

#include "kernels/systems/launches/bench/bench.hpp"
#include "tests/catch.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"
#include "tests/kernels/device.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using namespace tilestep::launches;
using tests::contains;

namespace {

simt::KernelEntry kLaunchTable[] = {{"launches", kernels_emulated},
                                    {"fusion", fusion::kernels_emulated}};

lab::Report run_launches(const lab::Settings& settings) {
  const auto device = tests::device_under_test(kLaunchTable);
  lab::NoProgress nobody;
  return lesson().run(settings, *device, nobody);
}
Trace launches_trace(const lab::Settings& settings) {
  return trace_from_json(run_launches(settings).trace);
}
int wrong_of(const Trace& trace) {
  int wrong = 0;
  for (const StepTrace& step : trace.steps) wrong += step.wrong;
  return wrong;
}
/// On a GPU what is not ordered may come out right.
bool emulated() {
  return tests::device_under_test(kLaunchTable)->info().backend == "emulated";
}

}  // namespace

TEST_CASE("Launches: runs of every mode, depth and batch pass their checks", "[launches]") {
  for (const char* mode : {"eager", "graph", "bucketed", "persistent"}) {
    const auto check = [&](const char* batches, std::int64_t layers, std::int64_t fallback) {
      INFO(mode << " " << batches << " " << layers);
      CHECK(run_launches(
                {{"mode", mode}, {"batches", batches}, {"layers", layers}, {"fallback", fallback}})
                .ok());
    };
    check("1", 4, 0);
    check("8,5,1", 1, 0);
    check("2,2,2,2,2,2", 1, 1);
    check("3,2", 2, 2);
  }
}

TEST_CASE("Launches: a graph is replayed while the batch stays, and updated when it changes",
          "[launches]") {
  const auto hows = [](const Trace& trace) {
    std::vector<How> all;
    for (const StepTrace& step : trace.steps) all.push_back(step.how);
    return all;
  };
  CHECK(hows(launches_trace({{"mode", "graph"}, {"batches", "3,3,2"}})) ==
        std::vector{How::captured, How::replayed, How::updated});
  const Trace bucketed =
      launches_trace({{"mode", "bucketed"}, {"batches", "3,4,1,5"}, {"buckets", "1,4"}});
  CHECK(hows(bucketed) == std::vector{How::captured, How::replayed, How::captured, How::no_bucket});
  CHECK(bucketed.steps[0].rows == 4);
  CHECK(bucketed.steps[3].rows == 5);
  // Three calls for a step, however many kernels it has.
  const Trace graph = launches_trace({{"mode", "graph"}, {"batches", "3,3"}});
  CHECK(graph.steps[1].calls == 3);
  CHECK(graph.steps[1].kernels == launches_of(2));
  CHECK(graph.nodes.size() == static_cast<std::size_t>(launches_of(2)));
  CHECK(graph.nodes[0].uses == "reads tokens; writes h");
  CHECK(launches_trace({{"mode", "eager"}}).steps[0].calls > launches_of(2));
  CHECK(launches_trace({{"mode", "persistent"}}).steps[0].kernels == 1);
}

TEST_CASE("Launches: a missing dependency changes numbers, and is named with its calls",
          "[launches]") {
  for (const char* mode : {"eager", "graph", "bucketed"}) {
    const Trace trace = launches_trace({{"mode", mode}, {"break", "missing-dependency"}});
    REQUIRE_FALSE(trace.findings.empty());
    CHECK(contains(trace.findings.front().text, "act 1 (call "));
    CHECK(contains(trace.findings.front().text, "reads up, which up 1 (call "));
    if (emulated()) CHECK(wrong_of(trace) > 0);
    CHECK(launches_trace({{"mode", mode}}).findings.empty());
  }
  // In one kernel it is a barrier.
  if (emulated()) {
    CHECK(wrong_of(launches_trace({{"mode", "persistent"}, {"break", "missing-dependency"}})) > 0);
  }
}

TEST_CASE("Launches: a stale pointer computes yesterday's tokens, and is named with its call",
          "[launches]") {
  const Trace trace =
      launches_trace({{"mode", "graph"}, {"batches", "3,3,3"}, {"break", "stale-pointer"}});
  CHECK(trace.steps[0].wrong == 0);
  CHECK(trace.steps[1].wrong > 0);
  REQUIRE_FALSE(trace.findings.empty());
  CHECK(contains(trace.findings.front().text, "embed (call "));
  CHECK(contains(trace.findings.front().text, "uses tokens at the address that was captured"));
  // A launch is given the address of the day, and so is a graph that is captured anew.
  for (const lab::Settings& sound :
       {lab::Settings{{"mode", "eager"}}, lab::Settings{{"mode", "graph"}, {"batches", "3,2,3"}}}) {
    lab::Settings settings = sound;
    settings["break"] = std::string("stale-pointer");
    const Trace other = launches_trace(settings);
    CHECK(wrong_of(other) == 0);
    CHECK(other.findings.empty());
  }
}

TEST_CASE("Launches: a host that waits for every launch keeps the device waiting", "[launches]") {
  const Trace waits = launches_trace({{"break", "host-sync"}}), runs_ahead = launches_trace({});
  CHECK(wrong_of(waits) == 0);
  CHECK(waits.beats > runs_ahead.beats);
  CHECK(waits.steps[0].calls == runs_ahead.steps[0].calls + launches_of(2));
}

TEST_CASE("Launches: work comes behind what it hangs on, in beats too", "[launches]") {
  for (const char* mode : {"eager", "graph", "bucketed", "persistent"}) {
    const Trace trace = launches_trace({{"mode", mode}});
    std::map<int, int> calls_of_beat;
    for (const CallTrace& call : trace.calls) ++calls_of_beat[call.beat];
    for (const auto& [beat, count] : calls_of_beat) CHECK(count == 1);
    for (const WorkTrace& work : trace.works) {
      CHECK(work.beat > trace.calls[static_cast<std::size_t>(work.call)].beat);
      for (const int before : work.after) {
        CHECK(trace.works[static_cast<std::size_t>(before)].beat < work.beat);
      }
    }
    CHECK(trace.steps.back().last_beat == trace.beats);
  }
}

TEST_CASE("Launches: where there is a clock, kernels have times behind their calls", "[launches]") {
  for (const char* mode : {"eager", "graph", "persistent"}) {
    tests::TimedEmulation device(kLaunchTable);
    lab::NoProgress nobody;
    const Trace trace = trace_from_json(lesson().run({{"mode", mode}}, device, nobody).trace);
    CHECK(trace.timed);
    int timed = 0;
    for (const WorkTrace& work : trace.works) {
      if (work.kernel == "copy" || work.kernel == "fill") continue;
      CHECK(work.end_us > work.begin_us);
      CHECK(work.end_us <= trace.span_us);
      const CallTrace& call = trace.calls[static_cast<std::size_t>(work.call)];
      CHECK(work.begin_us + trace.clocks_us >= call.begin_us);
      for (const int before : work.after) {  // times begin anew with each step
        const WorkTrace& its = trace.works[static_cast<std::size_t>(before)];
        if (trace.step_of(its.beat) == trace.step_of(work.beat)) CHECK(its.end_us <= work.begin_us);
      }
      ++timed;
    }
    CHECK(timed == 3 * (std::string_view(mode) == "persistent" ? 1 : launches_of(2)));
  }
  const auto emulated = simt::make_emulated_device(kLaunchTable);
  lab::NoProgress nobody;
  CHECK_FALSE(trace_from_json(lesson().run({}, *emulated, nobody).trace).timed);
}

TEST_CASE("Launches: the dispatcher names what keeps a faster kernel out", "[launches]") {
  CHECK(chosen_for({.m = 4096, .n = 4096, .k = 4096}).kernel == Kernel::tensor);
  CHECK(chosen_for({.m = 15, .n = 4096, .k = 4096}).kernel == Kernel::vectors);
  CHECK(chosen_for({.dtype = Dtype::fp32, .m = 4096, .n = 4096, .k = 4096}).kernel ==
        Kernel::vectors);
  for (const auto& [type, k] : {std::pair{Dtype::bf16, 4095},
                                {Dtype::bf16, 4092},
                                {Dtype::fp8, 4088},
                                {Dtype::fp32, 4094}}) {
    const Choice choice = chosen_for({.dtype = type, .m = 4096, .n = 4096, .k = k});
    CHECK(choice.kernel == Kernel::single);
    CHECK(contains(choice.why, std::to_string(16 / bytes_of(type))));
  }
  const Choice moved = chosen_for({.m = 1, .n = 4096, .k = 4096, .offset = 2});
  CHECK(moved.kernel == Kernel::single);
  CHECK(contains(moved.why, "2 bytes past"));
  CHECK(tiling_of(1, 1).waves == 1);
  CHECK(tiling_of(128 * 66, 512).waves == 1);
  CHECK(tiling_of(128 * 66 + 1, 512).waves == 2);
  CHECK(slowdown(0.2, 5) == Approx(1.8));
}

TEST_CASE("Launches: the bench compares and times all that it has", "[launches]") {
  tests::TimedEmulation device(kLaunchTable);
  const lab::Report report = bench_report(device, tests::unwatched, BenchSizes::tiny());
  tests::check_holds(report);
  CHECK(tests::table_in(report, "costs").rows.size() == 4);
  CHECK(tests::table_in(report, "decode").rows.size() == 2 * 3);
  CHECK(tests::table_in(report, "staircase").rows.size() == 2);
  CHECK(tests::number_in(tests::table_in(report, "staircase"), 1, "tiles") == 2);
  CHECK(tests::table_in(report, "loads").rows.size() == 2);
  BenchSizes quick = BenchSizes::tiny();
  quick.quick = true;
  tests::check_quick(bench_report(device, tests::unwatched, quick), {});
}

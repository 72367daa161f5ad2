// A user's rung and the lesson's own, timed in turn while the rest of the bench stands still.
#include "kernels/base/lab/race.hpp"

#include <set>
#include <string>
#include <vector>

#include "kernels/base/lab/bench.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"

using namespace tilestep;
using namespace tilestep::lab;
using tests::error_of;
using tests::TimedEmulation;

namespace {

/// A bench of two ladders, whose launches say who runs, and as whose kernel.
struct RacingBench {
  TimedEmulation device;
  bool edited = true;
  bool edited_is_right = true;
  std::vector<std::string> log;
  bool went_on = false;

  RacingBench() {
    device.runs_timed_work = true;
    device.clock = [this] {
      if (log.back() == "edited vectorized") return 2.0;
      return log.back() == "built-in coalesced" ? 3.0 : 100.0;
    };
    device.counter = [](const std::string& metric) {
      return metric.starts_with("l1tex__throughput") ? 91.0 : 40.0;
    };
  }

  Rung rung(const std::string& name) {
    const auto launch = [this, name] { log.push_back((edited ? "edited " : "built-in ") + name); };
    const auto verify = [this, launch] {
      launch();
      Closest closest;
      closest.add(edited && !edited_is_right ? 5 : 0, 0, 1);
      return closest;
    };
    return {.name = name,
            .why = "because",
            .configurations = {{.name = "one",
                                .make =
                                    [=] {
                                      return Runnable{launch, verify};
                                    }}},
            .check = "copies_correct"};
  }
  LadderPlan plan(const std::string& rate, const std::vector<std::string>& names) {
    LadderPlan plan;
    plan.rate_id = rate;
    plan.fraction_id = "fraction";
    plan.work = {.bytes_read = 3e6, .bytes_written = 3e6};
    plan.peers = {rung("device")};
    plan.peers[0].rate_id = rate;
    for (const std::string& name : names) plan.rungs.push_back(rung(name));
    return plan;
  }
  Report run() {
    NoProgress progress;
    Ladder ladder(device);
    const Climb other = ladder.climb(plan("other", {"vectorized", "coalesced"}), progress);
    CHECK(other.rungs.size() == 2);
    CHECK(other.peers.front().rate.median == 0);
    CHECK(log.empty());
    ladder.climb(plan("copy_bandwidth", {"strided", "coalesced", "vectorized"}), progress);
    went_on = true;
    return {};
  }
  Report race(const RacePlan& plan) {
    return lab::race(
        plan, [this](bool use) { edited = use; }, device, [this] { return run(); });
  }
};

Request request_of(const std::string& race) {
  Request request;
  request.action = Request::Action::bench;
  request.params = {{"seed", std::int64_t{1}}, {"race", race}};
  request.kernel = KernelEdit{"a.cu", "text"};
  return request;
}

}  // namespace

TEST_CASE("race: two rungs alone are timed in turn, each as its own kernel", "[ladder]") {
  RacingBench bench;
  const Report report = bench.race({"copy_bandwidth", "vectorized", "coalesced"});
  CHECK(!bench.went_on);
  CHECK(bench.edited);  // as it was before
  for (const std::string& each : bench.log) {
    CHECK((each == "edited vectorized" || each == "built-in coalesced"));
  }
  int turns = 0;
  for (std::size_t i = 1; i < bench.log.size(); ++i) turns += bench.log[i] != bench.log[i - 1];
  CHECK(turns >= 6);  // of comparing them, and of three rounds
  const Measurement* got = report.measurement("copy_bandwidth", "vectorized");
  const Measurement* own = report.measurement("copy_bandwidth", "built-in coalesced");
  REQUIRE(got != nullptr);
  REQUIRE(own != nullptr);
  CHECK(got->value == 3);  // GB/s: 6 MB in 2 ms
  CHECK(own->value == 2);
  CHECK(got->samples >= 20);
  CHECK(report.summary == "busiest is L1 and shared memory, at 91 % of its peak (counted)");
  CHECK(report.ok());
}

TEST_CASE("race: a rung against itself, and one that is wrong", "[ladder]") {
  RacingBench bench;
  bench.edited_is_right = false;
  const Report report = bench.race({"copy_bandwidth", "vectorized", "vectorized"});
  CHECK(report.measurement("copy_bandwidth", "vectorized") == nullptr);
  CHECK(report.measurement("copy_bandwidth", "built-in vectorized") != nullptr);
  CHECK(!report.ok());
}

TEST_CASE("race: a bench without these rungs says so", "[ladder]") {
  RacingBench bench;
  const std::string error = error_of([&] {
    bench.race({"copy_bandwidth", "vectorized", "another"});
  });
  CHECK(error == "no ladder has the rate copy_bandwidth of both vectorized and another");
  CHECK(Race::under_way() == nullptr);
}

TEST_CASE("race: what a request says of it", "[ladder]") {
  const RacePlan plan{"copy_bandwidth", "vectorized", "coalesced"};
  const Request request = request_of(text_of(plan));
  const auto read = race_of(request);
  REQUIRE(read.has_value());
  CHECK(read->rate_id == plan.rate_id);
  CHECK(read->edited == plan.edited);
  CHECK(read->built_in == plan.built_in);
  CHECK(params_of(request).size() == 1);
  Request none = request;
  none.params.erase("race");
  CHECK(!race_of(none));
  CHECK_THROWS_AS(race_of(request_of("copy_bandwidth vectorized")), Error);
  CHECK_THROWS_AS(race_of(request_of("a b c d")), Error);
  Request unedited = request;
  unedited.kernel.reset();
  CHECK_THROWS_AS(race_of(unedited), Error);
  Request run = request;
  run.action = Request::Action::run;  // there it is a knob that no lesson has
  CHECK(!race_of(run));
  CHECK(params_of(run).contains("race"));
}

TEST_CASE("race: of a lesson's whole bench the two rungs are left", "[ladder]") {
  TimedEmulation device;
  device.pretend().memory_bytes = std::size_t{1} << 20;
  NoProgress progress;
  std::set<bool> chosen;
  const Report report = lab::race(
      {"transpose_bandwidth", "shared-tile-padded", "shared-tile"},
      [&](bool edited) { chosen.insert(edited); }, device,
      [&] { return lesson("coalescing").bench(device, progress); });
  CHECK(chosen.size() == 2);
  CHECK(report.measurement("transpose_bandwidth", "shared-tile-padded") != nullptr);
  CHECK(report.measurement("transpose_bandwidth", "built-in shared-tile") != nullptr);
  CHECK(report.measurement("transpose_bandwidth", "naive") == nullptr);
  CHECK(report.measurement("copy_bandwidth", "vectorized") == nullptr);
  tests::check_holds(report);
}

#include <algorithm>
#include <cmath>

#include "kernels/base/lab/bench.hpp"
#include "kernels/base/lab/quick.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"

using namespace tilestep;
using namespace tilestep::lab;
using tests::error_of;
using tests::TimedEmulation;

namespace {

/// A ladder of launches that do nothing but say who runs; the clock shows a time by name.
struct Script {
  TimedEmulation device;
  std::string running;
  std::map<std::string, double> ms;    ///< by name
  std::map<std::string, double> off;   ///< by name: the error of its result; 1 is allowed
  std::vector<std::string> log;        ///< "verify naive", "time naive"
  std::map<std::string, int> samples;  ///< by name
  std::map<std::string, double> ran_ms;

  Script() {
    device.runs_timed_work = true;
    device.clock = [this] {
      ++samples[running];
      ran_ms[running] += ms.at(running);
      return ms.at(running);
    };
  }

  Configuration configuration(const std::string& name) {
    return {.name = name, .make = [this, name]() -> Runnable {
              return {[this, name] {
                        running = name;
                        log.push_back("time " + name);
                      },
                      [this, name] {
                        log.push_back("verify " + name);
                        Closest closest;
                        closest.add(off[name], 0, 1);
                        return closest;
                      }};
            }};
  }
  Rung rung(const std::string& name, const std::vector<std::string>& configurations) {
    Rung rung{.name = name,
              .why = "because of " + name,
              .configurations = {},
              .check = "ladder_" + name,
              .check_detail = "rounding"};
    for (const std::string& one : configurations) rung.configurations.push_back(configuration(one));
    return rung;
  }

  /// naive takes 4 ms; tiled 3 ms or, in its second configuration, 2 ms; the peer 1 ms.
  LadderPlan plan() {
    ms = {{"naive", 4}, {"tiled-16", 3}, {"tiled-32", 2}, {"copy", 1}};
    LadderPlan plan;
    plan.peers = {rung("copy", {"copy"})};
    plan.peers[0].rate_id = "copy_bandwidth";
    plan.rungs = {rung("naive", {"naive"}), rung("tiled", {"tiled-16", "tiled-32"})};
    plan.work = {.bytes_read = 3e6, .bytes_written = 1e6};
    plan.shape = "1000 rows";
    plan.note = "each once";
    plan.rate_id = "bandwidth";
    plan.fraction_id = "fraction_of_copy";
    plan.time_id = "time";
    plan.cells = {{"rows", 1000}};
    return plan;
  }
};

/// Runs without repeats: "time a", "time a", "time b" is "time a", "time b".
std::vector<std::string> turns(std::vector<std::string> log) {
  log.erase(std::unique(log.begin(), log.end()), log.end());
  return log;
}

/// Gives up at the n-th question.
struct GivesUp final : Progress {
  explicit GivesUp(int at) : left(at) {}
  mutable int left;
  std::vector<double> fractions = {};
  void report(double fraction, std::string_view) override { fractions.push_back(fraction); }
  bool cancelled() const override { return --left < 0; }
};

}  // namespace

TEST_CASE("all comparisons come before any timing, then rungs and peers take turns", "[ladder]") {
  Script script;
  NoProgress progress;
  const LadderPlan plan = script.plan();
  Ladder ladder(script.device);
  ladder.climb(plan, progress);
  CHECK(turns(script.log) == std::vector<std::string>{"verify copy", "verify naive",
                                                      "verify tiled-16", "verify tiled-32",
                                                      // to choose
                                                      "time tiled-16", "time tiled-32",
                                                      // rounds
                                                      "time copy", "time naive", "time tiled-32",
                                                      "time copy", "time naive", "time tiled-32",
                                                      "time copy", "time naive", "time tiled-32"});
}

TEST_CASE("the best configuration of a rung is timed anew", "[ladder]") {
  Script script;
  NoProgress progress;
  const LadderPlan plan = script.plan();
  Ladder ladder(script.device);
  const Climb climb = ladder.climb(plan, progress);
  REQUIRE(climb.rungs.size() == 2);
  REQUIRE(climb.configurations.size() == 2);
  const Timed& tiled = climb.rungs[1];
  CHECK(tiled.configuration == "tiled-32");
  CHECK(tiled.chosen == 1);
  CHECK(tiled.time_ms.median == 2);
  CHECK(tiled.rate.median == Approx(2.0));  // 4 MB in 2 ms
  CHECK(tiled.rate.samples >= 20);
  CHECK(tiled.number("fraction") == 0.5);
  CHECK(tiled.number("rows") == 1000);
  CHECK(std::get<std::string>(tiled.cells.at("why")) == "because of tiled");
  CHECK(climb.peers.front().number("fraction") == 1);
  CHECK(climb.configurations[0].number("bandwidth") == Approx(4.0 / 3));
  CHECK(climb.configurations[0].number("fraction") == Approx(1.0 / 3));
}

TEST_CASE("what was timed becomes measurements, checks and tables by id", "[ladder]") {
  Script script;
  NoProgress progress;
  const LadderPlan plan = script.plan();
  Ladder ladder(script.device);
  const Climb climb = ladder.climb(plan, progress);
  Report report;
  report.measurements = climb.measurements;
  const Measurement* rate = report.measurement("bandwidth", "tiled");
  REQUIRE(rate != nullptr);
  CHECK(rate->provenance == Provenance::measured);
  CHECK(rate->unit == "GB/s");
  CHECK(rate->samples >= 20);
  CHECK(rate->p10 == rate->p90);
  CHECK(rate->detail == "1000 rows, tiled-32; each once");
  CHECK(report.measurement("time", "naive")->value == 4);
  CHECK(report.measurement("fraction_of_copy", "naive")->value == 0.25);
  CHECK(report.measurement("fraction_of_copy", "naive")->provenance == Provenance::derived);
  CHECK(report.measurement("copy_bandwidth", "copy")->value == Approx(4.0));

  const std::vector<Check> checks = ladder.checks();
  REQUIRE(checks.size() == 3);
  CHECK(checks[1].id == "ladder_naive");
  CHECK(checks[1].detail == "rounding");
  CHECK(checks[1].tolerance == 1);

  const Table table =
      table_of("ladder", "The ladder",
               {{"rung"}, {"rows"}, {"bandwidth"}, {"fraction", "of copy"}, {"no"}}, climb.rungs);
  CHECK(table.columns[2].unit == "GB/s");
  CHECK(table.columns[2].decimals == 0);
  CHECK(table.columns[3].label == "of copy");
  CHECK(table.text(1, 0) == "tiled");
  CHECK(table.text(1, 1) == "1000");
  CHECK(table.text(1, 3) == "0.500");
  CHECK(table.text(1, 4).empty());
}

TEST_CASE("a peer that times itself takes its turns with the others", "[ladder]") {
  Script script;
  LadderPlan plan = script.plan();
  std::vector<double> settled;
  plan.peers[0].configurations[0].make = [&]() -> Runnable {
    const auto times = [&](const Pace& pace) {
      settled.push_back(pace.settle_ms);
      script.log.push_back("time elsewhere");
      return std::vector<double>(20, 0.5);
    };
    return {.launch = {}, .verify = {}, .times = times};
  };
  NoProgress progress;
  const Climb climb = Ladder(script.device).climb(plan, progress);
  CHECK(settled == std::vector<double>(static_cast<std::size_t>(plan.rounds), plan.turn.settle_ms));
  CHECK(climb.peers.at(0).time_ms.median == 0.5);
  CHECK(climb.rungs.at(0).number("fraction") == 0.5 / 4);
}

TEST_CASE("a wrong configuration fails its rung's check and is not timed", "[ladder]") {
  Script script;
  NoProgress progress;
  LadderPlan plan = script.plan();
  script.off = {{"tiled-32", 2}, {"naive", std::nan("")}};
  Ladder ladder(script.device);
  const Climb climb = ladder.climb(plan, progress);
  CHECK(climb.rungs[1].configuration == "tiled-16");
  CHECK_FALSE(climb.rungs[0].timed());
  CHECK(climb.rungs[0].chosen == -1);
  CHECK(climb.rungs[0].cells.contains("rung"));
  CHECK_FALSE(climb.rungs[0].cells.contains("rate"));
  CHECK(script.samples["naive"] == 0);
  CHECK(script.samples["tiled-32"] == 0);
  for (const Check& check : ladder.checks()) {
    CHECK(check.ok == (check.id == "ladder_copy"));
  }
  for (const Measurement& m : climb.measurements) CHECK(m.variant != "naive");
}

TEST_CASE("a configuration may have a check of its own", "[ladder]") {
  Script script;
  NoProgress progress;
  LadderPlan plan = script.plan();
  plan.rungs[1].configurations[1].check = "tiled, 32";
  script.off = {{"tiled-32", 2}};
  Ladder ladder(script.device);
  ladder.climb(plan, progress);
  for (const Check& check : ladder.checks()) CHECK(check.ok == (check.id != "tiled, 32"));
  CHECK(ladder.checks().size() == 4);
}

TEST_CASE("each turn begins with 0.6 s of the kernel itself", "[ladder]") {
  Script script;
  NoProgress progress;
  const LadderPlan plan = script.plan();
  Ladder ladder(script.device);
  const Climb climb = ladder.climb(plan, progress);
  // Three turns, and what counted.
  const double counted_ms = 4.0 * climb.rungs[0].rate.samples;
  CHECK(script.ran_ms["naive"] >= 3 * 600 + counted_ms);
  CHECK(script.ran_ms["naive"] < 1.5 * (3 * 600 + counted_ms));
}

TEST_CASE("a quick ladder is one short round, with nothing counted", "[ladder]") {
  Script script;
  NoProgress progress;
  LadderPlan plan = script.plan();
  plan.counters = {{"instructions", "million", {{"a.sum"}}}};
  const Climb climb = Ladder(script.device).climb(quick(plan), progress);
  CHECK(climb.rungs[0].rate.samples == kQuickTurn.samples);
  CHECK(script.ran_ms["naive"] < 4 * kQuickTurn.settle_ms);
  CHECK_FALSE(climb.rungs[0].cells.contains("instructions"));
  CHECK(climb.rungs[1].configuration == "tiled-32");
}

TEST_CASE("a kernel warms up until two batches take the same time", "[ladder]") {
  TimedEmulation device;
  NoProgress progress;
  // A clock that falls for a second, as a GPU's does under load.
  double ran_ms = 0;
  device.clock = [&] {
    const double ms = ran_ms < 1000 ? 1 + ran_ms / 1000 : 2;
    ran_ms += ms;
    return ms;
  };
  const std::vector<double> times = settled_times(
      device, progress, [] {}, kShown, false);
  CHECK(times.size() == static_cast<std::size_t>(kShown.samples));
  CHECK(*std::min_element(times.begin(), times.end()) == 2);

  // One that never settles is timed after three times the settling time.
  ran_ms = 0;
  device.clock = [&] {
    const double ms = 1 + ran_ms / 500;
    ran_ms += ms;
    return ms;
  };
  settled_times(
      device, progress, [] {}, kShown, false);
  CHECK(ran_ms > 3 * kShown.settle_ms);
  CHECK(ran_ms < 5 * kShown.settle_ms);
}

TEST_CASE("slow kernels get fewer samples, too slow ones none", "[ladder]") {
  TimedEmulation device;
  NoProgress progress;
  device.clock = [] { return 500.0; };
  CHECK(settled_times(
            device, progress, [] {}, kShown, false)
            .size() == 20);
  device.clock = [] { return 4000.0; };
  CHECK(settled_times(
            device, progress, [] {}, kShown, false)
            .empty());

  Script script;
  const LadderPlan plan = script.plan();
  script.ms["naive"] = 1e5;
  Ladder ladder(script.device);
  const Climb climb = ladder.climb(plan, progress);
  CHECK_FALSE(climb.rungs[0].timed());
  CHECK(climb.rungs[1].timed());
}

TEST_CASE("a spread over 10 % is unstable and withholds what is derived from it", "[ladder]") {
  Script script;
  NoProgress progress;
  const LadderPlan plan = script.plan();
  script.device.clock = [&, i = 0]() mutable {
    ++i;
    const double ms = script.ms.at(script.running);
    return script.running == "tiled-32" && i % 2 == 0 ? 1.3 * ms : ms;
  };
  Ladder ladder(script.device);
  const Climb climb = ladder.climb(plan, progress);
  Report report;
  report.measurements = climb.measurements;
  const Measurement* rate = report.measurement("bandwidth", "tiled");
  REQUIRE(rate != nullptr);
  CHECK_FALSE(rate->stable());
  CHECK_FALSE(climb.rungs[1].cells.contains("fraction"));
  CHECK(report.measurement("fraction_of_copy", "tiled") == nullptr);
  CHECK(report.measurement("fraction_of_copy", "naive") != nullptr);
  CHECK(headline(rate, 1).starts_with("unstable: 1.5–2.0"));
  CHECK(headline(report.measurement("bandwidth", "naive"), 1) == "1.0 GB/s");
  CHECK(headline(nullptr, 1) == "not timed");
}

TEST_CASE("a climb that is given up stops, wherever it is", "[ladder]") {
  Script script;
  const LadderPlan plan = script.plan();
  GivesUp patient(1 << 20);
  Ladder(script.device).climb(plan, patient);
  const int questions = (1 << 20) - patient.left;
  REQUIRE(questions > 20);
  CHECK(std::is_sorted(patient.fractions.begin(), patient.fractions.end()));
  CHECK(patient.fractions.front() == 0);
  CHECK(patient.fractions.back() > 0.8);
  CHECK(patient.fractions.back() <= 1);
  for (const int at : {0, 3, 5, questions / 2, questions - 1}) {
    GivesUp impatient(at);
    CHECK_THROWS_AS(Ladder(script.device).climb(plan, impatient), Cancelled);
  }
}

TEST_CASE("counters run apart, and one that the chip lacks leaves its cell empty", "[ladder]") {
  Script script;
  NoProgress progress;
  LadderPlan plan = script.plan();
  plan.counters = {{"instructions", "million", {{"new.sum"}, {"a.sum", "b.sum"}}, 0.5},
                   {"missing", "", {{"new.sum"}}}};
  plan.rungs[0].counted = false;
  script.device.counter = [](const std::string& metric) {
    if (metric == "new.sum") throw Error("no such metric: " + metric);
    return 10.0;
  };
  Ladder ladder(script.device);
  Climb climb = ladder.climb(plan, progress);
  CHECK(climb.rungs[1].number("instructions") == 10);
  CHECK_FALSE(climb.rungs[1].cells.contains("missing"));
  CHECK_FALSE(climb.rungs[0].cells.contains("instructions"));
  Report report;
  report.measurements = climb.measurements;
  CHECK(report.measurement("instructions", "tiled")->provenance == Provenance::counted);
  CHECK(report.measurement("missing") == nullptr);
}

TEST_CASE("climbs add up, and checks of one id are one check", "[ladder]") {
  Script script;
  NoProgress progress;
  const LadderPlan plan = script.plan();
  Ladder ladder(script.device);
  Climb climb = ladder.climb(plan, progress);
  climb.add(ladder.climb(plan, progress));
  CHECK(climb.rungs.size() == 4);
  CHECK(climb.peers.size() == 2);
  CHECK(climb.configurations.size() == 4);
  Closest wrong;
  wrong.add(3, 0, 1);
  ladder.judge("ladder_naive", "", wrong);
  CHECK(ladder.checks().size() == 3);
  CHECK_FALSE(ladder.checks()[1].ok);
}

TEST_CASE("large arrays repeat what the host knows", "[ladder]") {
  TimedEmulation device;
  const std::vector<int> period = {3, 1, 4, 1, 5};
  simt::Buffer<int> large(device, 23), small(device, 3);
  fill_with<int>(device, large, period);
  fill_with<int>(device, small, period);
  for (std::size_t i = 0; i < 23; ++i) CHECK(large.download()[i] == period[i % 5]);
  CHECK(small.download() == std::vector<int>{3, 1, 4});
  CHECK(large.download(20, 3) == std::vector<int>{3, 1, 4});
  const Repeated<int> repeated(device, 23, period);
  std::vector<int> there(3);
  device.copy_out(there.data(), repeated.span().data + 18, 3 * sizeof(int));
  CHECK(there == std::vector<int>{1, 5, 3});
  CHECK(repeated.values(18, 3) == there);
}

TEST_CASE("a launch that writes nothing is judged by NaN", "[ladder]") {
  TimedEmulation device;
  simt::Buffer<float> output(device, 1);
  output.fill(0);
  const auto compare = [&] {
    Closest closest;
    closest.add(output.download().front(), 0, 1);
    return closest;
  };
  CHECK_FALSE(judged(
                  device, output, [] {}, compare)
                  .verify()
                  .ok());
  CHECK(judged(
            device, output, [&] { output.fill(0); }, compare)
            .verify()
            .ok());
}

TEST_CASE("what the climbs of a bench measured is in its report", "[ladder]") {
  Script script;
  NoProgress progress;
  Bench bench{script.device, progress};
  const Climb climb = bench.climb(script.plan(), 0, 0.5);
  CHECK_FALSE(climb.measurements.empty());
  CHECK(bench.report.measurements.size() == climb.measurements.size());
  bench.add_table("ladder", "The ladder", {"rung", "bandwidth"}, climb.rungs);
  CHECK(bench.report.table("ladder")->rows.size() == climb.rungs.size());
}

TEST_CASE("a bench that takes sizes gets the default ones from its lesson", "[ladder]") {
  struct NoParams {};
  struct Sizes {
    int edge = 4096;
  };
  Report (*bench)(simt::Device&, Progress&, const Sizes&) = [](simt::Device&, Progress&,
                                                               const Sizes& sizes) {
    Report report;
    report.summary = std::to_string(sizes.edge);
    return report;
  };
  const LessonOf<NoParams> lesson({"sample", "A sample", "Samples"}, "Takeaway.",
                                  KnobTable<NoParams>(), nullptr, bench);
  TimedEmulation device;
  NoProgress progress;
  CHECK(lesson.bench(device, progress).summary == "4096");
}

TEST_CASE("a device that cannot time is refused", "[ladder]") {
  simt::emulated::EmulatedDevice device({}, {});
  CHECK(error_of([&] { require_timing(device, "the ladder"); }).find("emulation") !=
        std::string::npos);
}

#include <cassert>
#include <cmath>
#include <limits>

#include "kernels/base/lab/lesson.hpp"
#include "kernels/base/lab/recording.hpp"
#include "kernels/base/lab/report.hpp"
#include "kernels/base/lab/timing.hpp"
#include "tests/catch.hpp"

using namespace tilestep;
using namespace tilestep::lab;
using tests::error_of;

namespace {

enum class Temper { calm, wild };
struct Voice {
  int count = 4;
  double strength = 0.5;
  bool loud = false;
  Temper mood = Temper::wild;
};

KnobTable<Voice> knob_table() {
  return KnobTable<Voice>()
      .integer(&Voice::count, {"count", "Count", "", "How many."}, 1, 1024)
      .real(&Voice::strength, {"strength", "Strength", "dB", "How strong."}, 0, 2)
      .toggle(&Voice::loud, {"loud", "Loud", "", "Whether."})
      .choice(&Voice::mood, {"mood", "Temper", "", "Which."}, {"calm", "wild"});
}

Report sample_report() {
  Report report;
  report.lesson = "sample";
  report.params = {{"count", std::int64_t{4}}, {"loud", true}};
  report.summary = "One \"quoted\" sentence.";
  report.device.backend = "emulated";
  report.device.name = "CPU";
  Table table{"rows", "Rows", {{"a", "a", "", 1}, {"b", "b", "GB/s", -1}, {"c", "c", "", 3}}, {}};
  table.rows.push_back({2.46, std::string("x,|y"), -0.0001});
  table.rows.push_back({std::numeric_limits<double>::infinity(), {}, std::nan("")});
  report.tables.push_back(table);
  Measurement m;
  m.id = "bandwidth";
  m.variant = "one-read";
  m.provenance = Provenance::measured;
  m.value = 100;
  m.unit = "GB/s";
  m.p10 = 98;
  m.p90 = 101;
  m.samples = 30;
  report.measurements.push_back(m);
  report.checks.push_back({"output", true, 1e-7, 1e-6, "n·u"});
  report.trace = nlohmann::json{{"m", {1.0, "-inf"}}};
  return report;
}

}  // namespace

TEST_CASE("tests run with assertions on", "[lab]") {
  bool on = false;
  assert((on = true));
  CHECK(on);
}

TEST_CASE("a knob takes what it allows and names it when it refuses", "[lab]") {
  const Knobs knobs = knob_table().knobs();
  Settings settings;
  knobs.set(settings, "count=1024");
  knobs.set(settings, "strength=1.5");
  knobs.set(settings, "loud=on");
  knobs.set(settings, "mood=calm");
  const Voice params = knob_table().params(settings);
  CHECK(params.count == 1024);
  CHECK(params.strength == 1.5);
  CHECK(params.loud);
  CHECK(params.mood == Temper::calm);
  CHECK(knob_table().settings(params) == settings);

  for (const char* bad : {"count=0", "count=1025", "count=2.5", "count=", "count=x", "count= 3"}) {
    CAPTURE(bad);
    CHECK(error_of([&] { knobs.set(settings, bad); }).find("1–1024") != std::string::npos);
  }
  for (const char* bad : {"strength=-0.1", "strength=nan", "strength=inf", "strength=2,0"}) {
    CAPTURE(bad);
    CHECK(error_of([&] { knobs.set(settings, bad); }).find("0–2") != std::string::npos);
  }
  CHECK(error_of([&] { knobs.set(settings, "loud=maybe"); }).find("true or false") !=
        std::string::npos);
  CHECK(error_of([&] { knobs.set(settings, "mood=odd"); }).find("calm, wild") != std::string::npos);
  CHECK(error_of([&] { knobs.set(settings, "size=1"); }).find("count, strength, loud, mood") !=
        std::string::npos);
  CHECK(error_of([&] { knobs.set(settings, "count"); }).find("knob=value") != std::string::npos);
}

TEST_CASE("settings are completed with the defaults and checked by type", "[lab]") {
  const Knobs knobs = knob_table().knobs();
  CHECK(knobs.completed({}) == knobs.defaults());
  CHECK(std::get<std::int64_t>(knobs.completed({{"count", 7.0}}).at("count")) == 7);
  CHECK(std::get<double>(knobs.completed({{"strength", std::int64_t{1}}}).at("strength")) == 1.0);
  CHECK_THROWS_AS(knobs.completed({{"count", 7.5}}), Error);
  CHECK_THROWS_AS(knobs.completed({{"count", std::string("7")}}), Error);
  CHECK_THROWS_AS(knobs.completed({{"loud", std::int64_t{1}}}), Error);
}

TEST_CASE("a table shows rounded numbers in every form", "[lab]") {
  const Table table = sample_report().tables.front();
  CHECK(table.text(0, 0) == "2.5");
  CHECK(table.text(0, 2) == "0.000");
  CHECK(table.text(1, 0) == "inf");
  CHECK(table.text(1, 1).empty());
  CHECK(table.text(1, 2) == "nan");
  CHECK(table.to_csv() == "a,b,c\n2.5,\"x,|y\",0.000\ninf,,nan\n");
  CHECK(table.to_markdown().find("| a | b (GB/s) | c |") == 0);
  CHECK(table.to_markdown().find("x,\\|y") != std::string::npos);
}

TEST_CASE("a column has the unit and decimals that are usual for its id, unless it says", "[lab]") {
  CHECK(Column("bandwidth").unit == "GB/s");
  CHECK(column("bandwidth", "measured").decimals == 0);
  CHECK(column("bandwidth", "measured").label == "measured");
  CHECK(real("p10", "", "TFLOP/s", 1).label == "p10");
  CHECK(real("p10", "", "TFLOP/s", 1).unit == "TFLOP/s");
  CHECK(whole("kept", "kept tokens").decimals == 0);
  CHECK(Column("rung").decimals == -1);
}

TEST_CASE("a report survives JSON, non-finite numbers included", "[lab]") {
  const nlohmann::json json = to_json(sample_report());
  CHECK(json["tables"][0]["rows"][0][0] == 2.5);
  CHECK(json["tables"][0]["rows"][1][0] == "inf");
  CHECK(json["measurements"][0]["provenance"] == "measured");
  CHECK(json["device"]["recorded_at"].is_null());
  const Report back = report_from_json(nlohmann::json::parse(json.dump()));
  CHECK(to_json(back) == json);
  CHECK(back.ok());
  CHECK(back.measurement("bandwidth", "one-read") != nullptr);
  CHECK(back.measurement("bandwidth", "other") == nullptr);
}

TEST_CASE("a broken report says what is wrong with it", "[lab]") {
  nlohmann::json json = to_json(sample_report());
  json.erase("summary");
  CHECK(error_of([&] { report_from_json(json); }).find("'summary' is missing") !=
        std::string::npos);
  json = to_json(sample_report());
  json["tables"][0]["rows"][0] = {1};
  CHECK(error_of([&] {
          report_from_json(json);
        }).find("'tables[0].rows[0]' must have 3 entries, but has 1") != std::string::npos);
  json = to_json(sample_report());
  json["measurements"][0]["provenance"] = "guessed";
  CHECK(error_of([&] { report_from_json(json); }).find("recorded") != std::string::npos);
  CHECK_THROWS_AS(report_from_json(nlohmann::json::array()), Error);
}

TEST_CASE("a request names what it allows", "[lab]") {
  const auto back = request_from_json(to_json(Request{"x", {}, Request::Action::bench, "cuda"}));
  CHECK(back.action == Request::Action::bench);
  CHECK(back.backend == "cuda");
  CHECK(error_of([] {
          request_from_json({{"lesson", "x"}, {"action", "fly"}});
        }).find("run, bench") != std::string::npos);
  CHECK(error_of([] {
          request_from_json({{"lesson", "x"}, {"backend", "tpu"}});
        }).find("auto, cuda, emulated, recorded") != std::string::npos);
  CHECK(error_of([] { request_from_json({{"params", 3}}); }).find("lesson") != std::string::npos);
}

TEST_CASE("what a recording holds is recorded, never measured", "[lab]") {
  Recording recording{"sample", "2026-01-02", "events", sample_report(), sample_report()};
  const Recording back = recording_from_json(to_json(recording));
  const Measurement& m = back.bench.measurements.front();
  CHECK(m.provenance == Provenance::recorded);
  CHECK(m.device == "CPU");
  CHECK(m.recorded_at == "2026-01-02");
  for (const Recording* built_in : recordings()) {
    CHECK_FALSE(built_in->bench.measurements.empty());
    for (const Measurement& one : built_in->bench.measurements) {
      CHECK(one.provenance != Provenance::measured);
    }
  }
}

TEST_CASE("a wide spread is called unstable", "[lab]") {
  Measurement m;
  m.value = 100;
  CHECK(m.stable());
  m.p10 = 96;
  m.p90 = 105;
  CHECK(m.stable());
  m.p90 = 107;
  CHECK_FALSE(m.stable());
}

TEST_CASE("samples become median, spread and rate", "[lab]") {
  const Spread spread = spread_of({5, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11});
  CHECK(spread.median == 6);
  CHECK(spread.p10 == 2);
  CHECK(spread.p90 == 10);
  CHECK(spread.samples == 11);
  CHECK(spread_of({4, 2}).median == 3);
  const Spread rate = rate_of(spread, 6e9);
  CHECK(rate.median == Approx(1000));
  CHECK(rate.p10 == Approx(600));
  CHECK(rate.p90 == Approx(3000));
  CHECK_THROWS_AS(spread_of({}), Error);
}

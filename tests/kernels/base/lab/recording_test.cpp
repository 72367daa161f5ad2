// Recordings: how they are made, what their files hold, which one is nearest.

#include "kernels/base/lab/recording.hpp"

#include <fmt/format.h>

#include "kernels/base/lab/check.hpp"
#include "kernels/base/lab/compare.hpp"
#include "kernels/base/lab/nearest.hpp"
#include "kernels/base/lab/quick.hpp"
#include "kernels/base/lab/race.hpp"
#include "kernels/base/lab/record.hpp"
#include "kernels/base/lab/timing.hpp"
#include "kernels/base/simt/source_hash.hpp"
#include "tests/kernels/base/lab/timed_emulation.hpp"

using namespace tilestep;
using tests::contains;
using tests::error_of;

namespace {

struct Recorded {
  int count = 8;
  int width = 4;
  double limit = 0;
  bool loud = false;
};

lab::KnobTable<Recorded> recorded_table() {
  return lab::KnobTable<Recorded>()
      .integer(&Recorded::count, {"count", "How many."}, 1, 64, true)
      .integer(&Recorded::width, {"width", "How wide."}, 0, 100)
      .real(&Recorded::limit, {"limit", "How much."}, 0.5, 4, false, "off")
      .toggle(&Recorded::loud, {"loud", "How loud."});
}

lab::Report run(const Recorded& params, simt::Device&, lab::Progress&) {
  if (params.count == 64) throw Error("64 is too many here");
  lab::Report report;
  report.summary = "a run";
  report.add(lab::counted("counted", "", params.count, "", "how"));
  report.add(lab::none_wrong("sum", params.loud ? 1 : 0, "wrong sums"));
  report.trace =
      nlohmann::json{{"numbers", std::vector<int>(static_cast<std::size_t>(params.width), 1)}};
  return report;
}

lab::Report bench(simt::Device&, lab::Progress&) {
  lab::Report report;
  if (lab::QuickBench::asked()) lab::leave_out(report, {"FP8", "the rest"});
  lab::Measurement rate = lab::counted("rate", "", 5, "GB/s", "how");
  rate.provenance = lab::Provenance::measured;
  report.add(rate);
  return report;
}

using SampleLesson = lab::LessonOf<Recorded>;
SampleLesson sample(const std::vector<SampleLesson::Told>& told) {
  static constexpr lab::LessonName kSample{"sample", "A sample", "Samples"};
  return SampleLesson(kSample, "It is small.", recorded_table(), run, bench).with_telling(told);
}

const SampleLesson kSample = sample({{"wide", "Many numbers.", {.width = 100}},
                                     {"few", "Few of them.", {.count = 2}},
                                     {"loud", "It breaks.", {.loud = true}}});

lab::Recorded recorded_sample(const lab::Lesson& lesson) {
  tests::TimedEmulation device;
  const auto ask = [&](const lab::Request& request) {
    lab::NoProgress progress;
    CHECK(request.lesson == "sample");
    CHECK(request.backend == "cuda");
    lab::Report report = request.action == lab::Request::Action::bench
                             ? lesson.bench(device, progress)
                             : lesson.run(request.params, device, progress);
    // As a lab may say it beside.
    report.turn = lab::TurnTimes{};
    lab::Measurement older = lab::counted("older", "", 5, "GB/s", "how");
    older.recorded_at = "2025-12-31";
    for (const auto provenance : {lab::Provenance::recorded, lab::Provenance::derived}) {
      older.provenance = provenance;
      older.variant += "x";
      report.add(older);
    }
    return report;
  };
  return lab::record(lesson, ask, "2026-01-02", "1.2.3");
}

}  // namespace

TEST_CASE("a quick bench says so in JSON, and is no recording", "[lab]") {
  tests::TimedEmulation device;
  lab::NoProgress progress;
  {
    const lab::QuickBench quick(true);
    const lab::Report report = kSample.bench(device, progress);
    CHECK(lab::left_out(lab::report_from_json(to_json(report))) == "FP8, the rest");
    CHECK(contains(error_of([] { recorded_sample(kSample); }),
                   "a quick bench of 'sample' is not a recording: it omits FP8, the rest"));
  }
  CHECK(lab::left_out(kSample.bench(device, progress)).empty());
  lab::Request request{"coalescing", {{"quick", true}}, lab::Request::Action::bench};
  CHECK(lab::is_quick(request));
  CHECK(lab::params_of(request).empty());
  request.params["quick"] = std::string("yes");
  CHECK(contains(error_of([&] { (void)lab::is_quick(request); }), "quick is true or false"));
  request.action = lab::Request::Action::run;
  CHECK_FALSE(lab::is_quick(request));
}

TEST_CASE("a lesson is recorded at its defaults, at its telling settings and timed", "[lab]") {
  const lab::Recorded all = recorded_sample(kSample);
  const auto files = lab::files_of(all);
  REQUIRE(files.size() == 4);
  CHECK(files[0].name == "sample.json");
  CHECK(files[1].name == "sample/wide.json");
  CHECK(files[3].name == "sample/loud.json");
  CHECK_FALSE(all.ok());  // one of its runs is broken on purpose, and says so
  CHECK(recorded_sample(sample({})).ok());
  for (const lab::Report* report : {&all.recording.run, &all.recording.bench, &all.runs[0].run}) {
    CHECK_FALSE(report->turn);
    for (const lab::Measurement& number : report->measurements) CHECK(number.id != "older");
  }

  const lab::Recording back =
      lab::recording_from_json(lab::recording_json(files[0].text, files[0].name));
  CHECK(back.lesson == "sample");
  CHECK(back.run.params == kSample.knobs().defaults());
  CHECK(back.bench.measurement("rate")->provenance == lab::Provenance::recorded);
  CHECK(back.made_by.version == lab::kRecordingVersion);
  CHECK(back.made_by.program == "1.2.3");
  CHECK(back.made_by.source_hash == simt::source_hash());

  const lab::RecordedRun wide =
      lab::recorded_run_from_json(lab::recording_json(files[1].text, files[1].name));
  CHECK(wide.set == "wide");
  CHECK(wide.run.params == kSample.knobs().completed({{"width", std::int64_t{100}}}));
  CHECK(wide.run.trace->at("numbers").size() == 100);
  CHECK(wide.run.recorded_at == "2026-01-02");
  CHECK(wide.run.device.name == "pretended");
  // What the hardware counted then, it does not count now.
  CHECK(wide.run.measurement("counted")->provenance == lab::Provenance::recorded);
  CHECK(wide.made_by.source_hash == simt::source_hash());
}

TEST_CASE("what cannot be recorded names the settings", "[lab]") {
  const SampleLesson lesson = sample({{"most", "As many as there are.", {.count = 64}}});
  CHECK(error_of([&] { recorded_sample(lesson); }) == "'most' of 'sample': 64 is too many here");
  lab::Recorded all = recorded_sample(kSample);
  all.runs[0].run.summary = std::string(lab::kMostRecordingBytes, 'x');
  CHECK(contains(error_of([&] { lab::files_of(all); }), "sample/wide.json"));
  CHECK(contains(error_of([&] { lab::files_of(all); }), "at most 300000 are kept"));
}

TEST_CASE("a recording from before there were versions still loads", "[lab]") {
  auto json = lab::to_json(recorded_sample(kSample).recording);
  for (const char* later : {"version", "program", "source_hash"}) json.erase(later);
  const lab::Recording old = lab::recording_from_json(json);
  CHECK(old.made_by.version == 1);
  CHECK(old.made_by.source_hash.empty());
}

TEST_CASE("what is no recording is refused in a sentence", "[lab]") {
  const auto refusal = [](const std::string& text) {
    return error_of([&] { lab::recording_json(text, "the file"); });
  };
  const std::string text = lab::files_of(recorded_sample(kSample))[0].text;
  CHECK(lab::recording_json(text, "the file").is_object());
  CHECK(refusal(text.substr(0, text.size() / 2)) ==
        fmt::format("the file is cut off after {} bytes; record it again with tilestep record",
                    text.size() / 2));
  CHECK(contains(refusal(""), "is cut off after 0 bytes"));
  CHECK(contains(refusal("{\"run\": }"), "is not JSON from byte"));
  CHECK(contains(refusal("{\"run\": 1e999}"), "has a number that fits no double"));
  CHECK(contains(refusal(std::string(100'000, '[')), "more than 32 objects and lists"));
  CHECK(contains(refusal(std::string(300'001, ' ')),
                 "has 300001 bytes; a recording has at most 300000"));
  auto json = lab::to_json(recorded_sample(kSample).recording);
  json["version"] = 3;
  json.erase("bench");  // as a newer form might
  CHECK(contains(error_of([&] { lab::recording_from_json(json); }),
                 "made by a newer tilestep: its version is 3, and this one reads 2"));
}

TEST_CASE("how far settings lie apart", "[lab]") {
  const lab::Knobs& knobs = kSample.knobs();
  const auto far = [&](const char* id, const lab::KnobValue& a, const lab::KnobValue& b) {
    const double there = lab::distance(knobs.at(id), a, b);
    CHECK(lab::distance(knobs.at(id), b, a) == there);
    return there;
  };
  using Whole = std::int64_t;
  CHECK(far("count", Whole{8}, Whole{8}) == 0);
  CHECK(far("count", Whole{1}, Whole{64}) == 1);
  CHECK(far("count", Whole{4}, Whole{8}) == Approx(1.0 / 6));  // a doubling of six
  CHECK(far("count", Whole{32}, Whole{64}) == Approx(1.0 / 6));
  CHECK(far("width", Whole{20}, Whole{70}) == Approx(0.5));
  CHECK(far("limit", 1.0, 4.0) == Approx(3.0 / 3.5));
  CHECK(far("limit", 0.0, 0.5) == 1);  // "off" is no small amount
  CHECK(far("loud", false, true) == 1);

  const auto with = [&](const lab::Settings& some) { return knobs.completed(some); };
  const lab::Settings defaults = with({});
  CHECK(lab::distance(knobs, defaults, with({{"count", Whole{16}}})) <
        lab::distance(knobs, defaults, with({{"loud", true}})));
  // As far in sum, but by two knobs.
  CHECK(lab::distance(knobs, defaults, with({{"loud", true}})) <
        lab::distance(knobs, with({{"width", Whole{0}}, {"limit", 0.5}}),
                      with({{"width", Whole{50}}, {"limit", 2.25}})));
  CHECK(lab::as_arguments(lab::differing(with({{"count", Whole{2}}, {"loud", true}}), defaults)) ==
        "--set count=2 --set loud=true");
}

TEST_CASE("a table that was retired may still stand in a recording", "[lab]") {
  lab::Report then, now;
  then.lesson = now.lesson = "sample";
  then.add(lab::Table{"old", "It was here", {"what"}});
  const auto difference = [&](const lab::Replay& replay) {
    return lab::compare(then, now, replay, false).difference.has_value();
  };
  CHECK(difference({}));
  CHECK_FALSE(difference({.retired = {{"tables.old", "the picture has it"}}}));
  CHECK(difference({.retired = {{"tables.older", "the picture has it"}}}));
}

// What every lesson promises, its picture aside. A lesson comes here by its line in lessons.def.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <map>
#include <set>

#include "kernels/lessons.hpp"
#include "tests/catch.hpp"
#include "tests/lesson_contract/knob_cases.hpp"
#include "tests/part.hpp"
#include "tests/reports.hpp"

using namespace tilestep;
using contract::to_text;
using tests::contains;
using tests::error_of;
using tests::report_of;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <class Items, class Name>
void check_names_differ(const Items& items, Name&& name) {
  std::set<std::string> names;
  for (const auto& item : items) {
    CAPTURE(name(item));
    CHECK_FALSE(name(item).empty());
    CHECK(names.insert(name(item)).second);
  }
}

void check_tables(const lab::Report& report) {
  CHECK_FALSE(report.tables.empty());
  check_names_differ(report.tables, [](const lab::Table& table) { return table.id; });
  for (const lab::Table& table : report.tables) {
    CAPTURE(table.id);
    CHECK_FALSE(table.title.empty());
    check_names_differ(table.columns, [](const lab::Column& column) { return column.id; });
    for (const auto& row : table.rows) {
      if (row.size() != table.columns.size()) FAIL_CHECK("a row has another number of cells");
    }
  }
}

void check_measurements(const lab::Report& report) {
  for (const lab::Measurement& m : report.measurements) {
    CAPTURE(m.id, m.variant);
    CHECK_FALSE(m.id.empty());
    // Nothing is timed under emulation.
    CHECK(m.provenance != lab::Provenance::measured);
    if (m.provenance != lab::Provenance::recorded) continue;
    CHECK_FALSE(m.recorded_at.empty());
    CHECK_FALSE(m.device.empty());
  }
}

/// A lesson's trace, read from JSON and written again.
nlohmann::json trace_again(std::string_view lesson, const nlohmann::json& trace) {
#define LESSON(chapter, id, title) \
  if (lesson == id::kLessonId) return id::trace_again(trace);
#include "kernels/lessons.def"
  throw Error("no lesson " + std::string(lesson));
}

/// The report of any run, and its way through JSON.
void check_report(const lab::Lesson& lesson, const lab::Settings& settings) {
  INFO(to_text(settings));
  const lab::Report& report = report_of(lesson.info().id, settings);
  CHECK(report.lesson == lesson.info().id);
  CHECK(report.params == lesson.knobs().completed(settings));
  CHECK(report.device.backend == "emulated");
  REQUIRE_FALSE(report.summary.empty());
  CHECK(report.summary.back() == '.');
  CHECK_FALSE(report.checks.empty());
  CHECK(tests::failed_checks(report).empty());
  check_names_differ(report.checks, [](const lab::Check& check) { return check.id; });
  check_tables(report);
  check_measurements(report);
  const nlohmann::json json = lab::to_json(report);
  const lab::Report back = lab::report_from_json(nlohmann::json::parse(json.dump()));
  CHECK((lab::to_json(back) == json));
  CHECK((back.trace == report.trace));
  CHECK((trace_again(report.lesson, back.trace) == report.trace));
}

void check_info(const lab::Lesson& lesson) {
  const lab::LessonInfo& info = lesson.info();
  for (const std::string* words : {&info.id, &info.title, &info.chapter, &info.takeaway}) {
    CHECK_FALSE(words->empty());
  }
  check_names_differ(lesson.knobs(), [](const lab::Knob& knob) { return knob.id; });
  for (const lab::Knob& knob : lesson.knobs()) {
    CAPTURE(knob.id);
    CHECK_FALSE(knob.label.empty());
    REQUIRE_FALSE(knob.help.empty());
    CHECK(knob.help.back() == '.');
    CHECK(knob.checked(knob.initial) == knob.initial);
    CHECK(std::set<std::string>{"model", "run", "kernel", "look"}.count(knob.group) == 1);
    for (const auto& [id, values] : knob.works_with) {
      for (const std::string& value : values) CHECK_NOTHROW(lesson.knobs().at(id).parsed(value));
    }
  }
}

void forget(nlohmann::json& json, const std::string& member) {
  if (json.is_object()) json.erase(member);
  if (json.is_structured()) {
    for (nlohmann::json& each : json) forget(each, member);
  }
}

/// What a run did: its trace and what it says of it, but for what says how the knob `id` stands.
nlohmann::json done_by(const lab::Lesson& lesson, const lab::Settings& settings,
                       const std::string& id) {
  const lab::Report& report = report_of(lesson.info().id, settings);
  nlohmann::json done = {{"trace", report.trace}, {"summary", report.summary}};
  forget(done, id);
  return done;
}

/// Every knob at its ends. With one that has no effect, as it says, the run does the same.
void check_knob_ends(const lab::Lesson& lesson) {
  check_report(lesson, {});
  const lab::Settings defaults = lesson.knobs().defaults();
  std::map<std::string, bool> changes;
  tests::Part part("runs at the ends of " + lesson.info().id, 7);
  for (const lab::Settings& settings : contract::knob_ends(lesson)) {
    if (part.skips()) continue;
    check_report(lesson, settings);
    const auto recorded = [&](const lab::Settings& of) {
      return report_of(lesson.info().id, of).recorded_at;
    };
    // A recorded run stands at its own settings alone.
    if (settings.size() != 1 || settings.begin()->second == defaults.at(settings.begin()->first) ||
        recorded(settings) != recorded({})) {
      continue;
    }
    const std::string& id = settings.begin()->first;
    const bool changed = done_by(lesson, settings, id) != done_by(lesson, {}, id);
    const bool first = changes.emplace(id, changed).second;
    if (!first) changes[id] = changes[id] || changed;
  }
  for (const auto& [id, changed] : changes) {
    INFO(id << " changes what the run does: " << changed);
    if (!lesson.knobs().at(id).idle(defaults).empty()) CHECK_FALSE(changed);
  }
}

void check_mixtures(const lab::Lesson& lesson) {
  constexpr int kMixtures = tests::kFewShapes ? 6 : 30;
  int tried = 0, taken = 0;
  // A lesson with many knobs refuses more of what chance puts together: it is asked on until as many ran.
  for (const lab::Settings& settings : contract::knob_mixtures(lesson, 4 * kMixtures)) {
    if (++tried > kMixtures && taken >= kMixtures / 3) break;
    if (!contract::takes(lesson, settings)) continue;
    ++taken;
    check_report(lesson, settings);
  }
  CHECK(taken >= kMixtures / 3);
}

/// What the Error of a run with `settings` offers.
std::optional<lab::Fix> fix_of(const lab::Lesson& lesson, const lab::Settings& settings) {
  try {
    tests::run_on(tests::device_at_hand(), lesson, settings);
  } catch (const Error& error) {
    return lab::fix_of(error);
  }
  return std::nullopt;
}

/// What `--set` refuses, in words that name the knob and what it allows.
void check_refusals(const lab::Lesson& lesson) {
  const lab::Knobs& knobs = lesson.knobs();
  const auto refusal = [&](const std::string& assignment) {
    lab::Settings settings;
    return error_of([&] { knobs.set(settings, assignment); });
  };
  std::string ids;
  for (const lab::Knob& knob : knobs) {
    CAPTURE(knob.id);
    ids += (ids.empty() ? "" : ", ") + knob.id;
    std::vector<std::string> wrong = {"", "nonsense", "1e999", "NaN"};
    if (knob.kind == lab::KnobKind::text) wrong = {"nonsense", ":"};
    if (knob.kind == lab::KnobKind::integer) {
      const auto least = static_cast<std::int64_t>(knob.min);
      wrong.push_back(std::to_string(least - 1));
      wrong.push_back(std::to_string(static_cast<std::int64_t>(knob.max) + 1));
      wrong.push_back(std::to_string(least) + "x");
      wrong.emplace_back("1.5");
    }
    if (knob.kind == lab::KnobKind::real) wrong.push_back(std::to_string(knob.max + 0.01));
    for (const std::string& value : wrong) {
      CAPTURE(value);
      const std::string sentence = refusal(knob.id + "=" + value);
      CHECK(contains(sentence, "'" + knob.id + "'"));
      CHECK(contains(sentence, knob.allowed()));
    }
  }
  CHECK(contains(refusal("no_such_knob=1"), "no_such_knob"));
  CHECK(contains(refusal("no_such_knob=1"), ids));
  // A run refuses the same.
  const auto device = tests::test_device();
  lab::NoProgress progress;
  const std::string unknown = error_of([&] {
    lesson.run({{"no_such_knob", std::int64_t{1}}}, *device, progress);
  });
  CHECK(contains(unknown, ids));
}

/// What a refusal offers is taken, perhaps after another refusal with an offer of its own.
void check_fixes(const lab::Lesson& lesson) {
  for (lab::Settings settings : contract::knob_mixtures(lesson, 30)) {
    INFO(contract::to_text(settings));
    for (int tries = 0; !contract::takes(lesson, settings); ++tries) {
      REQUIRE(tries < 4);
      const auto fix = fix_of(lesson, settings);
      REQUIRE(fix);
      CHECK(!fix->label.empty());
      REQUIRE(!fix->settings.empty());
      for (const auto& [id, value] : fix->settings)
        settings[id] = lesson.knobs().at(id).checked(value);
    }
  }
}

constexpr long kNever = std::numeric_limits<long>::max();

/// Gives a run up after it has asked `most` times, or `limit` after the first time.
class GivesUp final : public lab::Progress {
 public:
  explicit GivesUp(long most, std::chrono::milliseconds limit = std::chrono::hours(1))
      : most_(most), end_(Clock::now() + limit) {}
  void report(double fraction, std::string_view) override {
    CHECK(fraction >= 0);
    CHECK(fraction <= 1);
  }
  bool cancelled() const override { return ++asked_ > most_ || Clock::now() > end_; }
  long asked() const { return asked_; }
  bool told_to_stop() const { return asked_ > most_; }

 private:
  long most_;
  Clock::time_point end_;
  mutable std::atomic<long> asked_ = 0;
};

lab::Report run(const lab::Lesson& lesson, const lab::Settings& settings, simt::Device& device,
                GivesUp& progress) {
  device.stop_when([&progress] { return progress.cancelled(); });
  return lesson.run(settings, device, progress);
}

void check_cancel(const lab::Lesson& lesson) {
  const auto device = tests::test_device();
  GivesUp never(kNever);
  const nlohmann::json whole = lab::to_json(run(lesson, {}, *device, never));
  const long asked = never.asked();
  REQUIRE(asked >= 3);  // who never asks cannot be stopped
  // The emulator asks by the clock, so that a run may ask less often than the one before it did: it
  // must have been cut short exactly when it was told to stop.
  tests::Part part("runs of " + lesson.info().id + " cut short", 2);
  for (const long after : {0L, 1L, asked / 2, asked * 3 / 4}) {
    if (after > 1 && part.skips()) continue;
    GivesUp progress(after);
    bool cut_short = false;
    try {
      run(lesson, {}, *device, progress);
    } catch (const Cancelled&) {
      cut_short = true;
    }
    CAPTURE(after, asked, progress.asked());
    CHECK(cut_short == progress.told_to_stop());
    if (after == 0) CHECK(cut_short);
  }
  // The same device goes on as if nothing had been. On a GPU clocks and counters differ from run to run.
  const lab::Report again = run(lesson, {}, *device, never);
  for (const lab::Check& check : again.checks) CHECK(check.ok);
  if (!device->can_time()) CHECK((lab::to_json(again) == whole));
}

/// A run of any size ends soon after it was given up.
void check_stops_soon(const lab::Lesson& lesson) {
  constexpr double kSoon_s = 30;  // sanitizers and a busy machine included
  const auto device = tests::test_device();
  for (const lab::Knob& knob : lesson.knobs()) {
    if (knob.kind != lab::KnobKind::integer) continue;
    CAPTURE(knob.id);
    const auto start = Clock::now();
    GivesUp progress(kNever, std::chrono::milliseconds(50));
    try {
      run(lesson, {{knob.id, static_cast<std::int64_t>(knob.max)}}, *device, progress);
    } catch (const Error&) {  // cancelled, or refused with these other knobs
    }
    CHECK(seconds_since(start) < kSoon_s);
  }
}

void check_bench_without_gpu(const lab::Lesson& lesson) {
  const auto device = tests::test_device();
  if (device->can_time()) return;
  lab::NoProgress progress;
  try {
    lesson.bench(*device, progress);
    FAIL_CHECK("a bench ran under emulation");
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.code() == ExitCode::unavailable);
    CHECK((contains(error.what(), "GPU") || contains(error.what(), "nothing to time")));
  }
}

}  // namespace

#define LESSON(chapter, id, title)                                                    \
  TEST_CASE(title ": words, and every knob at its ends", "[" #id "]") {               \
    check_info(id::lesson());                                                         \
    check_knob_ends(id::lesson());                                                    \
  }                                                                                   \
  TEST_CASE(title ": knobs mixed", "[" #id "]") {                                     \
    check_mixtures(id::lesson());                                                     \
  }                                                                                   \
  TEST_CASE(title ": what is refused names what is allowed", "[" #id "]") {           \
    check_refusals(id::lesson());                                                     \
    check_fixes(id::lesson());                                                        \
  }                                                                                   \
  TEST_CASE(title ": a cancelled run ends, and the next one is whole", "[" #id "]") { \
    check_cancel(id::lesson());                                                       \
    check_stops_soon(id::lesson());                                                   \
  }                                                                                   \
  TEST_CASE(title ": no bench without a GPU, in words", "[" #id "]") {                \
    check_bench_without_gpu(id::lesson());                                            \
  }
#include "kernels/lessons.def"

// The traces of all lessons as JSON: those of the recordings, which are older than this build, or of a
// run where nothing was recorded.

#include <string_view>
#include <utility>

#include "kernels/base/lab/recording.hpp"
#include "kernels/lessons.hpp"
#include "tests/catch.hpp"
#include "tests/lesson_contract/damage.hpp"
#include "tests/part.hpp"
#include "tests/reports.hpp"

namespace tilestep {
namespace {

using nlohmann::json;

json trace_of(std::string_view id) {
  const lab::Recording* recording = lab::recording(id);
  return recording == nullptr ? tests::report_of(id).trace : recording->run.trace;
}

/// The path of a source file is written for people, and files move; line numbers are always those of
/// this build's source.
constexpr const char* kLineMembers[] = {"line", "lines", "access_line", "index_line"};

json without_source(json trace) {
  if (trace.is_object()) trace.erase("source");
  for (const char* member : kLineMembers) {
    if (trace.is_object()) trace.erase(member);
  }
  if (!trace.is_structured()) return trace;
  for (json& part : trace) part = without_source(std::move(part));
  return trace;
}

/// As if the source had been another: `changed` counts the numbers.
json with_other_lines(json trace, int& changed) {
  if (!trace.is_structured()) return trace;
  for (const char* member : kLineMembers) {
    if (!trace.is_object() || !trace.contains(member)) continue;
    json& lines = trace[member];
    if (lines.is_number()) lines = ++changed;
    for (json& line : lines) {
      if (lines.is_array()) line = ++changed;
    }
  }
  for (json& part : trace) part = with_other_lines(std::move(part), changed);
  return trace;
}

void check_loads(const json& trace, json (*again)(const json&)) {
  CHECK((without_source(again(trace)) == without_source(trace)));
  int changed = 0;
  CHECK((again(with_other_lines(trace, changed)) == again(trace)));
  CHECK((changed > 0 || !trace.contains("source")));
}

void check_damage(const json& trace, json (*again)(const json&)) {
  const tests::Damages found = tests::damage(again(trace), again);
  CHECK(found.complaints == std::vector<std::string>());
  CAPTURE(found.tried);
  CHECK(found.refused > found.tried / 2);
}

/// Traces with what the defaults have not: those of the trial settings, which run every source.
void check_trials(const lab::Lesson& lesson, json (*again)(const json&)) {
  tests::Part part("damage to traces of " + lesson.info().id, 6);
  for (const lab::Settings& settings : lesson.trials()) {
    if (part.skips()) continue;
    INFO(lab::to_json(settings).dump());
    const lab::Report report = tests::run_on(tests::device_at_hand(), lesson, settings);
    CHECK(tests::failed_checks(report) == "");
    CHECK((again(report.trace) == report.trace));
    check_damage(report.trace, again);
  }
}

}  // namespace
}  // namespace tilestep

#define LESSON(chapter, id, title)                                                                 \
  TEST_CASE("the recorded trace still loads, with this build's lines: " title,                     \
            "[contract][" #id "]") {                                                               \
    tilestep::check_loads(tilestep::trace_of(tilestep::id::kLessonId), tilestep::id::trace_again); \
  }                                                                                                \
  TEST_CASE("no damage to a trace goes unnoticed: " title, "[contract][" #id "]") {                \
    tilestep::check_damage(tilestep::trace_of(tilestep::id::kLessonId),                            \
                           tilestep::id::trace_again);                                             \
  }                                                                                                \
  TEST_CASE("no damage to a trial's trace goes unnoticed: " title, "[contract][" #id "]") {        \
    tilestep::check_trials(tilestep::id::lesson(), tilestep::id::trace_again);                     \
  }
#include "kernels/lessons.def"

// The traces of all lessons as JSON: those of the recordings, which are older than this build, or of a
// run where nothing was recorded.

#include <string_view>
#include <utility>

#include "kernels/base/lab/recording.hpp"
#include "kernels/lessons.hpp"
#include "tests/catch.hpp"
#include "tests/lesson_contract/damage.hpp"
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
json without_source(json trace) {
  for (const char* member : {"source", "line", "lines", "access_line", "index_line"}) {
    if (trace.is_object()) trace.erase(member);
  }
  if (!trace.is_structured()) return trace;
  for (json& part : trace) part = without_source(std::move(part));
  return trace;
}

void check_loads(const json& trace, json (*again)(const json&)) {
  CHECK((without_source(again(trace)) == without_source(trace)));
}

void check_damage(const json& trace, json (*again)(const json&)) {
  const tests::Damages found = tests::damage(again(trace), again);
  CHECK(found.complaints == std::vector<std::string>());
  CAPTURE(found.tried);
  CHECK(found.refused > found.tried / 2);
}

}  // namespace
}  // namespace tilestep

#define LESSON(chapter, id, title)                                                                 \
  TEST_CASE("the recorded trace still loads: " title, "[contract][" #id "]") {                     \
    tilestep::check_loads(tilestep::trace_of(tilestep::id::kLessonId), tilestep::id::trace_again); \
  }                                                                                                \
  TEST_CASE("no damage to a trace goes unnoticed: " title, "[contract][" #id "]") {                \
    tilestep::check_damage(tilestep::trace_of(tilestep::id::kLessonId),                            \
                           tilestep::id::trace_again);                                             \
  }
#include "kernels/lessons.def"

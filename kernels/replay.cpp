#include "kernels/replay.hpp"

#include <nlohmann/json.hpp>

#include "kernels/catalog.hpp"
#include "kernels/lessons.hpp"

namespace tilestep {
namespace {

/// The trace as this build writes it: source lines and paths are those of its own sources.
nlohmann::json trace_of_this_build(std::string_view lesson, const nlohmann::json& trace) {
#define LESSON(chapter, id, title) \
  if (lesson == id::kLessonId) return id::trace_again(trace);
#include "kernels/lessons.def"
  return trace;
}

}  // namespace

lab::Comparison replayed(const lab::Report& recorded, bool same_build, lab::Progress& progress) {
  const lab::Lesson& of = lesson(recorded.lesson);
  const lab::Settings settings = of.knobs().completed(recorded.params);
  lab::Report then = recorded;
  then.trace = trace_of_this_build(recorded.lesson, recorded.trace);
  const auto device = simt::make_emulated_device(emulated_kernels());
  return lab::compare(then, of.run(settings, *device, progress), of.replay(), same_build);
}

}  // namespace tilestep

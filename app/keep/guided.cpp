#include "app/keep/guided.hpp"

#include <fmt/format.h>

#include "kernels/answer.hpp"
#include "kernels/catalog.hpp"

namespace tilestep::app {

lab::Report emulated_report(std::string_view lesson, const lab::Settings& settings) {
  lab::NoProgress progress;
  return answer({std::string(lesson), settings, lab::Request::Action::run, "emulated"}, progress);
}

std::unique_ptr<scenes::Scene> scene_of(const lab::Report& report) {
  for (auto& scene : scenes::make_scenes()) {
    if (scene->lesson() != report.lesson) continue;
    scene->load(report);
    return std::move(scene);
  }
  throw Error(fmt::format("the lesson '{}' has no picture yet", report.lesson),
              ExitCode::unavailable);
}

scenes::Guide guide_of(std::string_view id) {
  return scenes::parse_guide(scenes::lesson_text(id), lesson(id).knobs());
}

scenes::GuideStop stop_of(std::string_view lesson, int number) {
  const scenes::Guide guide = guide_of(lesson);
  if (guide.stops.empty()) {
    throw Error(fmt::format("the lesson '{}' has no guided path, and so no --stop", lesson));
  }
  if (number < 1 || number > std::ssize(guide.stops)) {
    throw Error(fmt::format("--stop cannot be {}; the guided path of '{}' has the stops 1–{}",
                            number, lesson, guide.stops.size()));
  }
  return guide.stops[static_cast<std::size_t>(number - 1)];
}

}  // namespace tilestep::app

#pragma once

#include <memory>
#include <string_view>

#include "scenes/shared/guide.hpp"
#include "scenes/shared/scene.hpp"

namespace tilestep::app {

/// A lesson's report for `settings` under emulation, the same on every machine. Throws Error as Lesson::run.
lab::Report emulated_report(std::string_view lesson, const lab::Settings& settings = {});
/// The scene of a report, loaded. Throws Error as Scene::load.
std::unique_ptr<scenes::Scene> scene_of(const lab::Report& report);

/// The guided path of a lesson's text. Throws Error as parse_guide.
scenes::Guide guide_of(std::string_view lesson);
/// Stop `number` from 1 of a lesson's guided path. Throws Error naming the allowed numbers.
scenes::GuideStop stop_of(std::string_view lesson, int number);

}  // namespace tilestep::app

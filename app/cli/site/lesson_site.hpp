#pragma once

#include <string>
#include <vector>

#include "app/window/window.hpp"
#include "app/worker/ask.hpp"
#include "kernels/base/lab/lesson.hpp"

namespace tilestep::app {

struct SiteOptions {
  std::string backend = "emulated";  ///< of runs: emulated, or recorded where there is a recording
  bool few = false;          ///< only the settings of the stops, not those of chips and sliders
  LabClient* lab = nullptr;  ///< where kernels run; null: here
};

/// A lesson of the course as parts of a page, whose script (assets/site/course.js) puts them together.
struct LessonSite {
  std::string body;  ///< HTML: the text of its stops, kernels, exercises; then its data in blocks
  std::string card;  ///< a block of data with one picture, for the course's first page
  int runs = 0, pictures = 0;
  std::vector<std::string> missing;  ///< runs that cannot be had here, a sentence each
};

/// Runs a lesson with the settings of its path and lays out every picture of every run. Throws Error.
LessonSite make_lesson_site(const lab::Lesson& lesson, const SvgPress& press,
                            const SiteOptions& options, lab::Progress& progress);

}  // namespace tilestep::app

#pragma once

#include <string>
#include <vector>

#include "kernels/base/lab/report.hpp"

/// The course: time, prerequisites and goals of each lesson, from its text and its exercises.
namespace tilestep::scenes {

struct CourseRow {
  std::string lesson, chapter, title;
  std::string before;  ///< prerequisites
  std::string after;   ///< learning goals
  /// Approximate duration: 180 words of its path per minute, and half a minute to look at each stop.
  int minutes = 0;
  std::vector<std::string> stops;      ///< titles
  std::vector<std::string> exercises;  ///< "coalescing/pad-the-tile"
};

/// In teaching order. Throws Error for a damaged text.
const std::vector<CourseRow>& course();
/// The same as a table, one row per lesson.
lab::Table course_table();

}  // namespace tilestep::scenes

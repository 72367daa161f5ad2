#pragma once

#include <string>
#include <vector>

#include "kernels/base/lab/report.hpp"

/// The course: what each lesson takes and gives, of its text and its exercises.
namespace tilestep::scenes {

struct CourseRow {
  std::string lesson, chapter, title;
  std::string before;  ///< what one should know
  std::string after;   ///< what one can do afterwards
  /// About how long it takes: 180 words of its path a minute, and half a minute to look at each stop.
  int minutes = 0;
  std::vector<std::string> stops;      ///< titles
  std::vector<std::string> exercises;  ///< "coalescing/pad-the-tile"
};

/// In teaching order. Throws Error for a text that is damaged.
const std::vector<CourseRow>& course();
/// The same as a table, a lesson a row.
lab::Table course_table();

}  // namespace tilestep::scenes
